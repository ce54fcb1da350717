# SPDX-License-Identifier: Apache-2.0
"""Where a stamp lies that a joined run did not record, for a reader."""

from __future__ import annotations

from typing import Any, Final

from autostamp.model.manifest import Manifest
from autostamp.model.placement import key_at
from autostamp.model.replay import Bound, Neighbour, Replays
from autostamp.model.sync import Kind
from autostamp.report.places import Place, places_of
from autostamp.report.verdict_words import count_of

_LONGEST: Final = 48
"""Characters of a call's text."""
_MOST_NAMED: Final = 6


def text_at(manifest: Manifest, key: str) -> str:
    """The call that a site's key names, as it is written, on one line and cut; empty where the manifest does not hold it."""
    place, _, content = key.rpartition("@")
    _, line, column = place.rsplit(":", 2)
    for file in manifest.files:
        if file.key == content:
            calls = [(site.span, site.text) for site in file.sites]
            calls += [(skip.span, skip.text) for skip in file.skips]
            for span, call in calls:
                if (str(span.line), str(span.column)) == (line, column):
                    text = " ".join(call.split())
                    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
    return ""


def unrecorded_waits(replays: Replays, manifest: Manifest, trace: int) -> tuple[str, ...]:
    """A sentence on the waits of a kernel trace that have no stall because stamps are missing; none where all have one."""
    waits = {
        key_at(file.path, file.key, skip) for file in manifest.files for skip in file.skips if skip.kind is Kind.WAIT
    }
    where = [each.key.rpartition("@")[0].rpartition(":")[0] for each in replays.uncovered if each.key in waits]
    for kernel in manifest.traces:
        if kernel.number == trace:
            places = places_of(manifest, trace)
            halves = [
                row for row in kernel.instances if row.kind == Kind.WAIT and bool(row.enter) is not bool(row.exit)
            ]
            where += [places[row.number].where for row in halves]
    named = list(dict.fromkeys(where))
    if not named:
        return ()
    more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    listed = ", ".join(named[:_MOST_NAMED]) + more
    said = f"{count_of(len(named), 'wait')} without both stamps: what is waited there counts as active"
    return (f"{said}, here and on the critical path ({listed})",)


def bound_line(bound: Bound, manifest: Manifest) -> str:
    """One sentence: the two records, and how far they are apart."""
    places = places_of(manifest, bound.kernel)
    before, after = (_named(each, places) for each in (bound.before, bound.after))
    who = f"{bound.role + ', ' if bound.role else ''}{count_of(len(bound.warps), 'warp')}"
    return f"lies between {before} and {after}: {_length(bound)} ({who})"


def bound_object(bound: Bound, manifest: Manifest) -> dict[str, Any]:
    """The same as an object that JSON can hold, with the neighbours by name and place."""
    places = places_of(manifest, bound.kernel)
    return {
        "key": bound.key,
        "stamp": bound.stamp,
        "kernel": bound.kernel,
        "role": bound.role,
        "warps": list(bound.warps),
        "before": _object(bound.before, places),
        "after": _object(bound.after, places),
        "count": bound.count,
        "median": bound.median,
        "p10": bound.p10,
        "p90": bound.p90,
        "error": bound.error,
    }


def _length(bound: Bound) -> str:
    apart = f"{bound.median:,} cycles"
    spread = f"p10-p90 {bound.p10:,} to {bound.p90:,}"
    if not bound.error:
        return f"{apart} in the median, {spread}"
    if bound.error >= bound.median:
        return f"{apart} in the median, but their places are stated to {bound.error:,} cycles only"
    return f"{apart} in the median, {spread}, stated to {bound.error:,}"


def _named(one: Neighbour, places: dict[int, Place]) -> str:
    """`the exit of wgmma wait_group (kernel.py:1449)`."""
    place = places[one.instance]
    which = "" if one.which == "each" else f"{one.which} "
    what = place.label() if one.kind == "signal" else f"{one.kind} of {place.label()}"
    trip = {1: ", next trip", -1: ", trip before"}.get(one.trip, "")
    return f"the {which}{what} ({place.where}{trip})"


def _object(one: Neighbour, places: dict[int, Place]) -> dict[str, Any]:
    place = places[one.instance]
    return {
        "label": place.label(),
        "file": place.file.rsplit("/", 1)[-1],
        "line": place.line,
        "kind": one.kind,
        "which": one.which,
        "trip": one.trip,
    }
