# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autostamp.analysis import analyse
from autostamp.analysis.states import states_of
from autostamp.analysis.steady import TOLERANCE, role_totals, steady_state
from autostamp.model.flow import Steady
from autostamp.model.manifest import Barrier, EventKind
from autostamp.model.timeline import RoleTotals, Slice, Spread, Timeline, WarpTimeline
from autostamp.model.trace import Trace
from autostamp.runtime.store import load_run
from tests.simulator.hand_made import hold, passed, stall, timeline_of, trace_without_lanes, warp_of
from tests.simulator.ring_flow import UNIT, constant_ring, simulate_ring
from tests.simulator.tables import ACQUIRE, CONSUME, kernel_trace, ring_kernel, wait_row

ROOT = Path(__file__).parents[2]
ONE_CTA = ROOT / "tests/fixtures/runs/fa4_forward_one_cta"
FULL_GRID = ROOT / "tests/fixtures/runs/fa4_forward_full_grid"
GEMM = ROOT / "kernels/cutedsl/recorded/gemm_ws_h200"
CUDA_GEMM = ROOT / "kernels/cuda/recorded/gemm_ws_h200"

FMA_PER_CYCLE = 2048
"""Of one SM: an H200's 989 TFLOP/s of dense fp16 over 132 SMs at 1830 MHz (data sheet), two operations each."""


MARKS = (40_000, 70_000, 100_000, 130_000, 160_000, 190_000, 220_000)
"""Where the iterations of both rings below begin."""


def steady_of(trace: Trace, timeline: Timeline) -> Steady:
    steady, notes = steady_state(trace, timeline)
    assert notes == ()
    assert steady is not None
    return steady


def recorded(run: Path) -> Steady:
    (trace,) = load_run(run).traces.values()
    return steady_of(trace, analyse(trace))


def visits_at(*marks: int, instance: int = CONSUME, cost: int = 1) -> list[Slice]:
    return [stall(mark, mark + cost, instance, visit) for visit, mark in enumerate(marks)]


def with_periods(*periods: int) -> list[Slice]:
    return visits_at(*(sum(periods[:count]) for count in range(len(periods) + 1)))


def steady_periods(*periods: int, stages: int = 0) -> tuple[int, int, int]:
    """Fill, iterations and drain of one warp whose iterations last `periods`."""
    timeline = timeline_of(warp_of(1, "mma", with_periods(*periods), end=sum(periods) + 9))
    steady = steady_of(trace_without_lanes(ring_kernel(stages)), timeline)
    return steady.fill, steady.iterations, steady.drain


def test_a_compute_bound_ring_as_worked_out_by_hand():
    # In thousands: load 10, compute 30, two stages, eight uses. The consumer enters its waits at 0, 40, 70, 100, ..., 220.
    # The producer acquires use n >= 2 in 30n - 40 to 30n - 20, commits at 30n - 10, and ends with use 7 at 200.
    steady = steady_of(*constant_ring(load=10, compute=30))
    assert (steady.warp, steady.role, steady.instance) == (1, "mma", CONSUME)
    assert (steady.start, steady.end) == (40_000, 220_000)
    assert steady.marks == MARKS
    assert (steady.fill, steady.iterations, steady.drain) == (1, 6, 0)
    assert steady.period == Spread(6, 180_000, 30_000, 30_000, 30_000, 30_000)
    # Load from 40 to 200: six loads of 10 (uses 2 to 7), the rest is stall.
    assert steady.roles == (
        RoleTotals("load", (0,), 160_000, 100_000, 60_000, 0),
        RoleTotals("mma", (1,), 180_000, 0, 180_000, 0),
    )


def test_a_load_bound_ring_as_worked_out_by_hand():
    # In thousands: the producer never waits, and commits use n at 30n + 30; the consumer enters at 0, 40, 70, ..., 220 and
    # stalls for 20.
    steady = steady_of(*constant_ring(load=30, compute=10))
    assert steady.marks == MARKS
    assert steady.period.median == 30_000
    assert steady.roles == (
        RoleTotals("load", (0,), 180_000, 0, 180_000, 0),
        RoleTotals("mma", (1,), 180_000, 120_000, 60_000, 0),
    )


