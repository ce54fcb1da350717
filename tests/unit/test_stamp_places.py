# SPDX-License-Identifier: Apache-2.0
"""Which stamp a clock read belongs to, and on which side of its wait it stands."""

from __future__ import annotations

import pytest

from autostamp.model.manifest import Instance, Payload
from autostamp.passes.stamp_places import Found, Verdict, find_stamps, judge
from tests.listing import listing


def stamp(event: int, clock: str = "R8", word: str = "R9") -> str:
    return f"""
        CS2R.32 {clock}, SR_CLOCKLO
        IMAD.MOV.U32 {word}, RZ, RZ, {event:#x}
        @P0 STG.E.64 desc[UR4][R6.64], {clock}
    """


def wait(side: str, enter: int = 1, exit: int = 2) -> Instance:
    return Instance(
        number=1, file="f", site=1, role="mma", call_path=(), kind="wait", side=side, barrier=1, payload=Payload.NONE,
        enter=enter, exit=exit,
    )  # fmt: skip


def verdict(text: str, side: str = "full") -> Verdict:
    code = listing(text)
    return judge(code, find_stamps(code), wait(side))


TRY_WAIT = "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR9+0x20], R10\n"


def test_a_stamp_as_ptxas_schedules_it() -> None:
    # The end of a producer's acquire in FlashAttention forward, sm_90a: two stamps with the kernel's own code between.
    code = listing("""
        USHF.L.U32 UR15, UR7, 0x10, URZ
        UIADD3 UR8, UR15, 0x6, URZ
        CS2R.32 R8, SR_CLOCKLO
        IMAD.MOV R7, RZ, RZ, -R6
        ISETP.GT.AND P0, PT, R6, RZ, PT
        IMAD.HI R9, R6, -0x1, RZ
        ULEA UR9, UR7, UR33, 0x3
        IADD3 R6, P1, R4, R7, RZ
        IMAD.X R7, R9, 0x1, R5, P1
        MOV R9, UR8
        USHF.L.U32 UR8, UR6, 0x1f, URZ
        @P0 STG.E.64 desc[UR4][R6.64], R8
        IMAD.U32 R10, RZ, RZ, UR8
        SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR9+0x20], R10
        @!P0 BRA 0x9990
        ELECT P0, URZ, PT
        UIADD3 UR8, UR15, 0x7, URZ
        @P0 SYNCS.ARRIVE.TRANS64 RZ, [UR9+0x10], R6
        CS2R.32 R10, SR_CLOCKLO
        IMAD.U32 R11, RZ, RZ, UR8
        @P1 STG.E.64 desc[UR4][R6.64], R10
    """)
    stamps = find_stamps(code)
    assert stamps == (Found(2, 6), Found(18, 7))
    assert judge(code, stamps, wait("empty", enter=6, exit=7)) is Verdict.AROUND


SPLIT = """
    CS2R.32 R15, SR_CLOCKLO
    LOP3.LUT R18, R14, 0x40000000, R0, 0x80, !PT
    LEA.HI R19, RZ, 0x5, R5, 0x10
    LDC.64 R2, c[0x3][R18]
    IMAD R2, R14, 0x8, R2
    @P1 VIADD R14, R14, 0x1
    @P0 STG.E desc[UR6][R2.64], R15
    ISETP.LT.U32.AND P0, PT, R14, R0, P0
    @P0 STG.E desc[UR6][R2.64+0x4], R19
"""
"""A lean stamp: clock and event word are stored apart."""


def test_a_record_may_be_stored_in_two_parts() -> None:
    assert find_stamps(listing(SPLIT)) == (Found(0, 5),)


@pytest.mark.parametrize(
    "between",
    ["IADD3 R2, R2, 0x8, RZ", "BRA 0x9990", "STG.E.64 desc[UR6][R2.64+0x4], R18"],
)
def test_parts_at_other_addresses_or_past_a_branch_are_no_record(between: str) -> None:
    last = "    @P0 STG.E desc[UR6][R2.64+0x4], R19"
    text = SPLIT.replace(last, f"    {between}") if "STG" in between else SPLIT.replace(last, f"    {between}\n{last}")
    assert find_stamps(listing(text)) == (Found(0, 0),)


def test_a_clock_that_is_copied_or_stored_late_is_traced() -> None:
    code = listing("""
        CS2R.32 R20, SR_CLOCKLO
        FADD R1, R2, R3
        CS2R.32 R22, SR_CLOCKLO
        MOV R8, R20
        MOV R9, 0x3
        @P0 STG.E.64 desc[UR4][R6.64], R8
        IMAD.MOV.U32 R8, RZ, RZ, R22
        MOV R9, 0x4
        @P0 STG.E.64 desc[UR4][R6.64], R8
    """)
    assert find_stamps(code) == (Found(0, 3), Found(2, 4))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("CS2R.32 R8, SR_CLOCKLO\nSTG.E desc[UR4][R6.64], R8", id="32-bit store of a lane header"),
        pytest.param(
            "CS2R.32 R8, SR_CLOCKLO\nLDG.E R9, desc[UR4][R2.64]\nSTG.E.64 desc[UR4][R6.64], R8", id="word loaded"
        ),
        pytest.param("CS2R.32 R8, SR_CLOCKLO\nEXIT", id="not stored"),
        pytest.param(
            "CS2R.32 R8, SR_CLOCKLO\nMOV R8, R5\nMOV R9, 0x3\nSTG.E.64 desc[UR4][R6.64], R8", id="overwritten"
        ),
    ],
)
def test_a_clock_that_cannot_be_traced_has_event_0(text: str) -> None:
    assert find_stamps(listing(text)) == (Found(0, 0),)


