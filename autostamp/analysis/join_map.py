# SPDX-License-Identifier: Apache-2.0
"""The clock of one warp in one launch, mapped onto its clock in another: monotone, and linear from piece to piece.

At an anchor the map takes one clock reading to the other. Between two anchors a wait keeps its length to the cycle, and the time
around the waits is stretched or squeezed to what is left. Where the waits alone are longer than the gap there, all of it is
squeezed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from autostamp.analysis.join_lanes import Anchors, Kind, Mark, Track
from autostamp.model.manifest import EventKind


class Block(NamedTuple):
    """A wait with both its records, or one record alone (`start` is `end`), as one launch has it."""

    marks: tuple[Mark, ...]
    payloads: tuple[int, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Placed:
    """A block on the other clock. `low` and `high` are the anchors around it there; `is_shortened`: the wait did not fit.

    `slack` is how far its place may be off by what the two launches differ there: as long after the anchor before it, or as long
    before the one after it, as it was where it was recorded.
    """

    block: Block
    start: int
    end: int
    gap: int
    low: int
    high: int
    slack: int = 0
    is_shortened: bool = False

    @property
    def bound(self) -> int:
        """By how much either end can be wrong at most, since a warp's records keep their order."""
        return max(self.end - self.low, self.high - self.start, 0)


def blocks_of(track: Track, wanted: frozenset[Kind]) -> list[Block]:
    """The wanted records of a track: a wait's two as one block, when no other record stands between them."""
    blocks: list[Block] = []
    skip = -1
    for at, (mark, time) in enumerate(zip(track.marks, track.times, strict=True)):
        if at == skip or Kind(mark.instance, mark.kind) not in wanted:
            continue
        after = track.marks[at + 1] if at + 1 < len(track.marks) else None
        is_wait = mark.kind is EventKind.ENTER and after == Mark(mark.instance, EventKind.EXIT, mark.visit)
        if after is not None and is_wait and Kind(after.instance, after.kind) in wanted:
            skip = at + 1
            blocks.append(Block((mark, after), track.payloads[at : at + 2], time, track.times[skip]))
        else:
            blocks.append(Block((mark,), track.payloads[at : at + 1], time, time))
    return blocks


def place(blocks: Sequence[Block], anchors: Anchors) -> list[Placed]:
    """The blocks on the clock that the anchors lead to. Blocks before the first anchor or after the last are shifted with it."""
    placed: list[Placed] = []
    by_gap: dict[int, list[Block]] = {}
    for block in blocks:
        by_gap.setdefault(anchors.gap(block.start), []).append(block)
    for gap, inside in sorted(by_gap.items()):
        if gap < 0 or gap + 1 >= len(anchors.there):
            placed += _outside(inside, anchors, gap)
        else:
            placed += _within(inside, anchors, gap)
    return placed


def _outside(blocks: Sequence[Block], anchors: Anchors, gap: int) -> list[Placed]:
    at = max(gap, 0)
    shift = anchors.here[at] - anchors.there[at]
    found = []
    for block in blocks:
        start, end = block.start + shift, block.end + shift
        # Nothing bounds it on one side: as far from its anchor as it is itself.
        far = abs(start - anchors.here[at]) + block.end - block.start
        found.append(Placed(block, start, end, gap, start - far, end + far))
    return found


def _within(blocks: Sequence[Block], anchors: Anchors, gap: int) -> list[Placed]:
    first, last = anchors.there[gap], anchors.there[gap + 1]
    low, high = anchors.here[gap], anchors.here[gap + 1]
    # A wait that goes on past the anchor is no whole: its single thread recorded it while the warp went on.
    rigid = sum(min(block.end, last) - block.start for block in blocks)
    free, left = last - first - rigid, high - low - rigid
    is_shortened = left < 0
    scale = (high - low) / (last - first) if is_shortened and last > first else 1.0
    stretch = left / free if free > 0 and not is_shortened else scale
    found: list[Placed] = []
    at, place_at = first, float(low)
    for block in blocks:
        place_at += max(block.start - at, 0) * stretch
        length = (min(block.end, last) - block.start) * (scale if is_shortened else 1.0)
        start = min(max(round(place_at), low), high)
        end = min(start + round(length), high)
        start = max(low, min(start, end - round(length)))
        after, before = low - first, high - last
        off = [abs(new - old - by) for new, old in ((start, block.start), (end, block.end)) for by in (after, before)]
        is_other = end - start != block.end - block.start
        found.append(Placed(block, start, end, gap, low, high, max(off), is_other))
        place_at += length
        at = max(block.end, at)
    return found


class Occupied:
    """Spans of one warp that are taken: it can be in one wait at a time."""

    def __init__(self, spans: Sequence[tuple[int, int]]) -> None:
        self._spans = sorted(span for span in spans if span[1] > span[0])

    def nearest(self, start: int, length: int, low: int, high: int) -> int | None:
        """The start nearest to `start` within `low` to `high` at which `length` cycles are free; None where there is none."""
        candidates = [start]
        around = bisect_right(self._spans, (start, high)) - 1
        for at in range(max(around - 4, 0), min(around + 6, len(self._spans))):
            before, after = self._spans[at]
            candidates += [before - length, after]
        fitting = [one for one in candidates if low <= one and one + length <= high and self._is_free(one, length)]
        return min(fitting, key=lambda one: abs(one - start), default=None)

    def take(self, start: int, end: int) -> None:
        """Mark a span as taken."""
        if end > start:
            self._spans.insert(bisect_right(self._spans, (start, end)), (start, end))

    def _is_free(self, start: int, length: int) -> bool:
        end = start + length
        at = bisect_right(self._spans, (start, start))
        near = self._spans[max(at - 4, 0) : at + 4]
        if length == 0:
            return not any(before < start < after for before, after in near)
        return not any(before < end and start < after for before, after in near)