@settings(deadline=None)
@given(
    load=st.integers(1, 500),
    compute=st.integers(1, 500),
    stages=st.integers(2, 8),
    uses=st.integers(16, 40),
    consumers=st.integers(1, 4),
)
def test_the_period_of_a_ring_is_the_longer_of_load_and_compute(load, compute, stages, uses, consumers):
    trace, timeline = simulate_ring([load] * uses, [[compute] * uses] * consumers, stages)
    steady = steady_of(trace, timeline)
    assert steady.period.median == max(load, compute) * UNIT
    assert steady.role == "mma"
    # The last of the waits begins no iteration.
    assert steady.fill + steady.iterations + steady.drain == uses - 1
    assert len(steady.marks) == steady.iterations + 1
    assert (steady.marks[0], steady.marks[-1]) == (steady.start, steady.end)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 90), st.integers(1, 90)), min_size=6, max_size=30), st.integers(1, 8))
def test_states_of_roles_add_up_to_their_span(times, stages):
    trace, timeline = simulate_ring([load for load, _ in times], [[compute for _, compute in times]], stages)
    steady, notes = steady_state(trace, timeline)
    assert (steady is None) == bool(notes)
    totals = () if steady is None else steady.roles
    for total in totals:
        assert total.span == total.stall + total.passed + total.active + total.untracked
        assert min(total.stall, total.passed, total.active, total.untracked) >= 0
    # Over all of the run the window changes nothing.
    whole = (0, max(warp.end for warp in timeline.warps))
    assert role_totals(timeline.warps, whole) == timeline.roles


def test_one_stage_makes_load_and_compute_take_turns():
    steady = steady_of(*constant_ring(load=10, compute=30, stages=1))
    assert steady.period == Spread(7, 280_000, 40_000, 40_000, 40_000, 40_000)
    assert steady.fill == 0


def test_leading_and_trailing_outliers_are_fill_and_drain():
    assert steady_periods(300, 150, 100, 101, 99, 100, 100, 180) == (2, 5, 1)


def test_a_slow_ramp_is_fill_until_within_a_tenth():
    assert steady_periods(200, 160, 130, 112, 109, 100, 100, 100, 100, 100, 100, 100) == (4, 8, 0)


def test_tile_boundaries_in_the_middle_stay():
    tile = (100, 100, 100, 900)
    assert steady_periods(*tile, *tile, *tile, 100, 100) == (0, 14, 0)


def test_the_first_round_of_a_ring_is_fill_up_to_its_last_outlier():
    # Median 100: the third is far off, and lies in the first round of four stages.
    periods = (100, 100, 150, *[100] * 13)
    assert steady_periods(*periods, stages=4) == (3, 13, 0)
    assert steady_periods(*periods, stages=2) == (0, 16, 0)


def test_iterations_that_vary_much_are_steady_all_the_same():
    # Median 150 and median absolute deviation 50: three standard deviations are 222.
    assert steady_periods(*[100, 200] * 6) == (0, 12, 0)


def test_the_fill_of_any_warp_that_iterates_counts():
    first = warp_of(1, "mma", with_periods(*[100] * 8), end=900)
    second = warp_of(2, "mma", with_periods(400, *[100] * 7), end=1200)
    steady = steady_of(trace_without_lanes(ring_kernel()), timeline_of(first, second))
    assert (steady.warp, steady.fill, steady.start) == (1, 1, 100)


