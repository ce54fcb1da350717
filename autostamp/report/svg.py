# SPDX-License-Identifier: Apache-2.0
"""Timelines as one self-contained SVG: a row per warp, grouped by role, and where each role's time went at the right.

A warp is always in one of four states, and each looks like nothing else: active is the role's solid colour, a stall is hatched
in the colour of the barrier that it waits for, a pass is plain grey, untracked is faint background. Arrows are drawn where
they are few. The same input gives the same text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from autostamp.model.flow import Flow
from autostamp.model.manifest import Manifest
from autostamp.model.run import MachineFacts
from autostamp.model.timeline import Timeline
from autostamp.report.clock import clock_mhz
from autostamp.report.places import places_of
from autostamp.report.svg_arrows import arrows_of
from autostamp.report.svg_elements import BACKGROUND, escaped, figure, fitted, style, text, width_of
from autostamp.report.svg_labels import Labels
from autostamp.report.svg_layout import MARGIN, Layout, Shares, lay_out
from autostamp.report.svg_legend import AXIS, axis, legend, notes
from autostamp.report.svg_rows import group, headings
from autostamp.report.units import in_unit

WIDTH = 1280
"""Pixels. The text is laid out for this size; viewers scale the picture as a whole."""

_PANEL_GAP = 30.0


def timeline_svg(
    timelines: Sequence[Timeline],
    manifest: Manifest,
    facts: MachineFacts | None = None,
    window: tuple[int | None, int | None] = (None, None),
    flows: Sequence[Flow] = (),
    axis_of: Mapping[int, int] | None = None,
    remarks: Mapping[int, Sequence[str]] | None = None,
) -> str:
    """The picture of `timelines`, one below the other, as the text of an SVG file.

    `window` bounds the cycles that are drawn (None: the kernel's own begin or end); what reaches beyond is cut. `flows`
    are those of the timelines, in their order (empty: no arrows). `axis_of`: by the place of a timeline that of another one,
    whose cycles it is drawn over. `remarks` are sentences for below the picture, by kernel trace. Raises ValueError for a
    window that leaves nothing of any timeline. A timeline that lies outside it is left out.
    """
    parts: list[str] = []
    y = 0.0
    names = []
    for index, timeline in enumerate(timelines):
        axis_like = timelines[(axis_of or {}).get(index, index)]
        shown = bounds(axis_like, window)
        if shown is None:
            continue
        flow = flows[index] if flows else None
        said = ((remarks or {}).get(timeline.trace, ()), _among(timeline, timelines))
        panel, y = _panel((timeline, flow), manifest, facts or MachineFacts(), (shown, axis_like), y, said)
        parts += panel
        names.append(timeline.kernel)
        y += _PANEL_GAP
    if not parts:
        message = "no timeline has a warp within the cycles asked for"
        raise ValueError(message)
    height = figure(y - _PANEL_GAP + MARGIN)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
        f' role="img" aria-label="{escaped("Timeline of " + ", ".join(names))}">'
    )
    sheet = f'<rect width="{WIDTH}" height="{height}" rx="6" fill="{BACKGROUND}"/>'
    return "\n".join([head, style(), sheet, *parts, "</svg>"]) + "\n"


def bounds(timeline: Timeline, window: tuple[int | None, int | None]) -> tuple[int, int] | None:
    """The cycles of `window` that the timeline covers; None when there is none."""
    if not timeline.warps:
        return None
    start = min(warp.start for warp in timeline.warps)
    end = max(warp.end for warp in timeline.warps)
    first = start if window[0] is None else max(start, window[0])
    last = end if window[1] is None else min(end, window[1])
    return (first, last) if first < last else None


def _panel(
    pair: tuple[Timeline, Flow | None],
    manifest: Manifest,
    facts: MachineFacts,
    over: tuple[tuple[int, int], Timeline],
    top: float,
    said: tuple[Sequence[str], str],
) -> tuple[list[str], float]:
    """The elements of one timeline and the pixel row where they end. `over` are cycles, and the timeline whose axis they are.

    `said` are sentences for below the picture, and what tells it from the others for its title.
    """
    timeline, flow = pair
    shown, axis_like = over
    remarks, among = said
    places = places_of(manifest, timeline.trace)
    mhz = clock_mhz(timeline, facts)
    layout = lay_out(timeline, places, shown, WIDTH, top, axis_like)
    labels = Labels(places, layout.colors, mhz)
    parts = [*_title(timeline, facts, mhz, layout, top, among), *headings(layout, top)]
    for item in layout.groups:
        parts += group(item, layout, labels)
    drawn = arrows_of(flow, layout, labels)
    parts += [*drawn.elements, *axis(layout, mhz)]
    y = layout.bottom + AXIS + (AXIS if mhz else 0)
    for lines in (legend(layout, labels, WIDTH), notes(timeline, layout, labels, WIDTH, drawn.note, remarks)):
        placed, height = lines
        parts.append(f'<g transform="translate(0 {figure(y)})">{"".join(placed)}</g>')
        y += height
    return [in_unit(part, timeline.unit) for part in parts], y


def _among(timeline: Timeline, timelines: Sequence[Timeline]) -> str:
    """Which launch it is where there are several, and when a CTA started where there are several in its launch.

    Every panel begins at its own cycle 0.
    """
    like = [each for each in timelines if each.trace == timeline.trace]
    beside = [each for each in like if each.launch == timeline.launch and each.block != timeline.block]
    parts = [f"launch {timeline.launch}"] if len({each.launch for each in like}) > 1 else []
    if beside and timeline.alignment_error >= 0:
        parts.append(f"starts at {timeline.offset:,} ± {timeline.alignment_error:,} cycles of its launch")
    return ", ".join(parts)


def _title(
    timeline: Timeline, facts: MachineFacts, mhz: float, layout: Layout, top: float, among: str
) -> Iterator[str]:
    """Kernel, CTA, GPU and cycles on one line; what is shown of them and the shares of all warp time on the next."""
    where = f"CTA {timeline.block}" + (f" on SM {timeline.smid}" if timeline.smid >= 0 else "")
    time = f"{timeline.cycles:,} cycles" + (f" = {timeline.cycles / mhz:,.2f} µs at {mhz:,.0f} MHz" if mhz else "")
    rest = " · ".join(part for part in (where, among, facts.gpu, time) if part)
    room = WIDTH - 2 * MARGIN
    rest = fitted(rest, room * 0.6, 12)
    kernel = fitted(timeline.kernel, room - width_of(rest, 12) - 16, 15)
    yield (
        f'<text x="{figure(MARGIN)}" y="{figure(top + 26)}"><tspan class="h">{escaped(kernel)}</tspan>'
        f'<tspan dx="14">{escaped(rest)}</tspan></text>'
    )
    yield text(MARGIN, top + 46, fitted(_verdict(timeline, layout), layout.scale.right - MARGIN, 12), "f")


def _verdict(timeline: Timeline, layout: Layout) -> str:
    shares: Shares = layout.shares
    start, end = layout.scale.start, layout.scale.end
    is_part = end - start < timeline.cycles
    shown = f"showing cycles {start:,} to {end:,}; " if is_part else ""
    if not shares.span:
        return shown.rstrip("; ")
    parts = {"stall": shares.stall, "pass": shares.passed, "active": shares.active, "untracked": shares.untracked}
    named = (f"{100 * part / shares.span:.1f}% {name}" for name, part in parts.items() if part or name != "pass")
    return f"{shown}of all warp time: {', '.join(named)}"
