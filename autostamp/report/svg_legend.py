# SPDX-License-Identifier: Apache-2.0
"""Below the rows of the picture: both axes, the legend, and notes on what the picture does not show as it was."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from autostamp.model.timeline import Timeline
from autostamp.report.joined_notes import is_drowned, split_waits
from autostamp.report.states import Tick
from autostamp.report.svg_elements import figure, fitted, rect, step_labels, steps, text, width_of, wrapped
from autostamp.report.svg_labels import Labels
from autostamp.report.svg_layout import MARGIN, Layout
from autostamp.report.svg_rows import role_style

AXIS = 26.0
"""Height of one axis."""
_AXIS_LABEL = 92.0
"""Pixels between two labels of an axis: room for nine digits with separators."""
_LINE = 19.0
_ITEM_GAP = 18.0
_SWATCH = 14.0
_SIZE = 12.0


@dataclass(frozen=True, slots=True)
class _Item:
    """A legend entry: swatch classes (several: side by side) and text. A tick is drawn lower and thinner."""

    classes: tuple[str, ...]
    label: str
    is_tick: bool = False

    @property
    def width(self) -> float:
        return _SWATCH * len(self.classes) + 6 + width_of(self.label, _SIZE)


def axis(layout: Layout, mhz: float) -> Iterator[str]:
    """Cycles with grid lines through the rows; below, microseconds where the clock is known."""
    scale = layout.scale
    top = min(group.y for group in layout.groups)
    yield from _axis(layout, layout.bottom + 6, "cycles", 1.0)
    for value in steps(scale.start, scale.end, int(scale.width / _AXIS_LABEL)):
        x = figure(scale.x(value))
        yield f'<line class="grid" x1="{x}" x2="{x}" y1="{figure(top - 3)}" y2="{figure(layout.bottom + 6)}"/>'
    if mhz:
        yield from _axis(layout, layout.bottom + 6 + AXIS, f"µs at {mhz:,.0f} MHz", mhz)


def _axis(layout: Layout, y: float, unit: str, cycles_per_unit: float) -> Iterator[str]:
    scale = layout.scale
    left, right = figure(scale.left), figure(scale.right)
    yield f'<line class="axis" x1="{left}" x2="{right}" y1="{figure(y)}" y2="{figure(y)}"/>'
    values = steps(scale.start / cycles_per_unit, scale.end / cycles_per_unit, int(scale.width / _AXIS_LABEL))
    for value, label in zip(values, step_labels(values), strict=True):
        x = scale.x(value * cycles_per_unit)
        yield f'<line class="axis" x1="{figure(x)}" x2="{figure(x)}" y1="{figure(y)}" y2="{figure(y + 4)}"/>'
        yield text(x, y + 15, label, "m", "middle")
    # Beyond the half of a label that may stand at the right end.
    yield text(scale.right + _AXIS_LABEL / 2, y + 15, unit, "f")


def legend(layout: Layout, labels: Labels, width: float) -> tuple[list[str], float]:
    """Entries in lines as wide as the picture, from pixel row 0, and their height."""
    parts: list[str] = []
    x, y = MARGIN, 22.0
    for item in _items(layout, labels):
        label = fitted(item.label, width - 2 * MARGIN - _SWATCH * len(item.classes) - 6, _SIZE)
        if x > MARGIN and x + item.width > width - MARGIN:
            x, y = MARGIN, y + _LINE
        for classes in item.classes:
            left, top, across, down = (x + 5, y - 8, 2, 8) if item.is_tick else (x, y - 10, _SWATCH - 2, 12)
            parts.append(rect(left, top, across, down, classes))
            x += _SWATCH
        parts.append(text(x + 4, y, label, ""))
        x += 6 + width_of(label, _SIZE) + _ITEM_GAP
    return parts, y + 8


def _items(layout: Layout, labels: Labels) -> Iterator[_Item]:
    active = [group for group in layout.groups if group.shares.active]
    if active:
        colors = tuple(dict.fromkeys(map(role_style, active)))
        yield _Item(colors, "active: holds a barrier's stage")
    shares = layout.shares
    ticks = [tick for group in layout.groups for row in group.rows for tick in row.ticks]
    stalled = [name for name in sorted(shares.stalls, key=labels.rank) if shares.stalls[name]]
    for name in filter(labels.has_color, stalled):
        yield _Item((labels.style_of(name),), f"stall on {name} {100 * shares.stalls[name] / shares.span:.1f}%")
    others = [name for name in stalled if not labels.has_color(name)]
    if others:
        share = 100 * sum(shares.stalls[name] for name in others) / shares.span
        count = f"{len(others)} other barriers" if len(others) > 1 else others[0]
        yield _Item((labels.style_of(others[0]),), f"stall on {count} {share:.1f}%")
    if shares.passed:
        label = f"pass: the barrier was complete already {100 * shares.passed / shares.span:.1f}%"
        yield _Item(("p",), label)
    if _has_drowned(layout):
        yield _Item((), "faint: a stall no longer than it may be off by")
    yield _Item(("u",), "untracked: nothing brackets it")
    if ticks:
        yield _Item((_tick_style(ticks, labels),), "signal, coloured as its barrier", is_tick=True)


def _has_drowned(layout: Layout) -> bool:
    marks = (mark for group in layout.groups for row in group.rows for mark in row.marks if not mark.is_merged)
    return any(is_drowned(part) for mark in marks for piece in mark.pieces for part in piece.slices)


def _tick_style(ticks: Iterable[Tick], labels: Labels) -> str:
    barrier = min((tick.barrier for tick in ticks), key=labels.rank)
    return labels.style_of(barrier, "t")


def notes(
    timeline: Timeline, layout: Layout, labels: Labels, width: float, more: str = "", remarks: Sequence[str] = ()
) -> tuple[list[str], float]:
    """Lines below the legend, `remarks` first and `more` (unless it is empty) last, from pixel row 0, and their height."""
    lines = [
        (line, classes)
        for note, classes in (*_alarms(timeline, labels, remarks), *_merging(layout), *([(more, "f")] if more else []))
        for line in wrapped(note, width - 2 * MARGIN, _SIZE)
    ]
    parts = [text(MARGIN, 14 + _LINE * number, line, classes) for number, (line, classes) in enumerate(lines)]
    return parts, _LINE * len(lines)


def _alarms(timeline: Timeline, labels: Labels, remarks: Sequence[str]) -> Iterator[tuple[str, str]]:
    for remark in (*remarks, *split_waits([timeline], labels.places)):
        yield f"note: {remark}", "w"
    for warning in timeline.warnings:
        yield f"warning: {warning}", "w"
    for warp in timeline.warps:
        if warp.lost:
            yield f"warning: warp {warp.warp} lost {warp.lost:,} records: its last part is not shown", "w"
        for instance in warp.open_waits:
            why = "its exit may be among the lost records" if warp.lost else "never came out"
            yield f"warning: warp {warp.warp} entered {labels.where(instance)}; {why}", "w"


def _merging(layout: Layout) -> Iterator[tuple[str, str]]:
    if layout.has_merged:
        cycles = layout.least / layout.scale.pixels
        note = (
            f"Spans under {cycles:,.0f} cycles ({layout.least:g} px): neighbours are merged into one column whose heights"
            " are the shares of its states, a single one is widened. --from and --to zoom in."
        )
        yield note, "f"
