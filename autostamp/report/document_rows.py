# SPDX-License-Identifier: Apache-2.0
"""One warp of a report document as columns, be it measured or predicted."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import Any, Final

from autostamp.model.timeline import State, WarpTimeline
from autostamp.report import flow_objects
from autostamp.report.columns import Encode
from autostamp.report.document_tables import Numbers

STATES: Final = {State.ACTIVE: 0, State.STALL: 1, State.PASS: 2}


def row_object(
    warp: WarpTimeline, causes: Mapping[tuple[int, int, int], int], numbers: Numbers, columns: Encode
) -> dict[str, Any]:
    """One element of `rows`. `causes` are indices by warp, instance and visit of the wait."""
    parts, number, stalled = warp.slices, warp.warp, State.STALL
    caused = [causes.get((number, part.instance, part.visit), -1) if part.state is stalled else -1 for part in parts]
    return {
        "warp": number,
        "role": warp.role,
        "start": warp.start,
        "end": warp.end,
        "lost": warp.lost,
        **{name: value for name, value in flow_objects.times(warp).items() if name != "span"},
        "spans": {
            "start": columns(map(attrgetter("start"), parts), delta=True),
            "end": columns(map(attrgetter("end"), parts), delta=True),
            "state": columns([STATES[part.state] for part in parts]),
            "instance": columns(numbers.instances_of(map(attrgetter("instance"), parts))),
            "visit": columns(map(attrgetter("visit"), parts)),
            "stage": columns(map(attrgetter("stage"), parts)),
            "cause": columns(caused),
            **_origins(warp, columns),
        },
        "signals": {
            "at": columns([signal.cycles for signal in warp.signals], delta=True),
            "instance": columns(numbers.instances_of(signal.instance for signal in warp.signals)),
            "visit": columns([signal.visit for signal in warp.signals]),
            "stage": columns([signal.stage for signal in warp.signals]),
        },
    }


def _origins(warp: WarpTimeline, columns: Encode) -> dict[str, Any]:
    """Columns that only spans of a joined run have."""
    if not any(part.replay for part in warp.slices):
        return {}
    return {name: columns(map(attrgetter(name), warp.slices)) for name in ("replay", "error", "length_error")}
