# SPDX-License-Identifier: Apache-2.0
"""One state at a time: a warp's span cut into pieces, and pieces too small to see put together."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from autostamp.model.timeline import Signal, Slice, State, WarpTimeline


@dataclass(frozen=True, slots=True)
class Piece:
    """A half-open span of cycles in which a warp does one thing: `slices` is its wait, or all its holds, or nothing.

    The slices are whole, also where the piece is a part of them.
    """

    start: int
    end: int
    slices: tuple[Slice, ...]

    @property
    def cycles(self) -> int:
        """Length of the span."""
        return self.end - self.start

    @property
    def state(self) -> State | None:
        """Stall, pass or active; None: untracked."""
        return self.slices[0].state if self.slices else None


@dataclass(frozen=True, slots=True)
class Mark:
    """What is drawn as one thing: one piece, or neighbours each too small to be seen alone."""

    pieces: tuple[Piece, ...]

    @property
    def start(self) -> int:
        """First cycle."""
        return self.pieces[0].start

    @property
    def end(self) -> int:
        """Cycle after the last."""
        return self.pieces[-1].end

    @property
    def is_merged(self) -> bool:
        """True when it stands for more than one piece."""
        return len(self.pieces) > 1


@dataclass(frozen=True, slots=True)
class Tick:
    """Signals of one barrier so close to each other that they are drawn as one, in the order of time."""

    barrier: str
    signals: tuple[Signal, ...]


def pieces_of(warp: WarpTimeline, start: int, end: int) -> list[Piece]:
    """The warp's span between two cycles as pieces without gaps. Time in a wait is a stall or a pass, whatever the warp holds.

    Of stalls within each other (a single-thread region waits inside a wait) a piece names the one that began last.
    """
    start, end = max(start, warp.start), min(end, warp.end)
    slices = [part for part in warp.slices if start < part.end and part.start < end and part.cycles]
    bounds = {start, end} | {part.start for part in slices} | {part.end for part in slices}
    cuts = sorted(cut for cut in bounds if start <= cut <= end)
    waiting = iter(sorted(enumerate(slices), key=lambda pair: pair[1].start))
    following = next(waiting, None)
    opened: dict[int, Slice] = {}
    ends: list[tuple[int, int]] = []
    pieces: list[Piece] = []
    for left, right in pairwise(cuts):
        while ends and ends[0][0] <= left:
            del opened[heapq.heappop(ends)[1]]
        while following is not None and following[1].start <= left:
            opened[following[0]] = following[1]
            heapq.heappush(ends, (following[1].end, following[0]))
            following = next(waiting, None)
        _append(pieces, Piece(left, right, _shown(opened.values())))
    return pieces


def marks_of(pieces: Iterable[Piece], least: float) -> Iterator[Mark]:
    """Every piece of at least `least` cycles as a mark of its own, shorter neighbours together up to that length.

    Untracked time is background: it has no mark of its own, and none begins or ends with it.
    """
    run: list[Piece] = []
    length = 0
    for piece in pieces:
        if piece.cycles < least:
            run.append(piece)
            length += piece.cycles
        if run and (length >= least or piece.cycles >= least):
            yield from _merged(run)
            run, length = [], 0
        if piece.cycles >= least and piece.slices:
            yield Mark((piece,))
    yield from _merged(run)


def ticks_of(signals: Iterable[tuple[str, Signal]], least: float) -> Iterator[Tick]:
    """Signals, each with its barrier's name, in the order of time; those of one barrier within `least` cycles are one."""
    groups: dict[str, list[Signal]] = {}
    for barrier, signal in signals:
        group = groups.setdefault(barrier, [])
        if group and signal.cycles - group[0].cycles >= least:
            yield Tick(barrier, tuple(group))
            group.clear()
        group.append(signal)
    for barrier, group in groups.items():
        yield Tick(barrier, tuple(group))


def _shown(opened: Iterable[Slice]) -> tuple[Slice, ...]:
    found = tuple(opened)
    for state in (State.STALL, State.PASS):
        waits = [part for part in found if part.state is state]
        if waits:
            return (max(waits, key=lambda part: (part.start, -part.end)),)
    return found


def _append(pieces: list[Piece], piece: Piece) -> None:
    """Add a piece, or extend the last one when nothing changed between the two."""
    if pieces and pieces[-1].slices == piece.slices:
        piece = Piece(pieces.pop().start, piece.end, piece.slices)
    pieces.append(piece)


def _merged(run: Sequence[Piece]) -> Iterator[Mark]:
    tracked = [index for index, piece in enumerate(run) if piece.slices]
    if tracked:
        yield Mark(tuple(run[tracked[0] : tracked[-1] + 1]))
