# SPDX-License-Identifier: Apache-2.0
"""The protobuf is parsed back and its slices rebuilt as a trace processor does: an END closes the latest open slice."""

from __future__ import annotations

import io
from dataclasses import dataclass, replace

import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace as TraceProto
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackEvent

from autostamp.analysis import analyse
from autostamp.model.run import MachineFacts
from autostamp.model.timeline import Slice, State, Timeline, WarpTimeline
from autostamp.report.perfetto import rows_of, write_perfetto
from autostamp.runtime.decode import decode_region
from tests.simulator import ring_report
from tests.simulator.tables import ACQUIRE, COMMIT, NO_PASS, ring_kernel, ring_manifest, ring_region

MHZ = 500.0  # two nanoseconds a cycle


@dataclass
class Shown:
    """One slice or instant as a viewer shows it."""

    track: str
    start: int
    end: int
    name: str
    category: str
    args: dict[str, str | int]


@dataclass
class Viewer:
    """What a viewer makes of the bytes."""

    tracks: dict[int, object]
    slices: list[Shown]
    instants: list[Shown]
    timestamps: list[int]
    flows: list[tuple[Shown, Shown]]

    def path(self, uuid: int) -> list[str]:
        track = self.tracks[uuid]
        if not track.HasField("parent_uuid"):
            return [track.process.process_name]
        return [*self.path(track.parent_uuid), track.name]

    def on(self, track: str) -> list[tuple[int, int, str]]:
        return [(shown.start, shown.end, shown.name) for shown in self.slices if shown.track == track]


def arguments(event) -> dict[str, str | int]:
    return {
        note.name: note.string_value if note.HasField("string_value") else note.int_value
        for note in event.debug_annotations
    }


def view(data: bytes) -> Viewer:
    packets = TraceProto.FromString(data).packet
    viewer = Viewer({}, [], [], [], [])
    started: dict[int, Shown] = {}
    opened: dict[int, list[Shown]] = {}
    for packet in packets:
        assert packet.trusted_packet_sequence_id == 1
        if packet.HasField("track_descriptor"):
            viewer.tracks[packet.track_descriptor.uuid] = packet.track_descriptor
            continue
        event = packet.track_event
        viewer.timestamps.append(packet.timestamp)
        if event.type == TrackEvent.TYPE_SLICE_END:
            opened[event.track_uuid].pop().end = packet.timestamp
            continue
        name = viewer.tracks[event.track_uuid].name
        shown = Shown(name, packet.timestamp, packet.timestamp, event.name, event.categories[0], arguments(event))
        if event.type == TrackEvent.TYPE_INSTANT:
            viewer.instants.append(shown)
        else:
            stack = opened.setdefault(event.track_uuid, [])
            assert not stack, "two slices are open on one track"
            stack.append(shown)
            viewer.slices.append(shown)
        started |= dict.fromkeys(event.flow_ids, shown)
        # A flow ends only where it was seen to begin, and points at the later of both (trace processor's flow_tracker).
        viewer.flows += [(started.pop(number), shown) for number in event.terminating_flow_ids if number in started]
    assert not any(opened.values())
    return viewer


def ring_timeline(mhz=MHZ) -> Timeline:
    kernel = ring_kernel()
    return replace(analyse(decode_region(ring_region(kernel), kernel), latencies=NO_PASS), sm_mhz=mhz)


def written(*timelines: Timeline, facts=None, manifest=None, flows=()) -> bytes:
    file = io.BytesIO()
    write_perfetto(file, timelines, manifest or ring_manifest(), facts, flows)
    return file.getvalue()


def test_stalls_are_on_the_warp_and_holds_below_it_in_nanoseconds():
    viewer = view(written(ring_timeline()))
    # Producer: acquires 0-0, 10-10, 20-40, 50-70; commits 10, 20, 50, 80: two nanoseconds a cycle.
    assert viewer.on("warp 0") == [
        (0, 0, "K[0] producer_acquire"),
        (20, 20, "K[1] producer_acquire"),
        (40, 80, "K[0] producer_acquire"),
        (100, 140, "K[1] producer_acquire"),
    ]
    assert viewer.on("warp 0 holds K") == [
        (0, 20, "K[0] producer_acquire"),
        (20, 40, "K[1] producer_acquire"),
        (80, 100, "K[0] producer_acquire"),
        (140, 160, "K[1] producer_acquire"),
    ]
    assert viewer.on("warp 1")[0] == (0, 20, "K[0] consumer_wait")
    assert {shown.category for shown in viewer.slices} == {"stall", "hold"}