def test_copies_of_one_site_are_one_wait():
    # A loop unrolled by two: instances 1 and 2 of site 1 take turns.
    rows = (wait_row(1, 1, 2, role="mma"), dataclasses.replace(wait_row(2, 3, 4, role="mma"), site=1))
    slices = [stall(50 * n, 50 * n + 5, 1 + n % 2, n // 2) for n in range(7)]
    steady = steady_of(trace_without_lanes(kernel_trace(rows)), timeline_of(warp_of(0, "mma", slices, end=400)))
    assert steady.marks == (0, 50, 100, 150, 200, 250, 300)
    assert steady.instance == 1


def test_an_epilogue_that_waits_once_a_tile_is_not_the_main_loop():
    # The epilogue works longest, and waits on a full side too, but for a quarter of the uses.
    rows = (wait_row(1, 1, 2, role="mma"), wait_row(2, 3, 4, role="epilogue", barrier=2))
    mma = warp_of(0, "mma", [*visits_at(*range(0, 2000, 50), instance=1), hold(0, 20)], end=2000)
    tail = warp_of(1, "epilogue", [*visits_at(*range(0, 2000, 200), instance=2), hold(0, 1900, 2)], end=2000)
    steady = steady_of(trace_without_lanes(kernel_trace(rows)), timeline_of(mma, tail))
    assert (steady.role, steady.iterations) == ("mma", 39)


def test_of_two_consumers_the_busier_is_the_anchor():
    rows = (wait_row(1, 1, 2, role="mma"), wait_row(2, 3, 4, role="softmax", barrier=2))
    mma = warp_of(0, "mma", [*visits_at(*range(0, 1000, 50), instance=1), hold(0, 300)], end=1000)
    softmax = warp_of(1, "softmax", [*visits_at(*range(0, 1000, 100), instance=2), hold(0, 600, 2)], end=1000)
    steady = steady_of(trace_without_lanes(kernel_trace(rows)), timeline_of(mma, softmax))
    assert (steady.role, steady.iterations) == ("softmax", 9)


def test_without_a_full_side_the_most_visited_wait_is_the_anchor():
    rows = (wait_row(1, 1, 2, side="named"), wait_row(2, 3, 4, side="full"))
    slices = [*visits_at(*range(0, 700, 100), instance=1), *visits_at(350, instance=2)]
    steady = steady_of(trace_without_lanes(kernel_trace(rows)), timeline_of(warp_of(0, "all", slices, end=800)))
    assert (steady.instance, steady.iterations) == (1, 6)


def test_three_iterations_are_too_few_and_a_note_says_so():
    kernel = kernel_trace((wait_row(1, 1, 2, role="mma"),), (Barrier(1, "K", "", 2, False),))
    timeline = timeline_of(warp_of(3, "mma", visits_at(0, 10, 20, 30, instance=1), end=50))
    assert steady_state(trace_without_lanes(kernel), timeline) == (
        None,
        ("no steady state: the wait that repeats most, mma on K (full, warp 3), has 3 iterations, and it takes 4",),
    )


def test_fill_and_drain_are_taken_off_before_iterations_are_counted():
    kernel = kernel_trace((wait_row(CONSUME, 1, 2, role="mma"),), (Barrier(1, "K", "", 2, False),))
    timeline = timeline_of(warp_of(3, "mma", with_periods(500, 100, 100, 100, 900), end=1800))
    steady, (note,) = steady_state(trace_without_lanes(kernel), timeline)
    assert steady is None
    assert note.endswith("has 5 iterations, 3 without fill and drain, and it takes 4")


def test_no_wait_at_all_is_a_note():
    timeline = timeline_of(warp_of(0, "warp 0", [], end=10))
    assert steady_state(trace_without_lanes(ring_kernel()), timeline) == (
        None,
        ("no steady state: no wait was recorded to its end",),
    )
    assert steady_state(trace_without_lanes(ring_kernel()), timeline_of())[0] is None


def test_the_steady_state_ends_where_a_lane_was_full():
    trace, _ = constant_ring(load=10, compute=30, uses=16)
    load, mma = trace.lanes
    # In thousands: use n of the consumer is entered at 30n + 10, so up to 250 there are uses 0 to 8.
    kept = tuple(event for event in load.events if event.cycles <= 250_000)
    lossy = dataclasses.replace(load, events=kept, lost=len(load.events) - len(kept))
    trace = dataclasses.replace(trace, lanes=(lossy, mma))
    steady, (note,) = steady_state(trace, analyse(trace))
    assert kept[-1].cycles == 250_000
    assert (kept[-1].kind, kept[-1].instance) == (EventKind.EXIT, ACQUIRE)
    assert note == "records were lost (warp 0): the steady state is looked for up to cycle 250000 only"
    assert steady is not None
    assert steady.marks == (*MARKS, 250_000)


def test_records_lost_after_the_last_iteration_change_nothing():
    trace, timeline = constant_ring(load=10, compute=30)
    mma = dataclasses.replace(trace.lanes[1], lost=3)
    assert steady_state(dataclasses.replace(trace, lanes=(trace.lanes[0], mma)), timeline) == (
        steady_of(trace, timeline),
        (),
    )


def test_a_wait_within_a_hold_is_no_work_and_a_pass_no_stall():
    # 0-100 in a hold, of which 20-50 is a stall and 45-60 a pass; 100-120 untracked. Seen from 10 to 110.
    warp: WarpTimeline = warp_of(0, "mma", [hold(0, 100), stall(20, 50, 2), passed(45, 60, 3)], end=120)
    states = states_of(warp, (10, 110))
    assert states.bounds == (10, 110)
    assert states.stalled == [(20, 50)]
    assert states.passed == [(50, 60)]
    assert states.active == [(10, 20), (60, 100)]
    assert states.untracked == 10
    assert role_totals([warp], (10, 110)) == (RoleTotals("mma", (0,), 100, 30, 50, 10, 10),)


def test_a_role_that_did_not_run_in_the_window_is_left_out():
    warps = [warp_of(0, "mma", [hold(0, 100)], end=100), warp_of(1, "idle", [], end=10)]
    assert [total.role for total in role_totals(warps, (10, 100))] == ["mma"]
    assert states_of(warps[1], (10, 100)).untracked == 0


@pytest.mark.parametrize("run", [ONE_CTA, FULL_GRID], ids=lambda run: run.name)
def test_flash_attention_iterates_once_for_every_block_of_keys(run):
    # Keys 4096 / 128 = 32 blocks; the first is waited for before the main loop, and the last wait of the loop begins no
    # iteration: 30. The second warpgroup's first iteration also waits for the first one's turn, so it is fill.
    steady = recorded(run)
    assert steady.role == "mma"
    assert steady.fill + steady.iterations + steady.drain == 30
    assert (steady.fill, steady.drain) == (1, 0)
    # A block is two products of 128^3 multiply-adds, and the exponentials come on top.
    assert 2 * 128**3 / FMA_PER_CYCLE <= steady.period.median < 2 * 2 * 128**3 / FMA_PER_CYCLE
    # The four warps of a group come to their turn up to 250 cycles apart, and an iteration is marked by one of them: nearly a
    # tenth of the median, which is also as far as an iteration may lie from it and be of the steady state.
    assert steady.period.p90 - steady.period.p10 < TOLERANCE * steady.period.median


def test_the_gemm_runs_at_the_rate_of_the_tensor_cores():
    # k 2048 / tile_k 64 = 32 steps, of which the first is waited for before the main loop: 31 waits, 30 iterations. A step
    # is 128 x 128 x 64 multiply-adds: 512 cycles.
    steady = recorded(GEMM)
    assert steady.role == "mma"
    assert steady.fill + steady.iterations + steady.drain == 30
    assert steady.fill <= 4  # the ring's first round
    assert steady.drain == 0
    assert steady.period.median == pytest.approx(128 * 128 * 64 / FMA_PER_CYCLE, rel=0.01)


def test_the_cuda_gemm_iterates_once_for_every_tile_of_k():
    # 1024 / 64 = 16 tiles, all waited for at one place: 15 iterations. The last ones have no load beside them.
    steady = recorded(CUDA_GEMM)
    assert steady.fill + steady.iterations + steady.drain == 15
    assert 1 <= steady.fill <= 4  # the wait for the first tile is the fill of the ring
    assert steady.period.median >= 128 * 128 * 64 / FMA_PER_CYCLE


@pytest.mark.parametrize("run", [ONE_CTA, FULL_GRID, GEMM, CUDA_GEMM], ids=lambda run: "/".join(run.parts[-3::2]))
def test_warps_that_are_done_are_not_in_the_window(run):
    steady = recorded(run)
    assert {total.role for total in steady.roles} == {"load", "mma"}
    for total in steady.roles:
        assert total.span == total.stall + total.passed + total.active + total.untracked
    (mma,) = (total for total in steady.roles if total.role == "mma")
    assert mma.span == 8 * (steady.end - steady.start)
