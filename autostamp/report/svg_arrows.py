# SPDX-License-Identifier: Apache-2.0
"""Arrows of the picture: from the last arrival of a barrier's use to the exit of the wait for it, where they are few enough."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from autostamp.model.flow import Arrow, Flow
from autostamp.report.svg_elements import escaped, figure
from autostamp.report.svg_labels import Labels
from autostamp.report.svg_layout import STRIP, TICKS, Layout, Row

MOST_ARROWS: Final = 200
"""More than this many lines hide the rows that they cross."""
_HEAD: Final = 6.0
_HALF_HEAD: Final = 2.4
_CIRCLE: Final = 2.2


@dataclass(frozen=True, slots=True)
class Arrows:
    """Elements to draw, and how many arrows of the part that is shown were left out since they are too many."""

    elements: tuple[str, ...] = ()
    omitted: int = 0
    has_uncertain: bool = False

    @property
    def note(self) -> str:
        """What a reader must know about the arrows; empty without any."""
        if self.omitted:
            return f"{self.omitted:,} arrows of this part are not drawn (more than {MOST_ARROWS}): --from and --to zoom in."
        if not self.elements:
            return ""
        faint = " Faint: another arrival may have been the last, or the ends are closer than they may be off by."
        return (
            "Arrows lead from a barrier's last arrival to the exit of the wait for it. Dashed: inferred. Open circle:"
            f" asynchronous, the arrow starts at the issue.{faint if self.has_uncertain else ''}"
        )


def arrows_of(flow: Flow | None, layout: Layout, labels: Labels) -> Arrows:
    """The arrows both of whose ends lie within the cycles shown."""
    scale = layout.scale
    rows = {row.warp.warp: row for group in layout.groups for row in group.rows}
    found = [
        arrow
        for arrow in (flow.arrows if flow else ())
        if all(scale.start <= end.cycles <= scale.end and end.warp in rows for end in (arrow.signal, arrow.wait))
    ]
    if len(found) > MOST_ARROWS:
        return Arrows(omitted=len(found))
    return Arrows(
        tuple(element for arrow in found for element in _drawn(arrow, rows, layout, labels)),
        has_uncertain=any(_is_faint(arrow) for arrow in found),
    )


def _drawn(arrow: Arrow, rows: Mapping[int, Row], layout: Layout, labels: Labels) -> Iterator[str]:
    start, end = rows[arrow.signal.warp], rows[arrow.wait.warp]
    x1, y1 = layout.scale.x(arrow.signal.cycles), start.y + STRIP + TICKS / 2
    x2, y2 = layout.scale.x(arrow.wait.cycles), end.y + STRIP / 2
    length = math.hypot(x2 - x1, y2 - y1) or 1.0
    along, across = (x2 - x1) / length, (y2 - y1) / length
    barrier = labels.barrier(arrow.wait.instance)
    color = labels.style_of(barrier, "a")
    points = [(x2, y2)]
    for side in (1, -1):
        x = x2 - _HEAD * along + side * _HALF_HEAD * across
        points.append((x, y2 - _HEAD * across - side * _HALF_HEAD * along))
    corners = " ".join(f"{figure(x)},{figure(y)}" for x, y in points)
    line = f'x1="{figure(x1)}" y1="{figure(y1)}" x2="{figure(x2)}" y2="{figure(y2)}"'
    opening = '<g opacity="0.4">' if _is_faint(arrow) else "<g>"
    yield f"{opening}<title>{escaped(_title(arrow, (start, end), labels))}</title>"
    yield f'<line class="a {color}{" d" if arrow.is_inferred else ""}" {line}/>'
    yield f'<polygon class="{labels.style_of(barrier, "t")} e" points="{corners}"/>'
    if arrow.is_async:
        yield f'<circle class="a o {color}" cx="{figure(x1)}" cy="{figure(y1)}" r="{figure(_CIRCLE)}"/>'
    yield "</g>"


def _is_faint(arrow: Arrow) -> bool:
    """True for an arrow of a joined timeline that may be another, or whose length means nothing."""
    return arrow.is_uncertain or 0 < arrow.error >= abs(arrow.wait.cycles - arrow.signal.cycles)


def _title(arrow: Arrow, rows: tuple[Row, Row], labels: Labels) -> str:
    stage = f"[{arrow.stage}]" if arrow.stage >= 0 else ""
    named = f"{labels.barrier(arrow.wait.instance)}{stage}{labels.side(arrow.wait.instance)}, use {arrow.use}"
    ends = [
        f"{name} warp {end.warp} ({row.warp.role}), cycle {end.cycles:,}: {labels.where(end.instance)}"
        for name, end, row in zip(("from", "to"), (arrow.signal, arrow.wait), rows, strict=True)
    ]
    marks = [
        *(["asynchronous: the arrow starts at the issue"] if arrow.is_async else []),
        *(["inferred from the source and from order"] if arrow.is_inferred else []),
        *(["between two replays"] if arrow.is_between else []),
        *([f"right to {arrow.error:,} cycles"] if arrow.error else []),
        *(["another arrival may have been the last"] if arrow.is_uncertain else []),
    ]
    return "\n".join([named, *ends, *marks])
