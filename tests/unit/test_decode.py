# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest

from autostamp.diagnostics import AutostampError
from autostamp.model.manifest import EventKind, Payload
from autostamp.model.trace import Event, Lane, Trace
from autostamp.runtime.decode import check, decode_region, signature_of, visits
from autostamp.runtime.layout import RELEASED, WARPS, region_bytes
from tests.simulator.region import Stamp, WarpLog, write_header, write_region
from tests.simulator.tables import SIGNATURE, kernel_trace, ring_kernel, ring_region, signal_row, wait_row

ENTER, EXIT, SIGNAL = EventKind.ENTER, EventKind.EXIT, EventKind.SIGNAL
WRAP = 1 << 32


def small_kernel(capacity=8, **fields):
    """Instance 1 waits with events 1 and 2, instance 2 signals with event 3."""
    rows = (wait_row(1, 1, 2), signal_row(2, 3, payload=Payload.STAGE))
    return kernel_trace(rows, capacity=capacity, **fields)


def decode(*logs: WarpLog, capacity=8) -> Trace:
    return decode_region(write_region(capacity, logs, SIGNATURE), small_kernel(capacity))


def cycles(lane: Lane) -> list[int]:
    return [event.cycles for event in lane.events]


def code_of(error: pytest.ExceptionInfo[AutostampError]) -> str:
    return error.value.diagnostic.code


def test_a_zeroed_region_has_no_lanes():
    trace = decode()
    assert trace.lanes == ()
    assert trace.sm_mhz == 0
    assert trace.warnings == ()


def test_the_ring_kernel_decodes_to_its_schedule():
    kernel = ring_kernel()
    producer, consumer = decode_region(ring_region(kernel), kernel).lanes
    acquires = [(0, 0), (10, 10), (20, 40), (50, 70)]
    commits = [10, 20, 50, 80]
    expected = []
    for use, ((enter, exit_), commit) in enumerate(zip(acquires, commits, strict=True)):
        expected += [
            Event(enter, ENTER, 1, use % 2, use),
            Event(exit_, EXIT, 1, 0, use),
            Event(commit, SIGNAL, 2, use % 2, use),
        ]
    assert list(producer.events) == expected
    assert [event.cycles for event in consumer.events if event.kind is SIGNAL] == [40, 70, 100, 130]
    assert (producer.warp, producer.entry_cycles, producer.exit_cycles, producer.lost) == (0, 0, 80, 0)
    assert (consumer.warp, consumer.entry_cycles, consumer.exit_cycles, consumer.lost) == (1, 0, 130, 0)


def test_header_fields_reach_the_lane():
    log = WarpLog(5, 100, 400, [Stamp(150, 3, 0xBEEF)], entry_ns=7_000, exit_ns=7_150, smid=131)
    (lane,) = decode(log).lanes
    assert (lane.warp, lane.smid) == (5, 131)
    assert (lane.entry_ns, lane.exit_ns) == (7_000, 7_150)
    assert lane.events == (Event(50, SIGNAL, 2, 0xBEEF, 0),)


def test_lanes_share_one_axis_that_starts_at_the_earliest_entry():
    late = WarpLog(0, 1_000, 1_300, [Stamp(1_100, 3)])
    early = WarpLog(1, 900, 1_200, [Stamp(950, 3)])
    first, second = decode(late, early).lanes
    assert (first.entry_cycles, cycles(first), first.exit_cycles) == (100, [200], 400)
    assert (second.entry_cycles, cycles(second), second.exit_cycles) == (0, [50], 300)


def test_entries_on_both_sides_of_a_clock_wrap_keep_their_order():
    before = WarpLog(0, WRAP - 10, WRAP + 90, [Stamp(WRAP + 5, 3)])
    after = WarpLog(1, WRAP + 20, WRAP + 60, [Stamp(WRAP + 30, 3)])
    for logs in ((before, after), (WarpLog(0, *_times(after)), WarpLog(1, *_times(before)))):
        lanes = sorted(decode(*logs).lanes, key=lambda lane: lane.entry_cycles)
        assert [(lane.entry_cycles, cycles(lane), lane.exit_cycles) for lane in lanes] == [
            (0, [15], 100),
            (30, [40], 70),
        ]


