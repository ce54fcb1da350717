# SPDX-License-Identifier: Apache-2.0
"""Replays of one kernel, each with a part of its sites stamped, joined into traces that have all of them.

Each joined trace is one launch of the reference set as it was recorded. The records of another set that the reference lacks are
put onto the reference's axis, warp by warp, by what both recorded (`join_map`). A set that does not fit is refused and left out.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from autostamp.analysis.join_checks import Agreement, Launches, Tolerance, agreement, own_faults, same_counts
from autostamp.analysis.join_errors import Errors, errors_of
from autostamp.analysis.join_lanes import Guides, Kind, Mark, Track, anchors_of, events_only
from autostamp.analysis.join_map import Occupied, Placed, blocks_of, place
from autostamp.analysis.join_tables import unite
from autostamp.model.manifest import EventKind, Instance, KernelTrace
from autostamp.model.replay import Fit, Joined, Recording, Refusal
from autostamp.model.trace import Event, Lane, Trace

ALLOWANCE = 0.02
"""Share of a gap by which a set may differ from the reference: what the bar of a replay lets a set cost."""

CROSSED = 0.1
"""Share of common records that may come in another order: a warp's single threads record beside it."""


def join(recordings: Sequence[Recording], allowance: float = ALLOWANCE) -> Joined:
    """Join the recordings of one kernel and CTA; the first that has no fault of its own is the reference.

    A recording is refused with AS8120 where no warp has an anchor, AS8121 where anchors disagree by more than noise and
    `allowance`, AS8122 where sites were reached another number of times, AS8123 where it has no records, lost some or ran on
    another CTA, and AS8124 where it has too few launches. Without any that can be a reference there are no traces.
    """
    tables = unite([each.launches[0].kernel if each.launches else _NOTHING for each in recordings])
    instances = {row.number: row for row in tables.kernel.instances}
    usable: list[_Set] = []
    refusals: list[Refusal] = []
    for recording, numbers in zip(recordings, tables.numbers, strict=True):
        tracks = [{lane.warp: Track.of(lane, numbers) for lane in each.lanes} for each in recording.launches]
        lost = sum(lane.lost for each in recording.launches for lane in each.lanes)
        fault = own_faults(recording.number, tracks, lost, instances)
        if fault is None:
            usable.append(_Set(recording, tracks))
        else:
            refusals.append(fault)
    if not usable:
        return Joined((), 0, (), tuple(refusals))
    reference, taken = usable[0], _kinds(usable[0].tracks)
    parts: list[_Part] = []
    for each in usable[1:]:
        part = _part(reference, each, taken, allowance, instances)
        if isinstance(part, Refusal):
            refusals.append(part)
            continue
        parts.append(part)
        taken = {warp: taken[warp] | part.wanted[warp] for warp in taken}
    launches = min(len(each.tracks) for each in (reference, *(part.of for part in parts)))
    tally = _Tally()
    traces = tuple(_joined(tables.kernel, reference, parts, launch, tally) for launch in range(launches))
    fits = tuple(tally.fit(part) for part in parts)
    return Joined(traces, reference.recording.number, fits, tuple(refusals))


_NOTHING = KernelTrace(0, "", "", 0, (0, 0, 0), 0, 0, (), ())


@dataclass(frozen=True, slots=True)
class _Set:
    recording: Recording
    tracks: Launches


@dataclass(frozen=True, slots=True)
class _Part:
    """What one set adds: the kinds of records by warp, where it agrees with the reference, and its errors."""

    of: _Set
    wanted: Mapping[int, frozenset[Kind]]
    agreed: Agreement
    errors: Errors
    guides: Guides
    anchors: int


class _Tally:
    """Errors and mishaps of each set, over all launches."""

    def __init__(self) -> None:
        self.errors: dict[int, list[int]] = {}
        self.shortened: dict[int, int] = {}
        self.moved: dict[int, int] = {}

    def fit(self, part: _Part) -> Fit:
        """The figures of one set."""
        number = part.of.recording.number
        errors = self.errors.get(number) or [0]
        return Fit(
            number,
            part.anchors,
            sum(sum(track.counts[kind] for kind in part.wanted[warp]) for warp, track in part.of.tracks[0].items()),
            part.agreed.noise,
            part.agreed.shift,
            *part.errors.typical,
            error_median=round(float(np.percentile(errors, 50))),
            error_p90=round(float(np.percentile(errors, 90))),
            error_most=max(errors),
            shortened=self.shortened.get(number, 0),
            moved=self.moved.get(number, 0),
            kernel=part.of.recording.launches[0].kernel.kernel,
            guided=sum(part.guides.guide[warp] != warp for warp, kinds in part.wanted.items() if kinds),
        )


