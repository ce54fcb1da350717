# SPDX-License-Identifier: Apache-2.0
"""Arrows of one barrier whose uses are numbered: from the last arrival of a use to the exits of its waits."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from autostamp.analysis.counting import GRANTED
from autostamp.analysis.uses import Arrival, Uses, Waiting
from autostamp.model.flow import Arrow, End

_Visit: TypeAlias = tuple[int, int, int]


@dataclass(slots=True)
class Found:
    """Arrows, and the waits without one, as in `Dependencies`."""

    arrows: list[Arrow] = field(default_factory=list)
    granted: set[_Visit] = field(default_factory=set)
    lost: set[_Visit] = field(default_factory=set)
    own: set[_Visit] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Groups:
    """The arrivals of each use: `number` at a time of all of them, or (0) as `listed`."""

    arrivals: Sequence[Arrival] = ()
    number: int = 0
    listed: Sequence[Sequence[Arrival]] = ()

    def of(self, use: int) -> Sequence[Arrival]:
        """Arrivals of one use that was complete."""
        return self.arrivals[use * self.number : (use + 1) * self.number] if self.number else self.listed[use]


@dataclass(slots=True)
class Numbered:
    """A barrier with its waits numbered. Waits that ended at `until` or later may be for arrivals that were lost."""

    uses: Uses
    groups: Groups
    until: float


@dataclass(frozen=True, slots=True)
class _Start:
    """Where the arrows of one use start."""

    signal: End
    others: tuple[End, ...]
    is_async: bool


def pair(one: Numbered, found: Found, late: int) -> None:
    """Add the arrows of one barrier."""
    starts = _Starts(one, late)
    has_waited: set[int] = set()
    for wait in one.uses.waits:
        warp, instance, visit, cycles = wait.exit
        is_first = warp not in has_waited
        has_waited.add(warp)
        if cycles + late >= one.until:
            found.lost.add((warp, instance, visit))
        elif wait.use >= 0:
            _connect(one.uses, wait, wait.stage, wait.use, starts.of(wait.use), found)
        elif (wait.use == GRANTED and one.uses.arrivals) or (is_first and one.uses.side == "empty"):
            found.granted.add((warp, instance, visit))


def pair_tail(ring: Sequence[Numbered], wait: Waiting, found: Found, late: int) -> None:
    """Add the arrow of a wait for all stages of a ring: from the last completed use of any."""
    end = wait.exit.cycles + late
    visit = (wait.exit.warp, wait.exit.instance, wait.exit.visit)
    if any(end >= one.until for one in ring):
        found.lost.add(visit)
        return
    latest: tuple[int, int, Numbered] | None = None
    for one in ring:
        number = one.groups.number
        times = [arrival.ends[0].cycles for arrival in one.uses.arrivals]
        use = bisect_right(times, end) // number - 1 if number else -1
        if use >= 0 and (latest is None or times[(use + 1) * number - 1] > latest[0]):
            latest = (times[(use + 1) * number - 1], use, one)
    if latest is not None:
        _, use, one = latest
        _connect(one.uses, wait, one.uses.key[3], use, _Starts(one, late).of(use), found)
    elif ring:
        found.granted.add(visit)


def _connect(uses: Uses, wait: Waiting, stage: int, use: int, start: _Start, found: Found) -> None:
    if start.signal.warp == wait.exit.warp and not start.is_async:
        found.own.add((wait.exit.warp, wait.exit.instance, wait.exit.visit))
        return
    found.arrows.append(
        Arrow(
            start.signal,
            wait.exit,
            wait.barrier,
            wait.side,
            stage,
            use,
            start.others,
            start.is_async,
            uses.is_inferred,
        )
    )


def _cycles_and_warp(pair: tuple[End, bool]) -> tuple[int, int]:
    end = pair[0]
    return end.cycles, end.warp


class _Starts:
    """The last arrival of each use, worked out once for all who waited for it."""

    def __init__(self, one: Numbered, late: int) -> None:
        self._groups = one.groups
        self._late = late
        self._first_exit: dict[int, int] = {}
        for wait in one.uses.waits:  # in the order of their exits
            if wait.use >= 0:
                self._first_exit.setdefault(wait.use, wait.exit.cycles)
        self._copies = self._sort_copies(one.uses.copies) if one.uses.copies else {}
        self._known: dict[int, _Start] = {}

    def of(self, use: int) -> _Start:
        start = self._known.get(use)
        if start is None:
            start = self._known[use] = self._make(use)
        return start

    def _make(self, use: int) -> _Start:
        arrivals = self._groups.of(use)
        if use in self._copies:
            arrivals = [*arrivals, *self._copies[use]]
        ends = [(end, arrival.is_async) for arrival in arrivals for end in arrival.ends]
        if len(ends) > 1:
            ends.sort(key=_cycles_and_warp)
            # A commit that emits nothing may be written long after the copy that it stands for has landed.
            limit = self._first_exit.get(use, ends[-1][0].cycles) + self._late
            ends = [pair for pair in ends if pair[0].cycles <= limit] or ends[:1]
        signal, is_async = ends[-1]
        return _Start(signal, tuple(end for end, _ in ends[:-1]), is_async)

    def _sort_copies(self, copies: Sequence[Arrival]) -> dict[int, list[Arrival]]:
        """Copies that another warp announced, by the first use that was waited for after their issue."""
        uses = sorted(self._first_exit)
        exits = [self._first_exit[use] for use in uses]
        found: dict[int, list[Arrival]] = {}
        for copy in copies:
            place = bisect_left(exits, copy.ends[0].cycles)
            if place < len(uses):
                found.setdefault(uses[place], []).append(copy)
        return found
