# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from autostamp.analysis import analyse
from autostamp.analysis.early import early_signals
from autostamp.analysis.flow import explain
from autostamp.analysis.latencies import UNKNOWN
from autostamp.model.flow import Arrow, EarlySignals, End
from autostamp.model.manifest import Barrier
from autostamp.model.timeline import Slice
from tests.simulator.hand_made import hold, stall, timeline_of, warp_of
from tests.simulator.lanes import lane, trace_of
from tests.simulator.ring_flow import constant_ring, ring_arrows
from tests.simulator.tables import COMMIT, RELEASE, kernel_trace, ring_kernel, signal_row, wait_row

SIGNALS = {number: signal_row(number, number, role="mma", side="full") for number in (5, 6, 7)}


def arrow(cycles: int, warp: int = 0, instance: int = 5, visit: int = 0, is_async: bool = False) -> Arrow:
    return Arrow(End(warp, instance, visit, cycles), End(9, 1, visit, cycles), 1, "full", -1, visit, (), is_async)


def early_of(cycles: int, *slices: Slice) -> int:
    timeline = timeline_of(warp_of(0, "mma", slices, end=1000))
    ((found),) = early_signals(timeline, [arrow(cycles)], SIGNALS)
    assert (found.instance, found.role, found.arrows) == (5, "mma", 1)
    return found.early


def test_a_signal_inside_a_hold_is_early():
    assert early_of(50, hold(10, 90)) == 1
    assert early_of(11, hold(10, 90)) == 1
    assert early_of(89, hold(10, 90)) == 1


def test_a_signal_that_ends_or_precedes_a_hold_is_not():
    assert early_of(90, hold(10, 90, signal=5)) == 0
    assert early_of(10, hold(10, 90)) == 0
    assert early_of(95, hold(10, 90)) == 0
    assert early_of(5, hold(10, 90)) == 0


def test_a_signal_between_two_holds_that_touch_is_not_early():
    assert early_of(50, hold(10, 50), hold(50, 90)) == 0


def test_a_signal_that_ends_one_hold_within_another_is_early():
    # A stage of V is released while one of K is held.
    assert early_of(50, hold(10, 50, signal=5), hold(30, 90, 2)) == 1


def test_a_long_hold_counts_behind_shorter_ones_that_began_later():
    assert early_of(80, hold(10, 90), hold(20, 30), hold(40, 50)) == 1


def test_a_stall_is_no_work():
    assert early_of(50, stall(10, 90)) == 0


def test_arrows_count_by_signal_and_asynchronous_ones_not_at_all():
    timeline = timeline_of(
        warp_of(0, "mma", [hold(0, 100)], end=200), warp_of(1, "mma", [], end=200), warp_of(2, "load", [], end=200)
    )
    arrows = [
        arrow(50),
        arrow(150, visit=1),
        arrow(50, warp=1),
        arrow(50, warp=2, instance=5),
        arrow(60, instance=6),
        arrow(70, instance=7, is_async=True),
        arrow(70, warp=44),
    ]
    assert early_signals(timeline, arrows, SIGNALS) == (
        EarlySignals(5, "load", 0, 1),
        EarlySignals(5, "mma", 1, 3),
        EarlySignals(6, "mma", 1, 1),
    )


def test_a_warp_that_begins_to_wait_is_not_in_the_middle_of_work():
    """Warp 0 holds a stage of K from 0 to 100, arrives on a barrier at 30 and meets warp 1 there: it is the last, at 50."""
    rows = (
        wait_row(1, 1, 2, role="mma", side="named", stage=1, signals=("named",)),
        signal_row(2, 3, side="named", stage=1),
    )
    kernel = kernel_trace((*rows,), (Barrier(1, "turn", "", 0, True),))
    trace = trace_of(kernel, lane(kernel, 0, (30, 3), (50, 1), (70, 2)), lane(kernel, 1, (10, 1), (70, 2)))
    meeting, signal = (
        Arrow(End(0, number, 0, at), End(1, 1, 0, 70), 1, "named", -1, 0) for number, at in ((1, 50), (2, 30))
    )
    assert explain(trace, analyse(trace, latencies=UNKNOWN), UNKNOWN).arrows[0].signal == meeting.signal
    timeline = timeline_of(warp_of(0, "mma", [hold(0, 100)], end=200), warp_of(1, "mma", [], end=200))
    instances = {row.number: row for row in rows}
    # The signal at 30, had it been the last, would have left from within the work; the wait's own arrival does not count.
    assert early_signals(timeline, [meeting], instances) == ()
    assert early_signals(timeline, [signal], instances) == (EarlySignals(2, "mma", 1, 1),)


def test_signals_of_the_ring_kernel_end_their_own_work():
    _, timeline = constant_ring(load=10, compute=30)
    rows = {row.number: row for row in ring_kernel().instances}
    # Eight commits; releases of the last two uses allow no acquire.
    assert early_signals(timeline, ring_arrows(timeline, stages=2), rows) == (
        EarlySignals(COMMIT, "load", 0, 8),
        EarlySignals(RELEASE, "mma", 0, 6),
    )


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=10),
    st.lists(st.integers(0, 50), min_size=1, max_size=10),
)
def test_early_is_inside_any_hold(spans, cycles):
    holds = [hold(min(span), max(span)) for span in spans]
    timeline = timeline_of(warp_of(0, "mma", holds, end=60))
    (found,) = early_signals(timeline, [arrow(at) for at in cycles], SIGNALS)
    assert found.early == sum(any(part.start < at < part.end for part in holds) for at in cycles)
