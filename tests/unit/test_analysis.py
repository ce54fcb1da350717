# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from autostamp.analysis import analyse
from autostamp.analysis.latencies import CUDA, Latencies
from autostamp.analysis.roles import warps_text
from autostamp.analysis.spans import length, overlap, union
from autostamp.analysis.timeline import spread_of
from autostamp.model.manifest import Barrier, EventKind, KernelTrace, Payload
from autostamp.model.timeline import LongStall, RoleGroup, RoleTotals, Signal, SiteStall, Slice, Spread, State, Timeline
from autostamp.model.trace import Event, Lane, Trace
from autostamp.runtime.decode import decode_region
from tests.simulator.kernel import Arrive, Simulation, Wait, Work
from tests.simulator.region import write_region
from tests.simulator.tables import (
    ACQUIRE,
    COMMIT,
    CONSUME,
    EPILOGUE,
    NO_PASS,
    RELEASE,
    consumer,
    kernel_trace,
    producer,
    ring_kernel,
    ring_region,
    run_ring,
    signal_row,
    wait_row,
)

STALL, ACTIVE = State.STALL, State.ACTIVE


def ring_timeline(**arguments) -> Timeline:
    kernel = ring_kernel()
    return analyse(decode_region(ring_region(kernel, **arguments), kernel), latencies=NO_PASS)


def simulated(kernel: KernelTrace, *warps, entries=None) -> Timeline:
    simulation = Simulation(kernel, entries or dict.fromkeys(range(len(warps)), 0))
    logs = simulation.run(dict(enumerate(warps)))
    return analyse(decode_region(write_region(kernel.capacity, logs, kernel.signature), kernel), latencies=NO_PASS)


def lane_trace(kernel: KernelTrace, *steps: tuple[int, int] | tuple[int, int, int], exit_=1000, lost=0) -> Trace:
    """One lane from (cycle, event number[, payload]) in order, entered at 0."""
    stamps = {}
    for row in kernel.instances:
        stamps |= {row.enter: (row.number, EventKind.ENTER), row.exit: (row.number, EventKind.EXIT)}
        stamps |= {row.signal: (row.number, EventKind.SIGNAL)} if row.signal else {}
    seen: dict[int, int] = {}
    events = []
    for cycle, event, *payload in steps:
        number, kind = stamps[event]
        events.append(Event(cycle, kind, number, payload[0] if payload else 0, seen.get(event, 0)))
        seen[event] = seen.get(event, 0) + 1
    return Trace(kernel, (Lane(0, 0, tuple(events), lost, 0, exit_, 0, 0),), 0)


def holds(trace: Trace) -> list[tuple[int, int, int, int]]:
    """Start, end, visit of the wait, stage."""
    slices = analyse(trace, latencies=NO_PASS).warps[0].slices
    return [(part.start, part.end, part.visit, part.stage) for part in slices if part.state is ACTIVE]


def test_the_ring_kernel_splits_into_stalls_and_holds_as_worked_out_by_hand():
    load, mma = ring_timeline().warps
    # Producer: acquires 0-0, 10-10, 20-40, 50-70; commits 10, 20, 50, 80.
    assert [part for part in load.slices if part.state is STALL] == [
        Slice(0, 0, STALL, ACQUIRE, 0, 0),
        Slice(10, 10, STALL, ACQUIRE, 1, 1),
        Slice(20, 40, STALL, ACQUIRE, 2, 0),
        Slice(50, 70, STALL, ACQUIRE, 3, 1),
    ]
    assert [part for part in load.slices if part.state is ACTIVE] == [
        Slice(0, 10, ACTIVE, ACQUIRE, 0, 0, COMMIT),
        Slice(10, 20, ACTIVE, ACQUIRE, 1, 1, COMMIT),
        Slice(40, 50, ACTIVE, ACQUIRE, 2, 0, COMMIT),
        Slice(70, 80, ACTIVE, ACQUIRE, 3, 1, COMMIT),
    ]
    assert (load.span, load.stall, load.active, load.untracked) == (80, 40, 40, 0)
    # Consumer: waits 0-10, 40-40, 70-70, 100-100; releases 40, 70, 100, 130.
    assert (mma.span, mma.stall, mma.active, mma.untracked) == (130, 10, 120, 0)
    assert mma.signals[2] == Signal(100, RELEASE, 2, 0)


