# SPDX-License-Identifier: Apache-2.0
"""The summary of one timeline as an object that JSON can hold. Nothing is left out or rounded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from autostamp.model.flow import Flow
from autostamp.model.manifest import Manifest
from autostamp.model.run import MachineFacts
from autostamp.model.timeline import Timeline, WarpTimeline
from autostamp.report import flow_objects
from autostamp.report.clock import clock_mhz
from autostamp.report.columns import plain
from autostamp.report.cost import Cost
from autostamp.report.notes import loud_notes
from autostamp.report.places import Place, barriers_of, places_of
from autostamp.report.summary import skip_counts
from autostamp.report.verdict import Verdict, verdict

SCHEMA_VERSION: Final = 1
"""Raised when a key is renamed, removed or changes its meaning; added keys leave it."""


def as_object(
    timeline: Timeline,
    manifest: Manifest,
    facts: MachineFacts,
    flow: Flow | None = None,
    findings: Sequence[str] = (),
    cost: Cost | None = None,
    caveat: str = "",
) -> dict[str, Any]:
    """All figures of the summary. Times are cycles, or microseconds where a key ends in `us`; what is unknown is null.

    `flow` has the figures of a flow without its single arrows and causes, which `autostamp report --json` writes.
    `cost` and `caveat` are for its verdict.
    """
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
        "notes": [*findings, *loud_notes(timeline, manifest)],
        "machine": asdict(facts),
        "roles": flow_objects.roles(timeline.roles),
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
        "flow": _flow(timeline, flow, verdict(timeline, flow, manifest, facts, cost, caveat=caveat), manifest)
        if flow
        else None,
    }


def _flow(timeline: Timeline, flow: Flow, found: Verdict, manifest: Manifest) -> dict[str, Any]:
    causes = ("awaited", "in_flight", "handed_over", "unexplained")
    return {
        "verdict": {"headline": found.headline, "lines": list(found.lines)},
        "notes": list(flow.notes),
        "arrows": len(flow.arrows),
        "stalls": len(flow.causes),
        "causes": {name: sum(getattr(cause, name) for cause in flow.causes) for name in causes},
        "blame": flow_objects.blame(flow, _same),
        "steady": flow_objects.steady(flow.steady, _same, plain),
        "path": flow_objects.path_shares(flow.path, _same) if flow.path else None,
        "overlaps": flow_objects.overlaps(flow),
        "depths": flow_objects.depths(flow, _same),
        "early": flow_objects.early(flow, _same),
        "barriers": {str(number): label for number, label in barriers_of(manifest, timeline.trace).items()},
    }


def _same(number: int) -> int:
    return number


def _warp(warp: WarpTimeline) -> dict[str, Any]:
    return {
        "warp": warp.warp,
        "role": warp.role,
        "start": warp.start,
        "end": warp.end,
        **flow_objects.times(warp),
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
