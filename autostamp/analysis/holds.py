# SPDX-License-Identifier: Apache-2.0
"""Holds: from a wait's exit to the signal by which the same warp ends the same use of the same barrier.

A consumer holds a stage between its wait on the full side and its release on the empty side; a producer between its
acquire on the empty side and its commit on the full side. Other barriers have no two sides and open no hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from autostamp.analysis.rings import Rings
from autostamp.model.manifest import Barrier, EventKind, Instance
from autostamp.model.timeline import Slice, State
from autostamp.model.trace import Event, Lane

_ENDED_ON: Final = {"full": "empty", "empty": "full"}
"""Side waited on, and the side whose signal ends that use."""

_Key: TypeAlias = tuple[int, str]
"""Barrier number, and the side whose signal ends the use."""


def holds_of(
    lane: Lane,
    waits: Iterable[Slice],
    instances: Mapping[int, Instance],
    barriers: Mapping[int, Barrier],
    rings: Rings,
) -> list[Slice]:
    """The lane's holds, by its `waits`, in order of the signals that ended them. A use that no signal here ends has none."""
    exits = {(wait.instance, wait.visit): wait for wait in waits}
    open_uses: dict[_Key, list[Slice]] = {}
    holds: list[Slice] = []
    for event in lane.events:
        instance = instances[event.instance]
        if event.kind is EventKind.EXIT and (event.instance, event.visit) in exits:
            _open(open_uses, exits[event.instance, event.visit], instance, barriers)
        elif event.kind is EventKind.SIGNAL:
            holds += _close(open_uses, event, instance, rings.stage(instance, event.payload))
    return holds


def _open(open_uses: dict[_Key, list[Slice]], wait: Slice, instance: Instance, barriers: Mapping[int, Barrier]) -> None:
    if instance.side not in _ENDED_ON or instance.barrier not in barriers:
        return
    uses = open_uses.setdefault((instance.barrier, _ENDED_ON[instance.side]), [])
    # A stage cannot come round again before its use has ended: one that does was ended by another warp, unseen here.
    if wait.stage >= 0:
        uses[:] = [use for use in uses if use.stage != wait.stage]
    depth = barriers[instance.barrier].stages
    if depth and len(uses) >= depth:
        del uses[0]
    uses.append(Slice(wait.end, wait.end, State.ACTIVE, wait.instance, wait.visit, wait.stage))


def _close(open_uses: dict[_Key, list[Slice]], event: Event, instance: Instance, stage: int) -> Iterator[Slice]:
    """By stage where both ends know it, oldest use first where one does not."""
    # Of an instance that waits, `side` is what it waits on; only `signals` are arrived on.
    sides = instance.signals if instance.enter else (instance.side, *instance.signals)
    for side in dict.fromkeys(sides):
        uses = open_uses.get((instance.barrier, side), [])
        match = next((use for use in uses if use.stage == stage), None) if stage >= 0 else next(iter(uses), None)
        match = match or next((use for use in uses if use.stage < 0), None)
        if match is not None:
            uses.remove(match)
            yield Slice(
                match.start, event.cycles, State.ACTIVE, match.instance, match.visit, match.stage, event.instance
            )