def test_signals_are_instants_on_the_warp():
    viewer = view(written(ring_timeline()))
    commits = [(shown.start, shown.name) for shown in viewer.instants if shown.track == "warp 0"]
    assert commits == [
        (20, "K[0] producer_commit"),
        (40, "K[1] producer_commit"),
        (100, "K[0] producer_commit"),
        (160, "K[1] producer_commit"),
    ]
    assert [shown.args["kind"] for shown in viewer.instants] == ["signal"] * 8


def test_arguments_lead_back_to_the_source_and_keep_exact_cycles():
    viewer = view(written(ring_timeline()))
    stall = next(shown for shown in viewer.slices if shown.track == "warp 0" and shown.start == 40)
    common = {
        "site": 1,
        "it": 2,
        "file": "src/ring.py",
        "line": 12,
        "instance": ACQUIRE,
        "role": "load",
        "barrier": "K",
        "stage": 0,
    }
    assert stall.args == common | {"kind": "stall", "cycles_begin": 20, "cycles_end": 40}
    hold = next(shown for shown in viewer.slices if shown.track == "warp 0 holds K" and shown.start == 80)
    ended = {"end_instance": COMMIT, "end_file": "src/ring.py", "end_line": 15}
    assert hold.args == common | {"kind": "hold", "cycles_begin": 40, "cycles_end": 50} | ended


def test_tracks_stand_under_their_role_and_process_in_hardware_order():
    viewer = view(written(ring_timeline()))
    paths = [viewer.path(uuid) for uuid in viewer.tracks]
    process = "ring CTA (0, 0, 0) SM 0"
    assert paths == [
        [process],
        [process, "load"],
        [process, "load", "warp 0"],
        [process, "load", "warp 0", "warp 0 holds K"],
        [process, "mma"],
        [process, "mma", "warp 1"],
        [process, "mma", "warp 1", "warp 1 holds K"],
    ]
    ranks = {track.name: track.sibling_order_rank for track in viewer.tracks.values()}
    assert (ranks["load"], ranks["mma"], ranks["warp 0"], ranks["warp 1"]) == (0, 1, 0, 1)
    assert all(track.child_ordering == track.EXPLICIT for track in viewer.tracks.values())


def test_time_starts_at_the_first_warp():
    timeline = ring_timeline()
    late = replace(timeline, warps=tuple(_shifted(warp, 1_000) for warp in timeline.warps))
    assert view(written(late)).timestamps == view(written(timeline)).timestamps


def _shifted(warp: WarpTimeline, by: int) -> WarpTimeline:
    return replace(
        warp,
        start=warp.start + by,
        end=warp.end + by,
        slices=tuple(replace(part, start=part.start + by, end=part.end + by) for part in warp.slices),
        signals=tuple(replace(signal, cycles=signal.cycles + by) for signal in warp.signals),
    )


def test_packets_are_in_the_order_of_time():
    timestamps = view(written(ring_timeline())).timestamps
    assert timestamps == sorted(timestamps)


def test_cycles_are_rounded_to_the_nearest_nanosecond():
    # 1500 MHz: cycle 10 is 6.67 ns, 20 is 13.33 ns, 40 is 26.67 ns.
    viewer = view(written(ring_timeline(1500.0)))
    assert viewer.on("warp 0")[2] == (13, 27, "K[0] producer_acquire")
    assert viewer.on("warp 0 holds K")[0] == (0, 7, "K[0] producer_acquire")


