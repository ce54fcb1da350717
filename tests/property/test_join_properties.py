# SPDX-License-Identifier: Apache-2.0
"""Joined replays against the truth: simulated launches of which every record is known, split over replays."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from autostamp.analysis.join import join
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
    """Two to six sets that cover the MMA warps' sites. All have the producer's sites and one more site as anchors."""
    count = draw(st.integers(2, 6))
    anchor = draw(st.sampled_from(MMA_SITES))
    sets = [{*LOAD_SITES, anchor} for _ in range(count)]
    for site in MMA_SITES:
        sets[draw(st.integers(0, count - 1))].add(site)
    return sets


@given(SCHEDULES, splits(), st.integers(2, 6), st.integers(0, 1 << 30))
@settings(max_examples=150, deadline=None)
def test_every_event_lies_within_its_error_of_the_truth(
    schedule: Schedule, sets: list[set[int]], launches: int, seed: int
) -> None:
    runs = [
        [schedule.launch(seed + 100 * number + launch) for launch in range(launches)] for number in range(len(sets))
    ]
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
