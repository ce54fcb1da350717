# SPDX-License-Identifier: Apache-2.0
"""The rows of the picture: labels at the left, states and signals over time, shares of each role at the right."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from autostamp.model.timeline import State, WarpTimeline
from autostamp.report.joined_notes import is_drowned
from autostamp.report.states import Mark
from autostamp.report.svg_elements import ROLES, escaped, faded, fitted, mono_width_of, rect, text
from autostamp.report.svg_labels import Labels
from autostamp.report.svg_layout import (
    MARGIN,
    SHARE_COLUMNS,
    SHARES,
    STRIP,
    TICKS,
    WARP_COLUMN,
    Group,
    Layout,
    Row,
    Shares,
    shares_of,
)

_NAME_SIZE = 10.0
"""Font size in pixels of a name on a slice; below this many pixels of room there is none."""
_NAME_LEAST = 24.0
_BAR = 8.0
_SHARE_GAP = 14.0


def headings(layout: Layout, top: float) -> Iterator[str]:
    """Heads of the columns of shares."""
    left = layout.scale.right + _SHARE_GAP
    yield text(left + SHARES, top + 46, "share of the role's time", "f", "end")
    for name, right in zip(SHARE_COLUMNS, accumulate(SHARE_COLUMNS.values()), strict=True):
        yield text(left + right, top + 60, name, "m f", "end")


def group(item: Group, layout: Layout, labels: Labels) -> Iterator[str]:
    """Everything of one role."""
    color = role_style(item)
    yield rect(MARGIN, item.y, 3, item.height, color)
    room = layout.scale.left - MARGIN - WARP_COLUMN - 16
    yield text(MARGIN + 9, item.y + STRIP / 2 + 4.5, fitted(item.role, room, 13), "b")
    yield from _warp_labels(item, layout)
    for row in item.rows:
        yield from _row(row, color, layout, labels)
    yield from _shares(item, color, layout, labels)


def role_style(item: Group) -> str:
    """Style class of a role's active time, grey for a role whose warps do nothing."""
    return f"r{item.color % len(ROLES)}" if item.color >= 0 else "i"


def _warp_labels(item: Group, layout: Layout) -> Iterator[str]:
    """`warp 4` beside its row; idle neighbours, whose rows are thin, share one label."""
    x = layout.scale.left - 8
    idle: list[Row] = []
    for row in (*item.rows, None):
        if row is not None and row.is_idle:
            idle.append(row)
            continue
        if idle:
            middle = (idle[0].y + idle[-1].y + idle[-1].height) / 2
            numbers = "-".join(str(number) for number in dict.fromkeys((idle[0].warp.warp, idle[-1].warp.warp)))
            # A role without records is named after its warps: no need to say their numbers twice.
            label = "idle" if item.role.endswith(f" {numbers}") else f"{numbers} idle"
            least = item.y + 12.5 if len(idle) == len(item.rows) else 0.0
            yield text(x, max(middle + 4, least), label, "m f", "end")
            idle = []
        if row is not None:
            yield text(x, row.y + STRIP / 2 + 4, f"warp {row.warp.warp}", "m f", "end")


def _row(row: Row, color: str, layout: Layout, labels: Labels) -> Iterator[str]:
    """The span as background, states over it (the shortest last, so that none is hidden), signals below."""
    scale, warp = layout.scale, row.warp
    left, right = (scale.x(min(max(bound, scale.start), scale.end)) for bound in (warp.start, warp.end))
    if left >= right:
        return
    yield rect(left, row.y, right - left, row.height, "u", labels.of_lane(warp))
    shortest = layout.least / scale.pixels
    for is_short in (False, True):
        for mark in row.marks:
            if (mark.end - mark.start < shortest) is is_short:
                yield from _mark(mark, row, (left, right), color, layout, labels)
    for tick in row.ticks:
        x = min(max(scale.x(tick.signals[0].cycles) - 0.5, left), right - 1)
        classes = labels.style_of(tick.barrier, "t")
        yield rect(x, row.y + STRIP + 0.5, 1.25, TICKS - 0.5, classes, labels.of_tick(tick, warp.warp))
    if warp.lost and last_record(warp) <= scale.end:
        x = max(scale.x(last_record(warp)), left)
        title = f"warp {warp.warp} lost {warp.lost:,} records from here on: what it did is unknown"
        yield rect(x, row.y - 1, 2, STRIP + 2, "w", title)


