# SPDX-License-Identifier: Apache-2.0
"""Arrows over schedules worked out by hand. An arrow is written as (warp, cycle) of its arrival and (warp, cycle) of the exit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from autostamp.analysis.dependencies import find_dependencies
from autostamp.model.manifest import Barrier, EventKind, Payload
from autostamp.model.trace import Trace
from tests.simulator.lanes import lane, trace_of
from tests.simulator.machine import Timing
from tests.simulator.pipelines import Form, Pipeline
from tests.simulator.tables import (
    ACQUIRE,
    AT_ONCE,
    COMMIT,
    CONSUME,
    RELEASE,
    kernel_trace,
    ring_kernel,
    signal_row,
    wait_row,
)

ADDRESS, STAGE, NUMBER = Payload.ADDRESS, Payload.STAGE, Payload.BARRIER_ID


def pairs(trace: Trace, late: int = 0) -> set[tuple[tuple[int, int], tuple[int, int]]]:
    """All arrows, by warp and cycle of their ends."""
    arrows = find_dependencies(trace, replace(AT_ONCE, late=late)).arrows
    return {((a.signal.warp, a.signal.cycles), (a.wait.warp, a.wait.cycles)) for a in arrows}


def plain_ring(stages: int = 2, **fields):
    """PipelineAsync: acquires at events 1-2, commits at 3, consumer waits at 4-5, releases at 6. Payloads are stages."""
    return kernel_trace(
        (
            wait_row(ACQUIRE, 1, 2, role="load", side="empty", payload=STAGE),
            signal_row(COMMIT, 3, role="load", side="full", payload=STAGE),
            wait_row(CONSUME, 4, 5, role="mma", side="full", payload=STAGE),
            signal_row(RELEASE, 6, role="mma", side="empty", payload=STAGE),
        ),
        (Barrier(1, "K", "PipelineAsync", stages, False),),
        **fields,
    )


def by_order_of_appearance(trace: Trace) -> set[tuple[tuple[int, int], tuple[int, int]]]:
    """What pairing without barrier identity does: a warp's n-th consumer wait goes with the n-th commit of all warps."""
    instances = {item.number: item for item in trace.kernel.instances}
    commits = sorted(
        (event.cycles, one.warp)
        for one in trace.lanes
        for event in one.events
        if event.kind is EventKind.SIGNAL and instances[event.instance].side == "full"
    )
    found = set()
    for one in trace.lanes:
        waits = [
            event for event in one.events if event.kind is EventKind.EXIT and instances[event.instance].side == "full"
        ]
        found |= {
            ((warp, cycle), (one.warp, event.cycles)) for (cycle, warp), event in zip(commits, waits, strict=False)
        }
    return found


def test_two_producers_of_one_stage_and_the_later_of_them_ends_the_wait():
    kernel = plain_ring(stages=1)
    trace = trace_of(
        kernel,
        # Warp 0 fills its half at 10 and 60, warp 1 at 30 and 90; the stage is full with the later: 30, then 90.
        lane(kernel, 0, (0, 1), (0, 2), (10, 3), (11, 1), (50, 2), (60, 3)),
        lane(kernel, 1, (0, 1), (0, 2), (30, 3), (31, 1), (51, 2), (90, 3)),
        lane(kernel, 2, (5, 4), (32, 5), (48, 6), (49, 4), (92, 5), (99, 6)),
    )
    expected = {
        ((1, 30), (2, 32)),
        ((1, 90), (2, 92)),
        ((2, 48), (0, 50)),
        ((2, 48), (1, 51)),
    }
    assert pairs(trace) == expected
    wrong = by_order_of_appearance(trace)
    assert wrong == {((0, 10), (2, 32)), ((1, 30), (2, 92))}
    assert not wrong <= expected
    arrows = find_dependencies(trace, AT_ONCE).arrows
    assert [(arrow.use, [end.cycles for end in arrow.others]) for arrow in arrows] == [
        (0, [10]),
        (0, []),
        (0, []),
        (1, [60]),
    ]