def _kinds(launches: Launches) -> dict[int, frozenset[Kind]]:
    return {warp: frozenset(kind for kind in track.counts if kind.instance > 0) for warp, track in launches[0].items()}


def _part(
    reference: _Set,
    other: _Set,
    taken: Mapping[int, frozenset[Kind]],
    allowance: float,
    instances: Mapping[int, Instance],
) -> _Part | Refusal:
    number = other.recording.number
    blocks = {each.recording.launches[0].block for each in (reference, other)}
    if len(blocks) > 1:
        return Refusal(number, "AS8123", "it ran on another CTA than the reference")
    refusal = same_counts(number, reference.tracks, other.tracks, instances)
    if refusal is not None:
        return refusal
    wanted = {warp: kinds - taken[warp] for warp, kinds in _kinds(other.tracks).items()}
    pairs = {warp: anchors_of(track, reference.tracks[0][warp]) for warp, track in other.tracks[0].items()}
    for warp, pair in pairs.items():
        if pair.crossed > CROSSED * len(pair.marks):
            detail = f"in warp {warp} {pair.crossed} of {pair.crossed + len(pair.marks)} records come in another order"
            return Refusal(number, "AS8121", detail)
    guides = Guides.of(other.tracks[0], reference.tracks[0])
    if not guides.guide:
        return Refusal(number, "AS8120", "it shares no site with the reference, in any warp")
    ratios = (reference.recording.ratio, other.recording.ratio)
    faster = ratios[1] / ratios[0] - 1.0 if all(ratios) else 0.0
    agreed = agreement(number, reference.tracks, other.tracks, Tolerance(allowance, faster), instances)
    if agreed.refusal is not None:
        return agreed.refusal
    shared = sum(events_only(marks) for marks in guides.common.values())
    return _Part(other, wanted, agreed, errors_of(other.tracks, guides, wanted), guides, shared)


def _joined(kernel: KernelTrace, reference: _Set, parts: Sequence[_Part], launch: int, tally: _Tally) -> Trace:
    base = reference.recording.launches[launch]
    lanes = tuple(_lane(lane, reference, parts, launch, tally) for lane in base.lanes)
    return replace(base, kernel=kernel, lanes=lanes, launch=launch)


@dataclass(frozen=True, slots=True)
class _Row:
    """One record of a joined lane. `low` and `high` are the anchors around it where its error is no more than these allow."""

    mark: Mark
    time: int
    payload: int
    replay: int
    error: int
    low: int | None = None
    high: int = 0

    def within(self, low: int, high: int) -> _Row:
        """The row, known to lie between these two as well."""
        if self.low is None:
            return self
        far = max(self.time - max(low, self.low), min(high, self.high) - self.time, 0)
        return replace(self, error=min(self.error, far))


def _lane(lane: Lane, reference: _Set, parts: Sequence[_Part], launch: int, tally: _Tally) -> Lane:
    track = reference.tracks[launch][lane.warp]
    rows = [
        _Row(mark, time, payload, reference.recording.number, 0)
        for mark, time, payload in zip(track.marks, track.times, track.payloads, strict=True)
        if mark.instance > 0
    ]
    own = _kinds([{lane.warp: track}])[lane.warp]
    occupied = Occupied([(block.start, block.end) for block in blocks_of(track, own)])
    placed = []
    order = count()
    for part in parts:
        there = part.of.tracks[launch]
        blocks = blocks_of(there[lane.warp], part.wanted[lane.warp])
        if not blocks:
            continue
        spans = [(block.start, block.end) for block in blocks]
        anchors = part.guides.between(there, reference.tracks[launch], lane.warp, spans)
        is_guided = part.guides.guide[lane.warp] != lane.warp
        rows_of = _bounded(place(blocks, anchors), track) if is_guided else place(blocks, anchors)
        placed.append([(each.start, next(order), each, part, anchors.kind(each.gap)) for each in rows_of])
    ends: dict[int, int] = {}
    for _, _, each, part, kind in heapq.merge(*placed, key=lambda row: row[:2]):
        rows += _settled(each, part, lane.warp, kind, occupied, ends, tally)
    rows = _entered_first(_in_order(rows))
    for number in {part.of.recording.number for part in parts}:
        tally.errors.setdefault(number, []).extend(row.error for row in rows if row.replay == number)
    return replace(
        lane,
        events=tuple(Event(row.time, row.mark.kind, row.mark.instance, row.payload, row.mark.visit) for row in rows),
        replays=tuple(row.replay for row in rows),
        errors=tuple(row.error for row in rows),
    )


