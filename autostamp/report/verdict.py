# SPDX-License-Identifier: Apache-2.0
"""The verdict on one timeline as text that fits on one screen: what bound the kernel, and how far that can be trusted."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from autostamp.model.flow import Flow
from autostamp.model.manifest import Manifest
from autostamp.model.run import MachineFacts
from autostamp.model.timeline import Timeline
from autostamp.report.clock import clock_mhz
from autostamp.report.cost import Cost
from autostamp.report.places import barriers_of, places_of
from autostamp.report.units import in_unit
from autostamp.report.verdict_path import headline, path_lines
from autostamp.report.verdict_stalls import role_table, unexplained_lines, wait_lines
from autostamp.report.verdict_words import Words, count_of, percent

WIDTH: Final = 100
MOST_LINES: Final = 40
"""Of the whole verdict, its headline included."""
_MOST_NOTES: Final = 6


@dataclass(frozen=True, slots=True)
class Verdict:
    """Plain text: the headline names what bound the kernel and the period, the lines say the rest.

    `sentences` are all lines unbroken, without the table of roles and the cost of measuring: for a page, which has a table of
    either and breaks lines itself.
    """

    headline: str
    lines: tuple[str, ...]
    sentences: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """All of it, at most MOST_LINES lines of WIDTH columns."""
        return "\n".join((*wrapped(self.headline), *self.lines))


def verdict(
    timeline: Timeline,
    flow: Flow,
    manifest: Manifest,
    facts: MachineFacts | None = None,
    cost: Cost | None = None,
    notes: Iterable[str] = (),
    launches: Iterable[str] = (),
    caveat: str = "",
) -> Verdict:
    """The verdict on one timeline. `notes` are loud ones that stand before the flow's; lines that do not fit are counted.

    `launches` are lines on several launches, for the sentences alone. `caveat` is for the headline.
    """
    mhz = clock_mhz(timeline, facts or MachineFacts())
    words = Words(places_of(manifest, timeline.trace), barriers_of(manifest, timeline.trace), mhz)
    said = (*notes, *flow.notes)
    before = [*_steady(flow, words), *path_lines(flow, words)]
    after = [*wait_lines(timeline, flow, words), *unexplained_lines(flow), *_between(flow, words)]
    sections = [*before, *role_table(timeline, flow), *after, *_trust(timeline, cost or Cost())]
    loud = [f"note: {note}" for note in said[:_MOST_NOTES]]
    if len(said) > _MOST_NOTES:
        loud.append(f"note: and {count_of(len(said) - _MOST_NOTES, 'more note')}")
    head = headline(timeline, flow, words, caveat)
    room = MOST_LINES - len(wrapped(head))
    last = [line for note in loud for line in wrapped(note)][:room]
    lines = [line for section in sections for line in wrapped(section)]
    if len(lines) + len(last) > room:
        kept = max(room - len(last) - 1, 0)
        lines = [*lines[:kept], f"({count_of(len(lines) - kept, 'more line')}: `autostamp report` shows all)"]
    sentences = tuple(line.strip() for line in (*before, *launches, *after))
    unit = timeline.unit
    return Verdict(
        in_unit(head, unit),
        tuple(in_unit(line, unit) for line in (*lines, *last[: room - len(lines)])),
        tuple(in_unit(line, unit) for line in sentences),
    )


def wrapped(line: str) -> list[str]:
    """A line as it is where it fits, else broken between words with its indent kept and two columns more."""
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.wrap(line, WIDTH, subsequent_indent=indent, break_on_hyphens=False) if len(line) > WIDTH else [line]


def _steady(flow: Flow, words: Words) -> Iterator[str]:
    steady = flow.steady
    if steady is None:
        yield "steady state: none found, so no period, path, overlap or depth is given"
        return
    begins = words.place(steady.instance)
    yield (
        f"steady state: {count_of(steady.iterations, 'iteration')} of {steady.role} (warp {steady.warp}), each from"
        f" {words.wait(begins)}; cycles {steady.start:,} to {steady.end:,};"
        f" {steady.fill:,} of fill before, {steady.drain:,} of drain after"
    )
    period = steady.period
    yield (
        f"period: median {words.length(period.median)}, p10-p90 {words.spread(period.p10, period.p90)},"
        f" longest {period.longest:,}"
    )


def _between(flow: Flow, words: Words) -> Iterator[str]:
    """What roles did at once, how much of each ring was used, and who signals before the work is done."""
    pairs = sorted(flow.overlaps, key=lambda pair: (-pair.share, pair.first, pair.second))[:4]
    if pairs:
        listed = "; ".join(f"{pair.first} and {pair.second} {percent(pair.share)}" for pair in pairs)
        yield f"overlap (both busy, of either busy): {listed}"
    if flow.depths:
        listed = "; ".join(
            f"{words.barrier(item.barrier, '')} median {item.median:.1f}, most {item.most} of {item.stages or '?'}"
            for item in flow.depths[:4]
        )
        yield f"stages in use: {listed}"
    if flow.early and not any(item.early for item in flow.early):
        yield f"early signals: none of {count_of(sum(item.arrows for item in flow.early), 'arrow')}"
    for item in [item for item in flow.early if item.early][:3]:
        place = words.place(item.instance)
        yield (
            f"early signals: {item.early:,} of {count_of(item.arrows, 'arrow')} from {words.wait(place)} ({item.role})"
            f" {'leaves' if item.arrows == 1 else 'leave'} the middle of work"
        )


def _trust(timeline: Timeline, cost: Cost) -> Iterator[str]:
    yield f"cost of measuring: {'; '.join(cost.texts())}"
    lossy = [warp for warp in timeline.warps if warp.lost]
    if lossy:
        yield f"records lost: {timeline.lost:,} in {len(lossy)} of {count_of(len(timeline.warps), 'warp')}"
    else:
        yield "records lost: none"
