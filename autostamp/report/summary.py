# SPDX-License-Identifier: Apache-2.0
"""The summary of one timeline: the verdict on top, then where the time of each role, warp and site went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from autostamp.model.flow import Flow
from autostamp.model.manifest import Manifest
from autostamp.model.run import MachineFacts
from autostamp.model.timeline import LongStall, RoleTotals, SiteStall, Timeline, WarpTimeline
from autostamp.report.clock import clock_mhz
from autostamp.report.cost import Cost
from autostamp.report.joined_notes import site_errors
from autostamp.report.notes import loud_notes
from autostamp.report.places import Place, places_of
from autostamp.report.units import in_unit
from autostamp.report.verdict import verdict, wrapped
from autostamp.report.verdict_words import kernel_name

MIN_WIDTH: Final = 80
MIN_SOURCE: Final = 20
_GAP: Final = "  "
_STATES: Final = {"stall": "stall", "passed": "pass", "active": "active", "untracked": "untracked"}
"""Field of the totals: what it is called."""
_FLEXIBLE: Final = "source"
"""The column, always the last, that is cut when a table is wider than the page."""


@dataclass(frozen=True, slots=True)
class _Table:
    """`columns` maps a heading to whether its cells are figures."""

    title: str
    columns: Mapping[str, bool]
    rows: Sequence[Sequence[str]]
    note: str = ""


def skip_counts(manifest: Manifest) -> dict[str, int]:
    """How many recognised calls were not stamped, by the AS#### code that explains why."""
    return dict(sorted(Counter(skip.code for file in manifest.files for skip in file.skips).items()))


def as_text(
    timeline: Timeline,
    manifest: Manifest,
    facts: MachineFacts,
    *,
    width: int = 120,
    top: int = 10,
    is_terminal: bool = False,
    flow: Flow | None = None,
    findings: Sequence[str] = (),
    cost: Cost | None = None,
    notes: Sequence[str] = (),
    caveat: str = "",
) -> str:
    """The summary as lines laid out for `width` columns, with up to `top` sites, stalls and missed instances.

    With `flow` its verdict stands above the rest, with what measuring cost as far as `cost` has it, `caveat` and
    `notes`. `findings` say what is wrong with the records.

    With `is_terminal` headings are bold; without, the text is plain.
    """
    places = _Places(places_of(manifest, timeline.trace))
    heading, *totals = (in_unit(line, timeline.unit) for line in _totals(timeline, places, facts))
    bold, plain = ("\x1b[1m", "\x1b[0m") if is_terminal else ("", "")
    lines = [heading]
    if flow is not None:
        found = verdict(timeline, flow, manifest, facts, cost or Cost(), notes, caveat=caveat)
        lines += ["", *(f"{bold}{line}{plain}" for line in wrapped(found.headline)), *found.lines, ""]
    lines += [*totals, *_trouble(timeline, manifest, findings)]
    for table in _tables(timeline, places, top) if timeline.warps else ():
        named = replace(table, title=in_unit(table.title, timeline.unit))
        lines += ["", *_table_lines(named, max(width, MIN_WIDTH), is_terminal)]
    lines += _uncovered(timeline, manifest, places, top)
    return "\n".join(lines) + "\n"


class _Places:
    """Places by instance, with a stand-in for an instance that the manifest does not hold."""

    def __init__(self, places: Mapping[int, Place]) -> None:
        self._places = places

    def __getitem__(self, instance: int) -> Place:
        return self._places.get(instance) or Place(instance, 0, "?", 0, "", "", "", "", "", "")

    def __len__(self) -> int:
        return len(self._places)


def _totals(timeline: Timeline, places: _Places, facts: MachineFacts) -> Iterator[str]:
    """Which kernel and CTA, its length, and where the time of all warps went."""
    where = f"CTA {timeline.block}" + (f" on SM {timeline.smid}" if timeline.smid >= 0 else "")
    roles = ", ".join(f"{role.role} {len(role.warps)}" for role in timeline.roles)
    which = f"{kernel_name(timeline.kernel)} (kernel trace {timeline.trace})"
    yield f"{which}, {where}: {len(timeline.warps)} warps ({roles or 'none'})"
    mhz = clock_mhz(timeline, facts)
    time = f" = {timeline.cycles / mhz:,.2f} µs at {mhz:,.0f} MHz" if mhz else " (SM clock unknown)"
    lost = f"{timeline.lost:,} records LOST" if timeline.lost else "no record lost"
    yield f"{timeline.cycles:,} cycles{time}; {lost}"
    span = sum(role.span for role in timeline.roles)
    if span:
        shares = (
            f"{_share(sum(getattr(role, part) for role in timeline.roles), span)} {name}"
            for part, name in _STATES.items()
            if part != "passed" or any(role.passed for role in timeline.roles)
        )
        yield f"of all warp time: {', '.join(shares)}"
    if timeline.sites:
        site = max(timeline.sites, key=lambda site: site.spread.total)
        role_span = next(role.span for role in timeline.roles if role.role == site.role)
        place = places[site.instance]
        yield (
            f"most waited for: {place.label()} at {place.where} by {site.role}, {site.spread.total:,} warp-cycles"
            f" = {_share(site.spread.total, role_span)} of the role"
        )
    machine = ", ".join(
        part for part in (facts.gpu, facts.driver and f"driver {facts.driver}", facts.recorded_at) if part
    )
    if machine:
        yield f"recorded on {machine}"


