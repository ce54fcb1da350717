# SPDX-License-Identifier: Apache-2.0
"""Stalls: the time between the two stamps of one wait, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping

from autostamp.analysis.rings import Rings
from autostamp.model.manifest import EventKind, Instance
from autostamp.model.timeline import Slice, State
from autostamp.model.trace import Lane


def stalls_of(lane: Lane, instances: Mapping[int, Instance], rings: Rings) -> tuple[list[Slice], tuple[int, ...]]:
    """The lane's stalls in order of their exits, and the instances of waits left open, in order of their enters.

    A visit's enter pairs with the exit of the same visit, wherever other records stand between them. One of the two records
    carries the payload: the exit's where the operand was only known once the call was written out. An open wait has no stall;
    it is never extended to some later record.
    """
    opened: dict[tuple[int, int], tuple[int, int]] = {}
    stalls: list[Slice] = []
    for event in lane.events:
        key = (event.instance, event.visit)
        if event.kind is EventKind.ENTER:
            opened[key] = (event.cycles, event.payload)
        elif event.kind is EventKind.EXIT and key in opened:
            start, payload = opened.pop(key)
            stage = rings.stage(instances[event.instance], payload or event.payload)
            stalls.append(Slice(start, event.cycles, State.STALL, event.instance, event.visit, stage))
    return stalls, tuple(instance for instance, _ in opened)
