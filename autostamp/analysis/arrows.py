# SPDX-License-Identifier: Apache-2.0
"""Which arrival ended which wait, told in two ways that know nothing of each other, so that each checks the other and both check
`dependencies`, which is what reports use.

By address: an mbarrier's next phase cannot have arrivals before all who waited for this one have left, or it would be reused
while in use. So a wait was ended by the last arrival on its address before its exit; who waited and arrived does not matter.

By declaration: where every warp takes part in every use of a ring, a warp's n-th wait belongs to the n-th arrival of each
warp, moved by the uses that a fresh ring grants without an arrival (a producer's first acquires). No address is looked at but
to count the stages.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from autostamp.analysis.rings import STAGE_BIT, Rings
from autostamp.model.flow import End
from autostamp.model.manifest import EventKind, Instance, Payload
from autostamp.model.trace import Event, Trace

LATE: Final = 50
"""Cycles by which the stamp after an arrival may come later than the exit of the wait that it ended: the two are in different
warps, and about 25 cycles lie between an instruction and the stamp after it (docs/adr/0007).
"""

_Key = tuple[int, str]
_KeyOf = Callable[[Instance, Event], _Key | None]
"""The barrier that a record is about, or None where it cannot be said."""


@dataclass(frozen=True, slots=True)
class Arrow:
    """From the last arrival of a use to the exit of a wait for it."""

    signal: End
    wait: End


@dataclass(slots=True)
class _Uses:
    """Arrivals and waits of one barrier by warp, each in program order.

    Signals that land later (a TMA copy's bytes) complete a use that an arrival announced, so they count for none.
    """

    signals: dict[int, list[End]]
    waits: dict[int, list[End]]


def by_address(trace: Trace) -> frozenset[Arrow]:
    """Arrows between records of one shared-memory address. Pipelines name both sides of a stage by its full barrier."""

    def key(instance: Instance, event: Event) -> _Key | None:
        is_address = instance.payload is Payload.ADDRESS and 0 < event.payload < STAGE_BIT
        return (event.payload, instance.side) if is_address else None

    arrows: set[Arrow] = set()
    for uses in _uses(trace, key).values():
        arrivals = sorted((end for ends in uses.signals.values() for end in ends), key=_time)
        for wait in (end for ends in uses.waits.values() for end in ends):
            before = bisect_right(arrivals, wait.cycles + LATE, key=lambda end: end.cycles)
            if before:
                arrows.add(Arrow(arrivals[before - 1], wait))
    return frozenset(arrows)


def by_declaration(trace: Trace) -> frozenset[Arrow]:
    """Arrows between records whose barriers go back to one declaration. Of their payloads only the ring's depth is used."""
    stages = {barrier.number: barrier.stages for barrier in trace.kernel.barriers}
    rings = Rings.of(trace)

    def key(instance: Instance, _: Event) -> _Key | None:
        return (instance.barrier, instance.side) if instance.barrier else None

    return frozenset(
        arrow
        for barrier, uses in _uses(trace, key).items()
        for arrow in _in_order(uses, stages.get(barrier[0], 0) or rings.depth(*barrier) or 1)
    )


def _time(end: End) -> tuple[int, int]:
    return end.cycles, end.warp


def _uses(trace: Trace, key_of: _KeyOf) -> dict[_Key, _Uses]:
    found: dict[_Key, _Uses] = {}
    instances = {instance.number: instance for instance in trace.kernel.instances}
    for lane in trace.lanes:
        entered: dict[tuple[int, int], _Key] = {}
        for event in lane.events:
            instance = instances[event.instance]
            end = End(lane.warp, event.instance, event.visit, event.cycles)
            if event.kind is EventKind.EXIT:
                key = entered.pop((event.instance, event.visit), None)
                if key is not None:
                    found[key].waits.setdefault(lane.warp, []).append(end)
                continue
            key = None if instance.is_async else key_of(instance, event)
            if key is None:
                continue
            uses = found.setdefault(key, _Uses({}, {}))
            if event.kind is EventKind.SIGNAL:
                uses.signals.setdefault(lane.warp, []).append(end)
            else:
                entered[event.instance, event.visit] = key
    return found


def _in_order(uses: _Uses, depth: int) -> Iterator[Arrow]:
    """Pairs with no use granted, or else with one round of the ring, whichever lets no wait end before its arrivals."""
    if not uses.signals or not uses.waits:
        return
    last = _last_arrivals(uses.signals)
    for granted in (0, depth):
        pairs = [
            Arrow(last[use - granted], wait)
            for waits in uses.waits.values()
            for use, wait in enumerate(waits)
            if 0 <= use - granted < len(last)
        ]
        if all(arrow.signal.cycles <= arrow.wait.cycles + LATE for arrow in pairs):
            yield from pairs
            return


def _last_arrivals(signals: Mapping[int, list[End]]) -> list[End]:
    """For each use that every warp arrived for, the latest of its arrivals."""
    return [max(group, key=_time) for group in zip(*signals.values(), strict=False)]
