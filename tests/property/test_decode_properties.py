# SPDX-License-Identifier: Apache-2.0
"""What holds of decoding and analysing for any schedule: wraparound, merging, loss, damage, and where time goes."""

from __future__ import annotations

import io
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autostamp.analysis import analyse
from autostamp.analysis.spans import length, overlap, union
from autostamp.diagnostics import AutostampError
from autostamp.model.manifest import Barrier, EventKind, Payload
from autostamp.model.run import MachineFacts
from autostamp.model.timeline import Slice, State
from autostamp.report.perfetto import rows_of
from autostamp.report.summary import as_text
from autostamp.runtime.decode import check, decode_region, visits
from autostamp.runtime.slots import UNUSED, dense, from_slots, to_slots, trace_of
from autostamp.runtime.store import load_run, write_run
from tests.simulator.kernel import Simulation
from tests.simulator.region import Stamp, WarpLog, write_region
from tests.simulator.tables import (
    NO_PASS,
    SIGNATURE,
    consumer,
    kernel_trace,
    producer,
    ring_kernel,
    ring_manifest,
    signal_row,
    wait_row,
)

# How long one example takes says nothing here, and a busy machine would make the limit of 200 ms fail.
settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")

CAPACITY = 32
KERNEL = kernel_trace(
    (wait_row(1, 1, 2, payload=Payload.STAGE), signal_row(2, 3, payload=Payload.STAGE)),
    (Barrier(1, "K", "", 4, False),),
    capacity=CAPACITY,
)
CLOCK = st.integers(0, (1 << 34) - 1)
STEP = st.one_of(st.integers(0, 500), st.integers(0, (1 << 31) - 1))
STEPS = st.lists(st.tuples(STEP, st.integers(1, 3), st.integers(0, 0xFFFF)), max_size=CAPACITY)


def stamps_after(entry: int, steps: list[tuple[int, int, int]]) -> list[Stamp]:
    stamps, clock = [], entry
    for step, event, payload in steps:
        clock += step
        stamps.append(Stamp(clock, event, payload))
    return stamps


@given(entry=CLOCK, steps=STEPS, last=STEP)
def test_clocks_come_back_whole_however_often_they_wrap(entry, steps, last):
    stamps = stamps_after(entry, steps)
    end = (stamps[-1].clock if stamps else entry) + last
    (lane,) = decode_region(write_region(CAPACITY, [WarpLog(0, entry, end, stamps)], SIGNATURE), KERNEL).lanes
    assert [event.cycles for event in lane.events] == [stamp.clock - entry for stamp in stamps]
    assert [event.payload for event in lane.events] == [stamp.payload for stamp in stamps]
    assert (lane.entry_cycles, lane.exit_cycles, lane.lost) == (0, end - entry, 0)


@given(entries=st.lists(st.integers(0, (1 << 31) - 1), min_size=1, max_size=32), base=CLOCK)
def test_lanes_keep_their_distances_and_the_first_is_at_zero(entries, base):
    logs = [
        WarpLog(warp, base + entry, base + entry + 9, [Stamp(base + entry + 4, 3)])
        for warp, entry in enumerate(entries)
    ]
    lanes = decode_region(write_region(CAPACITY, logs, SIGNATURE), KERNEL).lanes
    assert [lane.entry_cycles for lane in lanes] == [entry - min(entries) for entry in entries]
    assert all(lane.events[0].cycles - lane.entry_cycles == 4 for lane in lanes)


@given(main=STEPS, single=STEPS, entry=CLOCK)
def test_merging_keeps_every_record_and_the_order_of_each_lane(main, single, entry):
    log = WarpLog(7, entry, None, stamps_after(entry, main), stamps_after(entry, single))
    (lane,) = decode_region(write_region(CAPACITY, [log], SIGNATURE), KERNEL).lanes
    cycles = [event.cycles for event in lane.events]
    assert cycles == sorted(cycles)
    kinds = {1: EventKind.ENTER, 2: EventKind.EXIT, 3: EventKind.SIGNAL}
    # sorted() is stable, so the main lane stays in front at equal clocks.
    expected = sorted([*log.stamps, *log.single], key=lambda stamp: stamp.clock)
    assert [(event.cycles, event.kind, event.payload) for event in lane.events] == [
        (stamp.clock - entry, kinds[stamp.event], stamp.payload) for stamp in expected
    ]


