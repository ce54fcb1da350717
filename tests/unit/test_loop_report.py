# SPDX-License-Identifier: Apache-2.0
"""A kernel's report and two kernels side by side, on a hand-written warp-specialized kernel."""

from __future__ import annotations

import pytest

from autostamp.passes import loop_mix
from autostamp.passes.loop_report import KernelLoops, compare
from tests.listing import facts, listing
from tests.unit.test_schedule import STAMP

WAIT = "SYNCS.PHASECHK.TRANS64.TRYWAIT P5, [UR9], R40\n"
MMA = "HGMMA.64x128x16.F32.BF16 R24, gdesc[UR8], R24\n"
CLOSE = "HGMMA.64x128x16.F32.BF16 R24, gdesc[UR8], R24, gsb0\n"
ARRIVE = "SYNCS.ARRIVE.TRANS64.A1T0 RZ, [R3+URZ], RZ\n"
LOADS = "UTMALDG.2D [UR8], [UR6]\nUTMALDG.2D [UR12], [UR6]\n"
MMA_BODY = f"{WAIT}WARPGROUP.ARRIVE\n{MMA * 3}{CLOSE}WARPGROUP.DEPBAR.LE gsb0, 0x1\n{ARRIVE}"


def looped(*bodies: str, after: str = "") -> str:
    """Each body as a loop, one after the other, then `after` and EXIT."""
    text, count = "", 0
    for body in bodies:
        text += f"{body}@P6 BRA {16 * count:#x}\n"
        count += body.count("\n") + 1
    return f"{text}{after}EXIT\n"


CLEAN = facts(looped(WAIT + ARRIVE + LOADS, MMA_BODY, after="STG.E.128 desc[UR4][R2.64], R24\n"))


def test_one_main_loop_for_each_role():
    report = KernelLoops(CLEAN).report()
    load, mma = report.main_loops
    assert (load.role, load.facts.start, load.facts.end) == ("load", 0, 4 * 16)
    assert (mma.role, mma.facts.start, mma.facts.end) == ("mma", 5 * 16, 13 * 16)
    assert load.facts.counts == {"BRA": 1, "SYNCS": 2, "UTMALDG": 2}
    assert mma.facts.counts == {
        "BRA": 1, "HGMMA": 4, "SYNCS": 2, "WARPGROUP.ARRIVE": 1, "WARPGROUP.DEPBAR": 1
    }  # fmt: skip
    assert mma.facts.instructions == sum(mma.facts.counts.values()) == 9
    assert [(each.m, each.n, each.k, each.count) for each in mma.facts.mma] == [(64, 128, 16, 4)]
    assert mma.units == {"tensor core": 4, "sync": 4, "control": 1}


def test_figures_of_the_kernel():
    report = KernelLoops(facts(looped(f"{WAIT}{MMA}STL.64 [R1], R4\nLDL R5, [R1]\n"), registers=90)).report()
    assert (report.registers, report.spill_store_bytes, report.spill_load_bytes) == (90, 8, 4)
    (loop,) = report.loops
    assert loop.facts.local_bytes == 8 + 4


def test_the_main_loop_is_the_innermost_that_waits():
    # Around the tiles: the first k-tile, peeled. Inside: one k-tile a trip. Behind it: MMAs without a wait.
    inner = f"{WAIT}{MMA}@P5 BRA {16 * 5:#x}\n"
    text = f"{WAIT}{MMA * 4}{inner}{MMA * 2}@P6 BRA 0x0\nEXIT\n"
    report = KernelLoops(facts(text)).report()
    assert [(loop.facts.start, loop.facts.depth, loop.is_main) for loop in report.loops] == [
        (0, 1, False),
        (80, 2, True),
    ]
    assert report.loops[0].inside == (80,)
    assert report.loops[0].facts.counts["HGMMA"] == 4 + 2


def test_a_loop_without_a_wait_is_main_where_the_role_has_no_other():
    assert [loop.is_main for loop in KernelLoops(facts(looped(MMA))).report().loops] == [True]
    with_wait = KernelLoops(facts(looped(MMA * 8, WAIT + MMA))).report()
    assert [loop.is_main for loop in with_wait.loops] == [False, True]


def test_of_two_bodies_with_equal_work_the_shorter_is_main():
    masked = MMA_BODY + "ISETP.GE.AND P1, PT, R0, R1, PT\n" * 5
    report = KernelLoops(facts(looped(masked, MMA_BODY))).report()
    assert [loop.is_main for loop in report.loops] == [False, True]


