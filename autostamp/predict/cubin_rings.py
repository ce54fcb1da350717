# SPDX-License-Identifier: Apache-2.0
"""Rings that a cubin shows: two loops that wait and arrive at the same two mbarriers, crosswise.

A producer waits for `empty` and announces bytes at `full`, a consumer waits for `full` and arrives at `empty`. Each stage has an
mbarrier of 8 bytes, those of one side stand in a row (as CUTLASS and CuTe lay them out), and so the distance of the two
constants in the addresses is the number of stages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from autostamp.model.trip_code import Op, OpKind
from autostamp.predict.kernel import KnownRing, RoleLoop

MBARRIER_BYTES: Final = 8
"""PTX ISA, mbarrier: an opaque object of 64 bits."""

SOURCE: Final = (
    "mbarriers at {full:#x} and {empty:#x} of loops {producer} and {consumer}: {distance} B apart, 8 B a stage"
)


@dataclass(frozen=True, slots=True)
class _Sides:
    """The two mbarriers of a ring as constants in addresses."""

    full: int
    empty: int


def rings_of(loops: Sequence[RoleLoop]) -> tuple[tuple[KnownRing, ...], list[str]]:
    """Rings between these loops, and what was seen of others that is not enough."""
    found, notes = [], []
    offsets = {each.offset for loop in loops for each in loop.code if each.offset >= 0}
    for producer in loops:
        for consumer in loops:
            for sides in _shared(producer, consumer):
                distance = abs(sides.empty - sides.full)
                low = min(sides.full, sides.empty)
                between = [each for each in offsets if low < each < low + distance]
                name = f"mbarriers {sides.full:#x}"
                if distance % MBARRIER_BYTES or distance < 2 * MBARRIER_BYTES or between:
                    why = f"its mbarriers {sides.full:#x} and {sides.empty:#x} do not stand in two rows"
                    notes.append(f"ring from {producer.role} to {consumer.role}: {why}, so its depth is unknown")
                    continue
                source = SOURCE.format(
                    full=sides.full,
                    empty=sides.empty,
                    producer=f"{producer.facts.start:#06x}",
                    consumer=f"{consumer.facts.start:#06x}",
                    distance=distance,
                )
                stages = distance // MBARRIER_BYTES
                found.append(KnownRing(name, producer.role, consumer.role, stages, source, sides.full, sides.empty))
    return tuple(found), notes


def _shared(producer: RoleLoop, consumer: RoleLoop) -> Iterator[_Sides]:
    """Pairs of mbarriers that the first announces at and waits for, and the second waits for and arrives at."""
    if producer is consumer:
        return
    for full in dict.fromkeys(each.offset for each in producer.code if each.announces and each.offset >= 0):
        empty = _before(producer.code, full)
        waited = _at(consumer.code, OpKind.MBARRIER_WAIT)
        arrived = _at(consumer.code, OpKind.MBARRIER_ARRIVE)
        if empty >= 0 and full in waited and empty in arrived:
            yield _Sides(full, empty)


def _before(code: Sequence[Op], full: int) -> int:
    """The mbarrier that is waited for last before the first announcement at `full`; -1 without one."""
    last = -1
    for each in code:
        if each.kind is OpKind.MBARRIER_WAIT:
            last = each.offset
        elif each.announces and each.offset == full:
            return last
    return -1


def _at(code: Sequence[Op], kind: OpKind) -> set[int]:
    return {each.offset for each in code if each.kind is kind}


def held(code: Sequence[Op], issued: Sequence[float], ring: KnownRing) -> float:
    """Cycles from the wait for a stage to the next release in a trip, the shortest of them; 0 where none follows.

    A loop that releases the stage of the trip before holds it for a trip longer than this.
    """
    found = []
    since = -1.0
    for each, at in zip(code, issued, strict=True):
        if each.kind is OpKind.MBARRIER_WAIT and each.offset == ring.full:
            since = at
        elif each.kind is OpKind.MBARRIER_ARRIVE and each.offset == ring.empty and since >= 0:
            found.append(at - since)
            since = -1.0
    return min(found, default=0.0)