def test_time_before_and_after_the_brackets_is_untracked():
    def late_producer():
        yield Work(7)
        yield from producer(2, 10)
        yield Work(5)

    kernel = ring_kernel()
    load, mma = simulated(kernel, late_producer(), consumer(2, 30)).warps
    assert (load.start, load.end, load.span, load.untracked) == (0, 32, 32, 12)
    # The consumer waits 0-17 and holds 17-47 and 47-77.
    assert (mma.stall, mma.active, mma.untracked) == (17, 60, 0)


def test_a_stall_inside_a_hold_is_a_stall():
    rows = (
        wait_row(1, 1, 2, barrier=1),
        signal_row(2, 3, barrier=1),
        wait_row(3, 4, 5, barrier=2, side="async-group"),
    )
    kernel = kernel_trace(rows, (Barrier(1, "K", "", 1, False), Barrier(2, "", "", 0, True)))
    # Wait 0-10, then hold 10-100 with a wgmma wait 40-70 inside it; the lane ends at 120.
    warp = analyse(lane_trace(kernel, (0, 1), (10, 2), (40, 4), (70, 5), (100, 3), exit_=120), latencies=NO_PASS).warps[
        0
    ]
    assert (warp.stall, warp.active, warp.untracked) == (40, 60, 20)
    assert warp.slices[1] == Slice(10, 100, ACTIVE, 1, 0, -1, 2)


def test_overlapping_holds_count_once():
    rows = (
        wait_row(1, 1, 2, barrier=1),
        signal_row(2, 3, barrier=1),
        wait_row(3, 4, 5, barrier=2),
        signal_row(4, 6, barrier=2),
    )
    kernel = kernel_trace(rows, (Barrier(1, "K", "", 1, False), Barrier(2, "V", "", 1, False)))
    # K held 10-50, V held 30-80: 70 cycles in all, from 10 to 80; both waits take no time.
    trace = lane_trace(kernel, (10, 1), (10, 2), (30, 4), (30, 5), (50, 3), (80, 6), exit_=100)
    warp = analyse(trace, latencies=NO_PASS).warps[0]
    assert (warp.stall, warp.active, warp.untracked) == (0, 70, 30)


def test_a_signal_ends_the_hold_of_its_stage_whatever_the_order():
    kernel = ring_kernel(stages=3)
    # Wait for stages 0, 1, 2 at 10, 20, 30; release 1 at 40, 0 at 50, 2 at 60.
    steps = [(10, 4, 0), (10, 5), (20, 4, 1), (20, 5), (30, 4, 2), (30, 5), (40, 6, 1), (50, 6, 0), (60, 6, 2)]
    assert holds(lane_trace(kernel, *steps)) == [(10, 50, 0, 0), (20, 40, 1, 1), (30, 60, 2, 2)]


def test_without_a_stage_the_oldest_use_ends_first():
    rows = (wait_row(1, 1, 2), signal_row(2, 3))
    kernel = kernel_trace(rows, (Barrier(1, "K", "", 2, False),))
    steps = [(10, 1), (10, 2), (20, 1), (20, 2), (40, 3), (60, 3)]
    assert holds(lane_trace(kernel, *steps)) == [(10, 40, 0, -1), (20, 60, 1, -1)]


def test_a_stage_known_while_tracing_matches_as_one_known_at_run_time():
    rows = (wait_row(1, 1, 2, stage=1), wait_row(2, 3, 4, stage=0), signal_row(3, 5, payload=Payload.STAGE))
    kernel = kernel_trace(rows, (Barrier(1, "Q", "", 2, False),))
    steps = [(10, 1), (10, 2), (20, 3), (20, 4), (30, 5, 0), (40, 5, 1)]
    assert holds(lane_trace(kernel, *steps)) == [(10, 40, 0, 1), (20, 30, 0, 0)]


def test_a_stage_that_comes_round_again_drops_the_use_that_another_warp_ended():
    kernel = ring_kernel()
    # Stage 0 at 10 and again at 50 with no release of this warp between: only the second use is this warp's to end.
    steps = [(10, 4, 0), (10, 5), (50, 4, 0), (50, 5), (80, 6, 0)]
    assert holds(lane_trace(kernel, *steps)) == [(50, 80, 1, 0)]


def test_a_ring_never_has_more_open_uses_than_stages():
    rows = (wait_row(1, 1, 2), signal_row(2, 3))
    kernel = kernel_trace(rows, (Barrier(1, "K", "", 2, False),))
    steps = [(10, 1), (10, 2), (20, 1), (20, 2), (30, 1), (30, 2), (40, 3)]
    assert holds(lane_trace(kernel, *steps)) == [(20, 40, 1, -1)]


