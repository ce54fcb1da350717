# SPDX-License-Identifier: Apache-2.0
"""Order of core opcodes, and where waits fall among MUFU and matrix instructions."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autostamp.model.cubin import WaitPlace
from autostamp.passes import schedule
from tests.listing import facts, listing


def textbook_common_length(first: Sequence[str], second: Sequence[str]) -> int:
    table = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i, one in enumerate(first):
        for j, other in enumerate(second):
            table[i + 1][j + 1] = table[i][j] + 1 if one == other else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


@given(st.lists(st.sampled_from("abcd"), max_size=40), st.lists(st.sampled_from("abcde"), max_size=40))
def test_common_length_is_the_textbook_one(first: list[str], second: list[str]) -> None:
    assert schedule.common_length(first, second) == textbook_common_length(first, second)


@given(st.lists(st.sampled_from("ab"), min_size=60, max_size=140), st.integers(0, 139))
def test_common_length_past_a_machine_word(items: list[str], cut: int) -> None:
    turned = items[cut:] + items[:cut]
    assert schedule.common_length(items, turned) == textbook_common_length(items, turned)


def test_common_length_of_long_sequences() -> None:
    # The second is the first with a foreign item after each, so all of the first remains in order.
    first = [str(index % 13) for index in range(10_000)]
    second = [each for item in first for each in (item, "x")]
    assert schedule.common_length(first, second) == 10_000
    assert schedule.common_length(second, first) == 10_000
    assert schedule.common_length(first, ["x"] * 10_000) == 0


@pytest.mark.parametrize(
    ("opcode", "family"),
    [
        ("MUFU.EX2", "MUFU"),
        ("BAR.SYNC.DEFER_BLOCKING", "BAR.SYNC"),
        ("BAR.ARV", "BAR.ARV"),
        ("SYNCS.PHASECHK.TRANS64.TRYWAIT", "SYNCS.PHASECHK"),
        ("WARPGROUP.DEPBAR.LE", "WARPGROUP.DEPBAR"),
        ("DEPBAR.LE", "DEPBAR"),
        ("HGMMA.64x128x16.F32.BF16", "HGMMA"),
        ("EXIT", "EXIT"),
    ],
)
def test_family(opcode: str, family: str) -> None:
    assert schedule.family(opcode) == family


IN_LINE = """
    IMAD.U32 R5, RZ, RZ, UR4
    SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R5+URZ+0x20], R3
    @!P0 NANOSLEEP.SYNCS 0x989680
    @!P0 SYNCS.PHASECHK.TRANS64 P0, [R5+URZ+0x20], R3
    @!P0 BRA 0x0
    UTMALDG.2D [UR8], [UR18], desc[URZ]
    EXIT
"""
OUT_OF_LINE = """
    SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR9+0x20], R0
    @!P0 BRA 0x40
    UTMALDG.2D [UR8], [UR18], desc[URZ]
    EXIT
    IMAD.U32 R5, RZ, RZ, UR4
    SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R5+URZ+0x20], R3
    @!P0 NANOSLEEP.SYNCS 0x989680
    @!P0 SYNCS.PHASECHK.TRANS64 P0, [R5+URZ+0x20], R3
    @!P0 BRA 0x40
    BRA 0x20
"""
LAST_BEFORE_EXIT = """
    SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R5+URZ+0x20], R3
    @!P0 NANOSLEEP.SYNCS 0x989680
    @!P0 SYNCS.PHASECHK.TRANS64 P0, [R5+URZ+0x20], R3
    @P0 EXIT
    BRA 0x0
"""


@pytest.mark.parametrize(
    ("text", "core"),
    [
        pytest.param(IN_LINE, ("SYNCS.PHASECHK", "UTMALDG"), id="loop in line"),
        pytest.param(OUT_OF_LINE, ("SYNCS.PHASECHK", "UTMALDG"), id="loop behind the end"),
        pytest.param(LAST_BEFORE_EXIT, ("SYNCS.PHASECHK",), id="loop before an exit"),
        pytest.param(
            OUT_OF_LINE.replace("@!P0 NANOSLEEP.SYNCS 0x989680", ""), ("SYNCS.PHASECHK", "UTMALDG"), id="no pause"
        ),
    ],
)
def test_a_wait_is_one_try_however_its_retries_are_written(text: str, core: tuple[str, ...]) -> None:
    assert schedule.core_sequence(listing(text)) == core


def test_a_check_that_is_no_retry_stays() -> None:
    polls = listing("SYNCS.PHASECHK.TRANS64 P0, [UR4], R0\n@P1 SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R0\nEXIT")
    assert schedule.core_sequence(polls) == ("SYNCS.PHASECHK", "SYNCS.PHASECHK")


STAMP = """
    CS2R.32 R8, SR_CLOCKLO
    ISETP.GT.AND P0, PT, R0, RZ, PT
    LEA R6, P1, R0, R4, 0x3
    LEA.HI.X.SX32 R7, R0, R5, 0x3, P1
    IMAD.MOV.U32 R9, RZ, RZ, 0x1
    @P0 STG.E.64 desc[UR4][R6.64], R8
    VIADD R0, R0, 0x8
