# SPDX-License-Identifier: Apache-2.0
"""What lies between a group and its wait, and how two streams are mixed. Counts are made by hand from the listings."""

from __future__ import annotations

import pytest

from autostamp.model.kernel_loops import Alternation, GroupWait
from autostamp.passes.loop_waits import alternations, group_waits
from tests.listing import listing

OPEN = "HGMMA.64x128x16.F32.BF16 R24, gdesc[UR8], R24\n"
CLOSE = "HGMMA.64x128x16.F32.BF16 R24, gdesc[UR8], R24, gsb0\n"
MUFU = "MUFU.EX2 R1, R2\n"
F2FP = "F2FP.BF16.F32.PACK_AB R1, R2, R3\n"
FADD = "FADD R1, R2, R3\n"


def wait(left: int) -> str:
    return f"WARPGROUP.DEPBAR.LE gsb0, {left:#x}\n"


def found(text: str) -> list[tuple[int, int, int, int, int]]:
    return [(each.allowed, each.distance, each.mufu, each.mma, each.trips) for each in group_waits(listing(text))]


def test_the_group_of_the_same_trip():
    # Between the closing MMA and the wait: 3 MUFU and 1 FADD.
    assert found(OPEN + CLOSE + MUFU * 3 + FADD + wait(0)) == [(0, 4, 3, 0, 0)]


def test_one_group_may_stay_in_flight():
    # Waited for is the first of two groups: one MUFU, two MMA and one FADD after it.
    assert found(CLOSE + MUFU + OPEN + CLOSE + FADD + wait(1)) == [(1, 4, 1, 2, 0)]


def test_the_group_of_the_trip_before():
    # A trip has 6 instructions; the wait is the fifth. Waited for is the MMA at place 3 of the trip before:
    # after it come places 4 and 5 there, and 0 to 3 here (one MUFU in each trip's place 5, four MMA here).
    assert found(OPEN * 3 + CLOSE + wait(1) + MUFU) == [(1, 6, 1, 4, 1)]


def test_groups_of_several_trips_before():
    # One group a trip, two may stay: the third last is two trips back. 2 trips of 3 instructions, less the group itself... the
    # wait stands at place 1, the group at place 0: 1 + 2 x 3 - 0 - 1 = 6 between.
    assert found(CLOSE + wait(2) + MUFU) == [(2, 6, 2, 2, 2)]


def test_a_trip_without_the_group():
    assert group_waits(listing(MUFU + wait(0))) == (GroupWait("WARPGROUP.DEPBAR.LE", 16, 0, -1, -1, -1, -1),)


def test_bulk_groups_are_closed_by_their_commit():
    text = "UTMASTG.2D [UR4], [UR6]\nUTMACMDFLUSH\nFADD R0, R0, R0\nDEPBAR.LE SB0, 0x0"
    assert found(text) == [(0, 1, 0, 0, 0)]
    # An MMA closes none of these, a commit none of wgmma's.
    assert found(CLOSE + "DEPBAR.LE SB0, 0x0\n") == [(0, -1, -1, -1, -1)]
    assert found("UTMACMDFLUSH\n" + wait(0)) == [(0, -1, -1, -1, -1)]


@pytest.mark.parametrize(
    ("text", "switches", "longest"),
    [
        (MUFU * 4 + F2FP * 2, 1, 4),
        ((MUFU * 2 + F2FP) * 2, 3, 2),
        ((MUFU + FADD + F2FP) * 2 + MUFU * 2, 4, 2),  # FADD belongs to neither
    ],
)
def test_switches_and_the_longest_run(text, switches, longest):
    found = next(each for each in alternations(listing(text)) if (each.first, each.second) == ("MUFU", "F2FP"))
    assert found == Alternation("MUFU", "F2FP", 4, 2, switches, longest)


def test_one_stream_alone_is_not_mixed():
    assert alternations(listing(MUFU * 3)) == ()
    assert alternations(()) == ()
