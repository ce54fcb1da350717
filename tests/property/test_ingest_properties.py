# SPDX-License-Identifier: Apache-2.0
"""What holds of slot specs and IKET traces for any trace and any damage: nothing is lost, and no input ends in a traceback."""

from __future__ import annotations

import copy
import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autostamp.analysis import analyse
from autostamp.diagnostics import AutostampError
from autostamp.model.manifest import Barrier, EventKind, Instance, Payload
from autostamp.model.sync import Kind, Side
from autostamp.model.trace import Event, Lane, Trace
from autostamp.runtime.iket import read_iket
from autostamp.runtime.spec_file import read_spec
from autostamp.runtime.spec_of_trace import encode_spec, spec_of, write_spec
from tests.simulator.tables import FILE_KEY, kernel_trace, ring_manifest

# How long one example takes says nothing here, and a busy machine would make the limit of 200 ms fail.
settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")

KINDS = st.sampled_from([Kind.WAIT, Kind.SIGNAL, Kind.WORK])
GAP = st.integers(0, 40)


@st.composite
def instances(draw):
    rows, event = [], 1
    for number in range(1, draw(st.integers(1, 6)) + 1):
        kind = draw(KINDS)
        is_signal = kind is Kind.SIGNAL
        rows.append(
            Instance(
                number=number,
                file=FILE_KEY,
                site=draw(st.integers(1, 5)),
                role=draw(st.sampled_from(["", "load", "mma"])),
                call_path=draw(st.sampled_from([(), ("kernel:1",), ("kernel:2", "helper:3")])),
                kind=kind,
                side="" if kind is Kind.WORK else draw(st.sampled_from([Side.FULL, Side.EMPTY, Side.NAMED])),
                barrier=0 if kind is Kind.WORK else draw(st.integers(0, 2)),
                payload=draw(st.sampled_from([Payload.NONE, Payload.STAGE, Payload.ADDRESS])),
                stage=draw(st.integers(-1, 2)),
                enter=0 if is_signal else event,
                exit=0 if is_signal else event + 1,
                signal=event if is_signal else 0,
                signals=draw(st.sampled_from([(), (Side.FULL,)])) if kind is Kind.WAIT else (),
            )
        )
        event += 1 if is_signal else 2
    return tuple(rows)


@st.composite
def lane(draw, warp, rows):
    """A warp that visits instances one after another, many on the clock of the one before; its last may stay open."""
    clock = entry = draw(GAP)
    visits = dict.fromkeys((row.number for row in rows), 0)
    events = []
    for row in draw(st.lists(st.sampled_from(rows), max_size=14)):
        visit, payload = visits[row.number], draw(st.integers(0, 3)) if row.payload is not Payload.NONE else 0
        visits[row.number] += 1
        clock += draw(GAP)
        if row.signal:
            events.append(Event(clock, EventKind.SIGNAL, row.number, payload, visit))
            continue
        kinds = (EventKind.BEGIN, EventKind.END) if row.kind is Kind.WORK else (EventKind.ENTER, EventKind.EXIT)
        events.append(Event(clock, kinds[0], row.number, payload, visit))
        clock += draw(GAP)
        events.append(Event(clock, kinds[1], row.number, 0, visit))
    if events and draw(st.booleans()):
        events.pop()
    leave = draw(st.sampled_from([-1, clock + draw(GAP)]))
    return Lane(warp, draw(st.integers(0, 3)), tuple(events), draw(st.integers(0, 2)), entry, leave, 5, 9)


@st.composite
def traces(draw):
    rows = draw(instances())
    warps = sorted(draw(st.sets(st.integers(0, 31), min_size=1, max_size=4)))
    lanes = [draw(lane(warp, rows)) for warp in warps]
    first = min(one.entry_cycles for one in lanes)
    lanes = [
        Lane(
            one.warp,
            one.smid,
            tuple(Event(e.cycles - first, e.kind, e.instance, e.payload, e.visit) for e in one.events),
            one.lost,
            one.entry_cycles - first,
            one.exit_cycles - first if one.exit_cycles >= 0 else -1,
            one.entry_ns,
            one.exit_ns,
        )
        for one in lanes
    ]
    barriers = tuple(
        Barrier(number, label, "", draw(st.integers(0, 3)), False) for number, label in ((1, "K"), (2, "K"))
    )
    return Trace(kernel_trace(rows, barriers), tuple(lanes), draw(st.sampled_from([0.0, 1755.0])))


