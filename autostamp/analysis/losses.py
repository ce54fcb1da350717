# SPDX-License-Identifier: Apache-2.0
"""Up to when the arrivals on a barrier are known, where lanes dropped records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf

from autostamp.analysis.uses import MEETINGS, Uses
from autostamp.model.manifest import Instance, Payload
from autostamp.model.trace import Lane, Trace


class Losses:
    """Lanes with lost records, and what each may still have done."""

    def __init__(self, trace: Trace) -> None:
        self._instances: Mapping[int, Instance] = {item.number: item for item in trace.kernel.instances}
        capacity = trace.kernel.capacity
        self._lanes = [(lane, _end_of_record(lane, capacity)) for lane in trace.lanes if _may_have_lost(lane, capacity)]
        self._roles = {
            lane.warp: {self._instances[number].role for number in {event.instance for event in lane.events}} - {""}
            for lane, _ in self._lanes
        }
        self.first: float = min((end for _, end in self._lanes), default=inf)
        """When the first of them stopped recording: up to here nothing is missing."""

    def until(self, uses: Iterable[Uses]) -> float:
        """Cycle from which arrivals on this barrier may be missing, infinity where none can be."""
        if not self._lanes:
            return inf
        found = list(uses)
        warps = {arrival.ends[0].warp for one in found for arrival in one.arrivals}
        roles = {item.role for item in self._instances.values() if any(_may_arrive(item, one) for one in found)}
        return min((end for lane, end in self._lanes if lane.warp in warps or self._fits(lane, roles)), default=inf)

    def _fits(self, lane: Lane, roles: set[str]) -> bool:
        """Code of no role may run in any warp, and a warp that reached no code of a role may have any."""
        own = self._roles[lane.warp]
        return bool(roles) and (not own or "" in roles or bool(own & roles))


def _may_have_lost(lane: Lane, capacity: int) -> bool:
    """Also a lane that was never released and is full: how many records it attempted is unknown."""
    return lane.is_lossy or (lane.exit_cycles < 0 and 0 < capacity <= len(lane.events))


def _end_of_record(lane: Lane, capacity: int) -> int:
    """The cycle of the last record before which nothing was dropped.

    A lane is the records of its warp and of the warp's single-thread regions, each kept up to `capacity`: the one that ran full
    has as many, so its end is not before the record of that number.
    """
    if not lane.events:
        return -1
    return lane.events[min(capacity, len(lane.events)) - 1 if capacity > 0 else -1].cycles


def _may_arrive(instance: Instance, uses: Uses) -> bool:
    if uses.side in MEETINGS:
        is_same = instance.payload is Payload.BARRIER_ID or instance.barrier in uses.barriers
        return instance.side in MEETINGS and (is_same or instance.stage == uses.key[1])
    sides = (instance.side, *instance.signals) if instance.kind == "signal" else instance.signals
    return instance.barrier in uses.barriers and uses.side in sides
