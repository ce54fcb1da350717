# SPDX-License-Identifier: Apache-2.0
"""Warps as generators of actions, run by one fake clock. Stamps, waits and arrivals themselves take no time.

A wait ends when its barrier has had a given number of arrivals, so a schedule can be worked out with pencil and paper.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from autostamp.model.manifest import Instance, KernelTrace, Payload
from tests.simulator.region import Stamp, WarpLog


@dataclass(frozen=True)
class Work:
    """Time passes and nothing is stamped."""

    cycles: int


@dataclass(frozen=True)
class Wait:
    """Wait of `instance` until `barrier` has had `arrivals` arrivals. `stage` goes into the enter's record."""

    instance: int
    barrier: object
    arrivals: int
    stage: int = 0
    in_single_thread: bool = False


@dataclass(frozen=True)
class Arrive:
    """Arrival of `instance` on `barrier`, stamped as a signal."""

    instance: int
    barrier: object
    stage: int = 0
    in_single_thread: bool = False


Action = Work | Wait | Arrive


class Simulation:
    """Runs warps to their ends, or until those left wait for arrivals that never come (they are then never released)."""

    def __init__(self, kernel: KernelTrace, entries: Mapping[int, int], cycles_per_ns: int = 1) -> None:
        self._instances: dict[int, Instance] = {instance.number: instance for instance in kernel.instances}
        self._arrivals: dict[object, int] = {}
        self._parked: dict[int, Wait] = {}
        self._ready = [(clock, warp) for warp, clock in entries.items()]
        heapq.heapify(self._ready)
        self._scale = cycles_per_ns
        self.logs = {
            warp: WarpLog(warp, clock, None, entry_ns=clock // cycles_per_ns) for warp, clock in entries.items()
        }

    def run(self, warps: Mapping[int, Iterator[Action]]) -> list[WarpLog]:
        """The logs of all warps. The earliest warp always goes next, so arrivals happen in the order of time."""
        while self._ready:
            clock, warp = heapq.heappop(self._ready)
            action = next(warps[warp], None)
            if action is None:
                self.logs[warp].exit = clock
                self.logs[warp].exit_ns = clock // self._scale
            elif isinstance(action, Work):
                heapq.heappush(self._ready, (clock + action.cycles, warp))
            elif isinstance(action, Wait):
                self._wait(warp, clock, action)
            else:
                self._arrive(warp, clock, action)
        return list(self.logs.values())

    def _wait(self, warp: int, clock: int, wait: Wait) -> None:
        instance = self._instances[wait.instance]
        # As the device side does: the enter carries the stage, the exit carries nothing.
        payload = wait.stage if instance.payload is Payload.STAGE else 0
        self._stamp(warp, Stamp(clock, instance.enter, payload), wait.in_single_thread)
        self._parked[warp] = wait
        self._wake(clock)

    def _arrive(self, warp: int, clock: int, arrival: Arrive) -> None:
        instance = self._instances[arrival.instance]
        payload = arrival.stage if instance.payload is Payload.STAGE else 0
        self._stamp(warp, Stamp(clock, instance.signal, payload), arrival.in_single_thread)
        self._arrivals[arrival.barrier] = self._arrivals.get(arrival.barrier, 0) + 1
        self._wake(clock)
        heapq.heappush(self._ready, (clock, warp))

    def _wake(self, clock: int) -> None:
        for warp, wait in sorted(self._parked.items()):
            if self._arrivals.get(wait.barrier, 0) >= wait.arrivals:
                del self._parked[warp]
                self._stamp(warp, Stamp(clock, self._instances[wait.instance].exit), wait.in_single_thread)
                heapq.heappush(self._ready, (clock, warp))

    def _stamp(self, warp: int, stamp: Stamp, in_single_thread: bool) -> None:
        log = self.logs[warp]
        (log.single if in_single_thread else log.stamps).append(stamp)
