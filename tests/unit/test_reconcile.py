# SPDX-License-Identifier: Apache-2.0
"""Predictions against simulated CTAs whose periods follow by hand; a unit is 1000 cycles, longer than any ready wait."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autostamp.analysis import analyse
from autostamp.analysis.flow import explain
from autostamp.diagnostics import AutostampError
from autostamp.model.budget import Budget, Dependency, Origin, Resource, ResourceRow, Ring, Step
from autostamp.model.flow import Arrow, End, Flow, PathKind, Steady
from autostamp.model.prediction_file import PREDICTION_SCHEMA, PredictionFile
from autostamp.model.reconciliation import Finding, PartKind, Reconciliation
from autostamp.model.timeline import Spread, Timeline, WarpTimeline
from autostamp.model.trace import Trace
from autostamp.predict.bounds import predict
from autostamp.predict.edges import edges
from autostamp.predict.reconcile import reconcile
from autostamp.report.reconcile_text import as_text
from autostamp.runtime.decode import decode_region
from tests.simulator import machine
from tests.simulator.kernel import Action, Arrive, Simulation, Wait, Work
from tests.simulator.pipelines import Pipeline
from tests.simulator.region import write_region
from tests.simulator.ring_flow import UNIT, simulate_ring, uneven_producer
from tests.simulator.tables import ACQUIRE, COMMIT, CONSUME, RELEASE, ring_kernel

USES = 48
PLACES = {
    ACQUIRE: "K acquire at ring.py:12",
    COMMIT: "commit",
    CONSUME: "K wait at ring.py:31",
    RELEASE: "K release at ring.py:34",
}
NAMES = {1: "K"}


def row(role: str, resource: Resource, units: float, *, is_write: bool = False) -> ResourceRow:
    cycles = units * UNIT
    return ResourceRow(role, resource, "work", cycles, "B", resource, 1, cycles, Origin.GIVEN, "", "", is_write)


def budget(*rows: ResourceRow, rings: tuple[Ring, ...] = (), share: float = 1.0) -> Budget:
    return Budget("ring", "simulator", "one stage", rows, rings=rings, smem_write_share=share)


def ring_of(load: float, compute: float, stages: int, hand_off: float = 0) -> Ring:
    return Ring(
        "K",
        "load",
        "mma",
        stages,
        (Step("load", load * UNIT),),
        (Step("compute", compute * UNIT),),
        (Step("full", hand_off * UNIT), Step("empty", hand_off * UNIT)),
    )


def predicted(of: Budget, written_at: datetime = datetime(2026, 11, 1, tzinfo=UTC)) -> PredictionFile:
    return PredictionFile(PREDICTION_SCHEMA, "test", written_at, of.machine, of.kernel, "0" * 64, "", of, predict(of))


def against(run: tuple[Trace, Timeline], of: Budget, **options) -> Reconciliation:
    trace, timeline = run
    return reconcile(timeline, explain(trace, timeline), predicted(of), places=PLACES, barriers=NAMES, **options)


def parts(found: Reconciliation) -> dict[PartKind, float]:
    return {part.kind: part.cycles for part in found.parts}


def test_a_ring_that_is_predicted_right_runs_at_its_bound():
    # load 20, compute 50: an iteration takes 50, the consumer never waits, the producer idles for 30 of 50.
    found = against(
        simulate_ring([20] * USES, [[50] * USES], 3),
        budget(row("load", Resource.TMA_ISSUE, 20), row("mma", Resource.TENSOR, 50)),
    )
    assert found.period.mean == found.period.median == found.predicted == 50 * UNIT
    assert (found.residual, found.explained, found.finding) == (0, 1, Finding.AT_BOUND)
    assert set(parts(found).values()) == {0}
    assert (found.direction.predicted, found.direction.measured, found.direction.holds) == (("mma",), "mma", True)
    assert found.ranking.predicted == found.ranking.measured == ("load", "mma")
    assert found.ranking.swapped == found.trials == ()
    load, mma = found.roles
    assert (load.predicted_idle, mma.predicted_idle, mma.idle) == (0.6, 0, 0)
    assert load.idle == pytest.approx(0.6, abs=0.02)
    assert "error +0.0 %" in as_text(found)


def untracked_consumer(uses: int, compute: int, after: int, stages: int) -> Iterator[Action]:
    """Works on after it has released the stage."""
    for use in range(uses):
        lap, stage = divmod(use, stages)
        yield Wait(CONSUME, ("full", stage), lap + 1, stage)
        yield Work(compute * UNIT)
        yield Arrive(RELEASE, ("empty", stage), stage)
        yield Work(after * UNIT)


def untracked_run(compute: int, after: int, stages: int = 3) -> tuple[Trace, Timeline]:
    kernel = ring_kernel(stages, capacity=4 * USES + 8)
    warps = {0: uneven_producer([20] * USES, stages), 1: untracked_consumer(USES, compute, after, stages)}
    trace = decode_region(
        write_region(kernel.capacity, Simulation(kernel, {0: 0, 1: 0}).run(warps), kernel.signature), kernel
    )
    return trace, analyse(trace)


def test_untracked_work_is_named_and_explains_the_period_once_it_is_added():
    # 50 of compute and 30 after the release, of which the budget knows the 50.
    of = budget(row("load", Resource.TMA_ISSUE, 20), row("mma", Resource.TENSOR, 50))
    found = against(untracked_run(50, 30), of)
    assert (found.predicted, found.period.mean, found.residual) == (50 * UNIT, 80 * UNIT, 30 * UNIT)
    assert parts(found) == {kind: 30 * UNIT if kind is PartKind.UNTRACKED else 0 for kind in PartKind}
    region = found.regions[0]
    assert (region.role, region.first, region.last, region.on_path) == ("mma", RELEASE, CONSUME, 30 * UNIT)
    assert region.where == "K release at ring.py:34 and K wait at ring.py:31"
    assert found.finding is Finding.INCOMPLETE
    trial = found.trials[0]
    assert (trial.cycles, trial.period, trial.gain, trial.explained) == (30 * UNIT, 80 * UNIT, 30 * UNIT, 1)
    assert "untracked work of mma between K release at ring.py:34" in found.headline
    assert "it is 100 %" in found.headline


def test_a_ring_that_the_budget_lacks_is_found_by_its_arrows():
    # One stage: load 30 and compute 50 take turns, 80 an iteration; resources alone say 50.
    run = simulate_ring([30] * USES, [[50] * USES], 1)
    rows = (row("load", Resource.TMA_ISSUE, 30), row("mma", Resource.TENSOR, 50))
    found = against(run, budget(*rows))
    assert (found.predicted, found.period.mean) == (50 * UNIT, 80 * UNIT)
    assert found.trials[0].what == "ring K from load to mma, 1 stage"
    assert (found.trials[0].period, found.trials[0].explained) == (80 * UNIT, 1)
    # With the ring in the budget there is nothing to add.
    whole = against(run, budget(*rows, rings=(ring_of(30, 50, 1),)))
    assert (whole.residual, whole.trials, whole.finding) == (0, (), Finding.AT_BOUND)
    assert whole.direction.predicted == ("load", "mma")


def test_a_longer_row_than_the_clean_period_is_an_error_of_the_model():
    # The tensor core cannot need 60 of an iteration that takes 50. Without that row, the load's 20 remain.
    run = simulate_ring([20] * USES, [[50] * USES], 3)
    found = against(run, budget(row("load", Resource.TMA_ISSUE, 20), row("mma", Resource.TENSOR, 60)))
    assert (found.finding, found.over) == (Finding.MODEL_ERROR, ((Resource.TENSOR, 60 * UNIT),))
    assert found.residual == -10 * UNIT == parts(found)[PartKind.UNEXPLAINED]
    # 1 is the row's rate here: 60 in 50 is 1.2.
    assert found.correction == "no row of tensor core (the run needs tensor core 1.2 or more, not 1)"
    assert found.corrected is not None
    assert found.corrected.predicted == 20 * UNIT


def test_writes_to_shared_memory_are_the_first_to_be_doubted():
    # Reads 40 and writes 30 are 70, in an iteration of 50: at most a third of the writes can be in the way.
    run = simulate_ring([20] * USES, [[50] * USES], 3)
    rows = (
        row("mma", Resource.TENSOR, 50),
        row("mma", Resource.SMEM, 40),
        row("load", Resource.SMEM, 30, is_write=True),
    )
    found = against(run, budget(*rows))
    assert found.over == ((Resource.SMEM, 70 * UNIT),)
    assert found.correction == "smem_write_share 0 (the run allows 0.33 at most)"
    assert found.corrected is not None
    assert (found.corrected.predicted, found.corrected.finding) == (50 * UNIT, Finding.AT_BOUND)


def test_a_bound_above_the_clean_period_is_an_error_even_below_the_stamped_one():
    # Measured 50, stamped over clean 1.25: clean 40, and 48 is more than its twentieth above that.
    run = simulate_ring([20] * USES, [[50] * USES], 3)
    of = budget(row("load", Resource.TMA_ISSUE, 20), row("mma", Resource.TENSOR, 48))
    assert against(run, of).finding is Finding.KERNEL
    found = against(run, of, ratio=1.25)
    assert (found.period.clean, found.finding) == (40 * UNIT, Finding.MODEL_ERROR)
    assert against(run, budget(row("mma", Resource.TENSOR, 41)), ratio=1.25).finding is Finding.AT_BOUND


def test_stamps_take_their_part_first_and_the_rest_is_clamped():
    # Residual 30, of which stamps, by 1.2, make 80 / 6: what is untracked fills the rest and is cut.
    found = against(
        untracked_run(50, 30), budget(row("load", Resource.TMA_ISSUE, 20), row("mma", Resource.TENSOR, 50)), ratio=1.2
    )
    stamps = 80 * UNIT / 6
    assert parts(found)[PartKind.STAMPS] == pytest.approx(stamps)
    assert parts(found)[PartKind.UNTRACKED] == pytest.approx(30 * UNIT - stamps)
    (cut,) = (part for part in found.parts if part.is_clamped)
    assert (cut.kind, cut.observed) == (PartKind.UNTRACKED, 30 * UNIT)
    # Brought to the clean kernel, 30 are 25: 50 + 25 of 80 / 1.2.
    assert found.explained == pytest.approx(50 / (80 / 1.2))
    assert "of 30,000 observed" in as_text(found)


def test_a_stall_is_worth_what_lies_above_the_bound():
    # One stage, 30 + 50, of which the budget says 46 + 30 = 76: 95 %, so the kernel is at fault. The producer waits for the
    # release and the consumer for the commit, and no hand-off takes time, so that no stall is on the path.
    run = simulate_ring([30] * USES, [[50] * USES], 1)
    rows = (row("load", Resource.TMA_ISSUE, 30), row("mma", Resource.TENSOR, 46))
    found = against(run, budget(*rows, rings=(ring_of(30, 46, 1),)))
    assert (found.finding, found.stalls) == (Finding.KERNEL, ())
    assert found.headline.endswith("no stall lies on the critical path")
    assert against(run, budget(*rows, rings=(ring_of(30, 46, 1),)), share=0.04).finding is Finding.INCOMPLETE


def test_ranking_tells_which_roles_changed_places():
    # Load 50 and compute 20: the consumer idles, where the budget has it the other way round.
    run = simulate_ring([50] * USES, [[20] * USES], 3)
    found = against(run, budget(row("load", Resource.TMA_ISSUE, 20), row("mma", Resource.TENSOR, 50)))
    assert found.ranking.predicted == ("load", "mma")
    assert found.ranking.measured == ("mma", "load")
    assert found.ranking.swapped == (("load", "mma"),)
    assert found.direction.holds is False
    # The period fits all the same, by chance: the model is not trusted.
    assert (found.explained, found.finding) == (1, Finding.INCOMPLETE)
    assert "against the prediction load binds, not mma, and mma idles more than load" in found.headline
    text = as_text(found)
    assert "direction is wrong" in text
    assert "ranking by idle is wrong" in text


def test_bounds_that_are_close_bind_together():
    # Both take 40: whichever the path lies in was predicted.
    found = against(
        simulate_ring([40] * USES, [[40] * USES], 2),
        budget(row("load", Resource.TMA_ISSUE, 40), row("mma", Resource.TENSOR, 40)),
    )
    assert set(found.direction.predicted) == {"load", "mma"}
    assert (found.direction.holds, found.finding) == (True, Finding.AT_BOUND)


def test_a_transfer_on_the_path_is_of_the_role_that_issued_it():
    # 6000 of 7180 are copies of the load warp, which works for 200 only.
    rows = (row("load", Resource.TMA_BYTES, 6.5), row("mma", Resource.TENSOR, 0.9))
    found = against(copied_run(200, 6000, 900, 40), budget(*rows))
    assert (found.direction.predicted, found.direction.measured, found.direction.holds) == (("load",), "load", True)


def test_roles_of_the_budget_may_be_called_otherwise():
    run = simulate_ring([20] * USES, [[50] * USES], 3)
    of = budget(row("load", Resource.TMA_ISSUE, 20), row("softmax", Resource.MUFU, 40), row("mma", Resource.TENSOR, 50))
    with pytest.raises(AutostampError, match=r"AS7140 .* lacks: softmax"):
        against(run, of)
    found = against(run, of, roles={"softmax": "mma"})
    assert [(role.role, role.predicted_idle) for role in found.roles] == [("load", 0.6), ("mma", 0)]


def test_a_kernel_that_does_not_repeat_has_nothing_to_compare():
    with pytest.raises(AutostampError, match="AS7141"):
        against(simulate_ring([20], [[50]], 1), budget(row("mma", Resource.TENSOR, 50)))


@pytest.mark.parametrize(
    ("recorded_at", "after"),
    [
        ("2026-10-31T23:59:59+00:00", True),
        ("2026-11-01T02:00:00+02:00", False),
        ("2026-11-02T00:00:00", False),
        ("", None),
    ],
)
def test_a_prediction_that_is_younger_than_the_run_is_told(recorded_at, after):
    # Written on 2026-11-01 at midnight, UTC.
    run = simulate_ring([20] * USES, [[50] * USES], 3)
    assert against(run, budget(row("mma", Resource.TENSOR, 50)), recorded_at=recorded_at).is_written_after is after


@settings(deadline=None, max_examples=30)
@given(
    load=st.integers(1, 99),
    compute=st.integers(1, 99),
    after=st.integers(0, 50),
    stages=st.integers(1, 4),
    guess=st.integers(1, 150),
    ratio=st.none() | st.floats(0.9, 1.5),
)
def test_the_parts_sum_to_the_residual_and_none_exceeds_what_was_observed(load, compute, after, stages, guess, ratio):
    found = against(untracked_run(compute, after, stages), budget(row("mma", Resource.TENSOR, guess)), ratio=ratio)
    for each in [found, *([found.corrected] if found.corrected else [])]:
        assert sum(part.cycles for part in each.parts) == pytest.approx(each.residual)
        assert each.residual == each.period.mean - each.predicted
        for part in each.parts:
            if part.kind is not PartKind.UNEXPLAINED:
                assert 0 <= part.cycles <= max(part.observed or 0, 0) + 1e-6
        assert all(trial.gain > 0 for trial in each.trials)
    as_text(found)


def turns_flow(iterations: int = 10) -> tuple[Timeline, Flow, Steady]:
    """Warps 0 and 1 let each other go on: 0 works for 30 after 1's arrival, 1 for 45 after 0's, and a hand-off takes 5."""
    arrows = []
    at = 0
    for use in range(2 * iterations):
        worker, other = use % 2, 1 - use % 2
        at += 45 if worker else 30
        arrows.append(Arrow(End(worker, 2, use, at), End(other, 1, use, at + 5), 7, "named", -1, use))
        at += 5
    steady = Steady(0, at, 0, "mma", 1, iterations, Spread(iterations, at, 85, 85, 85, 85), (), 0, 0, ())
    warps = tuple(WarpTimeline(warp, "mma", (), at, 0, 0, at, 0, 0, at) for warp in (0, 1))
    timeline = Timeline("pingpong", warps, (), (), (), 0.0)
    return timeline, Flow(tuple(arrows), (), (), steady, None, (), (), ()), steady


def test_turns_at_a_barrier_are_a_chain_of_one_iteration():
    timeline, flow, steady = turns_flow()
    of = budget(row("mma", Resource.TENSOR, 0.05))
    (change,) = edges(of, timeline, flow, steady, {7: "order"})
    assert change.what == "turns at order (mma to mma), 2 an iteration"
    assert change.cycles == pytest.approx(30 + 45 + 2 * 5, rel=0.05)
    assert predict(change.budget).bottleneck.name == "order"
    known = replace(of, dependencies=(Dependency("order", "order", (Step("turn", 1.0),), 1),))
    assert list(edges(known, timeline, flow, steady, {7: "order"})) == []


def test_warps_that_meet_at_a_barrier_take_no_turns():
    # Whoever comes last is the same warp each time: the others follow it, and nothing follows from them.
    timeline, flow, steady = turns_flow()
    same = tuple(arrow for arrow in flow.arrows if arrow.signal.warp == 0)
    assert list(edges(budget(), timeline, replace(flow, arrows=same), steady, {})) == []


def test_path_kinds_that_are_waiting_are_priced():
    found = against(simulate_ring([30] * USES, [[50] * USES], 1), budget(row("mma", Resource.TENSOR, 75)))
    assert all(stall.kind is not PathKind.ACTIVE and stall.worth <= 5 * UNIT for stall in found.stalls)


def copied_run(load: int, transfer: int, compute: int, hand_off: int) -> tuple[Trace, Timeline]:
    """A ring of one stage that asynchronous copies fill: `transfer` under way, and each arrival seen `hand_off` later."""
    shape = Pipeline(stages=1, producers=1, consumers=1, tiles=USES)
    kernel = shape.kernel()
    full, empty = machine.Barrier("full", 1, 0), machine.Barrier("empty", 1, 0)

    def producer() -> Iterator[machine.Step]:
        for tile in range(USES):
            yield machine.Wait(ACQUIRE, empty, tile - 1, arms=full)
            yield machine.Work(load)
            yield machine.Copy(0, full)
            yield machine.Commit(COMMIT, full)

    def consumer() -> Iterator[machine.Step]:
        for tile in range(USES):
            yield machine.Wait(CONSUME, full, tile)
            yield machine.Work(compute)
            yield machine.Arrive(RELEASE, empty)

    timing = machine.Timing(ready=hand_off, hand_off=(hand_off, hand_off), transfer=(transfer, transfer))
    truth = machine.Machine(kernel, timing).run({0: producer(), 1: consumer()})
    trace = decode_region(write_region(kernel.capacity, truth.logs, kernel.signature), kernel)
    return trace, analyse(trace)


def test_hand_offs_on_the_path_are_the_residual_of_a_ring_without_them():
    # 200 + 6000 + 40 + 900 + 40 go round; without the two hand-offs the budget has 7100 of 7180. Where a transfer ends and its
    # hand-off begins is in no record, so of the two one is seen as a hand-off, and the other stays with the transfer.
    run = copied_run(200, 6000, 900, 40)
    ring = Ring("K", "load", "mma", 1, (Step("load", 200), Step("copy", 6000)), (Step("compute", 900),))
    found = against(run, Budget("ring", "simulator", "one stage", (row("mma", Resource.TENSOR, 0.9),), rings=(ring,)))
    assert (found.predicted, found.period.mean, found.residual) == (7100, 7180, 80)
    assert parts(found)[PartKind.HAND_OFF] == 40
    assert found.finding is Finding.KERNEL
    (first, second) = found.stalls
    assert (first.kind, first.side, first.role, first.by) == (PathKind.HAND_OFF, "empty", "load", "mma")
    # The window's first acquire was ready, so that its hand-off is not among them.
    assert first.worth == first.cycles == pytest.approx(40 * 46 / 47)
    # The ring's own 6000 are in the model, and 200 of issue beside them.
    assert (second.kind, second.side, second.role, second.by) == (PathKind.TRANSFER, "full", "mma", "load")
    assert second.worth == 0
    # With them in the model nothing is left.
    whole = replace(ring, hand_off=(Step("full", 40, is_latency=True), Step("empty", 40, is_latency=True)))
    right = against(run, Budget("ring", "simulator", "one stage", (row("mma", Resource.TENSOR, 0.9),), rings=(whole,)))
    assert (right.residual, parts(right)[PartKind.HAND_OFF], right.finding) == (0, 0, Finding.AT_BOUND)


def test_without_a_critical_path_nothing_is_split():
    trace, timeline = simulate_ring([20] * USES, [[50] * USES], 3)
    flow = replace(explain(trace, timeline), path=None)
    found = reconcile(timeline, flow, predicted(budget(row("mma", Resource.TENSOR, 40))))
    assert {part.kind: part.observed for part in found.parts} == dict.fromkeys(PartKind)
    assert parts(found)[PartKind.UNEXPLAINED] == found.residual == 10 * UNIT
    assert (found.direction.holds, found.stalls) == (None, ())
    assert "no critical path was found" in as_text(found)


def read_chain(units: float, hand_off: float = 0) -> Dependency:
    """What `autostamp predict` reads out of a loop whose warpgroups take turns."""
    steps = (
        Step("tensor core", units * UNIT, "tensor_bf16"),
        Step("latency of MUFU.EX2", 2 * UNIT, "ex2_latency", is_latency=True),
        Step("hand-off at the named barrier", hand_off * UNIT, "named_handoff", is_latency=True),
    )
    return Dependency("mma in turns", "mma in turns", steps, 1)


def test_a_chain_that_was_read_out_of_a_loop_belongs_to_its_role():
    # The consumer takes 50; its chain of 48 binds, of which 1 is a hand-off, and the two exponentials' latency is no such thing.
    run = simulate_ring([20] * USES, [[50] * USES], 3)
    of = replace(
        budget(row("load", Resource.L2, 20), row("mma", Resource.TENSOR, 20)), dependencies=(read_chain(45, 1),)
    )
    found = against(run, of)
    assert (found.bottleneck, found.predicted) == ("mma in turns", 48 * UNIT)
    assert found.direction.predicted == ("mma",)
    assert found.direction.holds is True
    hand_off = next(part for part in found.parts if part.kind is PartKind.HAND_OFF)
    assert f"{UNIT:,} of it predicted" in hand_off.detail


def test_a_chain_that_is_too_long_is_left_out_as_a_whole():
    run = simulate_ring([20] * USES, [[50] * USES], 3)
    of = replace(budget(row("load", Resource.L2, 20), row("mma", Resource.TENSOR, 49)), dependencies=(read_chain(60),))
    found = against(run, of)
    assert found.finding is Finding.MODEL_ERROR
    assert found.correction == "no chain mma in turns"
    assert found.corrected.predicted == 49 * UNIT