@pytest.mark.parametrize(
    ("body", "role"),
    [
        (f"{MMA}MUFU.EX2 R1, R2\n", "mma"),
        ("UTCHMMA gdesc[UR56], gdesc[UR4], tmem[UR7], tmem[UR24], idesc[UR25], UPT\n", "mma"),
        (LOADS, "load"),
        ("LDGSTS.E.BYPASS.128 [R1], desc[UR4][R2.64]\n", "load"),
        ("UBLKCP.S.G [UR8], [UR6], UR4\n", "load"),
        ("LDTM.x32 R4, tmem[UR4]\nMUFU.EX2 R1, R2\nSTTM.x32 tmem[UR4], R4\n", "softmax"),
        ("LDTM.x32 R4, tmem[UR4]\nFMUL R1, R2, R3\nSTTM.x32 tmem[UR4], R4\n", "correction"),
        ("UTMASTG.2D [UR4], [UR6]\nUTMACMDFLUSH\n", "store"),
        ("FADD R0, R1, R2\n", "compute"),
        ("LDG.E R0, desc[UR4][R2.64]\n", "copy"),
        ("IADD3 R0, R0, 0x1, RZ\n", "other"),
    ],
)
def test_role(body, role):
    (loop,) = KernelLoops(facts(looped(body))).report().loops
    assert (loop.role, loop.is_main) == (role, role != "other")


def test_units_of_families():
    assert [loop_mix.unit(each) for each in ("MUFU.EX2", "F2FP", "FFMA2", "UIADD3", "R2UR", "IMAD", "WARPGROUP.DEPBAR")] == [
        "MUFU", "conversion", "FP32", "uniform", "uniform", "integer and moves", "sync"
    ]  # fmt: skip


def test_a_constant_written_as_a_half_precision_fma_is_a_move():
    counted = [loop_mix.counted_as(each) for each in listing("HFMA2 R0, -RZ, RZ, 0, 1\nHFMA2 R0, R1, R2, R3")]
    assert counted == ["MOV", "HFMA2"]


def test_a_kernel_is_its_own_counterpart():
    found = compare(CLEAN, CLEAN)
    assert found.distance == 0
    assert [(pair.first, pair.second) for pair in found.loops] == [(loop, loop) for loop in found.first.loops]


def test_loops_are_paired_by_role_wherever_they_stand():
    found = compare(CLEAN, facts(looped(MMA_BODY, WAIT + ARRIVE + LOADS)))
    pairs = {pair.first.role: pair for pair in found.loops if pair.first and pair.second}
    assert set(pairs) == {"mma", "load"}
    assert all(pair.first.role == pair.second.role and pair.order.distance == 0 for pair in pairs.values())
    assert found.order.distance > 0  # the loops changed places


def test_a_wait_that_moved_shows_in_its_loop():
    body = f"{WAIT}WARPGROUP.ARRIVE\n{MMA * 3}{CLOSE}{{}}{ARRIVE}"
    mufu, drain = "MUFU.EX2 R1, R2\n" * 6, "WARPGROUP.DEPBAR.LE gsb0, 0x0\n"
    found = compare(facts(looped(body.format(mufu + drain))), facts(looped(body.format(drain + mufu))))
    (pair,) = found.loops
    assert [loop.waits[0].mufu for loop in (pair.first, pair.second)] == [6, 0]
    # 14 core opcodes: wait, arrive, 4 MMA, 6 MUFU, drain, release (ARRIVE). All but the drain stay in order.
    assert pair.order.distance == pytest.approx(1 / 14)
    assert found.distance == pytest.approx(1 / 14)


def test_a_main_loop_without_a_counterpart_is_as_far_as_can_be():
    found = compare(CLEAN, facts(looped(MMA_BODY)))
    assert [(pair.first is None, pair.second is None) for pair in found.loops] == [(False, True), (False, False)]
    assert found.distance == 1


def test_stamps_can_be_left_out():
    stamped = facts(looped(WAIT + ARRIVE + LOADS, STAMP + MMA_BODY + STAMP))
    with_them, without = (compare(CLEAN, stamped, without_stamps=each).second for each in (False, True))
    assert with_them.stamps == without.stamps == 2 * 7  # a stamp of the listing has seven instructions
    assert with_them.main_loops[1].facts.instructions == 9 + with_them.stamps
    assert without.main_loops[1].facts.counts == KernelLoops(CLEAN).report().main_loops[1].facts.counts
    assert without.instructions == with_them.instructions - with_them.stamps