def _in_order(rows: Sequence[_Row]) -> list[_Row]:
    """The rows, each of which lies between the records before and after it of its own replay, wherever these are: of a warp that
    another guides, the first and the last visit of a site would else be as uncertain as the warp's life is long.
    """
    lows: list[int] = []
    highs: list[int] = []
    for every, bounds, sign in ((rows, lows, 1), (rows[::-1], highs, -1)):
        known: dict[int, int] = {}
        for row in every:
            own = sign * (row.time - sign * row.error)
            known[row.replay] = max(known.get(row.replay, own), own)
            bounds.append(sign * known[row.replay])
    return [row.within(low, high) for row, low, high in zip(rows, lows, reversed(highs), strict=True)]


def _entered_first(rows: Sequence[_Row]) -> list[_Row]:
    """The rows by time. Of a wait whose records are two replays', the exit is put at the enter where it came before that."""
    enters = {(row.mark.instance, row.mark.visit): row for row in rows if row.mark.kind is EventKind.ENTER}
    found = []
    for row in rows:
        enter = enters.get((row.mark.instance, row.mark.visit)) if row.mark.kind is EventKind.EXIT else None
        is_split = enter is not None and enter.replay != row.replay
        late = max(enter.time - row.time, 0) if enter is not None and is_split else 0
        found.append((row.time + late, is_split, replace(row, time=row.time + late, error=row.error + late)))
    return [row for _, _, row in sorted(found, key=lambda each: each[:2])]


def _bounded(placed: Sequence[Placed], track: Track) -> list[Placed]:
    """What another warp guided is only bounded by the warp's own entry and release."""
    low, high = min(track.times, default=0), max(track.times, default=0)
    found = []
    for each in placed:
        length = each.end - each.start
        start = max(low, min(each.start, high - length))
        found.append(replace(each, start=start, end=start + length, low=low, high=high))
    return found


def _settled(
    each: Placed,
    part: _Part,
    warp: int,
    kind: tuple[Kind, Kind] | None,
    occupied: Occupied,
    ends: dict[int, int],
    tally: _Tally,
) -> list[_Row]:
    """A block's records, set beside the waits that other sets gave: a warp is in one wait at a time."""
    number = part.of.recording.number
    length = each.end - each.start
    low = max(each.low, ends.get(number, each.low))
    start = occupied.nearest(each.start, length, low, each.high)
    if start is None:
        start = max(each.start, min(low, each.high - length))
    moved = replace(each, start=start, end=start + length)
    occupied.take(moved.start, moved.end)
    ends[number] = moved.end
    if start != each.start:
        tally.moved[number] = tally.moved.get(number, 0) + 1
    if each.is_shortened:
        tally.shortened[number] = tally.shortened.get(number, 0) + 1
    error = _error(moved, part, warp, kind, abs(start - each.start))
    bound = moved.low if error == moved.bound else None
    times = (moved.start, moved.end)
    return [
        _Row(mark, time, payload, number, error, bound, moved.high)
        for mark, time, payload in zip(each.block.marks, times, each.block.payloads, strict=False)
    ]


def _error(moved: Placed, part: _Part, warp: int, kind: tuple[Kind, Kind] | None, by: int) -> int:
    """The smaller of what the launches say of each other and what the anchors around allow."""
    more = [part.errors.of(mark) for mark in moved.block.marks]
    if moved.is_shortened or None in more:
        return moved.bound
    # What a gap varies by may fall before a record as well as after it, also where no launch happened to show it.
    guide = part.guides.guide[warp]
    of_gap = part.agreed.largest.get((guide, kind), part.agreed.noise) if kind is not None else part.agreed.noise
    largest = max(of_gap, *(each for each in more if each is not None))
    if guide != warp:
        largest *= part.errors.drift
    return min(round(largest) + moved.slack + by + 2, moved.bound)