def test_a_signal_of_another_stage_ends_nothing():
    steps = [(10, 4, 0), (10, 5), (40, 6, 1)]
    assert holds(lane_trace(ring_kernel(), *steps)) == []


def test_a_signal_of_another_barrier_or_side_ends_nothing():
    rows = (
        wait_row(1, 1, 2, barrier=1, side="full"),
        signal_row(2, 3, barrier=2, side="empty"),
        signal_row(3, 4, barrier=1, side="full"),
    )
    kernel = kernel_trace(rows, (Barrier(1, "K", "", 1, False), Barrier(2, "V", "", 1, False)))
    assert holds(lane_trace(kernel, (0, 1), (10, 2), (20, 3), (30, 4))) == []


@pytest.mark.parametrize("side", ["named", "cta", "async-group", "mbarrier", "cluster", ""])
def test_barriers_without_two_sides_open_no_hold(side):
    rows = (wait_row(1, 1, 2, side=side), signal_row(2, 3, side=side))
    kernel = kernel_trace(rows, (Barrier(1, "B", "", 1, False),))
    warp = analyse(lane_trace(kernel, (0, 1), (10, 2), (50, 3), exit_=60), latencies=NO_PASS).warps[0]
    assert (warp.stall, warp.active, warp.untracked) == (10, 0, 50)


def test_an_unended_hold_is_not_drawn():
    # The producer's tail waits on the empty side and commits nothing after it.
    steps = [(0, 1, 0), (5, 2), (20, 3, 0), (30, 1, 1), (45, 2)]
    assert holds(lane_trace(ring_kernel(), *steps)) == [(5, 20, 0, 0)]


def test_a_wait_that_also_arrives_ends_only_what_it_arrives_on():
    rows = (
        wait_row(1, 1, 2, side="full"),
        wait_row(2, 3, 4, signal=5, side="full", signals=("empty",)),
    )
    kernel = kernel_trace(rows, (Barrier(1, "K", "", 1, False),))
    # The second instance arrives on the empty side at 30, before it waits for its own use 30-50, which it never ends.
    steps = [(0, 1), (10, 2), (30, 5), (30, 3), (50, 4)]
    assert holds(lane_trace(kernel, *steps)) == [(10, 30, 0, -1)]


def test_arming_the_full_barrier_in_an_acquire_does_not_end_its_own_hold():
    # ACQUIRE lists signals=("full",) and has no signal stamp: the hold ends at the commit.
    assert [part.end for part in ring_timeline().warps[0].slices if part.state is ACTIVE] == [10, 20, 50, 80]


def test_an_open_enter_of_a_lossy_lane_is_dropped_and_named():
    trace = lane_trace(ring_kernel(), (0, 4, 0), (10, 5), (30, 6, 0), (40, 4, 1), exit_=500, lost=3)
    warp = analyse(trace, latencies=NO_PASS).warps[0]
    assert (warp.stall, warp.active, warp.untracked) == (10, 20, 470)
    assert warp.open_waits == (CONSUME,)
    assert warp.lost == 3


def test_a_hang_shows_the_wait_that_never_ended():
    # The producer fills both stages and stops: the third use is never committed, so the consumer never comes out.
    timeline = simulated(ring_kernel(), producer(2, 10), consumer(3, 30))
    load, mma = timeline.warps
    assert (load.open_waits, load.is_released) == ((), True)
    assert (mma.open_waits, mma.is_released) == ((CONSUME,), False)
    # It entered the third wait at 70, its last record: the span ends there and the wait has no stall.
    assert (mma.start, mma.end, mma.stall) == (0, 70, 10)
    assert "warp 1 never released" in timeline.warnings[0]


def test_a_single_thread_record_after_the_exit_of_lane_0_is_inside_the_span():
    trace = lane_trace(ring_kernel(), (0, 4, 0), (10, 5), (130, 6, 0), exit_=120)
    warp = analyse(trace, latencies=NO_PASS).warps[0]
    assert (warp.span, warp.active, warp.untracked) == (130, 120, 0)


def test_a_lane_without_bounds_spans_its_records():
    lane = lane_trace(ring_kernel(), (20, 4, 0), (50, 5)).lanes[0]
    bare = Lane(0, -1, lane.events, 0, -1, -1, 0, 0)
    warp = analyse(Trace(ring_kernel(), (bare,), 0), latencies=NO_PASS).warps[0]
    assert (warp.start, warp.end, warp.span, warp.stall, warp.untracked) == (20, 50, 30, 30, 0)


