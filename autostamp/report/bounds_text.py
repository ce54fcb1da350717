# SPDX-License-Identifier: Apache-2.0
"""Where a stamp lies that a joined run did not record, for a reader."""

from __future__ import annotations

from typing import Any, Final

from autostamp.model.manifest import Manifest
from autostamp.model.replay import Bound, Neighbour
from autostamp.report.places import Place, places_of
from autostamp.report.verdict_words import count_of

_LONGEST: Final = 48
"""Characters of a call's text."""


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