def _trouble(timeline: Timeline, manifest: Manifest, findings: Sequence[str]) -> Iterator[str]:
    for finding in findings:
        yield f"warning: {finding}"
    # Sites that were not reached have a list of their own below.
    for note in loud_notes(timeline, manifest, with_missed=False):
        yield f"warning: {note}"


def _tables(timeline: Timeline, places: _Places, top: int) -> Iterator[_Table]:
    times = {"span": True, **dict.fromkeys(_STATES.values(), True)}
    yield _Table(
        "Roles, in warp-cycles",
        {"role": False, "warps": False, **times},
        [[role.role, _warps(role.warps), *_times(role)] for role in timeline.roles],
    )
    yield _Table(
        "Warps, in cycles",
        {"warp": True, "role": False, **times, "lost": True},
        [[str(warp.warp), warp.role, *_times(warp), f"{warp.lost:,}"] for warp in timeline.warps],
    )
    by_total = sorted(timeline.sites, key=lambda site: (-site.spread.total, site.instance, site.role))
    errors = site_errors(timeline)
    columns = {"where": False, "barrier": False, "role": False}
    numbers = {"visits": True, "median": True, "p10-p90": True, "longest": True, "total": True}
    yield _Table(
        "Waits by total stall, in cycles",
        {**columns, **numbers, _FLEXIBLE: False},
        [_site_row(site, places[site.instance], errors.get((site.role, site.instance), 0)) for site in by_total[:top]],
        _more(len(by_total), top),
    )
    yield _Table(
        "Longest stalls, in cycles",
        {**columns, "warp": True, "visit": True, "from": True, "to": True, "stall": True, _FLEXIBLE: False},
        [_long_row(long, places[long.stall.instance]) for long in timeline.longest[:top]],
    )


def _site_row(site: SiteStall, place: Place, error: int) -> list[str]:
    spread = site.spread
    return [
        place.where,
        place.barrier or place.side,
        site.role,
        f"{spread.count:,}",
        f"{spread.median:,.0f}" + (f" ± {error:,}" if error else ""),
        f"{spread.p10:,.0f}-{spread.p90:,.0f}",
        f"{spread.longest:,}",
        f"{spread.total:,}",
        place.text,
    ]


def _long_row(long: LongStall, place: Place) -> list[str]:
    stall = long.stall
    barrier = f"{place.barrier}[{stall.stage}]" if place.barrier and stall.stage >= 0 else place.barrier or place.side
    numbers = (long.warp, stall.visit, stall.start, stall.end, stall.cycles)
    return [place.where, barrier, long.role, *(f"{value:,}" for value in numbers), place.text]


def _uncovered(timeline: Timeline, manifest: Manifest, places: _Places, top: int) -> Iterator[str]:
    missed = timeline.never_visited
    if missed:
        why = " (or only after a lane was full)" if timeline.lost else ""
        yield f"\nnever visited by the recorded CTA{why}: {len(missed)} of {len(places)} instances"
        for instance in missed[:top]:
            place = places[instance]
            yield f"  {place.where}  {place.label()}" + (f"  ({place.role})" if place.role else "")
        if len(missed) > top:
            yield f"  {_more(len(missed), top)}"
    skipped = skip_counts(manifest)
    if skipped:
        codes = ", ".join(f"{code} x {count}" for code, count in skipped.items())
        yield f"\nrecognised and not stamped: {sum(skipped.values())} calls ({codes}); `autostamp explain CODE` says why"


def _table_lines(table: _Table, width: int, is_terminal: bool) -> Iterator[str]:
    """Title, headings and rows. Figures and places are never cut: a table whose other columns fill the page is wider."""
    headings = list(table.columns)
    rows = [headings, *table.rows]
    widths = [max(len(row[index]) for row in rows) for index in range(len(headings))]
    if _FLEXIBLE in table.columns:
        last = headings.index(_FLEXIBLE)
        others = sum(widths) - widths[last] + len(_GAP) * (len(widths) - 1)
        widths[last] = min(widths[last], max(width - others, MIN_SOURCE))
    bold, plain = ("\x1b[1m", "\x1b[0m") if is_terminal else ("", "")
    yield f"{bold}{table.title}{plain}"
    for number, row in enumerate(rows):
        cells = (
            cell.rjust(room) if is_number else _cut(cell, room).ljust(room)
            for cell, room, is_number in zip(row, widths, table.columns.values(), strict=True)
        )
        line = _GAP.join(cells).rstrip()
        yield f"{bold}{line}{plain}" if number == 0 else line
    if table.note:
        yield table.note


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 3]}..."


def _times(total: RoleTotals | WarpTimeline) -> list[str]:
    parts: list[int] = [getattr(total, part) for part in _STATES]
    return [f"{total.span:,}", *(f"{part:,} {_share(part, total.span):>6}" for part in parts)]


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}%" if whole else "-"


def _warps(warps: Sequence[int]) -> str:
    is_run = len(warps) > 1 and warps[-1] - warps[0] == len(warps) - 1
    return f"{warps[0]}-{warps[-1]}" if is_run else ",".join(map(str, warps))


def _more(count: int, top: int) -> str:
    return f"and {count - top} more" if count > top else ""
