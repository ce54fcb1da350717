# SPDX-License-Identifier: Apache-2.0
"""The summary of one timeline as an object that JSON can hold. Nothing is left out or rounded."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from autostamp.model.manifest import Manifest
from autostamp.model.run import MachineFacts
from autostamp.model.timeline import RoleTotals, Timeline, WarpTimeline
from autostamp.report.places import Place, places_of
from autostamp.report.summary import clock_mhz, skip_counts

SCHEMA_VERSION: Final = 1
"""Raised when a key is renamed, removed or changes its meaning; added keys leave it."""


def as_object(timeline: Timeline, manifest: Manifest, facts: MachineFacts) -> dict[str, Any]:
    """All figures of the summary. Times are cycles, or microseconds where a key ends in `us`; what is unknown is null."""
    places = places_of(manifest, timeline.trace)
    mhz = clock_mhz(timeline, facts)
    skipped = skip_counts(manifest)
    return {
        "schema_version": SCHEMA_VERSION,
        "kernel": timeline.kernel,
        "trace": timeline.trace,
        "block": list(timeline.block),
        "launch": timeline.launch,
        "smid": timeline.smid if timeline.smid >= 0 else None,
        "wave": _known(timeline.wave),
        "offset": timeline.offset,
        "alignment_error": _known(timeline.alignment_error),
        "cycles": timeline.cycles,
        "us": timeline.cycles / mhz if mhz else None,
        "sm_mhz": mhz or None,
        "lost": timeline.lost,
        "warnings": list(timeline.warnings),
        "machine": asdict(facts),
        "roles": [{"role": role.role, "warps": list(role.warps), **_times(role)} for role in timeline.roles],
        "warps": [_warp(warp) for warp in timeline.warps],
        "sites": [
            {**_place(places.get(site.instance), site.instance), "role": site.role, "warps": list(site.warps)}
            | asdict(site.spread)
            for site in timeline.sites
        ],
        "longest": [
            {**_place(places.get(long.stall.instance), long.stall.instance), "role": long.role, "warp": long.warp}
            | {"start": long.stall.start, "end": long.stall.end, "cycles": long.stall.cycles}
            | {"visit": long.stall.visit, "stage": _known(long.stall.stage)}
            for long in timeline.longest
        ],
        "never_visited": [_place(places.get(instance), instance) for instance in timeline.never_visited],
        "skipped": {"count": sum(skipped.values()), "by_code": skipped},
    }


def _times(total: RoleTotals | WarpTimeline) -> dict[str, int]:
    return {"span": total.span, "stall": total.stall, "active": total.active, "untracked": total.untracked}


def _warp(warp: WarpTimeline) -> dict[str, Any]:
    return {
        "warp": warp.warp,
        "role": warp.role,
        "start": warp.start,
        "end": warp.end,
        **_times(warp),
        "lost": warp.lost,
        "is_released": warp.is_released,
        "open_waits": list(warp.open_waits),
    }


def _place(place: Place | None, instance: int) -> dict[str, Any]:
    if place is None:
        return {"instance": instance}
    keys = ("instance", "site", "file", "line", "text", "method", "kind", "side", "barrier")
    return {key: getattr(place, key) for key in keys}


def _known(stage: int) -> int | None:
    return stage if stage >= 0 else None
