# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autostamp.analysis import analyse
from autostamp.analysis.depths import depths
from autostamp.analysis.steady import steady_state
from autostamp.model.flow import Depth, Steady
from autostamp.model.manifest import Barrier
from autostamp.model.timeline import Signal, Spread
from autostamp.runtime.store import load_run
from tests.simulator.hand_made import hold, stall, timeline_of, trace_without_lanes, warp_of
from tests.simulator.ring_flow import UNIT, constant_ring, simulate_ring
from tests.simulator.tables import kernel_trace, signal_row, wait_row

ROOT = Path(__file__).parents[2]
ONE_CTA = ROOT / "tests/fixtures/runs/fa4_forward_one_cta"
GEMM = ROOT / "kernels/cutedsl/recorded/gemm_ws_h200"
CUDA_GEMM = ROOT / "kernels/cuda/recorded/gemm_ws_h200"
ROWS = (
    wait_row(1, 1, 2, role="load", side="empty"),
    signal_row(2, 3, role="load", side="full"),
    signal_row(3, 4, role="mma", side="empty"),
)
KERNEL = kernel_trace(ROWS, (Barrier(1, "K", "", 2, False),))


def window(start: int, end: int) -> Steady:
    return Steady(start, end, 1, "mma", 1, 1, Spread(1, 1, 1, 1, 1, 1), (start, end), 0, 0, ())


def releases(*cycles: int, stages: int = 2, warp: int = 1):
    signals = [Signal(at, 3, use, use % stages) for use, at in enumerate(cycles)]
    return warp_of(warp, "mma", [], end=1000, signals=signals)


def loads(*acquires: int, stages: int = 2, warp: int = 0, tail: tuple[int, ...] = ()):
    """A producer that acquires at these cycles, and commits ten cycles later; it waits for the stages of `tail` at the end."""
    slices = []
    for use, at in enumerate((*acquires, *tail)):
        slices.append(stall(at - 1, at, 1, use, use % stages))
        if use < len(acquires):
            slices.append(hold(at, at + 10, 1, use, 2))
    signals = [Signal(at + 10, 2, use, use % stages) for use, at in enumerate(acquires)]
    return warp_of(warp, "load", slices, end=1000, signals=signals)


def depth_of(*warps, kernel=KERNEL, start=0, end=1000) -> tuple[Depth, ...]:
    return depths(trace_without_lanes(kernel), timeline_of(*warps), window(start, end))


def test_a_compute_bound_ring_is_full():
    # In thousands: use n is acquired at 30n - 20 and released at 30n + 40: two uses at any time from 40 to 220.
    trace, timeline = constant_ring(load=10, compute=30)
    steady, _ = steady_state(trace, timeline)
    assert depths(trace, timeline, steady) == (Depth(1, 2, 2.0, 2),)


def test_a_load_bound_ring_is_in_use_by_one_load_and_sometimes_its_consumer():
    # In thousands: use n is acquired at 30n and released at 30n + 40: two for 10 of 30, one for 20.
    trace, timeline = constant_ring(load=30, compute=10)
    steady, _ = steady_state(trace, timeline)
    assert depths(trace, timeline, steady) == (Depth(1, 2, 1.0, 2),)


def test_the_last_of_several_consumers_frees_a_stage():
    # Computes of 10 and of 50: the ring waits for the slower.
    trace, timeline = simulate_ring([5] * 12, [[10] * 12, [50] * 12], 3)
    steady, _ = steady_state(trace, timeline)
    assert depths(trace, timeline, steady) == (Depth(1, 3, 3.0, 3),)


def test_a_stage_that_is_free_is_not_in_use():
    # Stage 0: 100-300 and 600-700. Stage 1: 200-400. Of 100 to 700: none for 200, one for 300 and two for 100.
    found = depth_of(loads(100, 200, 600), releases(300, 400, 700), start=100, end=700)
    assert found == (Depth(1, 2, 1.0, 2),)
    # Of 100 to 1000: none for 500.
    assert depth_of(loads(100, 200, 600), releases(300, 400, 700), start=100) == (Depth(1, 2, 0.0, 2),)


def test_a_producer_that_waits_for_its_stages_at_the_end_uses_none():
    tail = depth_of(loads(100, 200, tail=(301, 401)), releases(300, 400), start=100, end=900)
    assert tail == depth_of(loads(100, 200), releases(300, 400), start=100, end=900) == (Depth(1, 2, 0.0, 2),)


def test_a_release_whose_stamp_is_late_is_of_the_use_before():
    # The stamp of the second warp's release comes 20 cycles after the acquire that it allowed. Stage 0 is in use 100-500 and
    # 500-900, not only until the first warp released it at 200.
    kernel = kernel_trace(ROWS, (Barrier(1, "K", "", 4, False),))
    first, second = releases(200, 600, stages=1), releases(520, 900, stages=1, warp=2)
    found = depth_of(loads(100, 500, stages=1), first, second, kernel=kernel, start=100, end=900)
    assert found == (Depth(1, 4, 1.0, 1),)
    # In use for all of 210 to 490, when the first warp alone has released.
    assert depth_of(loads(100, 500, stages=1), first, second, kernel=kernel, start=210, end=490) == found


def test_a_use_may_be_shorter_than_a_stamp_can_be_late():
    # 100-120 and 300-320, of 100 to 400: the release at 320 is not a late one of the first use, whose warp has released.
    found = depth_of(loads(100, 300, stages=1), releases(120, 320, stages=1), start=100, end=400)
    assert found == (Depth(1, 2, 0.0, 1),)


