# SPDX-License-Identifier: Apache-2.0
"""Work regions: active time that the source brackets with a begin and an end, and no barrier opens."""

from __future__ import annotations

from collections.abc import Mapping

from autostamp.model.manifest import EventKind, Instance
from autostamp.model.timeline import Slice, State
from autostamp.model.trace import Lane


def work_of(lane: Lane, instances: Mapping[int, Instance]) -> list[Slice]:
    """The lane's work regions in order of their ends, as active slices with `signal` 0.

    A visit's begin pairs with the end of the same visit, so regions may nest and overlap. One without its end has no slice:
    how long it lasted was not recorded.
    """
    begun: dict[tuple[int, int], int] = {}
    regions: list[Slice] = []
    for event in lane.events:
        key = (event.instance, event.visit)
        if event.kind is EventKind.BEGIN:
            begun[key] = event.cycles
        elif event.kind is EventKind.END and key in begun:
            stage = instances[event.instance].stage
            regions.append(Slice(begun.pop(key), event.cycles, State.ACTIVE, *key, stage))
    return regions