def test_a_tile_that_one_consumer_skips():
    """Tiles 0 to 3 through one stage. Warp 2 skips tile 1 (its mask is empty), which warp 1 alone waits for and releases."""
    kernel = plain_ring(stages=1)
    trace = trace_of(
        kernel,
        lane(
            kernel,
            0,
            *((0, 1), (0, 2), (10, 3)),
            *((11, 1), (31, 2), (40, 3)),
            *((41, 1), (61, 2), (70, 3)),
            *((71, 1), (91, 2), (100, 3)),
        ),
        lane(kernel, 1, (0, 4), (11, 5), (33, 4), (41, 5), (60, 6), (93, 4), (101, 5), (120, 6)),
        lane(kernel, 2, (0, 4), (12, 5), (30, 6), (62, 4), (71, 5), (90, 6), (92, 4), (102, 5)),
    )
    expected = {
        *{((0, 10), (1, 11)), ((0, 10), (2, 12)), ((0, 40), (1, 41)), ((0, 70), (2, 71))},
        *{((0, 100), (1, 101)), ((0, 100), (2, 102))},
        *{((2, 30), (0, 31)), ((1, 60), (0, 61)), ((2, 90), (0, 91))},
    }
    assert pairs(trace) == expected
    # By order, warp 2's wait for tile 2 is given the commit of tile 1, 31 cycles before.
    assert ((0, 40), (2, 71)) in by_order_of_appearance(trace)


def test_k_and_v_through_one_helper():
    """One source line waits for K and for V: the same instance, two addresses. V's load comes first here, by 20 cycles."""
    kernel = kernel_trace(
        (
            signal_row(1, 1, role="load", side="full", payload=ADDRESS),
            wait_row(2, 2, 3, role="mma", side="full", payload=ADDRESS),
        ),
        (Barrier(1, "pipeline", "mbarrier", 0, True),),
    )
    k, v = 0x80, 0x90
    trace = trace_of(
        kernel,
        lane(kernel, 0, (10, 1, v), (30, 1, k)),
        lane(kernel, 1, (0, 2, k), (31, 3), (35, 2, v), (36, 3)),
    )
    assert pairs(trace) == {((0, 30), (1, 31)), ((0, 10), (1, 36))}
    assert by_order_of_appearance(trace) == {((0, 10), (1, 31)), ((0, 30), (1, 36))}
    assert not any(arrow.is_inferred for arrow in find_dependencies(trace, AT_ONCE).arrows)


