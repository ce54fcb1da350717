# SPDX-License-Identifier: Apache-2.0
"""IKET traces: what names mean, what becomes of ranges and markers, the recorded sample, and what is refused."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from autostamp.analysis import analyse
from autostamp.diagnostics import AutostampError
from autostamp.model.manifest import EventKind
from autostamp.model.sync import Side
from autostamp.model.timeline import State
from autostamp.runtime.decode import check
from autostamp.runtime.iket import MOST, read_iket
from autostamp.runtime.iket_names import NOT_WAITS, SIGNALS, WAITS, signal_side, split_barrier, wait_side, words_of

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "tests/fixtures/iket/fa4_forward_one_cta.json.gz"
PAGE = ROOT / "docs/formats/iket.md"

NAMES = ["K.consumer_wait", "softmax", "K.release", "user_warp_lifetime"]
WAIT, SOFTMAX, RELEASE, LIFE = range(4)


def location(warp, cta=(0, 0, 0), sm=7):
    return {"ctaId": list(cta), "smId": sm, "gpcId": 0, "tpcId": 0, "warpId": warp}


def ranged(name, start, end, *locations):
    return {"rangeNameIdx": name, "startTs": start, "endTs": end, "warpLocIdxs": list(locations), "internalEvents": []}


def document(ranges=(), markers=(), lifetimes=(), locations=None, **fields):
    """One launch. Markers are (name, time, location), lifetimes (start, end, location)."""
    launch = {
        "kernelName": "attention",
        "gridId": 4,
        "ranges": list(ranges),
        "markers": [{"markerNameIdx": name, "timestamp": time, "locIdx": at, "color": 0} for name, time, at in markers],
        "warpLifetimes": [{"startTs": start, "endTs": end, "locIdx": at} for start, end, at in lifetimes],
    }
    found = {
        "meta": {"version": 1},
        "stringTable": NAMES,
        "locationTable": locations or [location(4), location(0)],
        "launches": [launch],
        "graphLaunches": {},
    }
    return found | fields


def saved(folder, content):
    path = folder / "trace.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def only(folder, content):
    (trace,) = read_iket(saved(folder, content)).traces
    return trace


def refused(folder, content, **options):
    with pytest.raises(AutostampError) as error:
        read_iket(saved(folder, content), **options)
    return error.value.diagnostic


def events(trace, warp=0):
    names = {row.number: row.kind for row in trace.kernel.instances}
    return [(event.cycles, event.kind, names[event.instance], event.visit) for event in trace.lanes[warp].events]


@pytest.mark.parametrize(
    ("name", "side"),
    [
        ("L1438_consumer_wait", Side.FULL),
        ("consumerWait", Side.FULL),
        ("L791_producer_acquire", Side.EMPTY),
        ("tma_acquire", Side.EMPTY),
        ("L919_producer_tail", Side.EMPTY),
        ("L1449_wait_group", Side.ASYNC_GROUP),
        ("L417_cp_async_bulk_wait_group", Side.ASYNC_GROUP),
        ("tma_store_wait", Side.ASYNC_GROUP),
        ("L1533_barrier", Side.NAMED),
        ("ab_wait", Side.NONE),
        ("mma_wait_ab_full", Side.FULL),
        ("cluster_wait", Side.CLUSTER),
        ("__syncthreads", Side.CTA),
        ("stall on K", Side.NONE),
        ("K.consumer_wait", Side.FULL),
        ("wait.mma_issue", None),  # the barrier's name says nothing about what is done with it
        ("tma_issue", None),
        ("cp_async", None),  # the word is async, not sync
        ("mma_main", None),
        ("barrier_init", None),
        ("barrier_arrive", None),
        ("await", None),
        ("kernel_e2e", None),
    ],
)
def test_what_a_range_is_comes_from_its_words(name, side):
    assert wait_side(name) == side


@pytest.mark.parametrize(
    ("name", "side"),
    [
        ("L939_producer_commit", Side.FULL),
        ("L1450_consumer_release", Side.EMPTY),
        ("L1549_barrier_arrive", Side.NAMED),
        ("K.full_arrive", Side.FULL),
        ("checkpoint", Side.NONE),
    ],
)
def test_what_a_marker_arrives_on_comes_from_its_words(name, side):
    assert signal_side(name) == side


def test_words_and_barriers_of_names():
    assert words_of("L1438_consumerWait-TMA") == {"l", "consumer", "wait", "tma"}
    assert split_barrier("K.consumer_wait") == ("K", "consumer_wait")
    assert split_barrier("softmax") == ("", "softmax")
    assert split_barrier(".softmax") == ("", ".softmax")
    assert split_barrier("softmax.") == ("", "softmax.")


def test_the_page_shows_these_tables():
    page = PAGE.read_text(encoding="utf-8")
    for table in (WAITS, SIGNALS):
        for words, _ in table:
            assert any(set(line.split("`")[1].split()) == words for line in page.splitlines() if line.startswith("| `"))
    assert all(f"`{word}`" in page for word in NOT_WAITS)


def test_waits_are_stalls_other_ranges_are_work_and_markers_signals(tmp_path):
    trace = only(
        tmp_path,
        document(
            [ranged(WAIT, 1128, 1256, 0), ranged(SOFTMAX, 1256, 1320, 0, 0), ranged(WAIT, 1352, 1384, 0)],
            [(RELEASE, 1320, 0)],
            [(1000, 1480, 0)],
        ),
    )
    assert trace.unit == "ns"
    assert events(trace) == [
        (128, EventKind.ENTER, "wait", 0),
        (256, EventKind.EXIT, "wait", 0),
        (256, EventKind.BEGIN, "work", 0),
        (320, EventKind.END, "work", 0),
        (320, EventKind.SIGNAL, "signal", 0),
        (352, EventKind.ENTER, "wait", 1),
        (384, EventKind.EXIT, "wait", 1),
    ]
    (warp,) = analyse(trace).warps
    assert (warp.warp, warp.start, warp.end) == (4, 0, 480)
    waits = [(part.start, part.end) for part in warp.slices if part.state is not State.ACTIVE]
    work = [(part.start, part.end, part.signal) for part in warp.slices if part.state is State.ACTIVE]
    assert waits == [(128, 256), (352, 384)]
    # The barrier K is named, so there is a hold from its wait to its release beside the work region.
    assert sorted(end for _, end, signal in work if signal) == [320]
    assert [(start, end) for start, end, signal in work if not signal] == [(256, 320)]
    assert warp.active == 64
    assert warp.untracked == 480 - 128 - 32 - 64


def test_times_since_the_earliest_and_the_timers_own_are_kept(tmp_path):
    trace = only(tmp_path, document([ranged(WAIT, 1128, 1256, 0)], [], [(1000, 1480, 0), (900, 950, 1)]))
    first, second = trace.lanes
    assert [(lane.warp, lane.smid) for lane in trace.lanes] == [(0, 7), (4, 7)]
    assert (first.entry_cycles, first.exit_cycles, first.entry_ns, first.exit_ns) == (0, 50, 900, 950)
    assert (second.entry_cycles, second.exit_cycles) == (100, 580)
    assert trace.sm_mhz == 0


def test_a_warp_without_a_lifetime_has_no_entry(tmp_path):
    (lane,) = only(tmp_path, document([ranged(WAIT, 1128, 1256, 0)])).lanes
    assert (lane.entry_cycles, lane.exit_cycles, lane.entry_ns) == (-1, -1, 0)


def test_barriers_are_those_that_names_name(tmp_path):
    trace = only(tmp_path, document([ranged(WAIT, 0, 32, 0), ranged(SOFTMAX, 32, 64, 0)], [(RELEASE, 64, 0)]))
    (barrier,) = trace.kernel.barriers
    assert (barrier.label, barrier.is_inferred) == ("K", True)
    assert {(row.kind, row.side, row.barrier) for row in trace.kernel.instances} == {
        ("wait", "full", 1),
        ("work", "", 0),
        ("signal", "empty", 1),
    }
    assert not any("no arrows" in note for note in trace.warnings)


def test_at_one_time_a_start_stands_before_its_end_and_a_marker_between_what_ends_and_what_starts(tmp_path):
    trace = only(
        tmp_path,
        document(
            [ranged(WAIT, 0, 32, 0), ranged(WAIT, 32, 32, 0), ranged(WAIT, 32, 64, 0)],
            [(RELEASE, 32, 0), (RELEASE, 64, 0), (RELEASE, 0, 0)],
        ),
    )
    assert check(trace) == []
    assert [(cycles, str(kind), visit) for cycles, kind, _, visit in events(trace)] == [
        (0, "signal", 0),
        (0, "enter", 0),
        (32, "exit", 0),
        (32, "enter", 1),
        (32, "exit", 1),
        (32, "signal", 1),
        (32, "enter", 2),
        (64, "exit", 2),
        (64, "signal", 2),
    ]


def test_nested_ranges_are_both_work_and_counted_once(tmp_path):
    trace = only(
        tmp_path,
        document([ranged(LIFE, 0, 320, 0), ranged(SOFTMAX, 64, 128, 0), ranged(WAIT, 128, 192, 0)]),
    )
    (warp,) = analyse(trace).warps
    assert [(part.start, part.end) for part in warp.slices if part.state is State.ACTIVE] == [(0, 320), (64, 128)]
    # The wait within the outermost range is a wait.
    assert warp.active == 320 - 64


def test_every_cta_of_every_launch_is_a_trace_of_its_own(tmp_path):
    places = [location(0), location(0, (1, 0, 0), 8)]
    content = document([ranged(WAIT, 64, 96, 1), ranged(WAIT, 0, 32, 0)], locations=places)
    graph = dict(content["launches"][0], kernelName="second")
    run = read_iket(saved(tmp_path, content | {"graphLaunches": {"graph_exec_1:0": [graph]}}))
    assert [(trace.kernel.number, trace.kernel.kernel, trace.kernel.block) for trace in run.traces] == [
        (1, "attention", (0, 0, 0)),
        (2, "attention", (1, 0, 0)),
        (3, "second", (0, 0, 0)),
        (4, "second", (1, 0, 0)),
    ]
    assert [trace.lanes[0].smid for trace in run.traces] == [7, 8, 7, 8]
    assert run.manifest.traces == tuple(trace.kernel for trace in run.traces)
    (one,) = read_iket(tmp_path / "trace.json", trace=3).traces
    assert one == run.traces[2]
    found = refused(tmp_path, content, trace=3)
    assert found.code == "AS7002"
    assert "2 CTAs" in found.message


def test_a_large_grid_is_cut_and_it_is_said(tmp_path):
    places = [location(0, (block, 0, 0)) for block in range(MOST + 3)]
    content = document([ranged(WAIT, 0, 32, block) for block in range(MOST + 3)], locations=places)
    run = read_iket(saved(tmp_path, content))
    assert len(run.traces) == MOST
    assert all(any(note.startswith(f"3 of {MOST + 3} CTAs") for note in trace.warnings) for trace in run.traces)
    (last,) = read_iket(tmp_path / "trace.json", trace=MOST + 3).traces
    assert last.kernel.block == (MOST + 2, 0, 0)


def test_what_cannot_be_drawn_is_said(tmp_path):
    content = document([ranged(WAIT, 0, 32, 0), ranged(SOFTMAX, 0, 96, 0, 1)], meta={"version": 2})
    notes = only(tmp_path, content).warnings
    assert any("1 ranges that one warp began and another ended" in note for note in notes)
    assert any("version 2" in note for note in notes)
    assert any("steps of 32" in note for note in notes)
    assert any("these ranges are waits: K.consumer_wait; and these are work: none" in note for note in notes)


@pytest.mark.parametrize(
    ("content", "place", "says"),
    [
        ("", "", "Input data was truncated"),
        ("[]", "", "Expected `object`"),
        ({"launches": []}, "", "missing required field `stringTable`"),
        (document(stringTable=[1]), "$.stringTable[0]", "Expected `str`"),
        (document(launches=[{"ranges": []}]), "$.launches[0]", "kernelName"),
        (document(), "$.launches", "no launch has a range or a marker"),
        (document(launches=[]), "$.launches", "no launch"),
        (document([ranged(9, 0, 1, 0)]), "$.launches[0].ranges[0].rangeNameIdx", "no name 9: the table has 4"),
        (document([ranged(0, 0, 1, 5)]), "$.launches[0].ranges[0].warpLocIdxs", "no location 5: the table has 2"),
        (document([ranged(0, 0, 1)]), "$.launches[0].ranges[0].warpLocIdxs", "length >= 1"),
        (document([ranged(0, 64, 32, 0)]), "$.launches[0].ranges[0].endTs", "32 ns before it starts"),
        (document([ranged(0, -1, 32, 0)]), "$.launches[0].ranges[0].startTs", ">= 0"),
        (document([ranged(0, 0.5, 32, 0)]), "$.launches[0].ranges[0].startTs", "Expected `int`"),
        (document([], [(8, 0, 0)]), "$.launches[0].markers[0].markerNameIdx", "no name 8"),
        (document([], [(2, 0, 3)]), "$.launches[0].markers[0].locIdx", "no location 3"),
        (document([ranged(0, 0, 1, 0)], [], [(0, 9, 4)]), "$.launches[0].warpLifetimes[0].locIdx", "no location 4"),
        (document([ranged(0, 0, 1, 0)], [], [(9, 0, 0)]), "$.launches[0].warpLifetimes[0].endTs", "9 ns before"),
        (
            document([ranged(0, 0, 1, 0), ranged(0, 2, 3, 1)], locations=[location(0), location(0, sm=9)]),
            "$.launches[0].ranges[1].warpLocIdxs",
            "two SMs",
        ),
    ],
)
def test_a_trace_that_is_wrong_is_refused_with_its_place(tmp_path, content, place, says):
    found = refused(tmp_path, content)
    assert found.code == "AS6014"
    assert place in found.message
    assert says in found.message


def test_files_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(AutostampError) as error:
        read_iket(tmp_path / "no.json")
    assert error.value.diagnostic.code == "AS9002"
    path = tmp_path / "cut.json.gz"
    whole = gzip.compress(json.dumps(document()).encode())
    for data in (whole[:-20], whole[:12] + b"noise"):
        path.write_bytes(data)
        with pytest.raises(AutostampError) as error:
            read_iket(path)
        assert error.value.diagnostic.code == "AS6014"


def sample():
    return json.loads(gzip.decompress(SAMPLE.read_bytes()))


def test_the_recorded_sample_keeps_every_range_and_marker():
    raw = sample()
    (launch,) = raw["launches"]
    (trace,) = read_iket(SAMPLE).traces
    assert check(trace) == []
    assert [lane.warp for lane in trace.lanes] == list(range(12))
    zero = min(life["startTs"] for life in launch["warpLifetimes"])
    warps = [entry["warpId"] for entry in raw["locationTable"]]
    expected = Counter((warps[mark["locIdx"]], mark["timestamp"] - zero) for mark in launch["markers"])
    found = Counter(
        (lane.warp, event.cycles) for lane in trace.lanes for event in lane.events if event.kind is EventKind.SIGNAL
    )
    assert found == expected
    stalls = Counter(
        (warps[entry["warpLocIdxs"][0]], entry["startTs"] - zero, entry["endTs"] - zero) for entry in launch["ranges"]
    )
    drawn = Counter(
        (warp.warp, part.start, part.end)
        for warp in analyse(trace).warps
        for part in warp.slices
        if part.state is not State.ACTIVE
    )
    assert drawn == stalls  # all its ranges stand around waits
    assert any("steps of 32" in note for note in trace.warnings)
    assert any("no arrows" in note for note in trace.warnings)


def test_the_recorded_sample_waits_once_for_every_block_of_keys():
    """4096 keys in blocks of 128: 32 waits for K and for V by every mma warp, the first and the last outside the main loop."""
    (trace,) = read_iket(SAMPLE).traces
    full = {row.number for row in trace.kernel.instances if row.side == "full" and row.kind == "wait"}
    for lane in trace.lanes[4:]:
        waits = Counter(
            event.instance for event in lane.events if event.kind is EventKind.ENTER and event.instance in full
        )
        assert sorted(waits.values()) == [1, 1, 1, 31, 31]  # Q, first K, last V; K and V in the loop
    (load,) = [lane for lane in trace.lanes if lane.warp == 0]
    commits = sum(event.kind is EventKind.SIGNAL for event in load.events)
    assert commits == 64
