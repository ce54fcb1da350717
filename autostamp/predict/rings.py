# SPDX-License-Identifier: Apache-2.0
"""Rings that TMA fills, and how deep they must be."""

from __future__ import annotations

from autostamp.model.budget import Origin, Ring, Step
from autostamp.model.machine import MachineTable
from autostamp.predict.machines import constant


def latency(table: MachineTable, what: str, name: str) -> Step:
    """A step that takes a latency of the machine, in cycles. Raises AS7103 when it is unknown."""
    found = constant(table, name)
    return Step(what, found.value, name, True, Origin.MACHINE, found.source)


def rate_step(table: MachineTable, what: str, work: float, name: str, source: str = "") -> Step:
    """A step that takes `work` over a rate of the machine."""
    return Step(what, work / constant(table, name).value, name, False, Origin.SHAPE, source)


def tma_ring(
    table: MachineTable,
    name: str,
    roles: tuple[str, str],
    stages: int,
    consume: tuple[Step, ...],
    *,
    out_of: str = "l2",
) -> tuple[Ring | None, tuple[str, ...]]:
    """The ring from the first of `roles` to the second: a TMA load `out_of` "l2" or "hbm", `consume`, an mbarrier round trip.

    None, and a sentence that says which constant is missing, where the machine's latencies are unknown.
    """
    needed = (f"tma_latency_{out_of}", "mbarrier_round_trip")
    missing = [each for each in needed if each not in table.constants]
    if missing:
        return None, (f"credit bound of {name}: {table.product} has no constant {' and '.join(missing)}",)
    fill = (latency(table, "TMA load", needed[0]),)
    hand_off = (latency(table, "round trip", needed[1]),)
    return Ring(name, *roles, stages, fill, consume, hand_off), ()


def bytes_in_flight(feed: float, cycles: float) -> float:
    """Bytes that must be under way for `feed` bytes a cycle at a latency of `cycles`."""
    return feed * cycles
