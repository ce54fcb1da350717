# SPDX-License-Identifier: Apache-2.0
"""The table of codes, their pages, and how a finding is shown."""

from __future__ import annotations

import re
import string
from importlib import resources

import pytest

from autostamp.diagnostics import CODES, AutostampError, Diagnostic, ExitStatus, Position, render

HEADINGS = ["## What it means", "## Why", "## What to do", "## Example"]
PAGES = resources.files("autostamp.diagnostics").joinpath("pages")


def page(code: str) -> str:
    return PAGES.joinpath(f"{code}.md").read_text(encoding="utf-8")


def details(template: str) -> list[str]:
    return [name for _, name, _, _ in string.Formatter().parse(template) if name]


def test_every_code_has_a_page_and_every_page_a_code():
    pages = {entry.name.removesuffix(".md") for entry in PAGES.iterdir()} - {"README"}
    assert pages == set(CODES)


def test_the_index_lists_every_code_once():
    assert re.findall(r"^\| \[(AS\d{4})\]\(\1\.md\) \|", page("README"), re.MULTILINE) == list(CODES)


@pytest.mark.parametrize("code", CODES)
def test_page_has_title_message_and_headings(code):
    lines = page(code).splitlines()
    assert re.fullmatch(rf"# {code}: \S.*", lines[0])
    assert lines[2].strip() == CODES[code].message
    assert [line for line in lines if line.startswith("## ")] == HEADINGS
    assert "```" in page(code)


@pytest.mark.parametrize("code", CODES)
def test_page_names_the_exit_status(code):
    expected = "Listed among" if code.startswith("AS2") else f"Exit status {int(CODES[code].status)} "
    assert page(code).splitlines()[4].startswith(expected)


@pytest.mark.parametrize("code", CODES)
def test_codes_are_well_formed(code):
    info = CODES[code]
    assert info.code == code
    assert re.fullmatch(r"AS[1-9]\d{3}", code)
    assert info.help.endswith((".", "}", ")")) or "pip install" in info.help
    assert not info.message.endswith(".")


@pytest.mark.parametrize("code", CODES)
def test_templates_can_be_filled(code):
    info = CODES[code]
    values = {name: f"<{name}>" for name in details(info.message) + details(info.help)}
    finding = Diagnostic.of(code, **values)
    assert "{" not in finding.message + finding.help
    for value in values.values():
        assert value in finding.message + finding.help
    assert finding.status is info.status


def test_codes_stand_in_order():
    assert list(CODES) == sorted(CODES)


def test_a_missing_detail_or_code_is_refused():
    with pytest.raises(KeyError):
        Diagnostic.of("AS1001", path="x")
    with pytest.raises(KeyError):
        Diagnostic.of("AS0000")


def test_error_carries_its_finding():
    error = AutostampError.of("AS9002", path="nosuch.py")
    assert str(error) == "AS9002 nosuch.py: no such file, folder or installed module"
    assert error.diagnostic.status is ExitStatus.USAGE
    assert error.diagnostic.position is None


def test_render_without_a_position():
    assert render(Diagnostic.of("AS1004", path="mask.py")) == (
        "AS1004 no sync call in mask.py\n"
        "help: Check that this is the right file; waits in helpers of other files need those files named too."
        "  (autostamp explain AS1004)"
    )


def test_render_with_a_position_but_no_source():
    finding = Diagnostic.of("AS2102", Position("k.py", 7, 3), call="fence()")
    assert render(finding).splitlines()[0] == "k.py:7:3: AS2102 fence, which waits for no other warp: fence()"
    assert len(render(finding).splitlines()) == 2


def test_render_points_at_the_source():
    position = Position("attention.py", 120, 9, "        pipe.consumer_wait(state)", 25)
    assert render(Diagnostic.of("AS2105", position, call="pipe.consumer_wait(state)")) == (
        "attention.py:120:9: AS2105 sync call in a position that cannot be stamped: pipe.consumer_wait(state)\n"
        "  120 |         pipe.consumer_wait(state)\n"
        "      |         ^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "help: Put the call on a line of its own.  (autostamp explain AS2105)"
    )


def test_render_keeps_the_caret_under_its_text_behind_tabs():
    position = Position("k.py", 3, 2, "\twait()", 6)
    lines = render(Diagnostic.of("AS2108", position, call="wait()")).splitlines()
    assert lines[1:3] == ["    3 |     wait()", "      |     ^^^^^^"]


def test_render_cuts_the_caret_at_the_end_of_the_line():
    position = Position("k.py", 1, 5, "x = wait(", 80)
    assert render(Diagnostic.of("AS2108", position, call="wait(")).splitlines()[2] == "      |     ^^^^^"