@given(numbers=st.lists(st.integers(1, 5), max_size=60))
def test_visits_count_from_zero_for_every_number(numbers):
    found = visits(np.array(numbers, np.int64)).tolist()
    assert found == [numbers[:index].count(number) for index, number in enumerate(numbers)]


@given(attempts=st.integers(0, 60), capacity=st.integers(1, 40))
def test_stored_and_lost_records_make_the_attempts(attempts, capacity):
    kernel = kernel_trace(KERNEL.instances, capacity=capacity)
    stamps = [Stamp(10 * number, 3) for number in range(attempts)]
    (lane,) = decode_region(write_region(capacity, [WarpLog(0, 0, 1000, stamps)], SIGNATURE), kernel).lanes
    assert len(lane.events) == min(attempts, capacity)
    assert len(lane.events) + lane.lost == attempts


@given(steps=STEPS.filter(bool), back=st.integers(1, (1 << 31) - 1), data=st.data())
def test_a_step_backwards_is_always_noticed(steps, back, data):
    stamps = stamps_after(0, steps)
    at = data.draw(st.integers(0, len(stamps) - 1))
    before = stamps[at - 1].clock if at else 0
    stamps[at] = Stamp(before - back, 3)
    with pytest.raises(AutostampError) as error:
        decode_region(write_region(CAPACITY, [WarpLog(0, 0, 1 << 40, stamps)], SIGNATURE), KERNEL)
    assert error.value.diagnostic.code == "AS6006"


@st.composite
def rings(draw):
    """Trace of a ring kernel: any depth, lengths, entries; possibly too small a buffer."""
    stages, uses = draw(st.integers(1, 4)), draw(st.integers(0, 12))
    kernel = ring_kernel(stages, capacity=draw(st.integers(1, 40)))
    consumers = draw(st.integers(1, 3))
    entries = {warp: draw(st.integers(0, 200)) for warp in range(consumers + 1)}
    warps = {0: producer(uses, draw(st.integers(0, 50)), stages, consumers)}
    warps |= {warp: consumer(uses, draw(st.integers(0, 50)), stages) for warp in range(1, consumers + 1)}
    logs = Simulation(kernel, entries).run(warps)
    return decode_region(write_region(kernel.capacity, logs, kernel.signature), kernel)


@given(trace=rings())
def test_the_parts_of_a_warp_make_its_span_and_stalls_are_the_stamped_ones(trace):
    timeline = analyse(trace, latencies=NO_PASS)
    for lane, warp in zip(trace.lanes, timeline.warps, strict=True):
        assert min(warp.stall, warp.passed, warp.active, warp.untracked) >= 0
        assert warp.span == warp.stall + warp.passed + warp.active + warp.untracked
        stamped = {(event.instance, event.visit, event.kind): event.cycles for event in lane.events}
        for part in warp.slices:
            assert warp.start <= part.start <= part.end <= warp.end
            exit_ = stamped[part.instance, part.visit, EventKind.EXIT]
            if part.state is State.STALL:
                assert (part.start, part.end) == (stamped[part.instance, part.visit, EventKind.ENTER], exit_)
            else:
                assert part.start == exit_
                assert part.end in {event.cycles for event in lane.events if event.instance == part.signal}


@given(trace=rings())
def test_a_ring_without_loss_has_no_open_wait_and_passes_its_checks(trace):
    assert check(trace) == []
    for warp in analyse(trace, latencies=NO_PASS).warps:
        if not warp.lost:
            assert warp.open_waits == ()
            # Every use of this kernel is ended by the warp that began it, and nothing else takes time.
            assert warp.untracked == 0