def _times(log: WarpLog) -> tuple[int, int | None, list[Stamp]]:
    return log.entry, log.exit, log.stamps


def test_a_lane_longer_than_the_clock_is_unwrapped():
    step = 1 << 30
    stamps = [Stamp(5 + step * (number + 1), 3) for number in range(7)]
    (lane,) = decode(WarpLog(0, 5, 5 + 8 * step, stamps)).lanes
    assert cycles(lane) == [step * (number + 1) for number in range(7)]
    assert lane.exit_cycles == 8 * step == 2 * WRAP


def test_single_thread_records_are_merged_in_clock_order_with_visits_over_both():
    log = WarpLog(2, 0, 100, [Stamp(10, 1), Stamp(40, 2), Stamp(60, 3)], single=[Stamp(20, 3, 7), Stamp(60, 3, 8)])
    (lane,) = decode(log).lanes
    # At 60 the main lane's record comes first.
    assert lane.events == (
        Event(10, ENTER, 1, 0, 0),
        Event(20, SIGNAL, 2, 7, 0),
        Event(40, EXIT, 1, 0, 0),
        Event(60, SIGNAL, 2, 0, 1),
        Event(60, SIGNAL, 2, 8, 2),
    )


def test_a_single_thread_lane_that_was_not_released_is_ignored_beside_a_released_one():
    log = WarpLog(0, 0, 100, [Stamp(10, 3)], single=[Stamp(20, 3)])
    region = bytearray(write_region(8, [log], SIGNATURE))
    write_header(region, 8, WARPS, {"state": 0})
    (lane,) = decode_region(np.frombuffer(bytes(region), np.uint8), small_kernel()).lanes
    assert cycles(lane) == [10]


def test_a_single_thread_lane_without_its_main_lane_is_said_to_be_left_out():
    region = bytearray(write_region(8, [WarpLog(0, 0, 100)], SIGNATURE))
    write_header(region, 8, WARPS + 3, {"state": RELEASED, "remaining": 64})
    trace = decode_region(np.frombuffer(bytes(region), np.uint8), small_kernel())
    assert [lane.warp for lane in trace.lanes] == [0]
    assert "warp 3" in trace.warnings[0]


@pytest.mark.parametrize(("attempts", "kept", "lost"), [(3, 3, 0), (4, 4, 0), (5, 4, 1), (9, 4, 5)])
def test_records_past_the_capacity_are_counted_as_lost(attempts, kept, lost):
    (lane,) = decode(WarpLog(0, 0, 1_000, [Stamp(10 * n, 3) for n in range(attempts)]), capacity=4).lanes
    assert (len(lane.events), lane.lost, lane.is_lossy) == (kept, lost, lost > 0)


def test_lost_counts_both_lanes_of_a_warp():
    log = WarpLog(0, 0, 1_000, [Stamp(n, 3) for n in range(5)], single=[Stamp(n, 3) for n in range(7)])
    (lane,) = decode(log, capacity=4).lanes
    assert (len(lane.events), lane.lost) == (8, 4)


def test_a_lane_that_was_never_released_keeps_its_prefix_and_warns():
    trace = decode(WarpLog(3, 100, None, [Stamp(110, 1), Stamp(120, 2), Stamp(130, 1)], single=[Stamp(125, 3)]))
    (lane,) = trace.lanes
    assert cycles(lane) == [10, 20, 25, 30]
    assert (lane.exit_cycles, lane.exit_ns, lane.lost) == (-1, 0, 0)
    assert trace.sm_mhz == 0
    assert len(trace.warnings) == 1
    assert "warp 3" in trace.warnings[0]
    assert "4 records" in trace.warnings[0]


