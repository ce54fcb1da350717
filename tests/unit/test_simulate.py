# SPDX-License-Identifier: Apache-2.0
"""A budget played out has the period of its largest bound, by closed forms of rings and by hand."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autostamp.diagnostics import AutostampError
from autostamp.model.budget import Budget, Dependency, Origin, Resource, ResourceRow, Ring, Step
from autostamp.model.timeline import State
from autostamp.predict.bounds import predict
from autostamp.predict.simulate import Simulation, simulate
from autostamp.predict.simulated_manifest import manifest_of
from autostamp.report.svg import timeline_svg


def row(role: str, resource: Resource, cycles: float, *, is_write: bool = False) -> ResourceRow:
    return ResourceRow(role, resource, "", cycles, "", "", 1, cycles, Origin.GIVEN, "", "", is_write)


def ring(stages: int, fill: float, consume: float, hand_off: float = 0, name: str = "K") -> Ring:
    sides = (Step("full", hand_off), Step("empty", hand_off))
    return Ring(name, "load", "mma", stages, (Step("fill", fill),), (Step("consume", consume),), sides)


def ring_budget(load: float, compute: float, stages: int, transfer: float = 0, hand_off: float = 0) -> Budget:
    rows = (row("load", Resource.TMA_ISSUE, load), row("mma", Resource.TENSOR, compute))
    return Budget("ring", "simulator", "one stage", rows, rings=(ring(stages, load + transfer, compute, hand_off),))


def begins(found: Simulation, role: str) -> list[float]:
    return [span.begin for span in found.spans if span.role == role]


# Three stages, a producer of 20 and a consumer of 50: the consumer waits for the first stage and never again; the producer
# fills three stages, then waits each time until one is empty.
def test_a_ring_by_hand():
    found = simulate(ring_budget(20, 50, 3), 6)
    assert begins(found, "mma") == [20, 70, 120, 170, 220, 270]
    # Stage 0 is empty at 70, when the first compute is done.
    assert begins(found, "load") == [0, 20, 40, 70, 120, 170]
    assert found.period == 50
    assert found.waits == ("K full", "K empty")
    load, mma = found.timeline.warps
    assert (load.role, mma.role) == ("load", "mma")
    assert [(each.start, each.end, each.state, each.instance, each.stage) for each in mma.slices[:2]] == [
        (0, 20, State.STALL, 1, 0),
        (20, 70, State.ACTIVE, 1, 0),
    ]
    assert (mma.span, mma.stall, mma.active, mma.untracked) == (320, 20, 300, 0)
    # 10 at 60, and 30 at each of 90 and 140.
    assert (load.span, load.stall, load.active) == (190, 10 + 30 + 30, 120)
    assert [each.stall for each in found.timeline.roles] == [70, 20]


@pytest.mark.parametrize(
    ("load", "compute", "stages", "transfer", "hand_off", "period"),
    [
        (50, 20, 3, 0, 0, 50),
        (20, 50, 3, 0, 0, 50),
        (40, 40, 2, 0, 0, 40),
        (30, 50, 1, 0, 0, 80),
        (10, 50, 4, 300, 20, (10 + 300 + 20 + 50 + 20) / 4),
    ],
    ids=["producer", "consumer", "balanced", "one stage", "latency"],
)
def test_closed_forms(load, compute, stages, transfer, hand_off, period):
    budget = ring_budget(load, compute, stages, transfer, hand_off)
    assert predict(budget).period == period
    # The later half is a whole number of rounds of the ring.
    assert simulate(budget, 16 * stages).period == pytest.approx(period)


@settings(deadline=None)
@given(
    load=st.integers(1, 500),
    compute=st.integers(1, 500),
    stages=st.integers(1, 8),
    transfer=st.integers(0, 2000),
    hand_off=st.integers(0, 200),
)
def test_any_ring_has_the_period_of_its_largest_bound(load, compute, stages, transfer, hand_off):
    budget = ring_budget(load, compute, stages, transfer, hand_off)
    found = simulate(budget, 32 * stages)
    assert found.period == pytest.approx(predict(budget).period)
    for role in found.roles:
        spans = [span for span in found.spans if span.role == role]
        assert [span.iteration for span in spans] == list(range(32 * stages))
        # One iteration after the other, and none before it is ready.
        assert all(before.done == after.ready <= after.begin <= after.done for before, after in pairwise(spans))
    for warp in found.timeline.warps:
        assert warp.span == warp.stall + warp.passed + warp.active + warp.untracked
        assert warp.untracked == 0
        assert all(before.end <= after.start for before, after in pairwise(warp.slices))


@settings(deadline=None)
@given(
    fills=st.tuples(st.integers(1, 900), st.integers(1, 900)),
    holds=st.tuples(st.integers(1, 900), st.integers(1, 900)),
    stages=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    work=st.tuples(st.integers(1, 500), st.integers(1, 500)),
)
def test_two_rings_between_two_roles(fills, holds, stages, work):
    rows = (row("load", Resource.TMA_ISSUE, work[0]), row("mma", Resource.TENSOR, work[1]))
    rings = tuple(
        ring(*each, name=name) for name, each in zip("KV", zip(stages, fills, holds, strict=True), strict=True)
    )
    budget = Budget("attention", "simulator", "one tile", rows, rings=rings)
    # Joined, stages of both may go round more slowly than each alone (a fill of one, a hold of the other), never faster.
    joined = max(
        (fill + hold) / depth
        for fill, depth in zip(fills, stages, strict=True)
        for hold, other in zip(holds, stages, strict=True)
        if depth == other
    )
    found = simulate(budget, 12 * 24).period
    assert found >= predict(budget).period - 1e-9
    if stages[0] == stages[1]:
        assert found == pytest.approx(max(*work, joined))


@settings(deadline=None, max_examples=25)
@given(
    tensor=st.integers(1, 600),
    reads=st.integers(1, 600),
    writes=st.integers(1, 600),
    share=st.sampled_from([0, 0.5, 1]),
)
def test_a_resource_that_roles_share_serves_all_of_them(tensor, reads, writes, share):
    rows = (
        row("load", Resource.SMEM, writes, is_write=True),
        row("mma", Resource.TENSOR, tensor),
        row("mma", Resource.SMEM, reads),
    )
    budget = Budget("gemm", "simulator", "one tile", rows, rings=(ring(4, 1, 1),), smem_write_share=share)
    expected = max(tensor, reads + share * writes)
    assert predict(budget).period == expected
    # A backlog must first build up where the sum of both is only just the largest.
    assert simulate(budget, 2000).period == pytest.approx(expected, rel=0.01)


def test_a_role_that_waits_for_a_resource_stalls_and_is_not_busy():
    # The port serves 384 of the MMA's and 128 of TMA's in turn, the tensor core 512: load idles three quarters.
    rows = (
        row("mma", Resource.TENSOR, 512),
        row("mma", Resource.SMEM, 384),
        row("load", Resource.SMEM, 128, is_write=True),
    )
    budget = Budget("gemm", "simulator", "one tile", rows, rings=(ring(4, 900, 512),))
    found = simulate(budget, 64)
    assert found.period == predict(budget).period == 512
    later = [span for span in found.spans if span.role == "load" and span.iteration >= 32]
    assert {span.done - span.served for span in later} == {128}
    assert {span.crowded for span in later} == {"shared memory"}
    (idle,) = [role.idle for role in predict(budget).roles if role.role == "load"]
    load = next(warp for warp in found.timeline.warps if warp.role == "load")
    steady = [each for each in load.slices if each.visit >= 32]
    stalled = sum(each.cycles for each in steady if each.state is State.STALL)
    assert stalled / sum(each.cycles for each in steady) == idle == 0.75
    assert "shared memory" in timeline_svg([found.timeline], manifest_of(budget, found))


def test_a_chain_from_one_iteration_to_the_next():
    # FlashAttention-4's, two tiles of queries in turn: (512 + 1024 + 512 + 492) / 2 = 1270 cycles.
    chain = (
        Dependency("QK", "softmax", (Step("QK", 512),)),
        Dependency("softmax", "PV", (Step("softmax", 1024), Step("hand-offs", 492))),
        Dependency("PV", "QK", (Step("PV", 512),), 2),
    )
    rows = (row("mma", Resource.TENSOR, 1024), row("softmax", Resource.MUFU, 1024))
    budget = Budget("attention", "simulator", "one tile", rows, dependencies=chain)
    assert predict(budget).period == 1270
    found = simulate(budget, 64)
    assert found.period == pytest.approx(1270)
    assert found.waits == ("earlier iterations",)


def test_roles_that_wait_for_each_other_are_named():
    there = Ring("S", "mma", "softmax", 2, (Step("", 1),), (Step("", 1),))
    back = Ring("P", "softmax", "mma", 2, (Step("", 1),), (Step("", 1),))
    with pytest.raises(AutostampError) as caught:
        simulate(Budget("attention", "simulator", "one tile", (), rings=(there, back)))
    assert caught.value.diagnostic.code == "AS7107"
    assert "mma -> softmax -> mma" in caught.value.diagnostic.message


@pytest.mark.parametrize(
    ("budget", "iterations"),
    [
        (ring_budget(1, 1, 1), 1),
        (ring_budget(1, 1, 0), 8),
        (Budget("kernel", "simulator", "one tile", ()), 8),
    ],
    ids=["one iteration", "no stage", "no role"],
)
def test_what_cannot_be_played(budget, iterations):
    with pytest.raises(AutostampError) as caught:
        simulate(budget, iterations)
    assert caught.value.diagnostic.code == "AS7106"


def test_the_timeline_can_be_drawn_as_a_recorded_one():
    budget = ring_budget(20, 50, 3)
    played = simulate(budget, 6)
    manifest = manifest_of(budget, played)
    (kernel,) = manifest.traces
    assert [(each.label, each.stages) for each in kernel.barriers] == [("K", 3)]
    assert [(each.number, each.role, each.side, each.barrier) for each in kernel.instances] == [
        (1, "mma", "full", 1),
        (2, "load", "empty", 1),
    ]
    drawn = timeline_svg([played.timeline], manifest)
    assert "ring (predicted)" in drawn
    assert "K[2]" in drawn or "K[0]" in drawn
