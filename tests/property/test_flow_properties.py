# SPDX-License-Identifier: Apache-2.0
"""The analysis gives back the schedule of any simulated pipeline: every stall, every arrow, every cause, to the cycle."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from autostamp.analysis import analyse
from autostamp.analysis.flow import explain
from autostamp.model.flow import Arrow, Cause, End, Ending, Flow
from autostamp.model.timeline import State
from autostamp.model.trace import Trace
from tests.simulator.machine import Timing, Truth, WaitTruth
from tests.simulator.pipelines import CONSUME, MEET, TAIL, Form, Pipeline

# How long one example takes says nothing here, and a busy machine would make the limit of 200 ms fail.
settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")

TIMINGS = st.builds(
    Timing,
    ready=st.integers(0, 6),
    hand_off=st.tuples(st.integers(1, 5), st.integers(0, 10)).map(lambda pair: (pair[0], sum(pair))),
    late=st.sampled_from([(0, 0), (0, 3)]),
    transfer=st.tuples(st.integers(4, 50), st.integers(0, 200)).map(lambda pair: (pair[0], sum(pair))),
)


ROOMY = st.just(4096)


@st.composite
def pipelines(draw, capacity=ROOMY):
    producers, consumers, tiles = draw(st.integers(1, 4)), draw(st.integers(1, 4)), draw(st.integers(0, 24))

    def owners(count):
        # In turn, or any which way: then some own many tiles and some none.
        chosen = st.lists(st.integers(0, count - 1), min_size=tiles, max_size=tiles).map(tuple)
        return draw(st.none() | st.just(tuple(tile % count for tile in range(tiles))) | chosen)

    return Pipeline(
        stages=draw(st.integers(1, 8)),
        producers=producers,
        consumers=consumers,
        tiles=tiles,
        form=draw(st.sampled_from(Form)),
        fillers=owners(producers),
        drainers=owners(consumers),
        meets=draw(st.booleans()),
        load=draw(st.sampled_from([(5, 5), (5, 40), (50, 400)])),
        compute=draw(st.sampled_from([(5, 5), (5, 80), (50, 400)])),
        timing=draw(TIMINGS),
        seed=draw(st.integers(0, 1 << 16)),
        base=draw(st.sampled_from([0, (1 << 32) - 100, (1 << 33) - 1500])),
        entries=tuple(draw(st.lists(st.integers(0, 90), min_size=8, max_size=8))),
        capacity=draw(capacity),
    )


def arrow_of(wait: WaitTruth) -> Arrow | None:
    """What the machine says ended a wait; None: nobody, or the warp itself was the last to arrive."""
    if wait.phase is None:
        return None
    *others, last = sorted(wait.phase.ends, key=lambda end: (end.cycles, end.warp))
    is_async = last in wait.phase.is_async
    if last.warp == wait.exit.warp and not is_async:
        return None
    instance = wait.exit.instance
    side = "named" if instance == MEET else "full" if instance == CONSUME else "empty"
    stage = -1 if instance == MEET else wait.barrier.payload % 16
    return Arrow(last, wait.exit, 2 if instance == MEET else 1, side, stage, wait.use, tuple(others), is_async)


def landings(truth: Truth) -> dict[int, int]:
    """By the phase's identity, the first exit of all waits for a use: by then its bytes had landed, and records say no more."""
    found: dict[int, int] = {}
    for wait in truth.waits.values():
        if wait.phase is not None:
            exit_ = wait.exit.cycles
            found[id(wait.phase)] = min(exit_, found.get(id(wait.phase), exit_))
    return found


def cause_of(wait: WaitTruth, timing: Timing, landed: dict[int, int]) -> tuple[Ending, int, int, int, int]:
    """Ending, awaited, in flight, handed over and unexplained, cycle by cycle from what happened."""
    # Where all meet, the last to arrive arrives by waiting.
    hand_off = max(timing.hand_off[1], timing.ready) if wait.exit.instance == MEET else timing.hand_off[1]
    arrow = arrow_of(wait)
    ending = Ending.GRANTED if wait.use < 0 else Ending.TRANSFER if arrow and arrow.is_async else Ending.SIGNAL
    arrival = arrow.signal.cycles if arrow else wait.enter
    effect = landed[id(wait.phase)] if ending is Ending.TRANSFER else arrival
    counts = [0, 0, 0, 0]
    for cycle in range(wait.enter, wait.exit.cycles):
        if ending is Ending.GRANTED:
            counts[3] += 1
        elif cycle < arrival:
            counts[0] += 1
        elif cycle < effect:
            counts[1] += 1
        else:
            counts[2 if cycle < effect + hand_off else 3] += 1
    return (ending, *counts)


def parts(cause: Cause) -> tuple[Ending, int, int, int, int]:
    return (cause.ending, cause.awaited, cause.in_flight, cause.handed_over, cause.unexplained)


def contradictions(flow: Flow) -> list[str]:
    """Notes that the records do not fit together. That a short run has no steady state is no such thing."""
    return [note for note in flow.notes if not note.startswith("no steady state: ")]


def key(end: End) -> tuple[int, int, int]:
    return end.warp, end.instance, end.visit


