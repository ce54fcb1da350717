# SPDX-License-Identifier: Apache-2.0
"""Why stalls lasted, worked out by hand: hand-offs take up to 20 cycles here, a ready wait 5, and stamps are never late."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from autostamp.analysis import analyse
from autostamp.analysis.causes import causes_of
from autostamp.analysis.dependencies import Dependencies
from autostamp.analysis.flow import explain
from autostamp.analysis.latencies import CUDA, CUTEDSL, SM_90, UNKNOWN, Latencies, language_of, latencies_of
from autostamp.model.flow import Cause, Ending, Flow
from autostamp.model.manifest import Barrier, Payload
from autostamp.model.timeline import Slice, State, Timeline, WarpTimeline
from autostamp.model.trace import Trace
from tests.simulator.lanes import lane, trace_of
from tests.simulator.tables import KINDS, kernel_trace, ring_kernel, signal_row, wait_row

LATENCIES = Latencies(
    ready={(language, kind): 5 for language in (CUDA, CUTEDSL) for kind in KINDS},
    hand_off=dict.fromkeys(KINDS, 20),
    late=0,
)


def flow_of(trace: Trace) -> Flow:
    return explain(trace, analyse(trace, latencies=LATENCIES), LATENCIES)


def cause_of(trace: Trace, warp: int = 1) -> Cause:
    (cause,) = (cause for cause in flow_of(trace).causes if cause.warp == warp)
    cycles = (cause.awaited, cause.in_flight, cause.handed_over, cause.unexplained)
    assert sum(cycles) == cause.stall.cycles
    return cause


def parts(cause: Cause) -> tuple[int, int, int, int]:
    return cause.awaited, cause.in_flight, cause.handed_over, cause.unexplained


FLAG = kernel_trace(
    (
        signal_row(1, 1, role="load", side="full", payload=Payload.STAGE),
        wait_row(2, 2, 3, role="mma", side="full", payload=Payload.STAGE),
    ),
    (Barrier(1, "flag", "MbarrierArray", 1, False),),
)
COPIED = ring_kernel(stages=1)


@pytest.mark.parametrize(
    ("arrival", "exit_", "expected", "is_binding"),
    [
        (150, 165, (50, 0, 15, 0), True),  # arrived within the stall, and the exit followed at once
        (150, 200, (50, 0, 20, 30), False),  # 30 cycles after the hand-off nothing explains
        (90, 106, (0, 0, 6, 0), True),  # arrived 10 before the enter; the hand-off lasts until 110
        (90, 130, (0, 0, 10, 20), False),
        (40, 130, (0, 0, 0, 30), False),  # long complete: a ready wait that took 30 all the same
    ],
)
def test_a_signal_within_the_stall_or_before_it(arrival, exit_, expected, is_binding):
    trace = trace_of(FLAG, lane(FLAG, 0, (arrival, 1)), lane(FLAG, 1, (100, 2), (exit_, 3)))
    cause = cause_of(trace)
    assert (parts(cause), cause.is_binding) == (expected, is_binding)
    assert (cause.ending, cause.role) == (Ending.SIGNAL, "load")
    assert cause.arrow.signal.cycles == arrival


def test_a_signal_stamped_after_the_exit_that_it_caused_was_awaited_all_along():
    trace = trace_of(FLAG, lane(FLAG, 0, (170, 1)), lane(FLAG, 1, (100, 2), (160, 3)))
    late = Latencies(LATENCIES.ready, LATENCIES.hand_off, 15)
    (cause,) = explain(trace, analyse(trace, latencies=late), late).causes
    assert (parts(cause), cause.is_binding) == ((60, 0, 0, 0), True)


@pytest.mark.parametrize(
    ("issue", "expected", "is_binding"),
    [
        (150, (50, 150, 0, 0), True),  # issued late: who issued it is to blame for 50 cycles, the copy took the rest
        (60, (0, 200, 0, 0), False),  # issued in time: the copy itself is what took so long
    ],
)
def test_a_copy_in_flight(issue, expected, is_binding):
    producer = lane(COPIED, 0, (issue - 10, 1), (issue - 9, 2), (issue, 3))
    cause = cause_of(trace_of(COPIED, producer, lane(COPIED, 1, (100, 4), (300, 5))))
    assert (parts(cause), cause.is_binding) == (expected, is_binding)
    assert (cause.ending, cause.role, cause.arrow.is_async) == (Ending.TRANSFER, "load", True)


def test_a_warps_own_group_is_in_flight_all_the_time():
    kernel = kernel_trace(
        (signal_row(1, 1, side="async-group"), wait_row(2, 2, 3, side="async-group", role="mma")),
        (Barrier(1, "wgmma", "", 0, True),),
    )
    cause = cause_of(trace_of(kernel, lane(kernel, 1, (10, 1), (20, 2), (90, 3))))
    assert (cause.ending, parts(cause), cause.arrow, cause.is_binding) == (Ending.GROUP, (0, 70, 0, 0), None, False)


def test_a_granted_wait_that_was_long_all_the_same():
    cause = cause_of(trace_of(COPIED, lane(COPIED, 1, (10, 1), (30, 2), (35, 3))))
    assert (cause.ending, parts(cause), cause.arrow) == (Ending.GRANTED, (0, 0, 0, 20), None)


def test_a_wait_that_no_record_of_the_cta_ends():
    cause = cause_of(trace_of(COPIED, lane(COPIED, 1, (10, 4), (90, 5))))
    assert (cause.ending, parts(cause), cause.role) == (Ending.UNSEEN, (0, 0, 0, 80), "")


def test_a_wait_whose_arrivals_may_have_been_lost():
    kernel = ring_kernel(stages=1, capacity=3)
    filler = lane(kernel, 0, (0, 1), (1, 2), (10, 3), lost=9)
    cause = cause_of(trace_of(kernel, filler, lane(kernel, 1, (60, 4), (90, 5))))
    assert (cause.ending, parts(cause)) == (Ending.LOST, (0, 0, 0, 30))


def test_the_last_to_meet_the_others_hands_over_to_itself():
    kernel = kernel_trace((wait_row(1, 1, 2, side="cta"),), (Barrier(1, "CTA", "", 0, True),))
    trace = trace_of(kernel, lane(kernel, 0, (10, 1), (60, 2)), lane(kernel, 1, (40, 1), (66, 2)))
    last, other = cause_of(trace, 1), cause_of(trace, 0)
    assert (last.ending, last.arrow, parts(last), last.role) == (Ending.SIGNAL, None, (0, 0, 20, 6), "")
    assert (other.ending, parts(other), other.is_binding) == (Ending.SIGNAL, (30, 0, 20, 0), True)


def test_an_arrival_that_is_itself_a_wait_takes_as_long_as_a_ready_one():
    """Its stamp is the enter, ahead of the barrier's instruction: here a ready wait takes 30 cycles, a hand-off 20."""
    kernel = kernel_trace((wait_row(1, 1, 2, side="cta"),), (Barrier(1, "CTA", "", 0, True),))
    trace = trace_of(kernel, lane(kernel, 0, (10, 1), (66, 2)), lane(kernel, 1, (40, 1), (73, 2)))
    slow = Latencies({(language, kind): 30 for language in (CUDA, CUTEDSL) for kind in KINDS}, LATENCIES.hand_off, 0)
    other, last = explain(trace, analyse(trace, latencies=slow), slow).causes
    assert (parts(other), other.is_binding) == ((30, 0, 26, 0), True)
    # The last wait itself took 33, 3 more than a ready one.
    assert (last.arrow, parts(last)) == (None, (0, 0, 30, 3))
    # A signal's stamp follows its instruction: there the hand-off is 20, however long a ready wait takes.
    trace = trace_of(FLAG, lane(FLAG, 0, (40, 1)), lane(FLAG, 1, (10, 2), (66, 3)))
    (cause,) = explain(trace, analyse(trace, latencies=slow), slow).causes
    assert (parts(cause), cause.is_binding) == ((30, 0, 20, 6), False)