def test_without_a_clock_a_cycle_is_shown_as_a_nanosecond_and_the_process_says_so():
    viewer = view(written(ring_timeline(0.0)))
    assert viewer.on("warp 0")[2] == (20, 40, "K[0] producer_acquire")
    assert viewer.path(next(iter(viewer.tracks)))[0] == "ring CTA (0, 0, 0) SM 0, 1 cycle shown as 1 ns"
    assert view(written(ring_timeline(0.0), facts=MachineFacts(sm_mhz=MHZ))).on("warp 0")[2][0] == 40


def test_every_kernel_is_a_process_of_its_own():
    manifest = ring_manifest(ring_kernel(), ring_kernel(number=2, kernel="other"))
    first = ring_timeline()
    viewer = view(written(first, replace(first, trace=2, kernel="other"), manifest=manifest))
    processes = [track.process for track in viewer.tracks.values() if track.HasField("process")]
    assert [(process.pid, process.process_name) for process in processes] == [
        (1, "ring CTA (0, 0, 0) SM 0"),
        (2, "other CTA (0, 0, 0) SM 0"),
    ]
    assert len(viewer.slices) == 2 * 16


def overlapping() -> Timeline:
    """One warp that holds stages 0 and 1 of K at once (10-50 and 30-70), and 0 again from 50."""
    holds = (
        Slice(10, 50, State.ACTIVE, 3, 0, 0, 4),
        Slice(30, 70, State.ACTIVE, 3, 1, 1, 4),
        Slice(50, 90, State.ACTIVE, 3, 2, 0, 4),
    )
    warp = WarpTimeline(1, "mma", holds, 100, 0, 80, 20, 0, 0, 100)
    return replace(ring_timeline(1000.0), warps=(warp,), roles=ring_timeline().roles[1:])


def test_holds_that_overlap_get_tracks_of_their_own():
    viewer = view(written(overlapping()))
    assert viewer.on("warp 1 holds K") == [(10, 50, "K[0] consumer_wait"), (50, 90, "K[0] consumer_wait")]
    assert viewer.on("warp 1 holds K (2)") == [(30, 70, "K[1] consumer_wait")]


def test_stalls_that_overlap_get_tracks_of_their_own():
    stalls = (Slice(0, 20, State.STALL, 3, 0, 0), Slice(10, 30, State.STALL, 3, 1, 1))
    warp = WarpTimeline(1, "mma", stalls, 30, 30, 0, 0, 0, 0, 30)
    viewer = view(written(replace(overlapping(), warps=(warp,))))
    assert viewer.on("warp 1") == [(0, 20, "K[0] consumer_wait")]
    assert viewer.on("warp 1 stalls 2") == [(10, 30, "K[1] consumer_wait")]


def test_an_unknown_stage_is_left_out_of_name_and_arguments():
    stall = Slice(0, 20, State.STALL, 5, 0, -1)
    warp = WarpTimeline(1, "mma", (stall,), 20, 20, 0, 0, 0, 0, 20)
    (shown,) = view(written(replace(overlapping(), warps=(warp,)))).slices
    assert shown.name == "epilogue arrive_and_wait"
    assert "stage" not in shown.args


def test_an_instance_that_the_manifest_lacks_is_still_shown():
    manifest = replace(ring_manifest(), traces=())
    assert view(written(ring_timeline(), manifest=manifest)).on("warp 0")[2] == (40, 80, "instance 1")


def test_the_same_input_gives_the_same_bytes():
    assert written(ring_timeline()) == written(ring_timeline())


def test_rows_never_overlap_and_are_as_few_as_the_deepest_overlap():
    def part(start: int, end: int) -> Slice:
        return Slice(start, end, State.ACTIVE, 1, 0, 0)

    rows = rows_of([part(0, 10), part(5, 15), part(10, 20), part(12, 13), part(15, 15)])
    assert [[(one.start, one.end) for one in row] for row in rows] == [
        [(0, 10), (10, 20)],
        [(5, 15), (15, 15)],
        [(12, 13)],
    ]
    assert rows_of([]) == []


@pytest.mark.parametrize("mhz", [1.0, 333.3, 1755.0, 1980.0])
def test_no_clock_makes_two_slices_overlap(mhz):
    # `view` itself fails when a slice opens before the one before it on its track was closed.
    assert len(view(written(ring_timeline(mhz))).slices) == 16