def test_a_full_lane_that_was_never_released_keeps_all_its_records():
    (lane,) = decode(WarpLog(0, 0, None, [Stamp(n, 3) for n in range(9)]), capacity=4).lanes
    assert cycles(lane) == [0, 1, 2, 3]


def test_a_hang_in_a_later_launch_does_not_show_records_of_the_one_before():
    # Launch 1 left four records; launch 2 began at 5000, wrote two over them and hung.
    stamps = [Stamp(5_010, 1), Stamp(5_020, 2), Stamp(130, 1), Stamp(140, 2)]
    log = WarpLog(0, 5_000, None, stamps, single=[Stamp(120, 3)])
    (lane,) = decode(log).lanes
    assert cycles(lane) == [10, 20]


def test_a_clock_that_goes_backwards_is_refused():
    with pytest.raises(AutostampError, match="lane 4: the clock of record 2 is earlier than that of record 1") as error:
        decode(WarpLog(4, 0, 100, [Stamp(10, 3), Stamp(30, 3), Stamp(29, 3)]))
    assert code_of(error) == "AS6006"


def test_a_record_before_the_entry_is_refused():
    with pytest.raises(AutostampError, match="lane's entry") as error:
        decode(WarpLog(4, 50, 100, [Stamp(40, 3)]))
    assert code_of(error) == "AS6006"


def test_a_backwards_clock_in_a_single_thread_lane_names_that_lane():
    with pytest.raises(AutostampError, match=r"lane 4 \(single thread\)"):
        decode(WarpLog(4, 0, 100, single=[Stamp(30, 3), Stamp(29, 3)]))


def test_a_release_before_the_last_record_is_refused():
    with pytest.raises(AutostampError, match="release") as error:
        decode(WarpLog(0, 0, 20, [Stamp(30, 3)]))
    assert code_of(error) == "AS6006"


def test_after_a_lossy_lane_the_gap_to_the_release_may_be_long():
    gap = (1 << 31) + 7
    (lane,) = decode(WarpLog(0, 0, 3 + gap, [Stamp(n, 3) for n in range(5)]), capacity=4).lanes
    assert lane.exit_cycles == 3 + gap


@pytest.mark.parametrize("remaining", [8 * 8 + 8, 13])
def test_an_impossible_cursor_is_refused(remaining):
    region = bytearray(write_region(8, [WarpLog(0, 0, 100)], SIGNATURE))
    write_header(region, 8, 0, {"remaining": remaining})
    with pytest.raises(AutostampError, match=f"{remaining} bytes") as error:
        decode_region(np.frombuffer(bytes(region), np.uint8), small_kernel())
    assert code_of(error) == "AS6006"


@pytest.mark.parametrize("event", [4, 999, 0])
def test_an_event_that_the_table_does_not_have_is_refused(event):
    with pytest.raises(AutostampError, match=rf"event {event} is not in the manifest \(lane 6, record 1\)") as error:
        decode(WarpLog(6, 0, 100, [Stamp(10, 3), Stamp(20, event)]))
    assert code_of(error) == "AS6005"


def test_two_stamps_with_one_event_number_are_refused():
    kernel = kernel_trace((wait_row(1, 1, 2), signal_row(2, 2)), capacity=8)
    with pytest.raises(AutostampError, match="event 2 of instance 2") as error:
        decode_region(write_region(8, [WarpLog(0, 0, 9)], SIGNATURE), kernel)
    assert code_of(error) == "AS6002"


def test_records_of_another_compilation_are_refused():
    region = write_region(8, [WarpLog(0, 0, 100)], signature=0x1234)
    with pytest.raises(AutostampError, match="0x00001234") as error:
        decode_region(region, small_kernel())
    assert code_of(error) == "AS6002"


def test_the_signature_is_that_of_released_lanes():
    region = write_region(8, [WarpLog(0, 0, None), WarpLog(1, 0, 100)], signature=77)
    assert signature_of(region, 8) == 77
    assert signature_of(write_region(8, [WarpLog(0, 0, None)], signature=77), 8) == 0


