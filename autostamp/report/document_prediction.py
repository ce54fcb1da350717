# SPDX-License-Identifier: Apache-2.0
"""A prediction beside the timeline that it was held against: what was found, and the predicted timeline's rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from autostamp.model.manifest import Manifest
from autostamp.model.timeline import Timeline, WarpTimeline
from autostamp.report.columns import Encode
from autostamp.report.document_rows import row_object
from autostamp.report.document_tables import Tables, add_predicted


@dataclass(frozen=True, slots=True)
class Predicted:
    """What `autostamp reconcile` says of one measured timeline, and the prediction played out.

    `lines` are what follows the headline. `predicted` and `measured` are periods in cycles. `timeline` has `iterations` of every
    role, from cycle 0 on; `manifest` names its waits. `begin` is where that cycle 0 lies on the measured axis.
    """

    headline: str
    lines: tuple[str, ...]
    predicted: float
    measured: float
    iterations: int
    begin: int
    timeline: Timeline
    manifest: Manifest


def prediction_object(found: Predicted, tables: Tables, columns: Encode) -> dict[str, Any]:
    """A timeline's `prediction`. Adds what the predicted rows wait for to the document's tables."""
    numbers = add_predicted(tables, found.manifest)
    warps = [moved(warp, found.begin) for warp in found.timeline.warps]
    return {
        "headline": found.headline,
        "lines": list(found.lines),
        "period": {"predicted": found.predicted, "measured": found.measured},
        "timeline": {
            "iterations": found.iterations,
            "start": found.begin,
            "end": max((warp.end for warp in warps), default=found.begin),
            "rows": [row_object(warp, {}, numbers, columns) for warp in warps],
        },
    }


def moved(warp: WarpTimeline, by: int) -> WarpTimeline:
    """The same warp, all of it so many cycles later."""
    return replace(
        warp,
        start=warp.start + by,
        end=warp.end + by,
        slices=tuple(replace(each, start=each.start + by, end=each.end + by) for each in warp.slices),
        signals=tuple(replace(each, cycles=each.cycles + by) for each in warp.signals),
    )