"""


def test_a_stamp_has_no_core_opcode() -> None:
    assert schedule.core_sequence(listing(STAMP)) == ()


def test_stamps_alone_leave_distance_0() -> None:
    work = "MUFU.EX2 R1, R2\nFADD R3, R1, R3\nSYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R0\n"
    compared = schedule.compare(facts(work * 3), facts((work + STAMP) * 3))
    assert (compared.clean_length, compared.stamped_length, compared.common_length) == (9, 9, 9)
    assert compared.distance == 0


def test_distance_counts_what_moved_and_what_was_added() -> None:
    # FADD moved over one MUFU: 3 of 4 stay in order. A fifth instruction makes the longer sequence 5.
    moved = schedule.compare(
        facts("MUFU.EX2 R1, R2\nFADD R3, R1, R3\nMUFU.EX2 R4, R5\nFMUL R6, R4, R4"),
        facts("MUFU.EX2 R1, R2\nMUFU.EX2 R4, R5\nFADD R3, R1, R3\nFMUL R6, R4, R4"),
    )
    assert moved.distance == pytest.approx(1 / 4)
    added = schedule.compare(facts("FADD R0, R0, R0\n" * 4), facts("FADD R0, R0, R0\n" * 5))
    assert added.distance == pytest.approx(1 / 5)


def test_distance_of_nothing_is_0() -> None:
    assert schedule.compare(facts("EXIT"), facts("EXIT")).distance == 0


def stream(before: int, k: int, after: int) -> str:
    mufu, mma = "MUFU.EX2 R1, R2\n", "HGMMA.64x128x16.F32.BF16 R24, gdesc[UR4], R24\n"
    wait = "WARPGROUP.DEPBAR.LE gsb0, {}\n"
    return mma * 16 + mufu * before + wait.format("0x1") + mufu * k + wait.format("0x0") + mma * 2 + mufu * after


def test_places_of_waits() -> None:
    assert schedule.wait_places(listing(stream(3, 10, 56))) == (
        WaitPlace("WARPGROUP.DEPBAR.LE", mufu=3, mufu_window=13, mma=16, mma_window=16),
        WaitPlace("WARPGROUP.DEPBAR.LE", mufu=10, mufu_window=66, mma=0, mma_window=2),
    )


def test_a_kernel_without_group_waits_has_no_places() -> None:
    assert schedule.wait_places(listing("MUFU.EX2 R1, R2\nBAR.SYNC 0x0")) == ()


@pytest.mark.parametrize(("k", "share"), [(10, 0), (12, 2 / 66), (0, 10 / 66), (66, 56 / 66)])
def test_shift_is_a_share_of_the_window(k: int, share: float) -> None:
    clean = schedule.wait_places(listing(stream(0, 10, 56)))[1]
    stamped = schedule.wait_places(listing(stream(0, k, 66 - k)))[1]
    assert schedule.shift(clean, stamped) == pytest.approx(share)


def test_shift_in_a_short_window_is_small() -> None:
    clean, stamped = WaitPlace("DEPBAR.LE", 2, 2, 0, 0), WaitPlace("DEPBAR.LE", 0, 2, 0, 0)
    assert schedule.shift(clean, stamped) == pytest.approx(2 / schedule.SHORT_WINDOW)


def test_shift_among_matrix_instructions_counts() -> None:
    clean, stamped = WaitPlace("WARPGROUP.DEPBAR.LE", 0, 0, 8, 64), WaitPlace("WARPGROUP.DEPBAR.LE", 0, 0, 24, 64)
    assert schedule.shift(clean, stamped) == pytest.approx(16 / 64)