def last_record(warp: WarpTimeline) -> int:
    """Cycle of the last thing that a warp's records say."""
    return max([warp.start, *(part.end for part in warp.slices), *(part.cycles for part in warp.signals[-1:])])


def _mark(
    mark: Mark, row: Row, limits: tuple[float, float], color: str, layout: Layout, labels: Labels
) -> Iterator[str]:
    left, right = limits
    start = layout.scale.x(mark.start)
    width = max(layout.scale.x(mark.end) - start, layout.least)
    # A span too short to be seen is widened to the right, but not beyond its warp's end.
    x = max(min(start, right - width), left)
    if mark.is_merged:
        yield from _merged(mark, row, (x, width), color, labels)
        return
    piece = mark.pieces[0]
    part = piece.slices[0]
    if piece.state is State.PASS:
        # Without the hatching of a stall and the colour of a barrier: nobody was waited for.
        yield rect(x, row.y, width, row.height, "p", labels.of_piece(piece, row.warp.warp))
        return
    is_stall = piece.state is State.STALL
    classes = labels.style_of(labels.barrier(part.instance)) if is_stall else color
    drawn = rect(x, row.y, width, row.height, classes, labels.of_piece(piece, row.warp.warp))
    yield faded(drawn) if is_stall and is_drowned(part) else drawn
    name = labels.use(part) if is_stall else " ".join(labels.use(held) for held in piece.slices)
    if width >= _NAME_LEAST and mono_width_of(name, _NAME_SIZE) <= width - 6:
        classes = "in over" if is_stall else "in on"
        yield text(x + width / 2, row.y + STRIP / 2 + 3.5, name, classes, "middle")


def _merged(mark: Mark, row: Row, place: tuple[float, float], color: str, labels: Labels) -> Iterator[str]:
    """Several spans in one column: active from below, then passes, then stalls, each as high as its share; no untracked."""
    x, width = place
    shares = shares_of(mark.pieces, labels.barrier)
    yield f"<g><title>{escaped(labels.of_merged(mark, shares, row.warp.warp))}</title>"
    y = row.y + row.height
    for classes, cycles in _stacked(shares, color, labels):
        height = row.height * cycles / shares.span
        y -= height
        yield rect(x, y, width, height, classes)
    yield "</g>"


def _shares(item: Group, color: str, layout: Layout, labels: Labels) -> Iterator[str]:
    """A bar of what the role's time was, stalls by barrier, and its three shares below."""
    left, room = layout.scale.right + _SHARE_GAP, SHARES
    shares = item.shares
    if not shares.span:
        return
    title = labels.of_shares(item.role, shares)
    yield f"<g><title>{escaped(title)}</title>{rect(left, item.y, room, _BAR, 'u')}"
    stalls = [pair for pair in _stacked(shares, color, labels) if pair[0] != color]
    x = left
    for classes, cycles in [*reversed(stalls), (color, shares.active)]:
        width = room * cycles / shares.span
        if width:
            yield rect(x, item.y, width, _BAR, classes)
        x += width
    yield "</g>"
    parts = (shares.stall, shares.passed, shares.active, shares.untracked)
    for right, part in zip(accumulate(SHARE_COLUMNS.values()), parts, strict=True):
        yield text(left + right, item.y + _BAR + 12, f"{100 * part / shares.span:.1f}%", "m", "end")


def _stacked(shares: Shares, color: str, labels: Labels) -> list[tuple[str, int]]:
    """Style classes and cycles: active first, then passes, then stalls, the most waited for (of the whole picture) last."""
    stalls: dict[str, int] = {}
    for barrier, cycles in sorted(shares.stalls.items(), key=lambda pair: labels.rank(pair[0])):
        classes = labels.style_of(barrier)
        stalls[classes] = stalls.get(classes, 0) + cycles
    found = [(color, shares.active), ("p", shares.passed), *reversed(stalls.items())]
    return [(classes, cycles) for classes, cycles in found if cycles]
