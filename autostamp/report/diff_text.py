# SPDX-License-Identifier: Apache-2.0
"""What changed between two runs, as text and as an object that JSON can hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from autostamp.model.comparison import Change, Comparison, Figure, Growth, SitePlace
from autostamp.report.verdict_words import kernel_name

SCHEMA_VERSION: Final = 1
"""Raised when a key is renamed, removed or changes its meaning; added keys leave it."""

_HEADINGS: Final = ("", "A", "B", "B - A", "% of A", "noise", "")


def as_text(of: Comparison, runs: tuple[str, str], top: int = 10) -> str:
    """The comparison as tables: the CTA and the period, each role, then the `top` waits whose stall differs most.

    Values are medians over launches, in brackets the least and the most where there are several.
    """
    named = [
        f"{letter} = {run} ({_counted(count, 'launch', 'launches')})"
        for letter, run, count in zip("AB", runs, of.launches, strict=True)
    ]
    lines = [f"{kernel_name(of.kernel)}: {', '.join(named)}, {_counted(of.blocks, 'CTA', 'CTAs')}"]
    lines += [f"note: {note}" for note in of.notes]
    whole = [("CTA", of.cycles), *([("period", of.period)] if of.period is not None else [])]
    lines += ["", "cycles", *_table([_row(name, change) for name, change in whole])]
    lines += ["", "roles (warp-cycles a CTA)"]
    rows = [_row(f"{role.role} {change.name}", change) for role in of.roles for change in role.changes]
    lines += _table(rows)
    if of.sites:
        lines += ["", f"waits whose stall differs most ({min(top, len(of.sites))} of {len(of.sites)})"]
        shown = [(_where(site.first, site.second), site) for site in of.sites[:top]]
        lines += _table([_row(where, site.stall) for where, site in shown])
    for run, places in (("A", of.only_first), ("B", of.only_second)):
        lines += ["", f"waits of {run} only", *(f"  {_named(place)}" for place in places)] if places else []
    return "\n".join(lines) + "\n"


def growths_text(growths: Sequence[Growth], percent: float) -> str:
    """One line for each figure that grew past the limit; empty where none did."""
    lines = [
        f"{growth.what} grew by {growth.percent:.1f} %, more than {percent:g} %"
        + ("" if growth.is_certain else " (noise unknown: one launch)")
        for growth in growths
    ]
    return "".join(f"{line}\n" for line in lines)


def as_object(of: Comparison, growths: Sequence[Growth]) -> dict[str, Any]:
    """All of it, nothing rounded; `noise` and `period` are null where they are unknown."""
    found = asdict(of)
    for change in _changes(found):
        change["is_change"] = change["noise"] is not None and abs(change["delta"]) > change["noise"]
    return {**found, "growths": [asdict(growth) for growth in growths]}


def _changes(value: object) -> list[dict[str, Any]]:
    """Every change within an object made of dictionaries and sequences."""
    if isinstance(value, dict):
        own = [value] if "delta" in value else []
        return [*own, *(found for each in value.values() for found in _changes(each))]
    if isinstance(value, (list, tuple)):
        return [found for each in value for found in _changes(each)]
    return []


def _row(name: str, change: Change) -> tuple[str, ...]:
    part = f"{100 * change.delta / change.first.median:+.1f} %" if change.first.median else ""
    noise = "unknown" if change.noise is None else f"±{change.noise:,.0f}"
    verdict = "changed" if change.is_change else ""
    return name, _figure(change.first), _figure(change.second), f"{change.delta:+,.0f}", part, noise, verdict


def _figure(figure: Figure) -> str:
    if figure.count == 1:
        return f"{figure.median:,.0f}"
    return f"{figure.median:,.0f} [{figure.least:,.0f} - {figure.most:,.0f}]"


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Rows under the headings, names to the left and figures to the right."""
    cells = [_HEADINGS, *rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(_HEADINGS))]
    return [
        "  ".join(
            cell.ljust(width) if column in (0, len(_HEADINGS) - 1) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]


def _where(first: SitePlace, second: SitePlace) -> str:
    moved = f" (was :{first.line})" if first.line != second.line else ""
    return f"{second.role} {second.file}:{second.line}{moved} {second.barrier}".rstrip()


def _named(place: SitePlace) -> str:
    return f"{place.role} {place.file}:{place.line} {place.barrier}  {place.text}".rstrip()


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"