def test_64_bit_store_of_something_else_is_no_stamp() -> None:
    assert find_stamps(listing("MOV R8, 0x5\nMOV R9, 0x3\nSTG.E.64 desc[UR4][R6.64], R8")) == ()


@pytest.mark.parametrize(
    ("side", "instruction"),
    [
        ("full", TRY_WAIT),
        ("empty", TRY_WAIT),
        ("mbarrier", "SYNCS.PHASECHK.TRANS64 P0, [UR9], R10\n"),
        ("named", "BAR.SYNC.DEFER_BLOCKING R8, 0x100\n"),
        ("cta", "BAR.SYNC.DEFER_BLOCKING 0x0\n"),
        ("async-group", "WARPGROUP.DEPBAR.LE gsb0, 0x1\n"),
        ("async-group", "DEPBAR.LE SB0, 0x0\n"),
        ("cluster", "UCGABAR_WAIT\n"),
        ("grid", "ACQBULK\n"),
        ("grid", "LDG.E.STRONG.GPU R3, desc[UR4][R2.64]\n"),
    ],
)
def test_each_kind_of_wait(side: str, instruction: str) -> None:
    assert verdict(stamp(1) + instruction + stamp(2), side) is Verdict.AROUND
    assert verdict(instruction + stamp(1) + stamp(2), side) is Verdict.MISPLACED  # enter sank below the wait
    assert verdict(stamp(1) + stamp(2) + instruction, side) is Verdict.MISPLACED  # exit rose above the wait


@pytest.mark.parametrize(
    ("side", "instruction"),
    [
        ("full", "BAR.SYNC.DEFER_BLOCKING 0x0\n"),
        ("named", TRY_WAIT),
        ("named", "BAR.ARV 0x1, 0x100\n"),
        ("async-group", "WARPGROUP.ARRIVE\n"),
        ("full", "SYNCS.ARRIVE.TRANS64 RZ, [UR9], R6\n"),
    ],
)
def test_another_kind_of_wait_does_not_count(side: str, instruction: str) -> None:
    assert verdict(stamp(1) + instruction + stamp(2), side) is Verdict.MISPLACED


def test_the_clock_counts_not_its_store() -> None:
    # The exit's clock is read above the wait and stored below it.
    text = stamp(1) + "CS2R.32 R20, SR_CLOCKLO\n" + TRY_WAIT + "MOV R21, 0x2\n@P0 STG.E.64 desc[UR4][R6.64], R20\n"
    assert verdict(text) is Verdict.MISPLACED


def test_the_retry_loop_out_of_line_is_not_taken() -> None:
    # 3 instructions of enter, try_wait at 0x30, branch at 0x40, exit from 0x50, the loop from 0x90.
    loop = TRY_WAIT + "@!P0 BRA 0x90\nBRA 0x50\n"
    assert verdict(stamp(1) + TRY_WAIT + "@!P0 BRA 0x90\n" + stamp(2) + "EXIT\n" + loop) is Verdict.AROUND


def test_a_wait_skipped_after_try_wait_counts() -> None:
    assert verdict(TRY_WAIT + stamp(1) + "@P0 BRA 0x60\n" + TRY_WAIT + stamp(2)) is Verdict.AROUND


def test_an_unconditional_branch_is_followed() -> None:
    # enter at 0x00-0x20, branch at 0x30 over the exit's block to the wait at 0x80, which branches back to it at 0x40.
    text = stamp(1) + "BRA 0x80\n" + stamp(2) + "EXIT\n" + TRY_WAIT + "BRA 0x40\n"
    assert verdict(text) is Verdict.AROUND


def test_a_uniform_branch_with_a_guard_operand_is_conditional() -> None:
    assert verdict(stamp(1) + TRY_WAIT + "BRA.U UP0, 0x9990\n" + stamp(2)) is Verdict.AROUND


@pytest.mark.parametrize("end", ["EXIT\n", "BRA 0x30\n", "RET.REL.NODEC R20 0x0\n"])
def test_an_exit_stamp_out_of_reach_is_not_judged(end: str) -> None:
    assert verdict(stamp(1) + end + TRY_WAIT + stamp(2)) is Verdict.UNPLACED


def test_a_lost_stamp_is_not_judged() -> None:
    assert verdict(stamp(1) + TRY_WAIT) is Verdict.UNPLACED
    assert verdict(TRY_WAIT + stamp(2)) is Verdict.UNPLACED


def test_a_warp_barrier_is_not_judged() -> None:
    # ptxas drops a __syncwarp of converged warps, so its absence means nothing.
    assert verdict(stamp(1) + stamp(2), "warp") is Verdict.UNPLACED


def test_the_worst_copy_of_an_unrolled_wait_decides() -> None:
    good, bad = stamp(1) + TRY_WAIT + stamp(2), stamp(1) + stamp(2) + TRY_WAIT
    assert verdict(good + good) is Verdict.AROUND
    assert verdict(good + bad) is Verdict.MISPLACED
