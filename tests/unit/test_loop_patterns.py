# SPDX-License-Identifier: Apache-2.0
"""Stall-prone sequences: each pattern's own listing, and near misses."""

from __future__ import annotations

from pathlib import Path

import pytest

from autostamp.passes import loop_patterns
from tests.listing import listing

MMA = "HGMMA.64x128x16.F32.BF16 R24, gdesc[UR8], R24, gsb0\n"
DRAIN = "WARPGROUP.DEPBAR.LE gsb0, 0x0\n"
FADD = "FADD R90, R91, R92\n"


def names(text: str) -> dict[str, tuple[int, int]]:
    return {each.pattern.name: (each.count, each.address) for each in loop_patterns.find(listing(text))}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{FADD}STL [R1], R5\nLDL.64 R6, [R1+0x8]", {"local memory": (2, 16)}),
        ((MMA + DRAIN) * 2, {"serialized wgmma": (2, 0), "wgmma drained at once": (2, 16)}),
        (MMA + FADD * 8 + DRAIN, {"wgmma drained at once": (1, 144)}),
        (MMA + FADD * 9 + DRAIN, {}),
        (MMA + DRAIN.replace("0x0", "0x1"), {}),
        (MMA * 2 + FADD * 9 + DRAIN, {}),
        ("BAR.SYNC.DEFER_BLOCKING 0x1, 0x80\nBAR.ARV 0x2, 0x80", {"CTA barrier": (1, 0)}),
        ("MEMBAR.SC.GPU\nMEMBAR.ALL.CTA", {"memory fence": (1, 0)}),
        (f"LDS R4, [R5]\n{FADD * 3}FADD R0, R4, R4", {"shared load used at once": (1, 0)}),
        (f"LDS R4, [R5]\n{FADD * 4}FADD R0, R4, R4", {}),
        ("LDS.128 R4, [R5]\nFADD R0, R7, R7", {"shared load used at once": (1, 0)}),
        ("LDS.128 R4, [R5]\nFADD R0, R8, R8", {}),
        ("LDG.E R4, desc[UR4][R8.64]\nIADD3 R4, R4, 0x1, RZ", {"global load used at once": (1, 0)}),
        ("LDG.E R4, desc[UR4][R8.64]\nMOV R4, R5", {}),
        ("MUFU.EX2 R1, R2\n" * 8 + FADD, {"run of MUFU": (1, 0)}),
        (("MUFU.EX2 R1, R2\n" * 7 + FADD) * 2, {}),
        (FADD + "MUFU.EX2 R1, R2\n" * 9, {"run of MUFU": (1, 16)}),
        ("I2F.U32.RP R4, UR5\nMUFU.RCP R4, R4\nF2I.FTZ.U32.TRUNC.NTZ R5, R4", {"integer division": (1, 0)}),
        ("I2F.U32.RP R4, UR5\nF2I.FTZ.U32.TRUNC.NTZ R5, R4", {}),
        ("CALL.REL.NOINC 0x20", {"call": (1, 0)}),
        ("@P0 ELECT P1, URZ, PT\nUTMALDG.2D [UR8], [UR6]\n@P0 BRA.U.ANY 0x0", {"one thread at a time": (1, 32)}),
    ],
)
def test_pattern(text, expected):
    assert names(text) == expected


def test_every_pattern_of_the_table_has_a_name_of_its_own_a_meaning_and_a_source():
    patterns = [pattern for pattern, _ in loop_patterns.TABLE]
    assert len({each.name for each in patterns}) == len(patterns)
    assert all(each.meaning and each.source for each in patterns)


def test_the_page_shows_the_table():
    page = (Path(__file__).parents[2] / "docs" / "sass.md").read_text(encoding="utf-8")
    rows = "".join(f"| {each.name} | {each.meaning} | {each.source} |\n" for each, _ in loop_patterns.TABLE)
    assert rows in page