def test_blame_by_barrier_and_arriving_role():
    """Stalls of the consumer: 60 on copies of the load role (two waits), 40 on its own group. The load's: 29 on a release."""
    kernel = kernel_trace(
        (*ring_kernel(1).instances, wait_row(6, 9, 10, role="mma", side="async-group", barrier=3)),
        (*ring_kernel(1).barriers, Barrier(3, "wgmma", "", 0, True)),
    )
    trace = trace_of(
        kernel,
        lane(kernel, 0, (0, 1), (1, 2), (10, 3), (91, 1), (120, 2), (121, 3)),
        lane(kernel, 1, (10, 4), (50, 5), (55, 9), (95, 10), (118, 6), (125, 4), (145, 5)),
    )
    rows = flow_of(trace).blame
    assert [(row.role, row.barrier, row.side, row.by, row.ending, row.count, row.cycles) for row in rows] == [
        ("load", 1, "empty", "mma", Ending.SIGNAL, 1, 29),
        ("mma", 1, "full", "load", Ending.TRANSFER, 2, 60),
        ("mma", 3, "async-group", "", Ending.GROUP, 1, 40),
    ]
    assert [row.share for row in rows] == [1.0, 0.6, 0.4]


def test_passes_have_no_cause():
    trace = trace_of(FLAG, lane(FLAG, 0, (10, 1)), lane(FLAG, 1, (100, 2), (105, 3)))
    timeline = analyse(trace, latencies=LATENCIES)
    (part,) = timeline.warps[1].slices
    assert part.state is State.PASS
    assert explain(trace, timeline, LATENCIES).causes == ()
    # The arrow is there all the same: it says by how much the arrival came early.
    (arrow,) = explain(trace, timeline, LATENCIES).arrows
    assert arrow.wait.cycles - arrow.signal.cycles == 95