@settings(max_examples=200)
@given(trace=traces().filter(lambda trace: any(one.events for one in trace.lanes)))
def test_what_is_written_as_slots_comes_back_whole(trace):
    timeline = analyse(trace)
    spec = spec_of(trace, timeline, ring_manifest(trace.kernel))
    with tempfile.TemporaryDirectory() as name:
        paths = Path(name) / "s.json", Path(name) / "s.npz"
        write_spec(*paths, spec, trace)
        back = read_spec(*paths).trace
    assert back.lanes == trace.lanes
    assert back.kernel.barriers == trace.kernel.barriers
    again = analyse(back)
    assert again.warps == timeline.warps
    assert again.never_visited == timeline.never_visited


@given(trace=traces().filter(lambda trace: any(one.events for one in trace.lanes)))
def test_every_hold_and_every_wait_stands_between_the_slots_that_the_spec_names(trace):
    """A plotter that knows slots only: for each span, the pairs of used slots are the slices, and no others."""
    timeline = analyse(trace)
    spec = spec_of(trace, timeline, ring_manifest(trace.kernel))
    cycles = np.full(spec.shape, -1, np.int64)
    column = {event.name: index for index, event in enumerate(spec.events)}
    for row, one in enumerate(trace.lanes):
        for event in one.events:
            kind = {EventKind.BEGIN: "begin", EventKind.END: "end"}.get(event.kind, str(event.kind))
            cycles[row, column[f"{event.instance}.{kind}"], event.visit] = event.cycles
    drawn = []
    for span in spec.spans:
        for it in range(spec.shape[2]) if span.its is None else span.its:
            end = it + span.offset
            if 0 <= end < spec.shape[2]:
                pair = int(cycles[span.role, span.start_evt, it]), int(cycles[span.role, span.end_evt, end])
                if min(pair) >= 0:
                    drawn.append((span.role, span.state == "active", *pair))
    expected = [
        (row, part.state == "active", part.start, part.end)
        for row, warp in enumerate(timeline.warps)
        for part in warp.slices
    ]
    assert sorted(drawn) == sorted(expected)


ONE_WAIT = Trace(
    kernel_trace(
        (
            Instance(1, FILE_KEY, 1, "mma", (), "wait", "full", 1, Payload.NONE, -1, 1, 2, 0),
            Instance(2, FILE_KEY, 4, "mma", (), "signal", "empty", 1, Payload.NONE, -1, 0, 0, 3),
        ),
        (Barrier(1, "K", "", 2, False),),
    ),
    (
        Lane(
            0,
            0,
            (
                Event(5, EventKind.ENTER, 1, 0, 0),
                Event(9, EventKind.EXIT, 1, 0, 0),
                Event(20, EventKind.SIGNAL, 2, 0, 0),
            ),
            0,
            0,
            30,
            0,
            0,
        ),
    ),
    0.0,
)
BASE = json.loads(encode_spec(spec_of(ONE_WAIT, analyse(ONE_WAIT), ring_manifest(ONE_WAIT.kernel))))
IKET = {
    "meta": {"version": 1},
    "stringTable": ["K.wait", "work", "K.release"],
    "locationTable": [{"ctaId": [0, 0, 0], "smId": 1, "warpId": 0}, {"ctaId": [1, 0, 0], "smId": 2, "warpId": 3}],
    "launches": [
        {
            "kernelName": "k",
            "ranges": [
                {"rangeNameIdx": 0, "startTs": 32, "endTs": 64, "warpLocIdxs": [0]},
                {"rangeNameIdx": 1, "startTs": 64, "endTs": 96, "warpLocIdxs": [1, 1]},
            ],
            "markers": [{"markerNameIdx": 2, "timestamp": 96, "locIdx": 0}],
            "warpLifetimes": [{"startTs": 0, "endTs": 128, "locIdx": 0}],
        }
    ],
}
JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 70),
    st.floats(allow_nan=False),
    st.text(max_size=3),
    st.just([]),
    st.just({}),
)


