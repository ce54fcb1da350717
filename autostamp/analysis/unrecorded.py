# SPDX-License-Identifier: Apache-2.0
"""Where stamps lie that a joined run has no record of: between which records of the same warp, by the order of the source.

Records of two replays do not say which comes first: their places are uncertain. The source does, for statements that are always
reached together. So a neighbour is only what runs exactly once for each time that the block around both runs; and a span is
only measured in a warp that has as many records of one neighbour as of the other. Where this cannot be known nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import median, quantiles
from typing import NamedTuple

from autostamp.analysis.call_positions import CallPositions
from autostamp.model.manifest import EventKind, Instance, KernelTrace
from autostamp.model.program_order import Enters, Position
from autostamp.model.replay import Bound, Neighbour
from autostamp.model.trace import Lane, Trace

_RANK = {EventKind.ENTER: 0, EventKind.SIGNAL: 0, EventKind.EXIT: 1}


class Place(NamedTuple):
    """A call in the source: manifest key of its file, where it begins (from 1), and the key of its site."""

    file: str
    line: int
    column: int
    key: str


@dataclass(frozen=True, slots=True)
class Missing:
    """What has no record: `stamp` is `wait` or `signal` (the whole site), or the `enter` or `exit` of a wait that has the other.

    `instance` is that wait where it has one.
    """

    place: Place
    stamp: str
    instance: int = 0


class _Mark(NamedTuple):
    """A kind of record and where it stands. `which` of its visits in one run of the block: `each`, the `first` or `last`.

    Beside a position, `loops` counts the loops that both are in.
    """

    position: Position
    instance: int
    kind: EventKind
    which: str = "each"
    trip: int = 0
    loops: int = 0

    @property
    def order(self) -> tuple[tuple[int, ...], int]:
        return tuple(step.at for step in self.position), _RANK[self.kind]


def bounds(traces: Sequence[Trace], missing: Iterable[Missing], positions: CallPositions) -> tuple[Bound, ...]:
    """The bounds of what is missing, over launches of one kernel trace. What cannot be bounded is left out."""
    if not traces:
        return ()
    marks = _marks(traces[0].kernel, positions)
    lanes = [_Records.of(lane) for trace in traces for lane in trace.lanes if not lane.is_lossy]
    found = []
    for one in missing:
        for position in positions.of(one.place.file, one.place.line, one.place.column):
            bound = _bound(one, position, marks, lanes, traces[0].kernel)
            if bound is not None and bound not in found:
                found.append(bound)
    return tuple(found)


def _marks(kernel: KernelTrace, positions: CallPositions) -> list[_Mark]:
    """All kinds of records with a known place. A call that tracing unrolled has several, and no place of its own."""
    copies: dict[tuple[str, int, tuple[str, ...]], list[Instance]] = {}
    for row in kernel.instances:
        copies.setdefault((row.file, row.site, row.call_path), []).append(row)
    found = []
    for rows in copies.values():
        position = positions.of_instance(rows[0]) if len(rows) == 1 else None
        if position is None:
            continue
        (row,) = rows
        found += [
            _Mark(position, row.number, kind)
            for kind, event in (
                (EventKind.ENTER, row.enter),
                (EventKind.EXIT, row.exit),
                (EventKind.SIGNAL, row.signal),
            )
            if event
        ]
    return found


@dataclass(frozen=True, slots=True)
class _Records:
    """A lane's records by kind, in order of visits: (cycles, replay, error)."""

    warp: int
    of_kind: Mapping[tuple[int, EventKind], list[tuple[int, int, int]]]

    @classmethod
    def of(cls, lane: Lane) -> _Records:
        rows: dict[tuple[int, EventKind], list[tuple[int, tuple[int, int, int]]]] = {}
        replays = lane.replays or (0,) * len(lane.events)
        errors = lane.errors or (0,) * len(lane.events)
        for event, replay, error in zip(lane.events, replays, errors, strict=True):
            rows.setdefault((event.instance, event.kind), []).append((event.visit, (event.cycles, replay, error)))
        return cls(lane.warp, {kind: [each for _, each in sorted(of)] for kind, of in rows.items()})

    def spans(self, before: _Mark, after: _Mark) -> list[tuple[int, int]]:
        """(cycles, stated error) from each record of one kind to that of the other which belongs to it; none where unclear."""
        first = self.of_kind.get((before.instance, before.kind), [])
        last = self.of_kind.get((after.instance, after.kind), [])
        if before.which != "each":
            first = first[-1:]
        if after.which != "each":
            last = last[:1]
        # Only a record that each run of the block around has one of says how often that ran.
        if len(first) != len(last) or "each" not in (before.which, after.which):
            return []
        shift = after.trip - before.trip
        return [_span(one, two) for one, two in zip(first, last[shift:], strict=False)]


def _span(first: tuple[int, int, int], last: tuple[int, int, int]) -> tuple[int, int]:
    return last[0] - first[0], first[2] + last[2]


