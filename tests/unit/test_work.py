# SPDX-License-Identifier: Apache-2.0
"""Work regions, roles that the input names, and what the dense view keeps beside clocks."""

from __future__ import annotations

import numpy as np

from autostamp.analysis import analyse
from autostamp.analysis.work import work_of
from autostamp.model.manifest import EventKind, Instance, Payload
from autostamp.model.timeline import Slice, State
from autostamp.model.trace import Event, Lane, Trace
from autostamp.runtime.slots import Column, dense, event_axis, events_of, from_slots, to_slots, trace_of
from tests.simulator.tables import FILE_KEY, kernel_trace, wait_row

WAIT = wait_row(1, 1, 2, barrier=0, side="named")
REGION = Instance(2, FILE_KEY, 2, "mma", (), "work", "", 0, Payload.NONE, enter=3, exit=4)
KERNEL = kernel_trace((WAIT, REGION))
BEGIN, END, ENTER, EXIT = EventKind.BEGIN, EventKind.END, EventKind.ENTER, EventKind.EXIT


def lane(*events, warp=0):
    return Lane(
        warp,
        0,
        tuple(Event(cycles, kind, number, 0, visit) for cycles, kind, number, visit in events),
        0,
        0,
        1000,
        0,
        0,
    )


def work(*events):
    return work_of(lane(*events), {1: WAIT, 2: REGION})


def test_a_begin_and_its_end_are_one_active_slice():
    assert work((10, BEGIN, 2, 0), (40, END, 2, 0), (50, BEGIN, 2, 1), (50, END, 2, 1)) == [
        Slice(10, 40, State.ACTIVE, 2, 0, -1),
        Slice(50, 50, State.ACTIVE, 2, 1, -1),
    ]


def test_a_region_without_its_end_or_its_begin_is_none():
    assert work((10, BEGIN, 2, 0)) == []
    assert work((10, END, 2, 0), (20, BEGIN, 2, 1)) == []


def test_regions_may_overlap():
    found = work((10, BEGIN, 2, 0), (20, BEGIN, 2, 1), (30, END, 2, 0), (45, END, 2, 1))
    assert [(part.start, part.end, part.visit) for part in found] == [(10, 30, 0), (20, 45, 1)]


def test_a_wait_within_a_region_is_taken_off_its_active_time():
    events = ((100, BEGIN, 2, 0), (200, ENTER, 1, 0), (500, EXIT, 1, 0), (700, END, 2, 0))
    (warp,) = analyse(Trace(KERNEL, (lane(*events),), 0.0)).warps
    assert warp.active == 600 - 300
    assert (warp.stall, warp.untracked) == (300, 1000 - 600)
    assert [(part.state, part.start, part.end) for part in warp.slices] == [
        (State.ACTIVE, 100, 700),
        (State.STALL, 200, 500),
    ]


def test_roles_that_the_input_names_are_the_roles():
    """Both rows visited the same instance and would be one group."""
    lanes = (
        lane((1, BEGIN, 2, 0), (5, END, 2, 0), warp=3),
        lane((2, BEGIN, 2, 0), (9, END, 2, 0), warp=5),
        lane(warp=6),
    )
    timeline = analyse(Trace(KERNEL, lanes, 0.0, roles=("softmax0", "softmax1", "softmax1")))
    assert [warp.role for warp in timeline.warps] == ["softmax0", "softmax1", "softmax1"]
    assert [(group.role, group.warps, group.instances) for group in timeline.groups] == [
        ("softmax0", (3,), (2,)),
        ("softmax1", (5, 6), (2,)),
    ]


def test_the_unit_of_the_clock_is_passed_on():
    assert analyse(Trace(KERNEL, (lane(),), 0.0)).unit == "cycles"
    assert analyse(Trace(KERNEL, (lane(),), 0.0, unit="ns")).unit == "ns"


def test_the_event_axis_has_begins_and_ends_of_work():
    assert [name for _, _, name in event_axis(KERNEL)] == ["1.enter", "1.exit", "2.begin", "2.end"]


def test_the_dense_view_keeps_payloads_and_the_order_of_records():
    events = (Event(5, ENTER, 1, 7, 0), Event(5, EXIT, 1, 0, 0), Event(5, BEGIN, 2, 3, 0))
    view = dense(Trace(KERNEL, (Lane(0, 0, events, 0, 0, 9, 0, 0),), 0.0))
    assert view.payloads.dtype == np.uint16
    assert view.payloads[0, :, 0].tolist() == [7, 0, 3, 0]
    assert view.order[0, :, 0].tolist() == [0, 1, 2, -1]
    assert trace_of(view, KERNEL).lanes[0].events == events


def test_one_slot_may_be_the_end_of_a_wait_and_the_begin_of_work():
    slots = np.array([[[10, 20], [15, 30]]])
    columns = [Column(0, 1, ENTER), Column(1, 1, EXIT), Column(1, 2, BEGIN, 0, frozenset({0})), Column(0, 2, END, 1)]
    events = events_of(from_slots(slots, (1, 2, 2)), 0, columns)
    # Cycle 0 is clock 10. Slot (0, it) ends the work of visit it - 1; work begins in the slot of iteration 0 alone.
    assert [(event.cycles, event.kind, event.instance, event.visit) for event in events] == [
        (0, END, 2, -1),
        (0, ENTER, 1, 0),
        (5, EXIT, 1, 0),
        (5, BEGIN, 2, 0),
        (10, END, 2, 0),
        (10, ENTER, 1, 1),
        (20, EXIT, 1, 1),
    ]


def test_the_flat_buffer_of_a_view_with_work_is_as_long_as_its_slots():
    view = dense(Trace(KERNEL, (lane((1, BEGIN, 2, 0), (5, END, 2, 0)),), 0.0))
    assert to_slots(view).tolist() == [0, 0, 2, 6]