def places(value, path=()):
    """Every path into a JSON value."""
    found = [path] if path else []
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return found + [place for key, entry in entries for place in places(entry, (*path, key))]


@st.composite
def damaged(draw, whole):
    """A copy of `whole` with one or two entries replaced, removed, or with one more key."""
    value = copy.deepcopy(whole)
    for _ in range(draw(st.integers(1, 2))):
        path = draw(st.sampled_from(places(value)))
        inner = value
        for key in path[:-1]:
            inner = inner[key]
        if draw(st.booleans()):
            inner[path[-1]] = draw(JUNK)
        else:
            del inner[path[-1]]
    return value


def outcome(read, *paths):
    """What a reader makes of files, or the code that it refuses them with."""
    try:
        return read(*paths)
    except AutostampError as error:
        return error.diagnostic.code


@settings(max_examples=400)
@given(spec=damaged(BASE))
def test_a_damaged_spec_is_refused_with_a_code_or_read(spec):
    with tempfile.TemporaryDirectory() as name:
        path, buffer = Path(name) / "s.json", Path(name) / "s.npz"
        path.write_text(json.dumps(spec), encoding="utf-8")
        np.savez(buffer, slots=np.array([[[6], [10], [21]]]))
        found = outcome(read_spec, path, buffer)
    if isinstance(found, str):
        assert found in ("AS6010", "AS6011", "AS6012", "AS6013")
    else:
        assert all(warp.span >= warp.stall + warp.active for warp in analyse(found.trace).warps)


@settings(max_examples=400)
@given(content=damaged(IKET))
def test_a_damaged_iket_trace_is_refused_with_a_code_or_read(content):
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "trace.json"
        path.write_text(json.dumps(content), encoding="utf-8")
        found = outcome(read_iket, path)
    if isinstance(found, str):
        assert found == "AS6014"
    else:
        assert all(warp.span >= warp.stall + warp.active for trace in found.traces for warp in analyse(trace).warps)


@given(data=st.data())
def test_a_damaged_archive_is_refused_with_a_code_or_read_as_it_was(data):
    with tempfile.TemporaryDirectory() as name:
        path, buffer = Path(name) / "s.json", Path(name) / "s.npz"
        path.write_text(json.dumps(BASE), encoding="utf-8")
        np.savez_compressed(buffer, slots=np.array([[[6], [10], [21]]]), lost=np.array([0]))
        whole = bytearray(buffer.read_bytes())
        if data.draw(st.booleans()):
            del whole[data.draw(st.integers(0, len(whole) - 1)) :]
        else:
            whole[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
        buffer.write_bytes(bytes(whole))
        found = outcome(read_spec, path, buffer)
    if isinstance(found, str):
        assert found in ("AS6001", "AS6002", "AS6011", "AS6012", "AS6013")
    else:
        assert [event.cycles for event in found.trace.lanes[0].events] == [0, 4, 15]


def test_the_undamaged_ones_are_read(tmp_path):
    (tmp_path / "s.json").write_text(json.dumps(BASE), encoding="utf-8")
    np.savez(tmp_path / "s.npz", slots=np.array([[[6], [10], [21]]]))
    assert [event.cycles for event in read_spec(tmp_path / "s.json", tmp_path / "s.npz").trace.lanes[0].events] == [
        0,
        4,
        15,
    ]
    (tmp_path / "t.json").write_text(json.dumps(IKET), encoding="utf-8")
    assert len(read_iket(tmp_path / "t.json").traces) == 2


@pytest.mark.parametrize("suffix", ["json", "npz"])
def test_a_file_of_noise_is_refused(tmp_path, suffix):
    (tmp_path / "s.json").write_text(json.dumps(BASE), encoding="utf-8")
    np.savez(tmp_path / "s.npz", slots=np.array([[[6], [10], [21]]]))
    (tmp_path / f"s.{suffix}").write_bytes(b"\x00noise\xff")
    with pytest.raises(AutostampError) as error:
        read_spec(tmp_path / "s.json", tmp_path / "s.npz")
    assert error.value.diagnostic.code == {"json": "AS6010", "npz": "AS6001"}[suffix]
