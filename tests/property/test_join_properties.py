# SPDX-License-Identifier: Apache-2.0
"""Joined replays against the truth: simulated launches of which every record is known, split over replays."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from autostamp.analysis.join import join
from autostamp.model.manifest import EventKind
from autostamp.model.trace import Event, Trace
from tests.simulator.replays import LOAD_SITES, MMA_SITES, Schedule, by_name, recordings

SCHEDULES = st.builds(
    Schedule,
    iterations=st.integers(3, 20),
    load=st.integers(20, 120),
    first=st.integers(50, 150),
    second=st.integers(30, 120),
    third=st.integers(20, 90),
    jitter=st.integers(0, 18),
    consumers=st.integers(1, 3),
)


@st.composite
def splits(draw: st.DrawFn) -> list[set[int]]:
    """Two to six sets that cover the MMA warps' sites. All have the producer's sites as anchors, and some one site more."""
    count = draw(st.integers(2, 6))
    anchor = draw(st.sampled_from(MMA_SITES))
    sets = [{*LOAD_SITES, anchor} if draw(st.integers(0, 3)) else {*LOAD_SITES} for _ in range(count)]
    for site in MMA_SITES:
        sets[draw(st.integers(0, count - 1))].add(site)
    return sets


@given(SCHEDULES, splits(), st.integers(3, 6), st.integers(0, 1 << 30))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_every_event_lies_within_its_error_of_the_truth(
    schedule: Schedule, sets: list[set[int]], launches: int, seed: int
) -> None:
    runs = _runs(schedule, sets, launches, seed)
    found = join(recordings(runs, sets))
    assert not found.refusals
    assert (found.reference, len(found.traces)) == (1, launches)
    for truth, trace in zip(runs[0], found.traces, strict=True):
        wanted, have = by_name(truth), by_name(trace)
        assert wanted.keys() == have.keys()
        site = {row.number: row.site for row in trace.kernel.instances}
        for lane in trace.lanes:
            for event, replay, error in zip(lane.events, lane.replays, lane.errors, strict=True):
                right = wanted[lane.warp, site[event.instance], event.kind.value, event.visit]
                assert abs(event.cycles - right.cycles) <= error
                assert event.payload == right.payload
                assert site[event.instance] in sets[replay - 1]


@given(SCHEDULES, splits(), st.integers(3, 5), st.integers(0, 1 << 30))
@settings(max_examples=40, deadline=None)
def test_a_stall_of_one_replay_keeps_its_length(
    schedule: Schedule, sets: list[set[int]], launches: int, seed: int
) -> None:
    made = recordings(_runs(schedule, sets, launches, seed), sets)
    found = join(made)
    shortened = {fit.number for fit in found.fits if fit.shortened}
    for launch, trace in enumerate(found.traces):
        site = {row.number: row.site for row in trace.kernel.instances}
        ours = _lengths({lane.warp: list(zip(lane.events, lane.replays, strict=True)) for lane in trace.lanes}, site)
        for recording in made:
            own = recording.launches[launch]
            site = {row.number: row.site for row in own.kernel.instances}
            rows = {lane.warp: [(event, recording.number) for event in lane.events] for lane in own.lanes}
            for key, length in _lengths(rows, site).items():
                if recording.number not in shortened and key in ours:
                    assert ours[key] == length


@given(SCHEDULES, splits(), st.integers(3, 5), st.integers(0, 1 << 30))
@settings(max_examples=40, deadline=None)
def test_a_warps_records_keep_their_order(schedule: Schedule, sets: list[set[int]], launches: int, seed: int) -> None:
    found = join(recordings(_runs(schedule, sets, launches, seed), sets))
    for trace in found.traces:
        for lane in trace.lanes:
            assert [event.cycles for event in lane.events] == sorted(event.cycles for event in lane.events)
            for replay in set(lane.replays):
                visits = [
                    (event.instance, event.kind, event.visit)
                    for event, number in zip(lane.events, lane.replays, strict=True)
                    if number == replay
                ]
                assert len(set(visits)) == len(visits)
                for name in {visit[:2] for visit in visits}:
                    own = [visit[2] for visit in visits if visit[:2] == name]
                    assert own == sorted(own)


@given(SCHEDULES, splits(), st.integers(3, 6), st.integers(0, 1 << 30), st.data())
@settings(max_examples=40, deadline=None)
def test_a_replay_with_another_schedule_is_refused(
    schedule: Schedule, sets: list[set[int]], launches: int, seed: int, data: st.DataObject
) -> None:
    """Its MMA warps need twice as long and more for one piece of work: every gap across that piece is longer."""
    schedule = replace(schedule, iterations=schedule.iterations + 8)
    wrong = data.draw(st.integers(1, len(sets) - 1))
    other = replace(schedule, third=2 * schedule.third + 20 * schedule.jitter + 6 * schedule.load)
    runs = _runs(schedule, sets, launches, seed)
    runs[wrong] = [other.launch(seed + 7000 + launch) for launch in range(launches)]
    found = join(recordings(runs, sets))
    assert [(refusal.number, refusal.code) for refusal in found.refusals] == [(wrong + 1, "AS8121")]
    assert wrong + 1 not in {replay for trace in found.traces for lane in trace.lanes for replay in lane.replays}


@given(st.integers(0, 18), st.integers(1, 2), st.sampled_from(MMA_SITES), st.integers(0, 1 << 30))
@settings(max_examples=15, deadline=None)
def test_a_producer_that_waits_less_for_as_long_is_no_other_schedule(
    jitter: int, consumers: int, anchor: int, seed: int
) -> None:
    """Its loads take longer by more than stamps may shift a gap, and its waits are shorter: the MMA warps set the pace.

    The first two loads fill the ring and are not hidden: the kernel is long enough for those to be less than 0.02 of it.
    """
    schedule = Schedule(30, load=20, first=150, second=120, third=90, jitter=jitter, consumers=consumers)
    sets = [{*LOAD_SITES, anchor}, {*LOAD_SITES, *MMA_SITES}]
    runs = _runs(schedule, sets, 4, seed)
    runs[1] = [replace(schedule, load=95).launch(seed + 7000 + launch) for launch in range(4)]
    found = join(recordings(runs, sets))
    assert not found.refusals
    assert found.fits[0].shift > 50


@given(SCHEDULES, splits(), st.integers(3, 5), st.integers(0, 1 << 30), st.data())
@settings(max_examples=30, deadline=None)
def test_other_trip_counts_are_refused(
    schedule: Schedule, sets: list[set[int]], launches: int, seed: int, data: st.DataObject
) -> None:
    wrong = data.draw(st.integers(0, len(sets) - 1))
    runs = _runs(schedule, sets, launches, seed)
    longer = replace(schedule, iterations=schedule.iterations + data.draw(st.integers(1, 3)))
    # Either in all its launches, or from one to the next.
    odd = range(launches) if wrong and data.draw(st.booleans()) else [launches - 1]
    for launch in odd:
        runs[wrong][launch] = longer.launch(seed + 7000 + launch)
    found = join(recordings(runs, sets))
    assert [(refusal.number, refusal.code) for refusal in found.refusals] == [(wrong + 1, "AS8122")]


def _runs(schedule: Schedule, sets: list[set[int]], launches: int, seed: int) -> list[list[Trace]]:
    return [
        [schedule.launch(seed + 100 * number + launch) for launch in range(launches)] for number in range(len(sets))
    ]


def _lengths(lanes: dict[int, list[tuple[Event, int]]], site: dict[int, int]) -> dict[tuple[int, int, int, int], int]:
    """Length of every wait with both records by (warp, site, visit, set)."""
    found = {}
    for warp, rows in lanes.items():
        enters = {(e.instance, e.visit, number): e.cycles for e, number in rows if e.kind is EventKind.ENTER}
        for event, number in rows:
            key = (event.instance, event.visit, number)
            if event.kind is EventKind.EXIT and key in enters:
                found[warp, site[event.instance], event.visit, number] = event.cycles - enters[key]
    return found
