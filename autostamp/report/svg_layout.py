# SPDX-License-Identifier: Apache-2.0
"""Where everything of one timeline's picture stands: rows, groups, columns, and what is drawn in each row. No SVG here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from autostamp.model.timeline import State, Timeline, WarpTimeline
from autostamp.report.places import Place
from autostamp.report.states import Mark, Piece, Tick, marks_of, pieces_of, ticks_of
from autostamp.report.svg_elements import STALLS, width_of

MARGIN: Final = 16.0
HEAD: Final = 66.0
"""Title, second line, and the headings of the columns at the right."""
STRIP: Final = 16.0
"""Height of a warp's states; its signals are ticks of height TICKS below them."""
TICKS: Final = 5.0
ROW: Final = 23.0
IDLE_STRIP: Final = 4.0
IDLE_ROW: Final = 6.0
GROUP_GAP: Final = 9.0
GROUP_LEAST: Final = 22.0
WARP_COLUMN: Final = 62.0
SHARE_COLUMNS: Final = {"stall": 47.0, "pass": 44.0, "active": 47.0, "untracked": 66.0}
"""Heading and width in pixels of each column of shares: room for `100.0%`, and for the longest heading."""
SHARES: Final = sum(SHARE_COLUMNS.values())
LEAST_PIXELS: Final = (1.0, 2.0, 4.0, 8.0, 16.0)
MOST_MARKS: Final = 7_000
"""A mark with its tooltip takes about 200 bytes: this many keep a picture below 2 MB."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Cycles to pixels: `start` to `end` become `left` to `left + width`."""

    start: int
    end: int
    left: float
    width: float

    @property
    def pixels(self) -> float:
        """Pixels per cycle."""
        return self.width / max(self.end - self.start, 1)

    @property
    def right(self) -> float:
        """Pixel of `end`."""
        return self.left + self.width

    def x(self, cycles: float) -> float:
        """Pixel of a cycle."""
        return self.left + (cycles - self.start) * self.pixels


@dataclass(frozen=True, slots=True)
class Shares:
    """Warp-cycles by what they were; `stalls` by the name of the barrier."""

    span: int
    active: int
    stalls: Mapping[str, int]
    passed: int = 0

    @property
    def stall(self) -> int:
        """Stalls on all barriers."""
        return sum(self.stalls.values())

    @property
    def untracked(self) -> int:
        """What nothing brackets."""
        return self.span - self.active - self.stall - self.passed


@dataclass(frozen=True, slots=True)
class Row:
    """One warp: `y` is the top of its strip. An idle warp recorded nothing between its entry and its exit."""

    warp: WarpTimeline
    y: float
    is_idle: bool
    marks: tuple[Mark, ...]
    ticks: tuple[Tick, ...]

    @property
    def height(self) -> float:
        """Height of the strip."""
        return IDLE_STRIP if self.is_idle else STRIP


@dataclass(frozen=True, slots=True)
class Group:
    """The rows of one role, from `y` down over `height` pixels. `color` numbers the roles that are not idle (-1: idle)."""

    color: int
    role: str
    y: float
    height: float
    rows: tuple[Row, ...]
    shares: Shares


@dataclass(frozen=True, slots=True)
class Layout:
    """All of it. `least` is the length in pixels below which neighbours were merged; `colors` numbers the barriers."""

    scale: Scale
    groups: tuple[Group, ...]
    bottom: float
    least: float
    colors: Mapping[str, int]
    has_merged: bool

    @property
    def shares(self) -> Shares:
        """Sum over the groups."""
        stalls: Counter[str] = Counter()
        for group in self.groups:
            stalls.update(group.shares.stalls)
        own = [group.shares for group in self.groups]
        spans, actives, passes = zip(*((each.span, each.active, each.passed) for each in own), strict=True)
        return Shares(sum(spans), sum(actives), stalls, sum(passes))


