# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autostamp.analysis import analyse
from autostamp.analysis.overlaps import Selection, busy_spans, overlap_of, overlaps
from autostamp.analysis.spans import clip, length, subtract, union
from autostamp.analysis.steady import steady_state
from autostamp.model.flow import Overlap, Steady
from autostamp.model.timeline import Spread
from autostamp.runtime.store import load_run
from tests.simulator.hand_made import hold, passed, stall, timeline_of, warp_of
from tests.simulator.ring_flow import UNIT, constant_ring, simulate_ring

GEMM = Path(__file__).parents[2] / "kernels/cutedsl/recorded/gemm_ws_h200"
SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=12)


def window(start: int, end: int) -> Steady:
    return Steady(start, end, 0, "mma", 1, 1, Spread(1, 1, 1, 1, 1, 1), (start, end), 0, 0, ())


def cycles_in(spans: list[tuple[int, int]]) -> set[int]:
    """Every cycle that a span covers, one by one."""
    return {cycle for start, end in spans for cycle in range(start, end)}


@given(SPANS, SPANS)
def test_subtract_leaves_the_cycles_that_only_the_first_covers(first, second):
    left = subtract(union(first), union(second))
    assert cycles_in(left) == cycles_in(first) - cycles_in(second)
    assert left == sorted(left)
    assert length(left) == len(cycles_in(left))


@given(SPANS, st.integers(0, 60), st.integers(0, 60))
def test_clip_leaves_the_cycles_in_the_window(spans, start, end):
    assert cycles_in(clip(union(spans), (start, end))) == cycles_in(spans) & set(range(start, end))


def test_loads_of_a_compute_bound_ring_lie_within_the_compute():
    # In thousands: from 40 to 220 the consumer always computes; six loads of 10 fall within (test_steady.py).
    trace, timeline = constant_ring(load=10, compute=30)
    steady, _ = steady_state(trace, timeline)
    (found,) = overlaps(timeline, steady)
    assert found == Overlap("load", "mma", 60_000, 180_000)
    assert found.share == pytest.approx(1 / 3)


def test_one_stage_leaves_no_overlap():
    trace, timeline = constant_ring(load=10, compute=30, stages=1)
    steady, _ = steady_state(trace, timeline)
    assert overlaps(timeline, steady) == (Overlap("load", "mma", 0, 280_000),)


def test_a_role_is_busy_while_any_of_its_warps_is():
    timeline = timeline_of(
        warp_of(0, "mma", [hold(0, 40)], end=100),
        warp_of(1, "mma", [hold(30, 60)], end=100),
        warp_of(2, "softmax", [hold(50, 90)], end=100),
    )
    # mma 0-60, softmax 50-90: both 50-60, either 0-90.
    assert overlaps(timeline, window(0, 100)) == (Overlap("mma", "softmax", 10, 90),)
    # From 20 to 55: mma 20-55, softmax 50-55.
    assert overlaps(timeline, window(20, 55)) == (Overlap("mma", "softmax", 5, 35),)


def test_a_warp_that_waits_within_a_hold_is_not_busy():
    timeline = timeline_of(
        warp_of(0, "mma", [hold(0, 100), stall(20, 50, 2), passed(60, 64, 3)], end=100),
        warp_of(1, "softmax", [hold(0, 100)], end=100),
    )
    assert overlaps(timeline, window(0, 100)) == (Overlap("mma", "softmax", 66, 100),)


def test_a_role_of_which_nothing_is_known_has_no_overlap():
    timeline = timeline_of(
        warp_of(0, "mma", [hold(0, 100)], end=100),
        warp_of(1, "store", [stall(0, 10)], end=100),
        warp_of(2, "load", [hold(0, 5)], end=100),
    )
    assert [(found.first, found.second) for found in overlaps(timeline, window(0, 100))] == [("mma", "load")]
    assert overlaps(timeline, window(6, 100)) == ()


def test_chosen_warps_and_holds():
    timeline = timeline_of(
        warp_of(0, "mma", [hold(0, 40, 1), hold(40, 80, 2)], end=100),
        warp_of(1, "mma", [hold(20, 60, 1), hold(60, 100, 2), stall(30, 35, 3)], end=100),
    )
    steady = window(0, 100)
    first, second = (Selection(f"warp {number}", frozenset({number})) for number in (0, 1))
    # Warp 0 is busy 0-80; warp 1 20-30 and 35-100: both 55, either 100.
    assert overlap_of(timeline, steady, first, second) == Overlap("warp 0", "warp 1", 55, 100)
    k, v = (Selection(name, instances=frozenset({number})) for name, number in (("K", 1), ("V", 2)))
    # K 0-60, V 40-100. The stall of warp 1 is within warp 0's hold of K.
    assert busy_spans(timeline, steady, k) == [(0, 60)]
    assert busy_spans(timeline, steady, Selection("K of 1", frozenset({1}), frozenset({1}))) == [(20, 30), (35, 60)]
    assert overlap_of(timeline, steady, k, v) == Overlap("K", "V", 20, 100)


def test_nothing_busy_has_a_share_of_nought():
    timeline = timeline_of(warp_of(0, "mma", [], end=100))
    nothing = Selection("a"), Selection("b")
    found = overlap_of(timeline, window(0, 100), *nothing)
    assert (found.common, found.busy, found.share) == (0, 0, 0.0)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 90), st.integers(1, 90)), min_size=2, max_size=20), st.integers(1, 4))
def test_overlap_is_symmetric_and_at_most_all_of_either(times, stages):
    loads, computes = [load for load, _ in times], [compute for _, compute in times]
    _, timeline = simulate_ring(loads, [computes, computes[::-1]], stages)
    # From the first load on, so that both are busy.
    steady = window(0, max(warp.end for warp in timeline.warps))
    load, mma = Selection("load", frozenset({0})), Selection("mma", frozenset({1, 2}))
    there, back = overlap_of(timeline, steady, load, mma), overlap_of(timeline, steady, mma, load)
    assert (there.common, there.busy) == (back.common, back.busy)
    assert 0.0 <= there.share <= 1.0
    assert overlap_of(timeline, steady, mma, mma).share == 1.0
    assert overlaps(timeline, steady) == (there,)
    # The producer works for the sum of its loads, one after another.
    assert length(busy_spans(timeline, steady, load)) == sum(loads) * UNIT


def test_the_two_warpgroups_of_the_gemm_work_side_by_side():
    (trace,) = load_run(GEMM).traces.values()
    timeline = analyse(trace)
    steady, _ = steady_state(trace, timeline)
    groups = [Selection(f"warpgroup {n}", frozenset(range(4 * n, 4 * n + 4))) for n in (0, 1)]
    found = overlap_of(timeline, steady, *groups)
    assert 0.9 < found.share <= 1.0
    # The producer only issues copies, so it is busy for a small part of the time that the consumers are.
    ((first, second, busy),) = ((pair.first, pair.second, pair.busy) for pair in overlaps(timeline, steady))
    assert (first, second) == ("mma", "load")
    assert busy <= steady.end - steady.start