def test_several_producers_fill_one_use_together():
    # Both acquire stage 0 for one use, and again after its release: 100-400 and 500-800, never two at once.
    first, second = loads(100, 500, stages=1), loads(150, 560, stages=1, warp=2)
    kernel = kernel_trace(ROWS, (Barrier(1, "K", "", 2, False),))
    found = depth_of(first, second, releases(400, 800, stages=1), kernel=kernel, start=100, end=800)
    assert found == (Depth(1, 2, 1.0, 1),)
    assert depth_of(first, second, releases(400, 800, stages=1), kernel=kernel, start=400, end=500) == ()


def test_producers_that_take_turns_fill_one_use_each():
    # Stage 0 by warp 0 at 100, released at 200, by warp 2 at 300, released at 400.
    found = depth_of(
        loads(100, stages=1), loads(300, stages=1, warp=2), releases(200, 400, stages=1), start=100, end=400
    )
    # 100-200 and 300-400 of 300 cycles.
    assert found == (Depth(1, 2, 1.0, 1),)
    assert (
        depth_of(loads(100, stages=1), loads(300, stages=1, warp=2), releases(200, 400, stages=1), start=200, end=300)
        == ()
    )


def test_without_acquires_a_use_begins_at_its_arrival():
    commits = warp_of(
        0, "load", [], end=1000, signals=[Signal(at, 2, use, use % 2) for use, at in enumerate((110, 210))]
    )
    assert depth_of(commits, releases(300, 400), start=110, end=400) == (Depth(1, 2, 1.0, 2),)


def test_a_use_without_releases_lasts_until_its_stage_is_taken_again():
    # Uses 100-300 and 200-400 by the next acquires, those at 300 and 400 by the releases seen.
    late = warp_of(1, "mma", [], end=1000, signals=[Signal(500, 3, 0, 0), Signal(600, 3, 1, 1)])
    assert depth_of(loads(100, 200, 300, 400), late, start=200, end=500) == (Depth(1, 2, 2.0, 2),)


def test_stages_that_no_record_names_come_round_in_order():
    def unnamed(warp):
        return dataclasses.replace(
            warp,
            slices=tuple(dataclasses.replace(part, stage=-1) for part in warp.slices),
            signals=tuple(dataclasses.replace(signal, stage=-1) for signal in warp.signals),
        )

    warps = loads(100, 200, 600), releases(300, 400, 700)
    assert depth_of(*map(unnamed, warps), start=100, end=700) == depth_of(*warps, start=100, end=700)


def test_a_ring_with_a_full_lane_is_left_out():
    trace, timeline = constant_ring(load=10, compute=30)
    steady, _ = steady_state(trace, timeline)
    load, mma = trace.lanes
    cut = dataclasses.replace(mma, events=mma.events[:6], lost=9)
    assert depths(dataclasses.replace(trace, lanes=(load, cut)), timeline, steady) == ()
    # Records lost behind the window do not matter.
    assert depths(dataclasses.replace(trace, lanes=(load, dataclasses.replace(mma, lost=9))), timeline, steady)


def test_one_stage_is_no_ring():
    kernel = kernel_trace(ROWS, (Barrier(1, "Q", "", 1, False),))
    assert depth_of(loads(100, 500, stages=1), releases(200, 600, stages=1), kernel=kernel) == ()


def test_a_ring_of_which_one_side_is_not_stamped_is_left_out():
    assert depth_of(loads(100, 200)) == ()
    assert depth_of(releases(100, 200)) == ()
    assert depth_of(loads(100), releases(200), start=500, end=600) == ()


@settings(deadline=None)
@given(
    times=st.lists(st.tuples(st.integers(1, 90), st.integers(1, 90), st.integers(1, 90)), min_size=6, max_size=24),
    stages=st.integers(2, 8),
)
def test_depth_of_any_ring_is_what_its_own_clock_says(times, stages):
    loads_, first, second = ([row[column] for row in times] for column in range(3))
    trace, timeline = simulate_ring(loads_, [first, second], stages)
    end = max(warp.end for warp in timeline.warps)
    (found,) = depths(trace, timeline, window(0, end))
    # By recurrence: a load begins when the one before is done and the stage was released by both; consumers take turns alike.
    begun, done, free = [], [], []
    clocks = [0, 0]
    for use, (load, *computes) in enumerate(times):
        begun.append(max(done[-1] if done else 0, free[use - stages] if use >= stages else 0))
        done.append(begun[-1] + load)
        clocks = [max(clock, done[-1]) + compute for clock, compute in zip(clocks, computes, strict=True)]
        free.append(max(clocks))
    assert end == max(free) * UNIT
    counts = [sum(start <= at < stop for start, stop in zip(begun, free, strict=True)) for at in range(max(free))]
    assert found == Depth(1, stages, float(sorted(counts)[(len(counts) - 1) // 2]), max(counts))
    assert found.most <= stages


@pytest.mark.parametrize("run", [ONE_CTA, GEMM, CUDA_GEMM], ids=lambda run: "/".join(run.parts[-3::2]))
def test_producers_of_the_recorded_kernels_keep_their_rings_full(run):
    # The load warp stalls on empty stages for most of the time, so it has filled all that there are.
    (trace,) = load_run(run).traces.values()
    timeline = analyse(trace)
    steady, _ = steady_state(trace, timeline)
    rings = (
        {2: 2, 4: 2} if run == ONE_CTA else {2: 4}
    )  # pipeline_k and pipeline_v of two stages; the GEMMs' rings of four
    assert depths(trace, timeline, steady) == tuple(Depth(number, n, float(n), n) for number, n in rings.items())