@pytest.mark.parametrize("form", list(Form))
def test_consumers_that_alternate_tiles_wait_only_for_their_own(form):
    """Three stages and two consumers: each stage is used by both in turn."""
    pipeline = Pipeline(3, 1, 2, 12, form, drainers=tuple(tile % 2 for tile in range(12)))
    trace, _ = pipeline.run()
    arrows = [arrow for arrow in find_dependencies(trace, pipeline.latencies).arrows if arrow.side == "full"]
    # Tile t is visit t // 2 of consumer t % 2, and use t // 3 of stage t % 3.
    assert {(arrow.wait.warp - 1, arrow.wait.visit, arrow.stage, arrow.use) for arrow in arrows} == {
        (tile % 2, tile // 2, tile % 3, tile // 3) for tile in range(12)
    }
    assert all(arrow.is_async == (form is not Form.PLAIN) for arrow in arrows)


def test_a_use_that_nobody_waits_for_is_still_counted():
    """The consumer takes tiles 0, 2 and 3 and lets tile 1 go by: it releases the stage at 60 without a wait."""
    kernel = plain_ring(stages=1)
    trace = trace_of(
        kernel,
        lane(
            kernel,
            0,
            (0, 1),
            (0, 2),
            (10, 3),
            (11, 1),
            (31, 2),
            (40, 3),
            (41, 1),
            (61, 2),
            (70, 3),
            (71, 1),
            (91, 2),
            (99, 3),
        ),
        lane(kernel, 1, (0, 4), (11, 5), (30, 6), (60, 6), (61, 4), (71, 5), (90, 6), (91, 4), (100, 5)),
    )
    found = find_dependencies(trace, AT_ONCE)
    assert [(arrow.use, arrow.signal.cycles, arrow.others) for arrow in found.arrows if arrow.side == "full"] == [
        (0, 10, ()),
        (2, 70, ()),
        (3, 99, ()),
    ]
    assert found.notes == ()


def test_a_fresh_ring_grants_its_first_round_and_no_more():
    kernel = plain_ring(stages=2)
    rows = [(0, 1, 0), (3, 2), (4, 3, 0), (5, 1, 1), (9, 2), (10, 3, 1), (11, 1, 0), (31, 2)]
    trace = trace_of(kernel, lane(kernel, 0, *rows), lane(kernel, 1, (0, 4, 0), (5, 5), (30, 6, 0)))
    found = find_dependencies(trace, AT_ONCE)
    assert found.granted == {(0, ACQUIRE, 0), (0, ACQUIRE, 1)}
    assert pairs(trace) == {((0, 4), (1, 5)), ((1, 30), (0, 31))}


def meeting(*rows):
    return kernel_trace(rows, (Barrier(1, "order", "NamedBarrier", 0, False),))


def test_the_last_to_arrive_on_a_named_barrier_lets_all_others_go():
    kernel = meeting(wait_row(1, 1, 2, side="named", payload=NUMBER))
    trace = trace_of(
        kernel,
        # Generation 0 is complete at 30, generation 1 at 39. Warp 0 is back at 34, before warp 2 has left the first one.
        lane(kernel, 0, (10, 1, 4), (33, 2), (34, 1, 4), (41, 2)),
        lane(kernel, 1, (30, 1, 4), (31, 2), (36, 1, 4), (42, 2)),
        lane(kernel, 2, (20, 1, 4), (37, 2), (39, 1, 4), (40, 2)),
    )
    assert pairs(trace) == {((1, 30), (0, 33)), ((1, 30), (2, 37)), ((2, 39), (0, 41)), ((2, 39), (1, 42))}
    found = find_dependencies(trace, AT_ONCE)
    assert found.own == {(1, 1, 0), (2, 1, 1)}
    assert [arrow.use for arrow in found.arrows] == [0, 0, 1, 1]


def test_a_number_names_a_named_barrier_whatever_the_source_calls_it():
    """Groups that take turns, as FlashAttention's scheduler barrier: each waits on its own and arrives on the other's.

    The first group arrives on its own before it starts. By hand: its wait of 12-14 follows its own arrival (it needs both of
    its warps, 12 the later); the second group waits until both arrivals of the first (40 and 44).
    """
    kernel = kernel_trace(
        (
            signal_row(1, 1, side="named", barrier=1, stage=2),
            wait_row(2, 2, 3, side="named", barrier=2, payload=NUMBER),
            signal_row(3, 4, side="named", barrier=3, payload=NUMBER),
        ),
        (Barrier(1, "WG1", "", 0, False), Barrier(2, "WG1+", "", 0, False), Barrier(3, "WG1+", "", 0, False)),
    )
    trace = trace_of(
        kernel,
        lane(kernel, 0, (1, 1), (10, 2), (14, 3, 2), (40, 4, 3), (41, 2), (92, 3, 2)),
        lane(kernel, 1, (3, 1), (12, 2), (13, 3, 2), (44, 4, 3), (45, 2), (91, 3, 2)),
        lane(kernel, 2, (5, 2), (46, 3, 3), (80, 4, 2)),
        lane(kernel, 3, (7, 2), (47, 3, 3), (90, 4, 2)),
    )
    assert pairs(trace) == {
        *{((1, 12), (0, 14)), ((1, 44), (2, 46)), ((1, 44), (3, 47))},
        *{((3, 90), (0, 92)), ((3, 90), (1, 91))},
    }
    assert find_dependencies(trace, AT_ONCE).own == {(1, 2, 0)}


def test_generations_of_one_named_barrier_may_differ_in_size():
    """An epilogue: two warps meet, then arrive for the one that stores, which arrives and waits: two arrivals, then three."""
    kernel = meeting(
        wait_row(1, 1, 2, side="named", stage=1),
        signal_row(2, 3, side="named", stage=1),
        wait_row(3, 4, 5, side="named", stage=1),
    )
    trace = trace_of(
        kernel,
        lane(kernel, 0, (10, 1), (21, 2), (30, 3), (31, 4), (51, 5), (60, 1), (71, 2), (80, 3), (81, 4), (96, 5)),
        lane(kernel, 1, (20, 1), (22, 2), (50, 3), (70, 1), (72, 2), (95, 3)),
    )
    assert pairs(trace) == {((1, 20), (0, 21)), ((1, 50), (0, 51)), ((1, 70), (0, 71)), ((1, 95), (0, 96))}
    assert find_dependencies(trace, AT_ONCE).notes == ()


def test_no_arrow_to_a_meeting_that_a_warp_left_before_the_others_came():
    kernel = kernel_trace((wait_row(1, 1, 2, side="cta", signals=("cta",)),), (Barrier(1, "CTA", "", 0, True),))
    trace = trace_of(
        kernel, lane(kernel, 0, (10, 1), (13, 2)), lane(kernel, 1, (11, 1), (14, 2)), lane(kernel, 2, (50, 1), (53, 2))
    )
    found = find_dependencies(trace, AT_ONCE)
    assert found.arrows == ()
    (note,) = found.notes
    assert note.startswith("CTA (cta): waits ended before all had arrived")


def test_syncthreads_and_the_clusters_barrier():
    kernel = kernel_trace(
        (
            wait_row(1, 1, 2, side="cta", signals=("cta",)),
            signal_row(2, 3, side="cluster", barrier=2),
            wait_row(3, 4, 5, side="cluster", barrier=2),
        ),
        (Barrier(1, "CTA", "", 0, True), Barrier(2, "cluster", "", 0, True)),
    )
    trace = trace_of(
        kernel,
        lane(kernel, 0, (10, 1), (22, 2), (30, 3), (31, 4), (52, 5)),
        lane(kernel, 1, (20, 1), (21, 2), (50, 3), (51, 4), (53, 5)),
    )
    assert pairs(trace) == {((1, 20), (0, 22)), ((1, 50), (0, 52))}
    # One of each in a CTA: nothing is inferred, though no record names them.
    assert not any(arrow.is_inferred for arrow in find_dependencies(trace, AT_ONCE).arrows)


def test_warps_that_meet_on_an_mbarrier():
    """arrive_and_wait: the enter is the arrival. Warp 0 is back, and arrives anew, before warp 1's exit."""
    kernel = kernel_trace(
        (wait_row(1, 1, 2, side="mbarrier", signals=("mbarrier",), payload=STAGE),),
        (Barrier(1, "pair", "MbarrierArray", 1, False),),
    )
    trace = trace_of(
        kernel,
        lane(kernel, 0, (10, 1), (25, 2), (26, 1), (60, 2)),
        lane(kernel, 1, (20, 1), (29, 2), (55, 1), (58, 2)),
    )
    assert pairs(trace) == {((1, 20), (0, 25)), ((1, 55), (0, 60))}


@pytest.mark.parametrize("late", [0, 30])
def test_an_arrival_stamped_after_the_exit_that_it_caused(late):
    """The first arrival is stamped 20 cycles after the exit: within the lateness it belongs to it, without it nothing does."""
    kernel = plain_ring(stages=1)
    trace = trace_of(
        kernel,
        lane(kernel, 0, (0, 1), (0, 2), (130, 3), (140, 1), (301, 2), (400, 3)),
        lane(kernel, 1, (0, 4), (110, 5), (300, 6), (310, 4), (410, 5)),
    )
    assert (((0, 130), (1, 110)) in pairs(trace, late)) == bool(late)


def test_a_copy_starts_at_its_issue_and_keeps_what_announced_it():
    """TMA: the acquire's exit (20) arms the full barrier, the commit (25) emits nothing and marks the issue."""
    kernel = ring_kernel(stages=1)
    trace = trace_of(
        kernel,
        lane(kernel, 0, (10, 1), (20, 2), (25, 3), (30, 1), (101, 2), (105, 3)),
        lane(kernel, 1, (0, 4), (70, 5), (100, 6), (101, 4), (180, 5)),
    )
    first, release, second = find_dependencies(trace, AT_ONCE).arrows
    assert [(one.signal.cycles, one.is_async, one.use) for one in (first, second)] == [(25, True, 0), (105, True, 1)]
    assert [[(end.instance, end.cycles) for end in one.others] for one in (first, second)] == [
        [(ACQUIRE, 20)],
        [(ACQUIRE, 101)],
    ]
    assert (release.signal.cycles, release.is_async) == (100, False)


def test_a_commit_that_emits_nothing_may_be_written_after_the_bytes_have_come():
    kernel = ring_kernel(stages=1)
    trace = trace_of(kernel, lane(kernel, 0, (10, 1), (20, 2), (90, 3)), lane(kernel, 1, (0, 4), (70, 5)))
    assert pairs(trace) == {((0, 20), (1, 70))}


def test_copies_issued_by_another_warp_than_the_one_that_announces_them():
    kernel = kernel_trace(
        (
            signal_row(1, 1, side="full", payload=ADDRESS),
            signal_row(2, 2, side="full", payload=ADDRESS, is_async=True),
            wait_row(3, 3, 4, side="full", payload=ADDRESS),
        ),
        (Barrier(1, "ring", "mbarrier", 0, False),),
    )
    trace = trace_of(
        kernel,
        lane(kernel, 0, (10, 1, 128), (110, 1, 128)),
        lane(kernel, 1, (15, 2, 128), (18, 2, 128), (115, 2, 128)),
        lane(kernel, 2, (0, 3, 128), (50, 4), (60, 3, 128), (150, 4)),
    )
    arrows = find_dependencies(trace, AT_ONCE).arrows
    assert [(one.signal.cycles, [end.cycles for end in one.others], one.is_async) for one in arrows] == [
        (18, [10, 15], True),
        (115, [110], True),
    ]


def test_a_ring_whose_records_name_no_stage_goes_by_order_and_says_so():
    none = Payload.NONE
    kernel = kernel_trace(
        (
            wait_row(ACQUIRE, 1, 2, side="empty", payload=none),
            signal_row(COMMIT, 3, side="full", payload=none),
            wait_row(CONSUME, 4, 5, side="full", payload=none),
            signal_row(RELEASE, 6, side="empty", payload=none),
        ),
        (Barrier(1, "K", "PipelineAsync", 2, False),),
    )
    trace = trace_of(
        kernel,
        lane(kernel, 0, (0, 1), (0, 2), (10, 3), (11, 1), (11, 2), (20, 3), (21, 1), (51, 2), (60, 3)),
        lane(kernel, 1, (0, 4), (12, 5), (50, 6), (51, 4), (52, 5), (80, 6), (81, 4), (82, 5)),
    )
    found = find_dependencies(trace, AT_ONCE)
    assert pairs(trace) == {((0, 10), (1, 12)), ((0, 20), (1, 52)), ((0, 60), (1, 82)), ((1, 50), (0, 51))}
    assert all(arrow.is_inferred and arrow.stage == -1 for arrow in found.arrows)
    assert found.granted == {(0, ACQUIRE, 0), (0, ACQUIRE, 1)}


def test_an_address_of_zero_is_none():
    """A helper that was given no barrier: what is left is the declaration, so the arrow is inferred."""
    kernel = kernel_trace(
        (signal_row(1, 1, side="full", payload=ADDRESS), wait_row(2, 2, 3, side="full", payload=ADDRESS)),
        (Barrier(1, "done", "mbarrier", 0, True),),
    )
    trace = trace_of(kernel, lane(kernel, 0, (10, 1, 0)), lane(kernel, 1, (0, 2, 0), (11, 3)))
    (arrow,) = find_dependencies(trace, AT_ONCE).arrows
    assert (arrow.signal.cycles, arrow.is_inferred) == (10, True)


def test_a_declared_barrier_that_rests_on_source_text_is_inferred():
    kernel = replace(plain_ring(1), barriers=(Barrier(1, "K", "", 1, True),))
    trace = trace_of(kernel, lane(kernel, 0, (10, 3)), lane(kernel, 1, (0, 4), (11, 5)))
    (arrow,) = find_dependencies(trace, AT_ONCE).arrows
    assert (arrow.stage, arrow.is_inferred) == (0, True)


def test_an_address_that_one_record_calls_full_and_another_an_mbarrier():
    kernel = kernel_trace(
        (
            signal_row(1, 1, side="mbarrier", payload=ADDRESS),
            wait_row(2, 2, 3, side="full", payload=ADDRESS, barrier=2),
        ),
        (Barrier(1, "bar", "mbarrier", 0, True), Barrier(2, "bar", "mbarrier", 0, True)),
    )
    trace = trace_of(kernel, lane(kernel, 0, (10, 1, 64)), lane(kernel, 1, (0, 2, 64), (11, 3)))
    assert pairs(trace) == {((0, 10), (1, 11))}


def test_waits_that_no_count_fits_are_paired_by_time_and_marked():
    """The consumer comes out twice on one arrival: something else let it go."""
    kernel = plain_ring(stages=1)
    trace = trace_of(
        kernel, lane(kernel, 0, (10, 3), (90, 3)), lane(kernel, 1, (0, 4), (11, 5), (12, 4), (50, 5), (60, 4), (91, 5))
    )
    found = find_dependencies(trace, AT_ONCE)
    assert pairs(trace) == {((0, 10), (1, 11)), ((0, 10), (1, 50)), ((0, 90), (1, 91))}
    assert all(arrow.is_inferred for arrow in found.arrows)
    assert found.notes == (
        "K (full): no number of arrivals fits its waits: each is paired with the arrival before its end",
    )


def test_a_wait_that_nobody_of_the_cta_arrives_for_has_no_arrow():
    kernel = plain_ring(stages=1)
    found = find_dependencies(trace_of(kernel, lane(kernel, 1, (0, 4), (90, 5))), AT_ONCE)
    assert (found.arrows, found.granted, found.lost, found.own, found.notes) == ((), set(), set(), set(), ())


def lossy(lost: int) -> Trace:
    """The consumer's lane is full after its second wait: its release at 80 is dropped."""
    kernel = plain_ring(stages=1, capacity=6)
    releases = [(80, 6)] if not lost else []
    return trace_of(
        kernel,
        lane(kernel, 0, (0, 1), (0, 2), (10, 3), (11, 1), (41, 2), (50, 3), (51, 1), (82, 2)),
        lane(kernel, 1, (0, 4), (11, 5), (40, 6), (41, 4), (51, 5), *releases, lost=lost),
    )


def test_no_arrow_across_a_gap():
    """Without the loss the acquire of 51-82 follows the release at 80; with it the last release known is that of 40."""
    assert ((1, 80), (0, 82)) in pairs(lossy(0))
    found = find_dependencies(lossy(1), AT_ONCE)
    assert pairs(lossy(1)) == {((0, 10), (1, 11)), ((0, 50), (1, 51)), ((1, 40), (0, 41))}
    assert found.lost == {(0, ACQUIRE, 2)}


def test_a_lane_that_never_arrives_there_loses_nothing_of_it():
    """The consumer's lane ends at 51, but only the load warp fills stages: a wait for one at 95 keeps its arrow."""
    trace = lossy(1)
    other = lane(trace.kernel, 2, (0, 4), (12, 5), (42, 4), (52, 5), (90, 4), (95, 5))
    filler = lane(trace.kernel, 0, *[(0, 1), (0, 2), (10, 3), (11, 1), (41, 2), (50, 3), (51, 1), (82, 2), (94, 3)])
    assert ((0, 94), (2, 95)) in pairs(replace(trace, lanes=(filler, trace.lanes[1], other)))


def test_groups_that_take_turns_by_an_order_of_barriers():
    """PipelineOrder: the first group's first wait is free, after that each waits for the other's arrival."""
    kernel = kernel_trace(
        (wait_row(1, 1, 2, side="full", payload=STAGE), signal_row(2, 3, side="full", payload=STAGE)),
        (Barrier(1, "order", "PipelineOrder", 1, False),),
    )
    trace = trace_of(
        kernel,
        lane(kernel, 0, (0, 1), (3, 2), (20, 3), (21, 1), (41, 2), (60, 3)),
        lane(kernel, 1, (0, 1), (21, 2), (40, 3), (41, 1), (61, 2)),
    )
    assert pairs(trace) == {((0, 20), (1, 21)), ((1, 40), (0, 41)), ((0, 60), (1, 61))}
    assert find_dependencies(trace, AT_ONCE).granted == {(0, 1, 0)}


def test_turns_at_two_stages_that_no_record_names():
    """CUTLASS's OrderedSequenceBarrier: turns at the main loop and at the epilogue, the first group's first ones free.

    Group 0 works 1-30 and 32-60, then 71-100 and 112-; group 1 works 31-70, its epilogue 72-110, then 112-.
    """
    kernel = kernel_trace(
        (
            wait_row(1, 1, 2, side="mbarrier"),
            signal_row(2, 3, side="mbarrier"),
            wait_row(3, 4, 5, side="mbarrier"),
            signal_row(4, 6, side="mbarrier"),
        ),
        (Barrier(1, "order", "OrderedSequenceBarrier", 0, True),),
    )
    first = ((0, 1), (1, 2), (30, 3), (31, 4), (32, 5), (60, 6), (61, 1), (71, 2), (100, 3), (101, 4), (112, 5))
    second = ((0, 1), (31, 2), (70, 3), (71, 4), (72, 5), (110, 6), (111, 1), (112, 2))
    trace = trace_of(kernel, lane(kernel, 0, *first), lane(kernel, 1, *second))
    assert pairs(trace) == {
        ((0, 30), (1, 31)),
        ((0, 60), (1, 72)),
        ((1, 70), (0, 71)),
        ((1, 110), (0, 112)),
        ((0, 100), (1, 112)),
    }
    assert find_dependencies(trace, AT_ONCE).granted == {(0, 1, 0), (0, 3, 0)}


def ordered(*lanes: tuple[tuple[int, int], ...]) -> Trace:
    kernel = kernel_trace(
        (wait_row(1, 1, 2, side="mbarrier"), signal_row(2, 3, side="mbarrier")),
        (Barrier(1, "order", "OrderedSequenceBarrier", 0, True),),
    )
    return trace_of(kernel, *(lane(kernel, warp, *rows) for warp, rows in enumerate(lanes)))


def test_a_group_that_never_waits_has_the_first_turn():
    """CUTLASS's load_order_barrier: the main loop's load goes first, the epilogue's waits for it. No wait is granted."""
    trace = ordered(((20, 3), (60, 3)), ((0, 1), (21, 2), (30, 1), (61, 2)))
    assert pairs(trace) == {((0, 20), (1, 21)), ((0, 60), (1, 61))}
    assert find_dependencies(trace, AT_ONCE).granted == set()


def test_no_arrow_where_no_order_of_turns_fits():
    """Both leave their second wait before either arrived twice, and what else let them go has no stamp."""
    waits = tuple((at, event) for at in range(0, 60, 10) for event in (1, 2))
    found = find_dependencies(ordered((*waits, (70, 3)), (*waits, (71, 3))), AT_ONCE)
    assert found.arrows == ()
    assert found.notes == ("order (mbarrier): no order of turns fits its waits, so no arrow ends there",)


def test_arrivals_alone_are_no_finding():
    assert find_dependencies(ordered(((20, 3), (60, 3))), AT_ONCE).notes == ()


def test_turns_of_whole_warpgroups():
    """The last of a group's four warps to arrive lets the other group in, and the group never itself."""
    kernel = kernel_trace(
        (wait_row(1, 1, 2, side="mbarrier"), signal_row(2, 3, side="mbarrier")),
        (Barrier(1, "order", "OrderedSequenceBarrier", 0, True),),
    )
    first = [lane(kernel, warp, (0, 1), (1, 2), (30 + warp, 3), (50, 1), (81, 2)) for warp in range(4)]
    second = [lane(kernel, warp, (0, 1), (34, 2), (80 - warp, 3)) for warp in range(4, 8)]
    assert pairs(trace_of(kernel, *first, *second)) == {
        *(((3, 33), (warp, 34)) for warp in range(4, 8)),
        *(((4, 76), (warp, 81)) for warp in range(4)),
    }


def test_any_number_of_arrivals_up_to_32_warps_is_found():
    for warps in (3, 7, 31):
        pipeline = Pipeline(2, 1, warps, 6, Form.PLAIN, timing=Timing(hand_off=(1, 4)))
        arrows = find_dependencies(pipeline.run()[0], pipeline.latencies).arrows
        assert {len(arrow.others) + 1 for arrow in arrows if arrow.side == "empty"} == {warps}


def test_an_arrow_that_begins_after_its_end_is_left_out_and_counted():
    """One of eight releases has its stamp 90 cycles after the exit that it allowed: a warp was kept from issuing in between."""
    kernel = plain_ring(stages=1)
    ends = [0, *range(100, 900, 100)]
    producer = [row for end in ends for row in ((end, 1), (end, 2), (end + 1, 3))]
    releases = [end - 5 + 95 * (end == 400) for end in ends[1:]]
    trace = trace_of(kernel, lane(kernel, 0, *producer), lane(kernel, 1, *((at, 6) for at in releases)))
    found = find_dependencies(trace, replace(AT_ONCE, late=50))
    assert [(arrow.signal.cycles, arrow.wait.cycles) for arrow in found.arrows] == [
        (end - 5, end) for end in ends[1:] if end != 400
    ]
    assert found.notes == ("1 arrow is left out: its arrival came after the wait's end",)


def displaced(*releases: int) -> Trace:
    """Acquires end at 0 (a fresh stage), 100, 200 and 300, as the true releases are at 95, 195 and 295."""
    kernel = plain_ring(stages=1)
    producer = [(at, event) for end in (0, 100, 200, 300) for at, event in ((end, 1), (end, 2), (end + 1, 3))]
    return trace_of(kernel, lane(kernel, 0, *producer), lane(kernel, 1, *((at, 6) for at in releases)))


@pytest.mark.parametrize(
    "releases",
    [
        (125, 175, 355),  # after the exits that they allowed by 25 and 55, and one too early
        (95, 205, 399),  # nearly as late as the next
        (60, 120, 220),  # all too early
    ],
)
def test_records_that_may_be_far_off_are_counted_by_the_least_contradiction(releases):
    """Taking all that came within the 500 cycles that they may be off by, each acquire would have the release after its own."""
    found = find_dependencies(displaced(*releases), AT_ONCE, lambda _: 500)
    ends = [(arrow.signal.cycles, arrow.wait.cycles) for arrow in found.arrows]
    assert ends == list(zip(releases, (100, 200, 300), strict=True))
    assert found.granted == {(0, 1, 0)}
    assert found.notes == ()