def test_a_lane_without_records_is_all_untracked():
    warp = analyse(lane_trace(ring_kernel(), exit_=90), latencies=NO_PASS).warps[0]
    assert (warp.span, warp.stall, warp.active, warp.untracked, warp.slices) == (90, 0, 0, 90, ())


def test_stages_in_single_thread_regions_join_the_warp():
    kernel = ring_kernel()

    def elected_producer():
        yield Wait(ACQUIRE, ("empty", 0), 0, 0)
        yield Work(10)
        yield Arrive(COMMIT, ("full", 0), 0, in_single_thread=True)

    load, _ = simulated(kernel, elected_producer(), consumer(1, 30)).warps
    assert [(part.start, part.end) for part in load.slices if part.state is ACTIVE] == [(0, 10)]


def test_roles_come_from_the_visited_instances_and_warps_with_equal_sets_are_grouped():
    kernel = ring_kernel()

    def storing_consumer():
        yield from consumer(1, 30)
        yield Wait(EPILOGUE, "epilogue", 0)

    def idle():
        yield Work(3)

    timeline = simulated(kernel, consumer(1, 30), producer(1, 10), storing_consumer(), consumer(1, 30), idle(), idle())
    assert timeline.groups == (
        RoleGroup("mma", (0, 3), (CONSUME, RELEASE)),
        RoleGroup("load", (1,), (ACQUIRE, COMMIT)),
        RoleGroup("mma", (2,), (CONSUME, RELEASE, EPILOGUE)),
        RoleGroup("warps 4-5", (4, 5), ()),
    )
    assert [warp.role for warp in timeline.warps] == ["mma", "load", "mma", "mma", "warps 4-5", "warps 4-5"]
    # Waits 0-10 and holds of 30: three MMA warps.
    assert timeline.roles == (
        RoleTotals("mma", (0, 2, 3), 120, 30, 90, 0),
        RoleTotals("load", (1,), 10, 0, 10, 0),
        RoleTotals("warps 4-5", (4, 5), 6, 0, 0, 6),
    )


def test_a_role_is_that_of_most_visited_instances_and_shared_code_has_no_say():
    rows = (
        wait_row(1, 1, 2, role="", side="cta"),
        wait_row(2, 3, 4, role="", side="cta"),
        wait_row(3, 5, 6, role="", side="cta"),
        wait_row(4, 7, 8, role="scheduler", side="cta"),
        wait_row(5, 9, 10, role="load", side="cta"),
        wait_row(6, 11, 12, role="load", side="cta"),
    )
    kernel = kernel_trace(rows)
    all_six = [(10 * number, number) for number in range(1, 13)]
    assert analyse(lane_trace(kernel, *all_six), latencies=NO_PASS).warps[0].role == "load"
    assert analyse(lane_trace(kernel, *all_six[:10]), latencies=NO_PASS).warps[0].role == "scheduler"
    assert analyse(lane_trace(kernel, *all_six[:6]), latencies=NO_PASS).warps[0].role == "warp 0"


def test_site_statistics_are_over_all_warps_of_a_role():
    timeline = ring_timeline()
    # Acquire stalls 0, 0, 20, 20. Rank of a percentile p among 4: 3p. p10: rank 0.3 between 0 and 0; p90: rank 2.7.
    assert timeline.sites == (
        SiteStall(ACQUIRE, "load", (0,), Spread(4, 40, 0.0, 10.0, 20.0, 20), (ACQUIRE,)),
        # Consumer stalls 10, 0, 0, 0: p90 at rank 2.7 is 0 + 0.7 * 10.
        SiteStall(CONSUME, "mma", (1,), Spread(4, 10, 0.0, 0.0, pytest.approx(7.0), 10), (CONSUME,)),
    )


def test_the_spread_of_one_duration_is_that_duration():
    assert spread_of([7]) == Spread(1, 7, 7.0, 7.0, 7.0, 7)


def test_percentiles_interpolate_between_ranks():
    # Five values: p10 at rank 0.4, p90 at rank 3.6.
    spread = spread_of([50, 10, 40, 20, 30])
    assert (spread.p10, spread.median, spread.p90) == (pytest.approx(14), 30, pytest.approx(46))
    assert (spread.count, spread.total, spread.longest) == (5, 150, 50)


def test_longest_stalls_are_ordered_by_length_then_start_then_warp():
    kernel = ring_kernel()
    trace = decode_region(ring_region(kernel), kernel)
    assert analyse(trace, longest=3, latencies=NO_PASS).longest == (
        LongStall(0, "load", Slice(20, 40, STALL, ACQUIRE, 2, 0)),
        LongStall(0, "load", Slice(50, 70, STALL, ACQUIRE, 3, 1)),
        LongStall(1, "mma", Slice(0, 10, STALL, CONSUME, 0, 0)),
    )
    assert analyse(trace, longest=0, latencies=NO_PASS).longest == ()
    assert len(analyse(trace, longest=99, latencies=NO_PASS).longest) == 8


