# SPDX-License-Identifier: Apache-2.0
"""Waits: the time between the two stamps of one, and nothing else. Each is a stall or a pass."""

from __future__ import annotations

from collections.abc import Mapping

from autostamp.analysis.rings import Rings
from autostamp.model.manifest import EventKind, Instance
from autostamp.model.timeline import Slice, State
from autostamp.model.trace import Lane


def waits_of(
    lane: Lane, instances: Mapping[int, Instance], rings: Rings, ready: Mapping[int, int]
) -> tuple[list[Slice], tuple[int, ...]]:
    """The lane's waits in order of their exits, and the instances of waits left open, in order of their enters.

    A wait of no more cycles than `ready` gives for its instance is a pass (-1: none is). A visit's enter pairs with the exit of
    the same visit, wherever other records stand between them. One of the two records carries the payload: the exit's where the
    operand was only known once the call was written out. An open wait has no slice; it is never extended to some later record.
    The one stamp of a wait that was placed with one alone is a mark: no wait, and none left open.
    """
    marks = {number for number, instance in instances.items() if instance.enter and not instance.exit}
    opened: dict[tuple[int, int], tuple[int, int]] = {}
    waits: list[Slice] = []
    for event in lane.events:
        key = (event.instance, event.visit)
        if event.instance in marks:
            continue
        if event.kind is EventKind.ENTER:
            opened[key] = (event.cycles, event.payload)
        elif event.kind is EventKind.EXIT and key in opened:
            start, payload = opened.pop(key)
            stage = rings.stage(instances[event.instance], payload or event.payload)
            state = State.PASS if event.cycles - start <= ready.get(event.instance, -1) else State.STALL
            waits.append(Slice(start, event.cycles, state, event.instance, event.visit, stage))
    return waits, tuple(instance for instance, _ in opened)
