# SPDX-License-Identifier: Apache-2.0
"""A placement as text: what each site does alone, the sets, and what no set covers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from autostamp.model.placement import MARKS, Form, PlacedSite, Placement, ReplaySet, ScheduleFeatures
from autostamp.report.verdict_words import count_of

Row = tuple[str, ...]


def as_text(placement: Placement, texts: Mapping[str, str]) -> str:
    """The whole placement; `texts` has the source text of sites by key."""
    rows = [_site_row(each, texts.get(each.key, "")) for each in placement.sites]
    lines = [placement.kernel, "", *table(SITE_HEADINGS, rows), ""]
    lines += table(SET_HEADINGS, [_set_row(each) for each in placement.sets])
    lines += list(_last(placement, texts))
    return "\n".join(lines) + "\n"


SITE_HEADINGS: Row = ("site alone", "form", "distance", "order", "waits moved", "registers", "spills", "effect", "call")
SET_HEADINGS: Row = ("set", "sites", "distance", "order", "waits moved", "registers", "spills", "anchors")


def table(headings: Row, rows: Sequence[Row]) -> list[str]:
    """Aligned columns."""
    widths = [max(len(row[column]) for row in (headings, *rows)) for column in range(len(headings))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (headings, *rows)
    ]


def place_of(key: str) -> str:
    """`NAME:LINE` of a site's key."""
    return key.partition("@")[0].rpartition(":")[0]


def _site_row(site: PlacedSite, text: str) -> Row:
    return (place_of(site.key), _form(site.form), *_features(site.features), site.effect.value, _cut(text))


def _cut(text: str) -> str:
    """A call on a line: inline asm is hundreds of characters."""
    return text if len(text) <= 48 else text[:47] + "…"


def _form(form: Form) -> str:
    return f"{form.value} only" if form in (Form.ENTER, Form.EXIT) else form.value


def _features(found: ScheduleFeatures) -> Row:
    moved = ", ".join(f"{name} {clean}→{stamped}" for name, (clean, stamped) in found.waits_moved.items())
    before, after = found.registers
    unrolled = "" if found.unroll[0] == found.unroll[1] else f" unrolled {found.unroll[0]:g}→{found.unroll[1]:g}"
    return (
        f"{found.distance:.3f}",
        f"{found.order_share:.3f}",
        (moved or "-") + unrolled,
        str(after) if before == after else f"{before}→{after}",
        "-" if found.spills[0] == found.spills[1] else f"{found.spills[0]}→{found.spills[1]} B",
    )


def _set_row(each: ReplaySet) -> Row:
    anchors = ", ".join(place_of(key) for key in each.anchors) or "none"
    return (str(each.number), str(len(each.sites)), *_features(each.features), anchors)


def _last(placement: Placement, texts: Mapping[str, str]) -> Iterator[str]:
    yield ""
    alone = {each.key: each for each in placement.sites}
    covered = len({key for each in placement.sets for key, _ in each.sites})
    yield f"{count_of(covered, 'site')} in {count_of(len(placement.sets), 'set')}, {placement.compiles:,} variants compiled"
    for key in placement.uncovered:
        site = alone.get(key)
        cost = f"distance {site.features.distance:.3f} alone" if site is not None else "not compiled"
        yield f"in no set: {place_of(key)} {_cut(texts.get(key, ''))}, {cost}"
    whole = {key for each in placement.sets for key, form in each.sites if form not in MARKS}
    marks = {(key, form) for each in placement.sets for key, form in each.sites if key not in whole}
    for key, form in sorted(marks):
        yield f"{_form(form)}: {place_of(key)} {_cut(texts.get(key, ''))}, a mark in time, no stall"
    for key in sorted({key for each in placement.sets for key, form in each.sites if form is Form.BEFORE}):
        yield f"stamped before: {place_of(key)} {_cut(texts.get(key, ''))}, comes no later than the warp's next record"