def by_hand(mhz=MHZ):
    return replace(ring_report.ring_timeline(), sm_mhz=mhz)


def ends(viewer):
    """(track, ns, name) of both ends of every flow."""
    return [tuple((end.track, end.start, end.name) for end in flow) for flow in viewer.flows]


def test_a_flow_leads_from_each_arrival_to_the_end_of_its_wait():
    viewer = view(written(by_hand(), flows=[ring_report.ring_flow()]))
    # Two nanoseconds a cycle: commits at 10, 20, 50, 80 end waits at 10, 40, 70, 100; releases at 40 and 70 at once.
    full = [
        (("warp 0", start, f"K[{stage}] producer_commit"), ("warp 1", end, f"ended by K[{stage}] producer_commit"))
        for stage, start, end in ((0, 20, 20), (1, 40, 80), (0, 100, 140), (1, 160, 200))
    ]
    empty = [
        (("warp 1", at, f"K[{stage}] consumer_release"), ("warp 0", at, f"ended by K[{stage}] consumer_release"))
        for stage, at in ((0, 80), (1, 140))
    ]
    assert sorted(ends(viewer)) == sorted([*full, *empty])
    for start, end in viewer.flows:
        assert start.start <= end.start


def test_the_end_of_a_flow_lies_in_its_wait():
    viewer = view(written(by_hand(), flows=[ring_report.ring_flow()]))
    for _, end in viewer.flows:
        assert any(
            shown.track == end.track and shown.start <= end.start == shown.end and shown.category in ("stall", "pass")
            for shown in viewer.slices
        )


def test_the_end_of_a_flow_says_whose_arrival_it_was():
    viewer = view(written(by_hand(), flows=[ring_report.ring_flow()]))
    (end,) = [end for _, end in viewer.flows if (end.track, end.start) == ("warp 0", 80)]
    assert end.category == "arrow"
    assert end.args == {
        "signal_role": "mma",
        "signal_warp": 1,
        "signal_instance": 4,
        "signal_file": "src/ring.py",
        "signal_line": 34,
        "signal_cycles": 40,
        "use": 0,
        "is_async": 0,
        "is_inferred": 0,
    }


def test_a_stall_says_why_it_lasted_and_a_pass_is_no_stall():
    viewer = view(written(by_hand(), flows=[ring_report.ring_flow()]))
    waits = [shown for shown in viewer.slices if shown.track == "warp 0"]
    assert [shown.category for shown in waits] == ["pass", "pass", "stall", "stall"]
    assert [shown.args["kind"] for shown in waits] == ["pass", "pass", "stall", "stall"]
    parts = {"ending": "signal", "awaited": 20, "in_flight": 0, "handed_over": 0, "unexplained": 0}
    assert parts.items() <= waits[2].args.items()
    assert "ending" not in waits[0].args


def test_an_arrival_stamped_after_the_wait_it_ended_has_no_flow_that_points_back():
    flow = ring_report.ring_flow()
    late = flow.arrows[3]._replace(wait=flow.arrows[3].wait._replace(cycles=45))
    timeline = by_hand()
    mma = timeline.warps[1]
    slices = tuple(
        replace(part, start=45, end=45) if (part.visit, part.instance) == (2, 3) else part for part in mma.slices
    )
    timeline = replace(timeline, warps=(timeline.warps[0], replace(mma, slices=slices)))
    viewer = view(written(timeline, flows=[replace(flow, arrows=(late,))]))
    assert viewer.flows == []
    (named,) = [shown for shown in viewer.instants if shown.category == "arrow"]
    assert named.args["signal_cycles"] == 50


def test_flows_of_two_kernels_do_not_share_numbers():
    manifest = ring_manifest(ring_kernel(), ring_kernel(number=2, kernel="other"))
    pair = [ring_report.ring_flow()] * 2
    viewer = view(written(by_hand(), replace(by_hand(), trace=2, kernel="other"), manifest=manifest, flows=pair))
    assert len(viewer.flows) == 12


def test_without_flows_nothing_ends_a_wait():
    viewer = view(written(by_hand()))
    assert {shown.category for shown in viewer.instants} == {"signal"}
    assert viewer.flows == []
