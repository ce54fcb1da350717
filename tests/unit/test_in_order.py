# SPDX-License-Identifier: Apache-2.0
"""Trips played instruction by instruction, against times worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autostamp.model.loop import MmaShape
from autostamp.model.machine import Constant, ConstantKind, MachineTable
from autostamp.model.trip_code import Op, OpKind
from autostamp.predict.in_order import has_turns, play

VALUES = {
    "issue": (4, "warp-instr/clk/SM"),
    "mufu_ex2": (16, "thread-instr/clk/SM"),
    "ex2_latency": (17, "cycles"),
    "fma_fp32": (128, "thread-instr/clk/SM"),
    "ffma_latency": (4, "cycles"),
    "shuffle": (32, "thread-instr/clk/SM"),
    "tensor_bf16": (4096, "FLOP/clk/SM"),
    "mma_sync_bf16": (2048, "FLOP/clk/SM"),
    "smem": (128, "B/clk/SM"),
    "wgmma_first": (50, "cycles"),
    "wgmma_next": (10, "cycles"),
    "named_handoff": (30, "cycles"),
}


def table(*without: str) -> MachineTable:
    known = {name: Constant(*row, "", "a test", ConstantKind.DERIVED) for name, row in VALUES.items()}
    return MachineTable("test", "Test", "sm_90a", {name: each for name, each in known.items() if name not in without})


def plain(family: str, reads: str = "", writes: str = "") -> Op:
    return Op(family, reads=frozenset(reads.split()), writes=frozenset(writes.split()))


def wgmma(n: int = 128, *, closes: bool = False) -> Op:
    shape = MmaShape(f"HGMMA.64x{n}x16.F32.BF16", 64, n, 16, "bf16", "smem", 1)
    return Op("HGMMA", OpKind.MMA, mma=shape, closes=closes)


def wait(allowed: int) -> Op:
    return Op("WARPGROUP.DEPBAR", OpKind.GROUP_WAIT, allowed=allowed)


SYNC = Op("BAR.SYNC", OpKind.NAMED_SYNC, threads=256)
ARRIVE = Op("BAR.ARV", OpKind.NAMED_ARRIVE, threads=256)
EX2 = plain("MUFU.EX2", "R0", "R1")


def parts(played) -> dict[str, float]:
    return {reason.what: cycles for reason, cycles in played.parts.items()}


@pytest.mark.parametrize(
    ("ops", "period"),
    [
        # Nothing to wait for: an instruction a cycle.
        ((plain("BRA"), plain("UMOV"), plain("BRA")), 3),
        # 16 lanes a cycle of an SM are 4 of a scheduler: 8 cycles an instruction.
        ((EX2, EX2), 16),
        # Each takes what the one before gave.
        ((plain("MUFU.EX2", "R1", "R1"),), 17),
        ((plain("FFMA", "R1", "R1"), plain("FFMA", "R1", "R1")), 8),
        # The first is ready 17 after its issue, the second 4 after that.
        ((plain("MUFU.EX2", "R1", "R1"), plain("FFMA", "R1", "R1")), 21),
        # A shuffle has no known latency: its pipe is free after 4 cycles, and its result counts as ready at once.
        ((plain("SHFL", "R1", "R1"),), 4),
        # One m16n8k16 is 4096 FLOP; a quarter of 2048 a cycle stands beside a scheduler.
        ((Op("HMMA", mma=MmaShape("HMMA.16816.F32.BF16", 16, 8, 16, "bf16", "registers", 1)),), 8),
    ],
)
def test_one_warp(ops, period):
    assert play(ops, table()).period == pytest.approx(period)


def test_a_wait_for_all_groups_is_in_turn_with_what_follows():
    # Eight m64n128k16 are 64 cycles each and begin when the first is issued; 40 later the wait is over; then two more issues.
    played = play([*[wgmma()] * 7, wgmma(closes=True), wait(0), plain("FFMA", "R1", "R1")], table())
    assert played.period == 8 * 64 + 40 + 2
    # Issue: ten instructions. The end of a group: a first wgmma less what each further one adds.
    assert parts(played) == pytest.approx({"issue": 10, "end of a group of wgmma": 40, "tensor core": 504})
    assert played.issued == (*range(8), 552, 553)


def test_a_wait_that_leaves_a_group_in_flight_keeps_the_tensor_core_busy():
    played = play([*[wgmma()] * 3, wgmma(closes=True), wait(1)], table())
    assert played.period == 4 * 64
    assert sum(played.parts.values()) == pytest.approx(played.period)


def test_small_wgmma_take_as_long_as_their_operands():
    # m64n8k16: 4 cycles by the tensor core, (64 + 8) x 32 B = 18 cycles of shared memory.
    played = play([*[wgmma(8)] * 9, wgmma(8, closes=True), wait(0)], table())
    assert played.period == 10 * 18 + 40 + 1
    assert "shared memory" in parts(played)


def test_operands_that_a_conversion_makes_are_waited_for():
    # The group is issued when both exponentials are there: the second at 8, ready at 25.
    operand = Op("HGMMA", OpKind.MMA, frozenset({"R2", "R3"}), mma=wgmma().mma, closes=True)
    played = play([plain("MUFU.EX2", "R0", "R2"), plain("MUFU.EX2", "R0", "R3"), operand, wait(0)], table())
    assert played.issued == (0, 8, 25, 25 + 64 + 40)


@pytest.mark.parametrize("groups", [2, 3])
def test_turns_at_a_named_barrier(groups):
    # From the pass of one to its arrival are 2 cycles, and 30 more to the pass of the next one.
    played = play([SYNC, wgmma(closes=True), ARRIVE], table(), groups)
    assert played.period == groups * 32
    assert parts(played)["hand-off at the named barrier"] == pytest.approx(30)


def test_warpgroups_in_turns_share_the_tensor_core():
    # Each holds it for 8 x 64 of the 2 x 512 that a round takes; alone a trip is 512 + 40, and three more issues.
    ops = [SYNC, *[wgmma()] * 7, wgmma(closes=True), ARRIVE, wait(0)]
    assert play(ops, table()).period == 1 + 512 + 40 + 1
    assert play(ops, table(), 2).period == pytest.approx(1024, abs=2)


def test_without_a_known_hand_off_the_turn_costs_nothing_and_that_is_told():
    played = play([SYNC, wgmma(closes=True), ARRIVE], table("named_handoff"), 2)
    # Three instructions of each of two warps.
    assert played.period == 6
    assert played.unknown == ("named_handoff",)


def test_what_are_turns():
    assert has_turns([SYNC, ARRIVE])
    assert not has_turns([SYNC, SYNC, ARRIVE])  # a CTA barrier beside them would be met by all
    assert not has_turns([SYNC])
    assert not has_turns([Op("BAR.SYNC", OpKind.NAMED_SYNC), Op("BAR.ARV", OpKind.NAMED_ARRIVE)])


def test_nothing_is_no_trip():
    assert play([], table()) is None


FAMILIES = ("MUFU.EX2", "FFMA", "SHFL", "BRA")
BUSY = {"MUFU.EX2": 8, "SHFL": 4, "FFMA": 1, "BRA": 0}
REGISTERS = ("R0", "R1", "R2")
ops_of = st.lists(
    st.builds(plain, st.sampled_from(FAMILIES), st.sampled_from(REGISTERS), st.sampled_from(REGISTERS)),
    min_size=1,
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(ops_of)
def test_no_trip_is_shorter_than_its_issue_or_any_of_its_pipes(ops):
    played = play(ops, table())
    for family in FAMILIES:
        assert played.period >= BUSY[family] * sum(op.family == family for op in ops) - 1e-9
    assert played.period >= len(ops) - 1e-9
    assert sum(played.parts.values()) == pytest.approx(played.period)


@settings(max_examples=40, deadline=None)
@given(ops_of, st.integers(2, 3))
def test_warps_of_a_scheduler_share_its_issue_and_pipes(ops, warps):
    together = play(ops, table(), warps).period
    for family in FAMILIES:
        assert together >= 0.99 * warps * BUSY[family] * sum(op.family == family for op in ops) - warps * 8 / 15