def test_a_wait_no_longer_than_a_ready_one_is_a_pass():
    """A ready wait takes 10 cycles: of waits of 10, 11 and 30 the first passes. The first hold holds the second wait.

    Warp span 0-100. Waits 0-10 (pass), 20-31, 40-70 (stalls): stall 41, passed 10. The hold 10-60 overlaps both stalls by
    11 + 20, so active is 50 - 31 = 19, and the rest is untracked: 100 - 41 - 10 - 19 = 30.
    """
    latencies = Latencies({(CUDA, "mbarrier"): 10, (CUDA, "named"): 10}, {}, 0)
    trace = lane_trace(ring_kernel(), (0, 4), (10, 5), (20, 7), (31, 8), (40, 1), (60, 6), (70, 2), exit_=100)
    warp = analyse(trace, latencies=latencies).warps[0]
    assert [(part.start, part.end, part.state) for part in warp.slices] == [
        (0, 10, State.PASS),
        (10, 60, ACTIVE),
        (20, 31, STALL),
        (40, 70, STALL),
    ]
    assert (warp.span, warp.stall, warp.passed, warp.active, warp.untracked) == (100, 41, 10, 19, 30)
    timeline = analyse(trace, latencies=latencies)
    assert (timeline.roles[0].stall, timeline.roles[0].passed) == (41, 10)
    assert [site.instance for site in timeline.sites] == [ACQUIRE, EPILOGUE]
    assert len(timeline.longest) == 2


def test_a_pass_inside_a_hold_is_passed_and_not_active():
    latencies = Latencies({(CUDA, "mbarrier"): 0, (CUDA, "named"): 5}, {}, 0)
    trace = lane_trace(ring_kernel(), (0, 4), (10, 5), (20, 7), (25, 8), (30, 6), exit_=30)
    warp = analyse(trace, latencies=latencies).warps[0]
    assert (warp.stall, warp.passed, warp.active, warp.untracked) == (10, 5, 15, 0)


def test_instances_with_stamps_that_no_lane_visited_are_listed():
    rows = (*ring_kernel().instances, signal_row(6, 0), wait_row(7, 9, 10))
    kernel = kernel_trace(rows, ring_kernel().barriers)
    logs = run_ring(kernel)
    timeline = analyse(decode_region(write_region(kernel.capacity, logs, kernel.signature), kernel), latencies=NO_PASS)
    # Instance 6 has no stamp, so nothing could have visited it.
    assert timeline.never_visited == (EPILOGUE, 7)


def test_a_trace_without_lanes_has_an_empty_timeline():
    timeline = analyse(Trace(ring_kernel(), (), 0, ("no region",)), latencies=NO_PASS)
    assert (timeline.warps, timeline.roles, timeline.sites, timeline.longest) == ((), (), (), ())
    assert timeline.never_visited == (ACQUIRE, COMMIT, CONSUME, RELEASE, EPILOGUE)
    assert (timeline.cycles, timeline.lost, timeline.smid) == (0, 0, -1)
    assert timeline.warnings == ("no region",)


def test_the_timeline_names_its_kernel_block_and_length():
    timeline = ring_timeline(entries={0: 0, 1: 3})
    assert (timeline.kernel, timeline.trace, timeline.block) == ("ring", 1, (0, 0, 0))
    # The consumer enters 3 cycles late but waits until 10 all the same.
    assert timeline.cycles == 130
    assert timeline.warps[1].stall == 7


@pytest.mark.parametrize(
    ("warps", "text"),
    [
        ([4], "warp 4"),
        ([12], "warp 12"),
        ([0, 1, 2, 3], "warps 0-3"),
        ([1, 5, 6, 7], "warps 1, 5-7"),
        ([3, 1], "warps 1, 3"),
    ],
)
def test_warps_are_written_as_runs(warps, text):
    assert warps_text(warps) == text


def test_spans_are_merged_and_measured():
    merged = union([(5, 9), (1, 3), (2, 4), (9, 11), (20, 20)])
    assert merged == [(1, 4), (5, 11)]
    assert length(merged) == 9
    assert overlap(merged, [(0, 2), (3, 6), (10, 30)]) == 1 + 1 + 1 + 1
    assert overlap(merged, []) == 0