def test_full_and_empty_are_mbarriers_and_what_has_no_figure_is_never_a_pass():
    latencies = Latencies({(CUDA, "mbarrier"): 7}, {"mbarrier": 9}, 0)
    assert [latencies.ready_wait(CUDA, side) for side in ("full", "empty", "mbarrier")] == [7, 7, 7]
    assert (latencies.ready_wait(CUTEDSL, "full"), latencies.ready_wait(CUDA, "flag")) == (-1, -1)
    assert (latencies.hand_off_on("empty"), latencies.hand_off_on("flag")) == (9, 0)


def test_a_call_path_is_the_mark_of_cutedsl():
    assert language_of(FLAG) == CUDA
    assert language_of(kernel_trace((wait_row(1, 1, 2, call_path=("kernel:3",)),))) == CUTEDSL


SIDES = ("full", "empty", "mbarrier", "named", "cta", "cluster", "async-group")


@pytest.mark.parametrize("latencies", SM_90.values(), ids=[f"{warps} warps" for warps in SM_90])
def test_the_shipped_tables_have_every_kind_for_both_languages(latencies):
    for language in (CUDA, CUTEDSL):
        for side in SIDES:
            assert latencies.ready_wait(language, side) > 0
    assert all(latencies.hand_off_on(side) > 0 for side in SIDES if side != "async-group")
    # A cluster's barrier takes 77 - 18 = 59 cycles more than a CTA's (docs/adr/0009).
    assert latencies.ready_wait(CUDA, "cluster") - latencies.ready_wait(CUDA, "cta") == 59


@pytest.mark.parametrize(("warps", "probed"), [(1, 4), (4, 4), (5, 8), (12, 12), (13, 16), (17, 16), (32, 16)])
def test_a_cta_has_the_figures_of_as_many_warps_or_the_next_more(warps, probed):
    trace = trace_of(FLAG, *(lane(FLAG, warp, (0, 1)) for warp in range(warps)))
    assert latencies_of(trace) is SM_90[probed]


def test_the_figures_are_the_99th_percentiles_of_the_recorded_probe():
    rows = json.loads((Path(__file__).parents[2] / "benchmarks/results/sync_cost_h200.json").read_text("utf-8"))["rows"]
    probed = {(row["warps"], row["what"]): row["p99"] for row in rows}
    for warps, latencies in SM_90.items():
        ready = [latencies.ready_wait(CUDA, side) for side in ("full", "named", "cta", "async-group")]
        assert ready[0] == probed[warps, "ready wait: mbarrier"]
        assert ready[1] == ready[2] == probed[warps, "ready wait: named barrier"]
        assert ready[3] == probed[warps, "ready wait: wgmma.wait_group"]
        assert latencies.hand_off_on("full") == probed[warps, "arrival to exit: mbarrier"]
        assert latencies.hand_off_on("named") == probed[warps, "arrival to exit: named barrier"]


def test_cycles_say_nothing_of_nanoseconds():
    trace = replace(trace_of(FLAG, lane(FLAG, 0, (10, 1)), lane(FLAG, 1, (100, 2), (101, 3))), unit="ns")
    assert latencies_of(trace) is UNKNOWN
    assert [part.state for part in analyse(trace).warps[1].slices] == [State.STALL]


def test_threads_of_one_warp_wait_for_no_other_warp():
    # A __syncwarp from cycle 10 to 50, with a hand-off of 30 cycles: the warp's own threads came last.
    row = wait_row(1, 1, 2, side="warp", barrier=0)
    stall = Slice(10, 50, State.STALL, 1, 0, -1)
    warp = WarpTimeline(0, "load", (stall,), span=60, stall=40, active=0, untracked=20, lost=0, end=60)
    timeline = Timeline("k", (warp,), (), (), (), 0.0)
    found = Dependencies((), frozenset(), frozenset(), frozenset(), ())
    (cause,) = causes_of(timeline, found, {1: row}, Latencies({}, {"warp": 30}, 0), CUDA)
    assert (cause.ending, cause.handed_over, cause.unexplained, cause.role) == (Ending.SIGNAL, 30, 10, "")