@settings(max_examples=300)
@given(pipeline=pipelines())
def test_every_stall_arrow_and_cause_is_the_machines(pipeline):
    trace, truth = pipeline.run()
    timeline = analyse(trace, latencies=pipeline.latencies)
    flow = explain(trace, timeline, pipeline.latencies)
    assert contradictions(flow) == []
    assert_states(timeline, truth, pipeline)
    expected = {key(wait.exit): arrow for wait in truth.waits.values() if (arrow := arrow_of(wait))}
    assert {key(arrow.wait): arrow for arrow in flow.arrows} == expected
    assert len(flow.arrows) == len(expected)
    landed = landings(truth)
    stalls = {(cause.warp, cause.stall.instance, cause.stall.visit): cause for cause in flow.causes}
    assert {visit: parts(cause) for visit, cause in stalls.items()} == {
        visit: cause_of(wait, pipeline.timing, landed)
        for visit, wait in truth.waits.items()
        if wait.exit.cycles - wait.enter > pipeline.timing.ready
    }
    assert {visit: cause.arrow for visit, cause in stalls.items()} == {visit: expected.get(visit) for visit in stalls}


def assert_states(timeline, truth: Truth, pipeline: Pipeline) -> None:
    ready = pipeline.timing.ready
    found = {
        (warp.warp, part.instance, part.visit): (part.start, part.end, part.state)
        for warp in timeline.warps
        for part in warp.slices
        if part.state is not State.ACTIVE
    }
    assert found == {
        visit: (wait.enter, wait.exit.cycles, State.PASS if wait.exit.cycles - wait.enter <= ready else State.STALL)
        for visit, wait in truth.waits.items()
    }
    for warp in timeline.warps:
        assert warp.stall == truth.stall(warp.warp, ready)
        waited = sum(wait.exit.cycles - wait.enter for wait in truth.waits.values() if wait.exit.warp == warp.warp)
        assert warp.passed == waited - warp.stall
        assert warp.span == warp.stall + warp.passed + warp.active + warp.untracked


@given(pipeline=pipelines(capacity=st.integers(1, 40)))
def test_where_records_are_lost_every_arrow_is_still_true_and_none_before_the_loss_is_missing(pipeline):
    trace, truth = pipeline.run()
    timeline = analyse(trace, latencies=pipeline.latencies)
    flow = explain(trace, timeline, pipeline.latencies)
    expected = {key(wait.exit): arrow for wait in truth.waits.values() if (arrow := arrow_of(wait))}
    for arrow in flow.arrows:
        wanted = expected[key(arrow.wait)]
        assert (arrow.signal, arrow.wait, arrow.stage) == (wanted.signal, wanted.wait, wanted.stage)
    found = {key(arrow.wait) for arrow in flow.arrows}
    late = pipeline.timing.late[1]
    for visit in expected.keys() & kept_waits(trace):
        if expected[visit].wait.cycles + late < first_loss(trace):
            assert visit in found
    for cause in flow.causes:
        visit = (cause.warp, cause.stall.instance, cause.stall.visit)
        if visit in expected and visit not in found:
            assert (cause.ending, cause.unexplained) == (Ending.LOST, cause.stall.cycles)


def kept_waits(trace: Trace) -> set[tuple[int, int, int]]:
    return {
        (lane.warp, event.instance, event.visit)
        for lane in trace.lanes
        for event in lane.events
        if event.kind == "exit"
    }


def first_loss(trace: Trace) -> float:
    return min((lane.events[-1].cycles for lane in trace.lanes if lane.lost), default=float("inf"))


@given(pipeline=pipelines(), stages=st.integers(2, 8), tiles=st.integers(1, 24))
def test_a_producers_tail_waits_for_the_last_release_of_any_stage(pipeline, stages, tiles):
    timing = replace(pipeline.timing, late=(0, 0))
    form = Form.PLAIN if pipeline.form is Form.RAW else pipeline.form
    pipeline = replace(
        pipeline,
        stages=stages,
        tiles=tiles,
        producers=1,
        fillers=None,
        drainers=None,
        form=form,
        timing=timing,
        has_tail=True,
    )
    trace, truth = pipeline.run()
    flow = explain(trace, analyse(trace, latencies=pipeline.latencies), pipeline.latencies)
    (tail,) = (wait for visit, wait in truth.waits.items() if visit[1] == TAIL)
    (arrow,) = (arrow for arrow in flow.arrows if arrow.wait.instance == TAIL)
    # Releases of two stages in one cycle end it alike.
    assert arrow.wait == tail.exit
    assert arrow.signal.cycles == max(end.cycles for end in tail.phase.ends)
    others = [found for found in flow.arrows if found.wait.instance != TAIL]
    assert {key(found.wait): found for found in others} == {
        key(wait.exit): found for wait in truth.waits.values() if wait is not tail and (found := arrow_of(wait))
    }


@given(pipeline=pipelines())
def test_blame_shares_out_each_roles_stall(pipeline):
    trace, _ = pipeline.run()
    timeline = analyse(trace, latencies=pipeline.latencies)
    flow = explain(trace, timeline, pipeline.latencies)
    for role in timeline.roles:
        rows = [row for row in flow.blame if row.role == role.role]
        assert sum(row.cycles for row in rows) == role.stall
        assert abs(sum(row.share for row in rows) - (1 if role.stall else 0)) < 1e-9
        assert sum(row.count for row in rows) == sum(cause.warp in role.warps for cause in flow.causes)
    for row in flow.blame:
        # Loads wait only for what the consumers release; those wait for loads, and for each other where they meet.
        if row.by:
            assert (row.role, row.by) in {("load", "mma"), ("mma", "load"), ("mma", "mma")}
