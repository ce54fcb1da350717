# SPDX-License-Identifier: Apache-2.0
"""Stalls: the time between the two stamps of one wait, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping

from autostamp.model.manifest import EventKind, Instance, Payload
from autostamp.model.timeline import Slice, State
from autostamp.model.trace import Lane


def stage_of(instance: Instance, payload: int) -> int:
    """The ring index that a record of `instance` names: run-time payload, else traced constant, else -1."""
    return payload if instance.payload is Payload.STAGE else instance.stage


def stalls_of(lane: Lane, instances: Mapping[int, Instance]) -> tuple[list[Slice], tuple[int, ...]]:
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
            stage = stage_of(instances[event.instance], payload or event.payload)
            stalls.append(Slice(start, event.cycles, State.STALL, event.instance, event.visit, stage))
    return stalls, tuple(instance for instance, _ in opened)
