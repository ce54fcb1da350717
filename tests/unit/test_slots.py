# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest

from autostamp.diagnostics import AutostampError
from autostamp.model.manifest import EventKind
from autostamp.model.trace import Trace
from autostamp.runtime.decode import decode_region
from autostamp.runtime.slots import UNUSED, dense, event_axis, from_slots, to_slots, trace_of
from tests.simulator.region import Stamp, WarpLog, write_region
from tests.simulator.tables import SIGNATURE, kernel_trace, ring_kernel, ring_region, signal_row, wait_row

KERNEL = kernel_trace((wait_row(1, 1, 2), signal_row(2, 3)), capacity=8)


def ring_view():
    kernel = ring_kernel()
    return dense(decode_region(ring_region(kernel), kernel))


def test_the_event_axis_follows_event_numbers():
    swapped = kernel_trace((signal_row(1, 3), wait_row(2, 1, 2)))
    assert event_axis(swapped) == (
        (2, EventKind.ENTER, "2.enter"),
        (2, EventKind.EXIT, "2.exit"),
        (1, EventKind.SIGNAL, "1.signal"),
    )


def test_the_dense_view_has_a_row_per_warp_a_column_per_event_and_a_plane_per_visit():
    view = ring_view()
    assert view.cycles.shape == (2, 8, 4)
    assert view.cycles.dtype == np.int64
    assert view.roles == ("warp 0", "warp 1")
    assert view.events == ("1.enter", "1.exit", "2.signal", "3.enter", "3.exit", "4.signal", "5.enter", "5.exit")
    assert view.cycles[0, 1].tolist() == [0, 10, 40, 70]
    assert view.cycles[0, 2].tolist() == [10, 20, 50, 80]
    assert view.cycles[1, 3].tolist() == [0, 40, 70, 100]
    assert (view.cycles[0, 3:] == UNUSED).all()
    assert (view.cycles[1, 6:] == UNUSED).all()


def test_roles_name_the_rows():
    kernel = ring_kernel()
    view = dense(decode_region(ring_region(kernel), kernel), {0: "load", 1: "mma"})
    assert view.roles == ("load warp 0", "mma warp 1")


def test_a_trace_without_lanes_gives_an_empty_view():
    assert dense(Trace(KERNEL, (), 0)).cycles.shape == (0, 3, 0)


def test_a_slot_is_role_times_events_plus_event_times_iterations_plus_iteration():
    view = ring_view()
    slots = to_slots(view)
    n_evt, max_it = 8, 4
    assert slots.shape == (2 * n_evt * max_it,)
    # Warp 1, event 3.exit (column 4), third visit: cycle 70, one later in the buffer because 0 means unused.
    assert slots[(1 * n_evt + 4) * max_it + 2] == 71
    assert slots[(0 * n_evt + 0) * max_it + 0] == 1
    assert slots[(1 * n_evt + 7) * max_it + 0] == 0


def test_slots_written_and_read_again_give_the_same_view():
    view = ring_view()
    again = from_slots(to_slots(view), view.cycles.shape, view.roles, view.events)
    assert np.array_equal(again.cycles, view.cycles)
    assert (again.roles, again.events) == (view.roles, view.events)


@pytest.mark.parametrize("dtype", [np.uint32, np.int32])
def test_a_32_bit_buffer_may_wrap(dtype):
    clocks = np.array([0xFFFF_FFF0, 0xFFFF_FFFF, 5, 0], np.uint32).view(dtype)
    view = from_slots(clocks, (1, 2, 2))
    assert view.cycles.tolist() == [[[0, 15], [21, UNUSED]]]
    assert view.roles == ("role 0",)
    assert view.events == ("event 0", "event 1")


def test_the_first_slot_need_not_hold_the_earliest_clock():
    view = from_slots(np.array([5, 0xFFFF_FFF0], np.uint32), (2, 1, 1))
    assert view.cycles.ravel().tolist() == [21, 0]


def test_a_64_bit_buffer_is_read_whole():
    view = from_slots(np.array([1 << 40, (1 << 40) + (3 << 32), 0], np.int64), (1, 3, 1))
    assert view.cycles.ravel().tolist() == [0, 3 << 32, UNUSED]


def test_an_empty_buffer_has_no_records():
    assert (from_slots(np.zeros(6, np.uint32), (1, 2, 3)).cycles == UNUSED).all()


@pytest.mark.parametrize("slots", [np.zeros(5, np.uint32), np.zeros(6, np.float32), np.zeros(6, np.uint16)])
def test_a_buffer_of_another_size_or_type_is_refused(slots):
    with pytest.raises(AutostampError) as error:
        from_slots(slots, (1, 2, 3))
    assert error.value.diagnostic.code == "AS6001"


def test_a_fixed_slot_buffer_becomes_a_trace_with_the_same_events():
    log = WarpLog(0, 90, 200, [Stamp(100, 1), Stamp(130, 2), Stamp(131, 3), Stamp(140, 1), Stamp(150, 2)])
    stamped = decode_region(write_region(8, [log], SIGNATURE), KERNEL)
    by_hand = np.zeros((1, 3, 2), np.uint32)
    by_hand[0, 0], by_hand[0, 1], by_hand[0, 2, 0] = (100, 140), (130, 150), 131
    trace = trace_of(from_slots(by_hand, (1, 3, 2)), KERNEL)
    # By hand the earliest record is 0, in our lane the entry 10 cycles before it.
    shifted = [(event.cycles - 10, event.kind, event.instance, event.visit) for event in stamped.lanes[0].events]
    assert [(event.cycles, event.kind, event.instance, event.visit) for event in trace.lanes[0].events] == shifted


def test_a_fixed_slot_buffer_of_another_kernel_is_refused():
    with pytest.raises(AutostampError, match="2 events in a role, kernel trace 1 has 3") as error:
        trace_of(from_slots(np.zeros(4, np.uint32), (1, 2, 2)), KERNEL)
    assert error.value.diagnostic.code == "AS6002"