@given(trace=rings())
def test_every_stall_is_in_one_site_and_every_warp_in_one_role(trace):
    timeline = analyse(trace, longest=10_000, latencies=NO_PASS)
    stalls = [part.cycles for warp in timeline.warps for part in warp.slices if part.state is State.STALL]
    assert sum(site.spread.count for site in timeline.sites) == len(stalls)
    assert sum(site.spread.total for site in timeline.sites) == sum(stalls)
    assert sorted(stalls, reverse=True) == [long.stall.cycles for long in timeline.longest]
    assert sorted(warp for role in timeline.roles for warp in role.warps) == [lane.warp for lane in trace.lanes]
    assert sum(role.span for role in timeline.roles) == sum(warp.span for warp in timeline.warps)
    assert as_text(timeline, ring_manifest(trace.kernel), MachineFacts())


@given(trace=rings())
def test_fixed_slots_hold_the_same_events(trace):
    view = dense(trace)
    again = from_slots(to_slots(view), view.cycles.shape, view.roles, view.events)
    used = view.cycles[view.cycles != UNUSED]
    first = used.min() if used.size else 0
    assert np.array_equal(again.cycles, np.where(view.cycles == UNUSED, UNUSED, view.cycles - first))
    for lane, back in zip(trace.lanes, trace_of(again, trace.kernel).lanes, strict=True):
        events = sorted((event.cycles - first, event.instance, event.kind, event.visit) for event in lane.events)
        assert sorted((event.cycles, event.instance, event.kind, event.visit) for event in back.events) == events


SPANS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)).map(sorted).map(tuple), max_size=12)


@given(first=SPANS, second=SPANS)
def test_span_arithmetic_agrees_with_sets_of_cycles(first, second):
    a = {cycle for start, end in first for cycle in range(start, end)}
    b = {cycle for start, end in second for cycle in range(start, end)}
    assert length(union(first)) == len(a)
    assert overlap(union(first), union(second)) == len(a & b)


@given(spans=SPANS)
def test_rows_are_disjoint_and_lose_nothing(spans):
    parts = [Slice(start, end, State.ACTIVE, 1, visit, 0) for visit, (start, end) in enumerate(spans)]
    rows = rows_of(parts)
    assert sorted(part.visit for row in rows for part in row) == list(range(len(parts)))
    for row in rows:
        assert all(before.end <= after.start for before, after in itertools.pairwise(row))


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    kernel = ring_kernel(capacity=16)
    path = tmp_path_factory.mktemp("run")
    logs = Simulation(kernel, {0: 0, 1: 0}).run({0: producer(3, 10), 1: consumer(3, 30)})
    write_run(path, ring_manifest(kernel), {1: write_region(16, logs, kernel.signature)}, MachineFacts(), {})
    return path, (path / "records.npz").read_bytes(), load_run(path).traces


def outcome(path):
    """The traces of a run folder, or the code that it is refused with."""
    try:
        return load_run(path).traces
    except AutostampError as error:
        return error.diagnostic.code


@settings(max_examples=200)
@given(data=st.data())
def test_damaged_records_are_refused_with_a_code_or_read_as_they_were(written, data):
    path, whole, traces = written
    damaged = bytearray(whole)
    if data.draw(st.booleans()):
        del damaged[data.draw(st.integers(0, len(whole) - 1)) :]
    else:
        damaged[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
    (path / "records.npz").write_bytes(bytes(damaged))
    assert outcome(path) in ("AS6001", "AS6002", "AS6005", "AS6006", traces)


@given(noise=st.binary(max_size=400))
def test_a_file_of_noise_is_no_records_file(written, noise):
    path, _, _ = written
    (path / "records.npz").write_bytes(noise)
    with pytest.raises(AutostampError) as error:
        load_run(path)
    assert error.value.diagnostic.code == "AS6001"


def test_savez_compressed_is_what_the_damage_tests_damage(written):
    _, whole, _ = written
    with np.load(io.BytesIO(whole)) as archive:
        assert "region_1" in archive.files
