# SPDX-License-Identifier: Apache-2.0
"""One warp in two launches: what both recorded, in the same order, and the gaps between."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from autostamp.model.manifest import EventKind
from autostamp.model.trace import Lane

START, END = -1, -2
"""Instances that stand for a lane's entry and release, which every replay records."""


class Mark(NamedTuple):
    """One record of a warp, as any replay of the kernel would name it."""

    instance: int
    kind: EventKind
    visit: int


class Kind(NamedTuple):
    """What a record is, whichever iteration it is of."""

    instance: int
    kind: EventKind


@dataclass(frozen=True, slots=True)
class Track:
    """A warp's records by mark, in the order of time; `times` in cycles. Lane entry and release are its first and last."""

    marks: tuple[Mark, ...]
    times: tuple[int, ...]
    payloads: tuple[int, ...]

    @classmethod
    def of(cls, lane: Lane, numbers: Mapping[int, int]) -> Track:
        """The records of a lane, with the instances' numbers in the common table."""
        start, end = lane.entry_cycles, lane.exit_cycles
        marks = [Mark(numbers[event.instance], event.kind, event.visit) for event in lane.events]
        times = [event.cycles for event in lane.events]
        payloads = [event.payload for event in lane.events]
        if start >= 0 and start <= min(times, default=start):
            marks, times, payloads = [Mark(START, EventKind.MARK, 0), *marks], [start, *times], [0, *payloads]
        if end >= 0 and end >= max(times, default=end):
            marks, times, payloads = [*marks, Mark(END, EventKind.MARK, 0)], [*times, end], [*payloads, 0]
        return cls(tuple(marks), tuple(times), tuple(payloads))

    @property
    def counts(self) -> Counter[Kind]:
        """How many records there are of each kind."""
        return Counter(Kind(mark.instance, mark.kind) for mark in self.marks)


@dataclass(frozen=True, slots=True)
class Anchors:
    """Records that two tracks have in common, in order: their marks, and their times in each."""

    marks: tuple[Mark, ...]
    there: tuple[int, ...]
    here: tuple[int, ...]
    crossed: int
    """Records of both that come in another order in one than in the other; none of them is an anchor."""

    def gap(self, cycles: int) -> int:
        """The gap of a time of the first track: the number of the anchor before it, -1 before all."""
        return bisect_right(self.there, cycles) - 1

    def kind(self, gap: int) -> tuple[Kind, Kind] | None:
        """What a gap lies between, whichever iteration; None before the first and after the last anchor."""
        if not 0 <= gap < len(self.marks) - 1:
            return None
        before, after = self.marks[gap], self.marks[gap + 1]
        return Kind(before.instance, before.kind), Kind(after.instance, after.kind)


def anchors_of(there: Track, here: Track, allowed: frozenset[Mark] | None = None) -> Anchors:
    """The anchors between a track and the one that it is mapped onto; of `allowed` marks where they are given."""
    places = dict(zip(here.marks, here.times, strict=True))
    pairs = [
        (mark, time, places[mark])
        for mark, time in zip(there.marks, there.times, strict=True)
        if mark in places and (allowed is None or mark in allowed)
    ]
    return _in_order(pairs)


def _in_order(pairs: Iterable[tuple[Mark, int, int]]) -> Anchors:
    kept: list[tuple[Mark, int, int]] = []
    crossed = 0
    for pair in pairs:
        if kept and pair[2] < kept[-1][2]:
            crossed += 1
        else:
            kept.append(pair)
    return Anchors(
        tuple(mark for mark, _, _ in kept),
        tuple(time for _, time, _ in kept),
        tuple(time for _, _, time in kept),
        crossed,
    )


def events_only(marks: Iterable[Mark]) -> int:
    """How many marks are records, and neither entry nor release of the lane."""
    return sum(mark.instance > 0 for mark in marks)


@dataclass(frozen=True, slots=True)
class Guides:
    """By which anchors each warp of a set is mapped: its own, or those of a guide, another warp of the CTA on the same clock.

    `common` are the marks that each warp shares with the reference.
    """

    common: Mapping[int, frozenset[Mark]]
    guide: Mapping[int, int]

    @classmethod
    def of(cls, there: Mapping[int, Track], here: Mapping[int, Track]) -> Guides:
        """A warp without a site in common is guided by the warp that has most. `guide` lacks it where no warp has any."""
        common = {warp: frozenset(anchors_of(track, here[warp]).marks) for warp, track in there.items()}
        own = {warp: events_only(marks) for warp, marks in common.items()}
        best = max(own, key=lambda warp: (own[warp], -warp))
        guide = {warp: warp if own[warp] else best for warp in own if own[warp] or own[best]}
        return cls(common, guide)

    def between(
        self, there: Mapping[int, Track], here: Mapping[int, Track], warp: int, blocks: Sequence[tuple[int, int]]
    ) -> Anchors:
        """The anchors for a warp. Those of a guide that lie within one of the warp's `blocks` are none: a wait is not cut."""
        guide = self.guide[warp]
        anchors = anchors_of(there[guide], here[guide], self.common[guide])
        if guide == warp:
            return anchors
        starts = [start for start, _ in blocks]
        kept = []
        for row in zip(anchors.marks, anchors.there, anchors.here, strict=True):
            at = bisect_right(starts, row[1]) - 1
            if at < 0 or not blocks[at][0] < row[1] < blocks[at][1]:
                kept.append(row)
        return _in_order(kept)
