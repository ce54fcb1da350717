# SPDX-License-Identifier: Apache-2.0
"""Hand-written trips as the model plays them, and the rings that two loops show."""

from __future__ import annotations

from dataclasses import replace

import pytest

from autostamp.model.budget import BoundKind, Origin
from autostamp.model.loop import LoopFacts
from autostamp.model.loop_traffic import LoopTraffic
from autostamp.model.trip_code import Op, OpKind
from autostamp.passes.definitions import Definitions
from autostamp.passes.trip_code import trip_code
from autostamp.predict.bounds import predict
from autostamp.predict.chains import chains, role_of
from autostamp.predict.cubin_rings import held, rings_of
from autostamp.predict.from_loops import budget_of
from autostamp.predict.given import Given, GivenRing
from autostamp.predict.kernel import Kernel, KnownRing, RoleLoop
from autostamp.predict.machines import load_machine
from tests.listing import listing
from tests.unit.test_from_loops import HGMMA, facts, without

H200 = load_machine("h200")
CONSUMER = """
    SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR30+0x10], R6
    @P0 BRA 0x30
    SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR30+0x10], R6
    WARPGROUP.ARRIVE
    HGMMA.64x128x16.F32.BF16 R24, R168, gdesc[UR8].tnspB, R24, UP0
    HGMMA.64x128x16.F32.BF16 R24, gdesc[UR8], R24, gsb0
    WARPGROUP.DEPBAR.LE gsb0, 0x1
    @!P0 SYNCS.ARRIVE.TRANS64.A1T0 RZ, [UR30+0x20], RZ
    MUFU.EX2 R4, R5
    BAR.SYNC.DEFER_BLOCKING R5, 0x100
    BAR.ARV R5, 0x100
    @P1 BRA 0x0
    EXIT
"""
PRODUCER = """
    SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR10+0x20], R2
    @P0 SYNCS.ARRIVE.TRANS64 RZ, [UR10+0x10], R3
    UTMALDG.2D [UR8], [UR6]
    @P1 BRA 0x0
    EXIT
"""


def code(text: str) -> tuple[Op, ...]:
    instructions = listing(text)
    return trip_code(instructions[:-1], Definitions(instructions))


def test_what_each_instruction_is():
    found = code(CONSUMER)
    kinds = [op.kind for op in found]
    # The second try of the same wait is left out.
    assert kinds.count(OpKind.MBARRIER_WAIT) == 1
    assert [op.offset for op in found if op.offset >= 0] == [0x10, 0x20]
    first, second = [op for op in found if op.kind is OpKind.MMA]
    # A 64 by 16 operand of bf16 in 128 threads: 8 elements or 4 registers in each.
    assert (first.reads, first.closes) == ({"R168", "R169", "R170", "R171"}, False)
    assert (second.reads, second.closes) == (set(), True)
    assert (second.mma.m, second.mma.n, second.mma.k, second.mma.dtype) == (64, 128, 16, "bf16")
    (group,) = [op for op in found if op.kind is OpKind.GROUP_WAIT]
    assert group.allowed == 1
    (ex2,) = [op for op in found if op.family == "MUFU.EX2"]
    assert (ex2.reads, ex2.writes) == ({"R5"}, {"R4"})
    assert [op.threads for op in found if op.kind in {OpKind.NAMED_SYNC, OpKind.NAMED_ARRIVE}] == [256, 256]


def test_an_announcement_is_an_arrival_with_bytes():
    assert [op.announces for op in code(PRODUCER) if op.kind is OpKind.MBARRIER_ARRIVE] == [True]
    assert not any(op.announces for op in code(CONSUMER))


def test_a_barrier_of_all_threads_has_no_number():
    (sync,) = [op for op in code("BAR.SYNC.DEFER_BLOCKING 0x0\n@P0 BRA 0x0\nEXIT") if op.kind is OpKind.NAMED_SYNC]
    assert sync.threads == 0


def loop(role: str, ops: tuple[Op, ...], warps: int, **counts: int) -> RoleLoop:
    shapes = (HGMMA,) if role == "mma" else ()
    start = 0x100 if role == "mma" else 0x400
    made = LoopFacts("gemm", start, start + 0x80, 1, counts, shapes, sum(counts.values()), 0)
    moved = LoopTraffic(announced=32768, announcements=1) if role == "load" else LoopTraffic(releases=1)
    return RoleLoop(role, warps, "", made, moved, code=ops)


LOOPS = (loop("mma", code(CONSUMER), 8, HGMMA=4), loop("load", code(PRODUCER), 1, UTMALDG=1))


def test_a_ring_that_two_loops_show():
    (ring,), notes = rings_of(LOOPS)
    # 16 bytes apart, 8 a stage.
    assert (ring.producer, ring.consumer, ring.stages, ring.full, ring.empty) == ("load", "mma", 2, 0x10, 0x20)
    assert "0x10 and 0x20 of loops 0x0400 and 0x0100: 16 B apart" in ring.source
    assert notes == []


