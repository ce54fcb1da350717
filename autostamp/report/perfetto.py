# SPDX-License-Identifier: Apache-2.0
"""Timelines as a Perfetto trace (protobuf): a process per recorded CTA, a group per role, a track per warp.

In Perfetto an END closes the most recent open slice of its track, so no track here ever holds two slices at once:
waits (stalls and passes) are on the warp's own track, holds on child tracks of it, one per barrier and as many more as
its stages overlap.

A flow leads from an arrival to an instant at the end of the wait that it ended, inside the wait's slice. It cannot lead to the
slice itself: Perfetto points a flow at the later of two slices, and a stall begins before the arrival that ends it.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Final, TypeAlias

from autostamp.model.flow import Flow
from autostamp.model.manifest import Manifest
from autostamp.model.run import MachineFacts
from autostamp.model.timeline import Signal, Slice, State, Timeline, WarpTimeline
from autostamp.report.causes import Visit
from autostamp.report.clock import clock_mhz
from autostamp.report.perfetto_links import Links
from autostamp.report.places import Place, places_of

if TYPE_CHECKING:
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TracePacket

_SEQUENCE: Final = 1
"""All packets are of one writer; trace processors keep the order of its packets where timestamps are equal."""

_NANOSECONDS: Final = 1000
_KINDS: Final = {State.STALL: "stall", State.PASS: "pass", State.ACTIVE: "hold"}

_Value: TypeAlias = str | int
_BEGIN, _END, _INSTANT = "TYPE_SLICE_BEGIN", "TYPE_SLICE_END", "TYPE_INSTANT"


@dataclass(frozen=True, slots=True)
class _Mark:
    """One packet to come: `type` is the TrackEvent type; an END has neither name nor arguments."""

    ns: int
    track: int
    type: str
    name: str = ""
    category: str = ""
    arguments: tuple[tuple[str, _Value], ...] = ()
    leaving: tuple[int, ...] = ()
    arriving: tuple[int, ...] = ()

    @property
    def order(self) -> tuple[int, bool]:
        """By time; an instant from which a flow leaves comes before what else happens then, its target included."""
        return self.ns, not self.leaving or self.type != _INSTANT


@dataclass(frozen=True, slots=True)
class _Track:
    """A track to describe: `rank` orders it among the tracks of its parent; a process has no parent."""

    uuid: int
    parent: int
    name: str
    rank: int
    pid: int = 0


def write_perfetto(
    file: IO[bytes],
    timelines: Sequence[Timeline],
    manifest: Manifest,
    facts: MachineFacts | None = None,
    flows: Sequence[Flow] = (),
) -> None:
    """Write `timelines` to a file opened for binary writing; the same input gives the same bytes.

    Timestamps are whole nanoseconds, rounded from cycles by the measured SM clock; where that is unknown one cycle is
    shown as one nanosecond and the process name says so. Exact cycles are in the arguments `cycles_begin` and
    `cycles_end`. CTAs of one launch that were aligned share an axis; any other starts at 0, because clocks of two SMs have no
    common origin. A process has the number of its kernel trace, a further CTA of it the next free one. `flows` are those of
    the timelines, in their order (empty: no flow events).
    """
    from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder

    builder = StreamingTraceProtoBuilder(file)
    numbers = iter(range(1, 1 << 62))
    streams: list[Iterator[_Mark]] = []
    machine = facts or MachineFacts()
    first = 1
    for index, (timeline, pid) in enumerate(zip(timelines, _pids(timelines), strict=True)):
        # One rate for all CTAs of an axis: measured within each, rates differ by a part in a thousand.
        is_aligned = timeline.alignment_error >= 0 and machine.sm_mhz > 0
        mhz = machine.sm_mhz if is_aligned else clock_mhz(timeline, machine)
        links = Links(flows[index], first) if flows else Links()
        first += links.count
        layout = _Layout(timeline, places_of(manifest, timeline.trace), mhz, pid, links)
        tracks, marks = layout.lay_out(lambda: next(numbers))
        for track in tracks:
            builder.write_packet(_descriptor(builder.create_packet(), track))
        streams += marks
    for mark in heapq.merge(*streams, key=lambda mark: mark.order):
        builder.write_packet(_event(builder.create_packet(), mark))


def _pids(timelines: Sequence[Timeline]) -> list[int]:
    """A process number for each timeline: that of the kernel trace for its first."""
    further = itertools.count(max((timeline.trace for timeline in timelines), default=0) + 1)
    seen: set[int] = set()
    found = []
    for timeline in timelines:
        found.append(next(further) if timeline.trace in seen else timeline.trace)
        seen.add(timeline.trace)
    return found


class _Layout:
    """Tracks and marks of one timeline."""

    def __init__(self, timeline: Timeline, places: Mapping[int, Place], mhz: float, pid: int, links: Links) -> None:
        self._timeline = timeline
        self._places = places
        self._mhz = mhz
        self._pid = pid
        self._links = links
        self._roles = {warp.warp: warp.role for warp in timeline.warps}
        is_aligned = timeline.alignment_error >= 0
        self._origin = -timeline.offset if is_aligned else min((warp.start for warp in timeline.warps), default=0)

    def lay_out(self, new_uuid: Callable[[], int]) -> tuple[list[_Track], list[Iterator[_Mark]]]:
        """All tracks, parents first, and one stream of marks per track, each in the order of time."""
        tracks = [_Track(new_uuid(), 0, self._process_name(), 0, pid=self._pid)]
        streams: list[Iterator[_Mark]] = []
        for role in self._timeline.roles:
            role_track = _Track(new_uuid(), tracks[0].uuid, role.role, min(role.warps))
            tracks.append(role_track)
            for warp in self._timeline.warps:
                if warp.role == role.role:
                    self._lay_out_warp(warp, role_track.uuid, new_uuid, tracks, streams)
        return tracks, streams

    def _lay_out_warp(
        self,
        warp: WarpTimeline,
        parent: int,
        new_uuid: Callable[[], int],
        tracks: list[_Track],
        streams: list[Iterator[_Mark]],
    ) -> None:
        own = _Track(new_uuid(), parent, f"warp {warp.warp}", warp.warp)
        tracks.append(own)
        waits = rows_of(part for part in warp.slices if part.state is not State.ACTIVE)
        signals = (self._instant(signal, warp, own.uuid) for signal in warp.signals)
        slices = self._slices(_first(waits), warp, own.uuid)
        streams.append(heapq.merge(slices, signals, key=lambda mark: mark.order))
        rows = [(f"warp {warp.warp} stalls {number}", row) for number, row in enumerate(waits[1:], start=2)]
        for barrier, holds in self._holds_by_barrier(warp).items():
            for number, row in enumerate(rows_of(holds), start=1):
                name = f"warp {warp.warp} holds {barrier}"
                rows.append((name if number == 1 else f"{name} ({number})", row))
        for rank, (name, row) in enumerate(rows):
            track = _Track(new_uuid(), own.uuid, name, rank)
            tracks.append(track)
            streams.append(self._slices(row, warp, track.uuid))

    def _holds_by_barrier(self, warp: WarpTimeline) -> dict[str, list[Slice]]:
        found: dict[str, list[Slice]] = {}
        for part in warp.slices:
            if part.state is State.ACTIVE:
                found.setdefault(self._place(part.instance).barrier, []).append(part)
        return dict(sorted(found.items()))

    def _slices(self, row: Sequence[Slice], warp: WarpTimeline, track: int) -> Iterator[_Mark]:
        for part in row:
            place = self._place(part.instance)
            kind = _KINDS[part.state]
            is_wait = part.state is not State.ACTIVE
            arguments = self._arguments(place, warp, kind, part.visit, part.stage, part.start, part.end)
            if part.replay:
                arguments += (("replay", part.replay), ("error", part.error), ("length_error", part.length_error))
            if part.signal:
                ended = self._place(part.signal)
                arguments += (("end_instance", part.signal), ("end_file", ended.file), ("end_line", ended.line))
            visit = (warp.warp, part.instance, part.visit)
            leaving: tuple[int, ...] = ()
            if is_wait:
                arguments += self._links.why(visit) if part.state is State.STALL else ()
                leaving = self._leaving(visit, part.start)
            yield _Mark(self._ns(part.start), track, _BEGIN, place.label(part.stage), kind, arguments, leaving)
            if is_wait:
                yield from self._woken(visit, part.end, track)
            yield _Mark(self._ns(part.end), track, _END)

    def _instant(self, signal: Signal, warp: WarpTimeline, track: int) -> _Mark:
        place = self._place(signal.instance)
        at = signal.cycles
        arguments = self._arguments(place, warp, "signal", signal.visit, signal.stage, at, at)
        leaving = self._leaving((warp.warp, signal.instance, signal.visit), at)
        return _Mark(self._ns(at), track, _INSTANT, place.label(signal.stage), "signal", arguments, leaving)

    def _leaving(self, visit: Visit, at: int) -> tuple[int, ...]:
        """Flows that begin here; none of an arrival stamped after the wait that it ended, which a viewer would point back."""
        found = self._links.leaving(visit)
        return tuple(number for number, arrow in found if self._ns(at) <= self._ns(arrow.wait.cycles))

    def _woken(self, visit: Visit, at: int, track: int) -> Iterator[_Mark]:
        """The instant in which an arrival ended this wait."""
        found = self._links.arriving(visit)
        if found is None:
            return
        number, arrow = found
        signal = arrow.signal
        place = self._place(signal.instance)
        arguments: tuple[tuple[str, _Value], ...] = (
            ("signal_role", self._roles.get(signal.warp, "")),
            ("signal_warp", signal.warp),
            ("signal_instance", signal.instance),
            ("signal_file", place.file),
            ("signal_line", place.line),
            ("signal_cycles", signal.cycles),
            ("use", arrow.use),
            ("is_async", int(arrow.is_async)),
            ("is_inferred", int(arrow.is_inferred)),
            *((("error", arrow.error), ("is_uncertain", int(arrow.is_uncertain))) if arrow.error else ()),
        )
        arriving = (number,) if self._ns(signal.cycles) <= self._ns(at) else ()
        name = f"ended by {place.label(arrow.stage)}"
        yield _Mark(self._ns(at), track, _INSTANT, name, "arrow", arguments, arriving=arriving)

    def _arguments(
        self, place: Place, warp: WarpTimeline, kind: str, visit: int, stage: int, begin: int, end: int
    ) -> tuple[tuple[str, _Value], ...]:
        return (
            ("site", place.site),
            ("it", visit),
            ("file", place.file),
            ("line", place.line),
            ("instance", place.instance),
            ("kind", kind),
            ("role", warp.role),
            ("barrier", place.barrier),
            *((("stage", stage),) if stage >= 0 else ()),
            ("cycles_begin", begin),
            ("cycles_end", end),
        )

    def _place(self, instance: int) -> Place:
        return self._places.get(instance) or Place(instance, 0, "", 0, "", "", "", "", "", "")

    def _ns(self, cycles: int) -> int:
        since = cycles - self._origin
        return round(since * _NANOSECONDS / self._mhz) if self._mhz else since

    def _process_name(self) -> str:
        where = f"{self._timeline.kernel} CTA {self._timeline.block}"
        where += f" launch {self._timeline.launch}" if self._timeline.launch else ""
        where += f" SM {self._timeline.smid}" if self._timeline.smid >= 0 else ""
        return where if self._mhz else f"{where}, 1 cycle shown as 1 ns"


def rows_of(slices: Iterable[Slice]) -> list[list[Slice]]:
    """Distribute slices over as few rows as possible so that none overlap in a row, each into the first row that is free."""
    rows: list[list[Slice]] = []
    for part in sorted(slices, key=lambda part: (part.start, part.end, part.instance, part.visit)):
        row = next((row for row in rows if row[-1].end <= part.start), None)
        if row is None:
            rows.append([part])
        else:
            row.append(part)
    return rows


def _first(rows: list[list[Slice]]) -> list[Slice]:
    return rows[0] if rows else []


def _descriptor(packet: TracePacket, track: _Track) -> TracePacket:
    packet.trusted_packet_sequence_id = _SEQUENCE
    descriptor = packet.track_descriptor
    descriptor.uuid = track.uuid
    descriptor.child_ordering = descriptor.EXPLICIT
    if track.parent:
        descriptor.parent_uuid = track.parent
        descriptor.name = track.name
        descriptor.sibling_order_rank = track.rank
    else:
        descriptor.process.pid = track.pid
        descriptor.process.process_name = track.name
    return packet


def _event(packet: TracePacket, mark: _Mark) -> TracePacket:
    packet.trusted_packet_sequence_id = _SEQUENCE
    packet.timestamp = mark.ns
    event = packet.track_event
    event.type = event.DESCRIPTOR.enum_types_by_name["Type"].values_by_name[mark.type].number
    event.track_uuid = mark.track
    if mark.name:
        event.name = mark.name
        event.categories.append(mark.category)
    event.flow_ids.extend(mark.leaving)
    event.terminating_flow_ids.extend(mark.arriving)
    for name, value in mark.arguments:
        annotation = event.debug_annotations.add(name=name)
        if isinstance(value, str):
            annotation.string_value = value
        else:
            annotation.int_value = value
    return packet
