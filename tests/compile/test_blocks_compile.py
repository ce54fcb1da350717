# SPDX-License-Identifier: Apache-2.0
"""Kernels that record several CTAs or launches: only their entry and exit differ from one that records a single CTA."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

pytest.importorskip("cutlass", reason="CuTe-DSL is not installed")

from autostamp.runtime import layout
from tests.builds import build_once
from tests.compile import ptx_text

CHOICES = ("range", "list", "repeat", "both")
COUNTER = "ld.volatile.global.u32"
COUNT = "red.global.add.u32"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict]:
    folder = build_once(tmp_path_factory, "scenario-several", "tests.compile.scenarios", "several")
    return folder, json.loads((folder / "result.json").read_text())


def body(built: tuple[Path, dict], label: str) -> str:
    folder, result = built
    return ptx_text.body((folder / f"two_pipelines.{label}.ptx").read_text(), result[label]["trace"]["symbol"])


def stamp_texts(text: str) -> list[str]:
    """The asm of every stamp, in order, with its registers left out."""
    blocks = re.findall(r"// begin inline asm\n(.*?)// end inline asm", text, re.DOTALL)
    return [re.sub(r"%r\w*\d+", "%", block) for block in blocks if re.search(r"// autostamp \d", block)]


@pytest.mark.parametrize("label", CHOICES)
def test_stamps_are_those_of_one_cta(built, label):
    assert stamp_texts(body(built, label)) == stamp_texts(body(built, "one"))
    assert stamp_texts(body(built, "one"))


@pytest.mark.parametrize("label", CHOICES)
def test_the_high_word_of_a_records_address_stays_constant(built, label):
    text, address = body(built, label), built[1][label]["address"]
    for stamp in ptx_text.stamps(text):
        assert ptx_text.constants_behind(text, stamp.high) == {address >> 32}


@pytest.mark.parametrize(
    ("label", "ctas", "launches"), [("one", 1, 1), ("range", 8, 1), ("list", 2, 1), ("both", 8, 3)]
)
def test_memory_and_table(built, label, ctas, launches):
    _, result = built
    counts = ctas * layout.WARPS * 4 if launches > 1 else 0
    assert result[label]["size"] == ctas * launches * layout.region_bytes(4096) + counts
    blocks = {"one": "", "range": "3..10", "list": "1,0,0;0,2,0", "both": "3..10"}[label]
    assert result[label]["trace"]["blocks"] == blocks
    assert result[label]["trace"]["block"] == ([1, 0, 0] if label == "list" else [0, 0, 0])


def test_launches_are_counted_only_where_several_are_kept(built):
    for label in ("one", "range", "list"):
        assert COUNTER not in body(built, label)
        assert COUNT not in body(built, label)
    for label in ("repeat", "both"):
        text = body(built, label)
        assert (text.count(COUNTER), text.count(COUNT)) == (1, text.count("// autostamp release"))
        # Read before the lane is bound, added to after it is released.
        assert (
            text.index(COUNTER)
            < text.index("// autostamp bind")
            < text.index("// autostamp release")
            < text.index(COUNT)
        )


def test_a_range_takes_the_linear_index(built):
    """x + grid.x * (y + grid.y * z), less the first, compared without sign: one comparison for both ends."""
    text = body(built, "range")
    registers = dict(re.findall(r"mov\.u32 \t(%r\d+), %(n?ctaid\.[xyz]);", text))
    by_name = {name: register for register, name in registers.items()}
    (inner,) = re.findall(
        rf"mad\.lo\.s32 \t(%r\d+), {by_name['nctaid.y']}, {by_name['ctaid.z']}, {by_name['ctaid.y']};", text
    )
    (linear,) = re.findall(rf"mad\.lo\.s32 \t(%r\d+), {inner}, {by_name['nctaid.x']}, {by_name['ctaid.x']};", text)
    (number,) = re.findall(rf"add\.s32 \t(%r\d+), {linear}, -3;", text)
    assert re.search(rf"setp\.lt\.u32 \t%p\d+, {number}, 8;", text)


def test_one_cta_notes_no_grid(built):
    assert "%nctaid" not in body(built, "one")
    assert "%nctaid" in body(built, "list")