@pytest.mark.parametrize(
    ("empty", "others"),
    [
        (0x18, ()),  # one stage, or full and empty side by side
        (0x24, ()),  # no whole number of mbarriers
        (0x30, (0x20,)),  # another mbarrier stands between
    ],
)
def test_mbarriers_that_do_not_stand_in_two_rows_leave_the_depth_open(empty, others):
    def moved(ops: tuple[Op, ...]) -> tuple[Op, ...]:
        return tuple(replace(op, offset=empty) if op.offset == 0x20 else op for op in ops)

    more = tuple(Op("SYNCS.ARRIVE", OpKind.MBARRIER_ARRIVE, offset=each) for each in others)
    loops = [replace(each, code=(*moved(each.code), *more)) for each in LOOPS]
    found, notes = rings_of(loops)
    assert found == ()
    (note,) = notes
    assert "so its depth is unknown" in note


def test_loops_that_share_one_side_alone_are_no_ring():
    lonely = replace(LOOPS[0], code=tuple(op for op in LOOPS[0].code if op.offset != 0x20))
    assert rings_of((lonely, LOOPS[1])) == ((), [])
    assert rings_of((LOOPS[0],)) == ((), [])


def test_a_stage_is_held_from_its_wait_to_its_release():
    ring = KnownRing("ab", "load", "mma", 2, "", 0x10, 0x20)
    ops = (
        Op("SYNCS.PHASECHK", OpKind.MBARRIER_WAIT, offset=0x10),
        Op("SYNCS.ARRIVE", OpKind.MBARRIER_ARRIVE, offset=0x20),
    )
    assert held(ops, (3.0, 40.0), ring) == 37
    # Unrolled: the shorter of both.
    assert held(ops * 2, (3.0, 40.0, 50.0, 60.0), ring) == 10
    assert held(ops[::-1], (3.0, 40.0), ring) == 0


def test_a_cubin_gives_all_three_kinds_of_bound():
    budget = budget_of(Kernel("gemm", LOOPS), H200, Given(smem_write_share=0, active_sms=1))
    found = {(bound.kind, bound.name): bound.cycles for bound in predict(budget).bounds}
    # The only ring of mma: TMA load of a box 548.06, 4 x 2 wgmma of 64 cycles, a round trip of 87, over two stages.
    assert found[BoundKind.CREDIT, "mbarriers 0x10"] == pytest.approx((548.06 + 512 + 87) / 2)
    assert {name for kind, name in found if kind is BoundKind.RECURRENCE} == {
        "mma in order",
        "mma in turns",
        "load in order",
    }
    assert any(spot.startswith("ring mbarriers 0x10: 2 stages, by mbarriers at 0x10") for spot in budget.blind_spots)
    assert all(step.origin is Origin.CUBIN for edge in budget.dependencies for step in edge.steps)


def test_what_the_user_says_of_a_ring_stands_for_what_was_read():
    given = Given(rings={"ab": GivenRing(stages=4, producer="load", consumer="mma")})
    (ring,) = budget_of(Kernel("gemm", LOOPS), H200, given).rings
    assert (ring.name, ring.stages) == ("ab", 4)
    assert (
        budget_of(Kernel("gemm", LOOPS), H200, Given(rings={"mbarriers 0x10": GivenRing(is_left_out=True)})).rings == ()
    )


def test_rings_of_a_run_have_the_hold_of_the_cubin_where_the_consumer_has_several():
    rings = (KnownRing("K", "load", "mma", 2), KnownRing("V", "load", "mma", 2))
    budget = budget_of(Kernel("fa", LOOPS, rings), H200, Given())
    assert [ring.name for ring in budget.rings] == ["K", "V"]
    assert {step.what for ring in budget.rings for step in ring.consume} == {"held by mma"}
    # Of another depth than what was read, it stays unknown.
    deep = budget_of(Kernel("fa", LOOPS, tuple(replace(ring, stages=3) for ring in rings)), H200, Given())
    assert deep.rings == ()
    assert sum("lacks consume" in spot for spot in deep.blind_spots) == 2


def test_chains_can_be_left_out_and_say_what_they_do_not_see():
    assert budget_of(Kernel("gemm", LOOPS), H200, Given(has_chains=False)).dependencies == ()
    _, notes = chains(LOOPS, without(H200, "named_handoff"), "bf16")
    assert any("no alu_latency" in note or "named_handoff" in note for note in notes)
    assert any("are taken to be in time" in note for note in notes)


def test_trips_count_in_a_chain():
    half = replace(LOOPS[1], trips=0.5)
    (whole,), _ = chains((LOOPS[1],), H200, "")
    (less,), _ = chains((half,), H200, "")
    assert sum(step.cycles for step in less.steps) == pytest.approx(sum(step.cycles for step in whole.steps) / 2)


def test_the_role_of_a_chain():
    assert [role_of(name) for name in ("mma in order", "mma in turns", "QK -> softmax -> QK")] == ["mma", "mma", ""]


def test_a_loop_without_code_has_no_chain():
    assert chains((RoleLoop("mma", 8, "", facts({"HGMMA": 4}, HGMMA), LoopTraffic()),), H200, "") == ((), [])
