# SPDX-License-Identifier: Apache-2.0
"""Which stage of its ring a record names, where records carry the address of the mbarrier instead of an index."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from math import gcd

from autostamp.model.manifest import Instance, Payload
from autostamp.model.trace import Trace

STAGE_BIT = 0x8000
"""Set in an address payload that is a ring index after all: a pipeline that hands out no barrier. No shared address divided
by 8 reaches it (228 KiB need 15 bits).
"""

_Key = tuple[int, str]
"""Barrier number and side: the full and the empty barriers of a ring are two arrays."""


@dataclass(frozen=True, slots=True)
class Rings:
    """For each barrier and side, the lowest address seen, the step to the next stage (in units of 8 bytes), and the depth."""

    arrays: Mapping[_Key, tuple[int, int, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, trace: Trace) -> Rings:
        """Learn the arrays from all lanes: a ring that came round once has shown all its stages."""
        instances = {instance.number: instance for instance in trace.kernel.instances}
        seen: dict[_Key, set[int]] = {}
        for lane in trace.lanes:
            for event in lane.events:
                instance = instances[event.instance]
                if instance.payload is Payload.ADDRESS and 0 < event.payload < STAGE_BIT:
                    seen.setdefault((instance.barrier, instance.side), set()).add(event.payload)
        return cls({key: _array(addresses) for key, addresses in seen.items()})

    def depth(self, barrier: int, side: str) -> int:
        """How many addresses of an array were seen, 0 when its records carry none."""
        return self.arrays.get((barrier, side), (0, 0, 0))[2]

    def stage(self, instance: Instance, payload: int) -> int:
        """The ring index that a record of `instance` names: from its payload, else the known constant, else -1."""
        if instance.payload is Payload.STAGE:
            return payload
        if instance.payload is not Payload.ADDRESS or not payload:
            return instance.stage
        if payload & STAGE_BIT:
            return payload & ~STAGE_BIT
        base, step, _ = self.arrays.get((instance.barrier, instance.side), (payload, 0, 1))
        return (payload - base) // step if step else 0


def _array(addresses: Collection[int]) -> tuple[int, int, int]:
    base = min(addresses)
    return base, gcd(*(address - base for address in addresses)), len(addresses)