def lay_out(
    timeline: Timeline,
    places: Mapping[int, Place],
    window: tuple[int, int],
    width: float,
    top: float,
    axis_of: Timeline | None = None,
) -> Layout:
    """Place one timeline with at least one warp, from pixel row `top`, drawn over the cycles of `window`.

    `axis_of` is a timeline whose cycles lie at the same pixels (None: none does).
    """
    barrier = namer_of(places)
    roles = max((width_of(role.role, 13) for role in (axis_of or timeline).roles), default=0.0)
    left = MARGIN + 8 + min(max(roles, 40.0), 180.0) + WARP_COLUMN + 8
    right = width - MARGIN - SHARES - 14
    scale = Scale(*window, left, right - left)
    pieces = {warp.warp: pieces_of(warp, *window) for warp in timeline.warps}
    signals = {
        warp.warp: [
            (barrier(signal.instance), signal)
            for signal in warp.signals
            if window[0] <= signal.cycles < window[1] or signal.cycles == window[1] == warp.end
        ]
        for warp in timeline.warps
    }
    least, marks, ticks = LEAST_PIXELS[0], {}, {}
    for least in LEAST_PIXELS:
        shortest = least / scale.pixels
        marks = {warp: tuple(marks_of(found, shortest)) for warp, found in pieces.items()}
        ticks = {warp: tuple(ticks_of(found, shortest)) for warp, found in signals.items()}
        if sum(map(len, (*marks.values(), *ticks.values()))) <= MOST_MARKS:
            break
    groups: list[Group] = []
    y = top + HEAD
    for role, warps in _roles(timeline):
        rows = tuple(_rows(warps, y, marks, ticks))
        height = max(rows[-1].y + (IDLE_ROW if rows[-1].is_idle else ROW) - y, GROUP_LEAST)
        shares = shares_of([piece for warp in warps for piece in pieces[warp.warp]], barrier)
        color = -1 if all(row.is_idle for row in rows) else sum(group.color >= 0 for group in groups)
        groups.append(Group(color, role, y, height, rows, shares))
        y += height + GROUP_GAP
    has_merged = any(mark.is_merged for found in marks.values() for mark in found)
    return Layout(scale, tuple(groups), y - GROUP_GAP, least, _colors(timeline, barrier), has_merged)


def shares_of(pieces: Sequence[Piece], barrier: Callable[[int], str]) -> Shares:
    """Lengths of the pieces by state, and of stalls by barrier."""
    stalls: Counter[str] = Counter()
    active = passed = 0
    for piece in pieces:
        if piece.state is State.STALL:
            stalls[barrier(piece.slices[0].instance)] += piece.cycles
        elif piece.state is State.ACTIVE:
            active += piece.cycles
        elif piece.state is State.PASS:
            passed += piece.cycles
    return Shares(sum(piece.cycles for piece in pieces), active, dict(sorted(stalls.items())), passed)


def namer_of(places: Mapping[int, Place]) -> Callable[[int], str]:
    """A function from an instance to what its barrier is called in the picture: its side where it has no name."""

    def barrier(instance: int) -> str:
        place = places.get(instance)
        return (place.barrier or place.side if place else "") or "unnamed barrier"

    return barrier


def _roles(timeline: Timeline) -> Iterator[tuple[str, list[WarpTimeline]]]:
    """Roles in the order of their first warps, warps in the order of the hardware."""
    found: dict[str, list[WarpTimeline]] = {}
    for warp in sorted(timeline.warps, key=lambda warp: warp.warp):
        found.setdefault(warp.role, []).append(warp)
    yield from found.items()


def _rows(
    warps: Sequence[WarpTimeline],
    y: float,
    marks: Mapping[int, tuple[Mark, ...]],
    ticks: Mapping[int, tuple[Tick, ...]],
) -> Iterator[Row]:
    for warp in warps:
        is_idle = not (warp.slices or warp.signals or warp.open_waits)
        yield Row(warp, y, is_idle, marks[warp.warp], ticks[warp.warp])
        y += IDLE_ROW if is_idle else ROW


def _colors(timeline: Timeline, barrier: Callable[[int], str]) -> dict[str, int]:
    """Barriers by the whole timeline's time spent in stalls on them, so that a part of it is coloured as the whole is."""
    total: Counter[str] = Counter()
    for warp in timeline.warps:
        for part in warp.slices:
            if part.state is State.STALL:
                total[barrier(part.instance)] += part.cycles
    ranked = sorted(total, key=lambda name: (-total[name], name))
    return {name: rank for rank, name in enumerate(ranked[: len(STALLS)])}
