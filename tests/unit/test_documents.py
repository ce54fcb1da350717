# SPDX-License-Identifier: Apache-2.0
"""What the documents show is what the tool makes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from autostamp.cli import COMMANDS, main

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_picture_is_the_recorded_run(tmp_path):
    run, made = ROOT / "tests/fixtures/runs/fa4_forward_one_cta", tmp_path / "picture.svg"
    assert main(["export", str(run), "--svg", str(made), "--from", "40000", "--to", "52000", "-q"]) == 0
    shown = ROOT / "docs/pictures/fa4_forward_one_cta.svg"
    assert made.read_text(encoding="utf-8") == shown.read_text(encoding="utf-8")


def test_the_stamps_shown_are_those_made(capsys):
    text = (ROOT / "docs/how-it-works.md").read_text(encoding="utf-8")
    shown = [line for block in re.findall(r"```diff\n(.*?)```", text, re.DOTALL) for line in block.splitlines()]
    assert main(["instrument", str(ROOT / "kernels/cuda/gemm_ws.cu"), "--diff", "-q"]) == 0
    made = capsys.readouterr().out.splitlines()
    assert len(shown) > 5
    assert [line for line in shown if line not in made] == []


def test_the_two_commands_are_make_targets():
    commands = re.findall(r"^    make (\w+)", README, re.MULTILINE)
    assert commands == ["demo", "test"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert all(re.search(rf"^{command}:", makefile, re.MULTILINE) for command in commands)


def test_commands_shown_exist():
    shown = set(re.findall(r"^\$ autostamp (\w+)", README, re.MULTILINE))
    assert shown
    assert shown <= set(COMMANDS)


@pytest.mark.parametrize(
    "page", sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("docs/**/*.md")), ids=lambda path: path.name
)
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), target