def test_lanes_of_two_compilations_in_one_region_are_refused():
    region = bytearray(write_region(8, [WarpLog(0, 0, 100), WarpLog(1, 0, 100)], signature=1))
    write_header(region, 8, 1, {"signature": 2})
    with pytest.raises(AutostampError, match="several compilations") as error:
        signature_of(np.frombuffer(bytes(region), np.uint8), 8)
    assert code_of(error) == "AS6002"


@pytest.mark.parametrize("region", [np.zeros(region_bytes(8) - 1, np.uint8), np.zeros(region_bytes(8) // 4, np.uint32)])
def test_a_region_of_the_wrong_size_or_type_is_refused(region):
    with pytest.raises(AutostampError) as error:
        decode_region(region, small_kernel())
    assert code_of(error) == "AS6001"


def test_the_region_may_be_read_only_and_strided():
    log = WarpLog(0, 0, 100, [Stamp(10, 3)])
    contiguous = write_region(8, [log], SIGNATURE)
    strided = np.zeros((contiguous.size, 2), np.uint8)
    strided[:, 0] = contiguous
    assert decode_region(strided[:, 0], small_kernel()) == decode_region(contiguous, small_kernel())


def test_the_sm_clock_is_the_median_over_lanes_whose_timer_moved():
    # 1800 cycles in 1000 ns are 1800 MHz; 1600 and 2000 beside it; one lane too short for the timer to tick.
    logs = [
        WarpLog(0, 0, 1_600, entry_ns=0, exit_ns=1_000),
        WarpLog(1, 0, 1_800, entry_ns=0, exit_ns=1_000),
        WarpLog(2, 0, 2_000, entry_ns=0, exit_ns=1_000),
        WarpLog(3, 0, 5, entry_ns=40, exit_ns=40),
    ]
    assert decode(*logs).sm_mhz == 1_800


def test_a_lane_of_100_000_records_decodes():
    count = 100_000
    stamps = [Stamp(10 * number, 1 + number % 2) for number in range(count)]
    (lane,) = decode(WarpLog(0, 0, 10 * count, stamps), capacity=count).lanes
    assert len(lane.events) == count
    assert lane.events[-1] == Event(10 * (count - 1), EXIT, 1, 0, count // 2 - 1)


def test_visits_counts_earlier_occurrences():
    assert visits(np.array([7, 3, 7, 7, 3])).tolist() == [0, 0, 1, 2, 1]
    assert visits(np.array([], np.int64)).tolist() == []


def lane_of(*events: Event, lost=0) -> Lane:
    return Lane(0, 0, events, lost, 0, 100, 0, 0)


def findings(lane: Lane) -> list[str]:
    return [finding.message for finding in check(Trace(small_kernel(), (lane,), 0))]


def test_check_passes_a_whole_lane():
    kernel = ring_kernel()
    assert check(decode_region(ring_region(kernel), kernel)) == []


def test_check_finds_an_enter_without_its_exit_unless_records_were_lost():
    events = (Event(0, ENTER, 1, 0, 0), Event(5, EXIT, 1, 0, 0), Event(9, ENTER, 1, 0, 1))
    assert findings(lane_of(*events)) == ["lane 0: instance 1 enters visit 1 and never exits it"]
    assert findings(lane_of(*events, lost=1)) == []


def test_check_finds_an_exit_without_its_enter_even_where_records_were_lost():
    lane = lane_of(Event(5, EXIT, 1, 0, 0), lost=3)
    assert findings(lane) == ["lane 0: instance 1 exits visit 0 without entering it"]


def test_check_finds_a_clock_that_goes_backwards():
    lane = lane_of(Event(9, SIGNAL, 2, 0, 0), Event(8, SIGNAL, 2, 0, 1))
    assert findings(lane) == ["lane 0: instance 2 signal at cycle 8 follows cycle 9"]
