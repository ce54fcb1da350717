# SPDX-License-Identifier: Apache-2.0
"""CTAs on one axis: simulated launches whose true times are known come back within the error that is stated."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autostamp.analysis import analyse
from autostamp.analysis.alignment import align, aligned, resolution
from autostamp.model.trace import Lane, Trace
from autostamp.runtime.decode import decode_region
from tests.simulator.grid import Placed, Sm, Timers, run_cta
from tests.simulator.tables import ring_kernel

KERNEL = ring_kernel()
TICK_CYCLES = 57
"""A tick of 32 ns at 1.755 cycles per ns is 56.16 cycles, rounded up."""


def traces_of(placed: list[Placed], launch: int = 0) -> list[Trace]:
    grid = (len(placed), 1, 1)
    return [
        replace(decode_region(each.region, KERNEL), block=(at, 0, 0), grid=grid, launch=launch)
        for at, each in enumerate(placed)
    ]


def launch_on(sms: list[Sm], begins: list[int], timers: Timers = Timers(), uses: int = 4) -> list[Placed]:  # noqa: B008
    return [
        run_cta(KERNEL, sm, begin, (len(begins), 1, 1), timers, uses) for sm, begin in zip(sms, begins, strict=True)
    ]


def test_ctas_of_different_sms_come_back_where_they_were():
    # SM 1's clock is about to wrap, SM 2's is far behind.
    sms = [Sm(0, 5_000_000_000), Sm(1, 2**32 - 1000), Sm(2, 17)]
    placed = launch_on(sms, [10_000, 10_400, 13_000])
    found = align(traces_of(placed))
    assert [each.wave for each in found] == [0, 0, 0]
    for each, of in zip(found, placed, strict=True):
        assert abs((each.offset - found[0].offset) - (of.begin - placed[0].begin)) <= each.error
        # The stated error is that of one tick, and what the rate's uncertainty makes of some 4000 cycles.
        assert TICK_CYCLES <= each.error <= 3 * TICK_CYCLES


def test_the_earliest_cta_has_offset_0():
    found = align(traces_of(launch_on([Sm(0, 0), Sm(1, 0)], [90_000, 20_000])))
    assert found[1].offset == 0
    assert found[0].offset == pytest.approx(70_000, abs=found[0].error)


def test_waves_follow_the_clock_of_the_sm():
    # A CTA of the ring kernel takes 400 + 4 * 900 cycles. Two at a time on SM 7: the third begins as the first ends.
    first = run_cta(KERNEL, Sm(7, 99), 1000, (4, 1, 1))
    length = first.end - first.begin
    begins = [1000, 1500, 1000 + length, 1500 + length + 1]
    placed = launch_on([Sm(7, 99)] * 4, begins)
    assert [each.wave for each in align(traces_of(placed))] == [0, 0, 1, 1]


def test_a_wave_is_unknown_where_a_cta_of_the_grid_was_not_recorded():
    traces = traces_of(launch_on([Sm(0, 0), Sm(0, 0)], [0, 90_000]))
    assert [each.wave for each in align(traces[:1])] == [-1]
    assert [each.wave for each in align(traces)] == [0, 1]


def test_launches_are_aligned_each_by_itself():
    placed = launch_on([Sm(0, 0), Sm(1, 50)], [1000, 3000])
    later = launch_on([Sm(1, 50), Sm(0, 0)], [900_000, 901_000])
    found = align([*traces_of(placed), *traces_of(later, launch=1)])
    assert [each.offset for each in (found[0], found[2])] == [0, 0]
    assert found[3].offset == pytest.approx(1000, abs=found[3].error)


def test_drift_between_entry_and_exit_is_in_the_error():
    # The clock of SM 1 runs 2 % slower: over the CTA's 4000 cycles it falls back by 80.
    traces = traces_of(launch_on([Sm(0, 0), Sm(1, 0)], [0, 0]))
    slow = [replace(lane, exit_cycles=lane.exit_cycles * 98 // 100, events=()) for lane in traces[1].lanes]
    steady, drifting = align([traces[0], replace(traces[1], lanes=tuple(slow))])
    assert drifting.error >= 80 // 2
    assert steady.error >= TICK_CYCLES


def test_a_timer_that_never_moved_aligns_nothing():
    lane = Lane(0, 3, (), 0, 0, 20, 700, 700)
    assert [each.error for each in align([Trace(KERNEL, (lane,), 0.0, clock=5)])] == [-1]
    assert align([]) == ()
    assert align([Trace(KERNEL, (), 0.0)])[0].error == -1


def test_lanes_without_clocks_align_nothing():
    lane = Lane(0, -1, (), 0, -1, -1, 0, 0)
    assert align([Trace(KERNEL, (lane,), 0.0)])[0].error == -1


@pytest.mark.parametrize(
    ("ns", "expected"), [((0, 320, 64), 64), ((7, 103, 71), 32), ((5, 5), 0), ((), 0), ((1000, 3000, 2000), 1000)]
)
def test_the_timers_resolution_is_what_all_its_steps_have_in_common(ns, expected):
    assert resolution(ns) == expected


def test_timelines_carry_what_aligns_them():
    traces = traces_of(launch_on([Sm(4, 0), Sm(5, 123)], [0, 5000]))
    first, second = aligned([analyse(trace) for trace in traces], traces)
    assert (first.smid, second.smid) == (4, 5)
    assert (first.block, second.block) == ((0, 0, 0), (1, 0, 0))
    assert second.offset - first.offset == pytest.approx(5000, abs=second.alignment_error)
    (alone,) = aligned([analyse(traces[0])], traces[:1])
    assert (alone.offset, alone.alignment_error, alone.wave) == (0, -1, -1)


@given(
    clocks=st.lists(st.integers(0, 2**40), min_size=2, max_size=6),
    rate=st.floats(0.9, 2.1),
    tick=st.sampled_from([32, 1000, 1024]),
    data=st.data(),
)
@settings(max_examples=60, deadline=None)
def test_any_launch_comes_back_within_its_stated_error(clocks, rate, tick, data):
    """Every pair of CTAs, at the beginning and at the end of each, to within the larger error of the two and a rounding."""
    begins = data.draw(st.lists(st.integers(0, 300_000), min_size=len(clocks), max_size=len(clocks)))
    sms = [Sm(number, clock) for number, clock in enumerate(clocks)]
    placed = launch_on(sms, begins, Timers(rate, tick=tick), uses=12)
    found = align(traces_of(placed))
    assert all(each.error >= 0 for each in found)
    for a, one in zip(found, placed, strict=True):
        for b, other in zip(found, placed, strict=True):
            assert abs((a.offset - b.offset) - (one.begin - other.begin)) <= max(a.error, b.error) + 1