def _bound(
    one: Missing, position: Position, marks: Sequence[_Mark], lanes: Sequence[_Records], kernel: KernelTrace
) -> Bound | None:
    """The tightest pair of neighbours that some warp has records of."""
    before, after = _neighbours(position, marks, one.instance)
    own = [mark._replace(loops=_loops(position)) for mark in marks if one.instance and mark.instance == one.instance]
    if one.instance:
        before, after = (own, after) if one.stamp == EventKind.EXIT else (before, own)
    for first, last in _nearest(before, after):
        spans: dict[int, list[tuple[int, int]]] = {}
        for lane in lanes:
            spans.setdefault(lane.warp, []).extend(lane.spans(first, last))
        every = [span for of_warp in spans.values() for span in of_warp]
        if every and median(cycles for cycles, _ in every) >= 0:
            warps = tuple(warp for warp, of_warp in sorted(spans.items()) if of_warp)
            return _stated(one, (first, last), every, warps, kernel)
    return None


def _nearest(before: Sequence[_Mark], after: Sequence[_Mark]) -> Iterator[tuple[_Mark, _Mark]]:
    """Pairs of neighbours, those with fewest others between them first.

    Both share the same loops with what is between them, or one would bound only some of its visits. A lap of more than one trip
    bounds nothing.
    """
    pairs = product(range(len(before)), range(len(after)))
    for at_first, at_last in sorted(pairs, key=lambda pair: (sum(pair), pair)):
        first, last = before[at_first], after[at_last]
        if last.trip - first.trip < 2 and first.loops == last.loops:
            yield first, last


def _neighbours(position: Position, marks: Sequence[_Mark], own: int) -> tuple[list[_Mark], list[_Mark]]:
    """Marks that run before and after a position each time that it does, nearest first.

    In the innermost loop around it that has such marks, those of the trip before and of the next come last.
    """
    others = [mark for mark in marks if mark.position != position or mark.instance == own]
    around: Position = ()
    for depth in range(len(position), 0, -1):
        if position[depth - 1].enters is Enters.LOOP and any(_runs_in(mark, position[:depth]) for mark in others):
            around = position[:depth]
            break
    inside = [mark for mark in others if mark.position[: len(around)] == around and mark.position != position]
    before = [found for mark in inside if (found := _beside(position, mark, is_before=True))]
    after = [found for mark in inside if (found := _beside(position, mark, is_before=False))]
    before.sort(key=lambda mark: mark.order, reverse=True)
    after.sort(key=lambda mark: mark.order)
    if around:
        laps = sorted((mark for mark in inside if _runs_in(mark, around)), key=lambda mark: mark.order)
        loops = _loops(around)
        before += [mark._replace(trip=-1, loops=loops) for mark in reversed(laps)]
        after += [mark._replace(trip=1, loops=loops) for mark in laps]
    return before, after


def _runs_in(mark: _Mark, block: Position) -> bool:
    """True where a mark runs once for each time that a block does."""
    depth = len(block)
    return mark.position[:depth] == block and all(step.enters is Enters.ALWAYS for step in mark.position[depth:])


def _beside(position: Position, mark: _Mark, *, is_before: bool) -> _Mark | None:
    """The mark where it runs on that side of a position whenever that runs; of a loop its last visit before, its first after."""
    at = next((n for n, (one, two) in enumerate(zip(position, mark.position, strict=False)) if one != two), None)
    if at is None or (mark.position[at].at < position[at].at) is not is_before:
        return None
    if mark.position[at].at == position[at].at:
        return None
    rest = {step.enters for step in mark.position[at:]}
    if Enters.CHOICE in rest:
        return None
    which = ("last" if is_before else "first") if Enters.LOOP in rest else "each"
    return mark._replace(which=which, loops=_loops(position[:at]))


def _loops(position: Position) -> int:
    return sum(step.enters is Enters.LOOP for step in position)


def _stated(
    one: Missing,
    ends: tuple[_Mark, _Mark],
    spans: Sequence[tuple[int, int]],
    warps: tuple[int, ...],
    kernel: KernelTrace,
) -> Bound:
    rows = {row.number: row for row in kernel.instances}
    cycles = sorted(span for span, _ in spans)
    low, high = (cycles[0], cycles[0]) if len(cycles) == 1 else _deciles(cycles)
    return Bound(
        key=one.place.key,
        stamp=one.stamp,
        kernel=kernel.number,
        role=rows[ends[0].instance].role or rows[ends[1].instance].role,
        warps=warps,
        before=_neighbour(ends[0]),
        after=_neighbour(ends[1]),
        count=len(cycles),
        median=round(median(cycles)),
        p10=low,
        p90=high,
        error=round(median(error for _, error in spans)),
    )


def _deciles(cycles: Sequence[int]) -> tuple[int, int]:
    found = quantiles(cycles, n=10, method="inclusive")
    return round(found[0]), round(found[-1])


def _neighbour(mark: _Mark) -> Neighbour:
    return Neighbour(mark.instance, str(mark.kind), mark.which, mark.trip)
