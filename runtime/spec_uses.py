# SPDX-License-Identifier: Apache-2.0
"""Spans and markers of a slot spec, row by row, with what they refer to resolved and checked against each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from autostamp.model.manifest import Payload
from autostamp.model.sync import Kind, Side
from autostamp.runtime.spec_references import References, SpecFault
from autostamp.runtime.spec_schema import SlotSpec, SpecArrow, SpecMarker, SpecSpan

_NAMING: Final = frozenset({Payload.ADDRESS, Payload.BARRIER_ID})
"""Payloads that say which barrier a record is about, whatever the source calls it."""
_OPPOSITE: Final = {Side.FULL: Side.EMPTY, Side.EMPTY: Side.FULL}


@dataclass(frozen=True, slots=True)
class Use:
    """One span or marker on one row. `end` is -1 for a marker, `barrier` a barrier number, 0 where there is none."""

    row: int
    op: SpecSpan | SpecMarker
    place: str
    start: int
    end: int
    barrier: int
    side: Side

    @property
    def is_marker(self) -> bool:
        """True for a marker."""
        return self.end < 0

    @property
    def is_stall(self) -> bool:
        """True for a wait."""
        return isinstance(self.op, SpecSpan) and self.op.state == "stall"

    @property
    def is_hold(self) -> bool:
        """True for an active span that a wait opens and a marker ends; the analysis finds it in the records."""
        return isinstance(self.op, SpecSpan) and self.op.state == "active" and bool(self.barrier)

    @property
    def kind(self) -> Kind:
        """What its instance is: signal, wait or work."""
        return Kind.SIGNAL if self.is_marker else Kind.WAIT if self.is_stall else Kind.WORK


def uses_of(spec: SlotSpec) -> list[Use]:
    """Every span and marker of every row; raises SpecFault where one names what is not there, or contradicts another."""
    references = References.of(spec)
    uses = [*_spans(spec, references), *_markers(spec, references)]
    for number, arrow in enumerate(spec.arrows):
        uses = _with_arrow(uses, arrow, f"$.arrows[{number}]", references)
    _require_holds(uses)
    _require_apart(uses)
    return uses


def _spans(spec: SlotSpec, references: References) -> Iterator[Use]:
    for number, op in enumerate(spec.spans):
        place = f"$.spans[{number}]"
        rows = references.rows(op.role, f"{place}.role")
        start = references.event(op.start_evt, f"{place}.start_evt")
        end = references.event(op.end_evt, f"{place}.end_evt")
        barrier = references.barrier(op.barrier, f"{place}.barrier")
        references.require_its(op.its, f"{place}.its")
        if start == end and op.offset == 0:
            raise SpecFault(f"{place}.end_evt", "a span must end in another slot than it starts in")
        yield from (Use(row, op, place, start, end, barrier, op.side) for row in rows)


def _markers(spec: SlotSpec, references: References) -> Iterator[Use]:
    for number, op in enumerate(spec.markers):
        place = f"$.markers[{number}]"
        rows = references.rows(op.role, f"{place}.role")
        event = references.event(op.evt, f"{place}.evt")
        barrier = references.barrier(op.barrier, f"{place}.barrier")
        yield from (Use(row, op, place, event, -1, barrier, op.side) for row in rows)


def _with_arrow(uses: list[Use], arrow: SpecArrow, place: str, references: References) -> list[Use]:
    """The uses with both ends of an arrow on its barrier; raises SpecFault where one is on another, or is none.

    Which record an arrow leads to is not taken from here: it is read from the clocks, use by use.
    """
    barrier = references.barrier(arrow.barrier, f"{place}.barrier")
    references.require_its(arrow.its, f"{place}.its")
    from_rows = references.rows(arrow.source[0], f"{place}.from[0]")
    from_event = references.event(arrow.source[1], f"{place}.from[1]")
    to_rows = references.rows(arrow.target[0], f"{place}.to[0]")
    to_event = references.event(arrow.target[1], f"{place}.to[1]")
    # A wait may arrive itself: who takes part in a named barrier arrives when it enters.
    starts = [
        index
        for index, use in enumerate(uses)
        if use.row in from_rows and (use.is_marker or use.is_stall) and from_event in (use.start, use.end)
    ]
    ends = [index for index, use in enumerate(uses) if use.row in to_rows and use.is_stall and use.end == to_event]
    if not starts:
        raise SpecFault(f"{place}.from", "no marker and no stall span stands in this slot")
    if not ends:
        raise SpecFault(f"{place}.to", "no stall span ends in this slot")
    side = arrow.side or next((uses[index].side for index in ends if uses[index].side), Side.NONE)
    amended = list(uses)
    for end, found in (("from", starts), ("to", ends)):
        for index in _on_barrier(uses, found, barrier, f"{place}.{end}"):
            amended[index] = replace(uses[index], barrier=barrier, side=uses[index].side or side)
    return amended


def _on_barrier(uses: list[Use], found: list[int], barrier: int, place: str) -> list[int]:
    """Those of an arrow's ends that must be put on its barrier; none where they are, or where records name barriers."""
    if any(uses[index].barrier == barrier for index in found):
        return []
    without = [index for index in found if not uses[index].barrier]
    if not without and not any(_names_itself(uses[index]) for index in found):
        raise SpecFault(place, f"{uses[found[0]].place} is on another barrier than this arrow")
    return without


def _names_itself(use: Use) -> bool:
    """Whether its barrier is known whatever the source calls it. A constant hardware barrier number is its `stage`."""
    return use.op.payload in _NAMING or (use.side is Side.NAMED and use.op.stage >= 0)


def _require_holds(uses: list[Use]) -> None:
    """A hold is found by its barrier's two sides, so a span that has no such ends would be drawn nowhere."""
    for use in uses:
        if not use.is_hold:
            continue
        opened = {
            _OPPOSITE[wait.side]
            for wait in uses
            if wait.is_stall
            and (wait.row, wait.end, wait.barrier) == (use.row, use.start, use.barrier)
            and wait.side in _OPPOSITE
        }
        closed = {
            side
            for mark in uses
            if mark.is_marker and (mark.row, mark.start, mark.barrier) == (use.row, use.end, use.barrier)
            for side in (mark.side, *mark.op.signals)
        }
        if not opened & closed:
            detail = (
                "an active span with a barrier goes from the end of a wait on one of its sides (full, empty) to a marker "
                "on the other; leave the barrier out to draw it as work"
            )
            raise SpecFault(use.place, detail)


def _require_apart(uses: list[Use]) -> None:
    """One slot cannot be the start, or the end, of two waits, nor two arrivals on one barrier."""
    seen: dict[tuple[object, ...], Use] = {}
    for use in uses:
        keys: list[tuple[object, ...]] = []
        if use.is_stall:
            keys = [(use.row, "start", use.start), (use.row, "end", use.end)]
        elif use.is_marker:
            keys = [(use.row, "marker", use.start, use.barrier, use.side)]
        for key in keys:
            other = seen.setdefault(key, use)
            if other is not use and not _are_apart(other, use):
                raise SpecFault(use.place, f"{other.place} has the same slots of row {use.row} already")


def _are_apart(first: Use, second: Use) -> bool:
    """True when both say which slots are theirs, and share none."""
    its = [use.op.its for use in (first, second) if isinstance(use.op, SpecSpan)]
    return len(its) == 2 and None not in its and not set(its[0] or ()) & set(its[1] or ())
