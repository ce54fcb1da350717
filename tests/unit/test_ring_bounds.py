# SPDX-License-Identifier: Apache-2.0
"""The bounds of rings against a simulated CTA: the steady period that the analysis measures is the one that was predicted.

By hand, for S stages: an iteration takes the producer `load`, the consumer `compute`, and a stage goes round in
(load + transfer + hand-off + compute + hand-off), of which S are under way at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autostamp.analysis import analyse
from autostamp.analysis.steady import TOLERANCE, steady_state
from autostamp.model.budget import BoundKind, Budget, Dependency, Origin, Resource, ResourceRow, Ring, Step
from autostamp.model.flow import Steady
from autostamp.model.timeline import Timeline
from autostamp.model.trace import Trace
from autostamp.predict.bounds import predict
from autostamp.predict.cycles import worst_cycle
from autostamp.runtime.decode import decode_region
from tests.simulator import machine
from tests.simulator.pipelines import Pipeline
from tests.simulator.region import write_region
from tests.simulator.ring_flow import UNIT, simulate_ring
from tests.simulator.tables import ACQUIRE, COMMIT, CONSUME, RELEASE

USES = 48


def ring_budget(load: float, compute: float, stages: int, transfer: float = 0, hand_off: float = 0) -> Budget:
    def row(role: str, resource: Resource, cycles: float) -> ResourceRow:
        return ResourceRow(role, resource, "", cycles, "", "", 1, cycles, Origin.GIVEN, "", "")

    ring = Ring(
        "K",
        "load",
        "mma",
        stages,
        (Step("load", load), Step("transfer", transfer)),
        (Step("compute", compute),),
        (Step("full", hand_off), Step("empty", hand_off)),
    )
    rows = (row("load", Resource.TMA_ISSUE, load), row("mma", Resource.TENSOR, compute))
    return Budget("ring", "simulator", "one stage", rows, rings=(ring,))


def measured(trace: Trace, timeline: Timeline) -> Steady:
    steady, notes = steady_state(trace, timeline)
    assert notes == ()
    assert steady is not None
    return steady


# load, compute, stages: the kind of bound, its name, the period, and what load and mma idle.
RINGS = (
    ("producer-bound", 50, 20, 3, BoundKind.RESOURCE, "TMA issue", 50, {"load": 0, "mma": 0.6}),
    ("consumer-bound", 20, 50, 3, BoundKind.RESOURCE, "tensor core", 50, {"load": 0.6, "mma": 0}),
    ("balanced", 40, 40, 2, BoundKind.RESOURCE, "tensor core", 40, {"load": 0, "mma": 0}),
    ("one stage", 30, 50, 1, BoundKind.CREDIT, "K", 80, {"load": 5 / 8, "mma": 3 / 8}),
)


@pytest.mark.parametrize(
    ("load", "compute", "stages", "kind", "name", "period", "idle"),
    [row[1:] for row in RINGS],
    ids=[row[0] for row in RINGS],
)
def test_closed_forms(load, compute, stages, kind, name, period, idle):
    found = predict(ring_budget(load, compute, stages))
    assert (found.bottleneck.kind, found.bottleneck.name, found.period) == (kind, name, period)
    assert {role.role: role.idle for role in found.roles} == pytest.approx(idle)
    steady = measured(*simulate_ring([load] * USES, [[compute] * USES], stages))
    assert steady.period.median == steady.period.longest == period * UNIT
    # The consumer stalls for exactly what it was predicted to idle.
    (mma,) = (role for role in steady.roles if role.role == "mma")
    assert mma.stall / mma.span == pytest.approx(idle["mma"])


@settings(deadline=None)
@given(load=st.integers(1, 500), compute=st.integers(1, 500), stages=st.integers(1, 8))
def test_the_predicted_period_of_any_ring_is_measured(load, compute, stages):
    found = predict(ring_budget(load, compute, stages))
    steady = measured(*simulate_ring([load] * USES, [[compute] * USES], stages))
    assert steady.period.median == found.period * UNIT
    (mma,) = (role for role in found.roles if role.role == "mma")
    (seen,) = (role for role in steady.roles if role.role == "mma")
    # An iteration of the fill that is within a tenth of the period counts as steady.
    assert seen.stall / seen.span == pytest.approx(mma.idle, abs=TOLERANCE / steady.iterations)


@dataclass(frozen=True)
class Copied:
    """A ring that asynchronous copies fill. A copy is `transfer` under way, an arrival is seen `hand_off` later."""

    load: int
    compute: int
    stages: int
    transfer: int
    hand_off: int

    def steady(self) -> Steady:
        shape = Pipeline(stages=self.stages, producers=1, consumers=1, tiles=USES)
        kernel = shape.kernel()
        full = [machine.Barrier(f"full{stage}", 1, stage) for stage in range(self.stages)]
        empty = [machine.Barrier(f"empty{stage}", 1, stage) for stage in range(self.stages)]
        # A ready wait takes no less than a hand-off, so that no wait ends sooner for having come late.
        timing = machine.Timing(
            ready=self.hand_off, hand_off=(self.hand_off, self.hand_off), transfer=(self.transfer, self.transfer)
        )
        truth = machine.Machine(kernel, timing).run({0: self._producer(full, empty), 1: self._consumer(full, empty)})
        trace = decode_region(write_region(kernel.capacity, truth.logs, kernel.signature), kernel)
        return measured(trace, analyse(trace))

    def _producer(self, full: list[machine.Barrier], empty: list[machine.Barrier]) -> Iterator[machine.Step]:
        for tile in range(USES):
            lap, stage = divmod(tile, self.stages)
            yield machine.Wait(ACQUIRE, empty[stage], lap - 1, arms=full[stage])
            yield machine.Work(self.load)
            yield machine.Copy(0, full[stage])
            yield machine.Commit(COMMIT, full[stage])

    def _consumer(self, full: list[machine.Barrier], empty: list[machine.Barrier]) -> Iterator[machine.Step]:
        for tile in range(USES):
            lap, stage = divmod(tile, self.stages)
            yield machine.Wait(CONSUME, full[stage], lap)
            yield machine.Work(self.compute)
            yield machine.Arrive(RELEASE, empty[stage])


# Copies take 600 beside load 20, compute 90, hand-offs 10 (and as much for a ready wait, which lengthens either side's turn to 30
# and 100): a stage goes round in 20 + 600 + 10 + 90 + 10 = 730 cycles.
COPIED = tuple((stages, max(100, 730 / stages)) for stages in (1, 2, 4, 5, 7, 8, 12))


@pytest.mark.parametrize(("stages", "period"), COPIED)
def test_a_ring_of_copies_is_bound_by_its_depth_until_it_is_deep_enough(stages, period):
    load, compute, transfer, hand_off = 20, 90, 600, 10
    # A turn of either side takes what its wait takes when it is ready, too.
    turns = (
        Dependency("load", "load", (Step("load", load), Step("ready wait", hand_off)), 1),
        Dependency("mma", "mma", (Step("compute", compute), Step("ready wait", hand_off)), 1),
    )
    whole = ring_budget(load, compute, stages, transfer, hand_off)
    found = predict(Budget("ring", "simulator", "one stage", whole.rows, turns, whole.rings))
    assert found.period == pytest.approx(period)
    assert found.bottleneck.kind is (BoundKind.CREDIT if stages < 8 else BoundKind.RECURRENCE)
    steady = Copied(load, compute, stages, transfer, hand_off).steady()
    # Where the depth binds, stages come in bursts, so the period is that of whole rounds of the ring.
    rounds = steady.iterations // stages
    marks = steady.marks[-1 - rounds * stages :]
    assert (marks[-1] - marks[0]) / (rounds * stages) == pytest.approx(found.period)


@given(
    load=st.integers(1, 99),
    compute=st.integers(1, 99),
    transfer=st.integers(0, 999),
    hand_off=st.integers(0, 50),
    stages=st.integers(1, 8),
)
def test_credit_is_a_recurrence_through_the_ring(load, compute, transfer, hand_off, stages):
    """The consumer's turn i + S needs the release of turn i: the same bound as a cycle of distance S."""
    there = Dependency("load", "mma", (Step("load", load), Step("copy", transfer), Step("full", hand_off)))
    back = Dependency("mma", "load", (Step("compute", compute), Step("empty", hand_off)), stages)
    found = worst_cycle((there, back))
    assert found is not None
    credit = next(
        bound
        for bound in predict(ring_budget(load, compute, stages, transfer, hand_off)).bounds
        if bound.kind is BoundKind.CREDIT
    )
    assert found[1] == pytest.approx(credit.cycles)
