# SPDX-License-Identifier: Apache-2.0
"""Rings of a budget: what a run shows of them, what the user says, and the machine's latencies."""

from __future__ import annotations

from collections.abc import Sequence

from autostamp.model.budget import Resource, ResourceRow, Ring, Step
from autostamp.model.machine import MachineTable
from autostamp.predict.given import Given, GivenRing
from autostamp.predict.kernel import Kernel
from autostamp.predict.rings import latency


def budget_rings(
    kernel: Kernel, rows: Sequence[ResourceRow], given: Given, table: MachineTable
) -> tuple[tuple[Ring, ...], list[str]]:
    """The rings of which every part is known. What one lacks is said, and is no error: there are other bounds."""
    known = {ring.name: ring for ring in kernel.rings}
    rings, blind = [], []
    for name in dict.fromkeys([*known, *given.rings]):
        said, found = given.rings.get(name, GivenRing()), known.get(name)
        if said.is_left_out:
            continue
        producer = said.producer or (found.producer if found else "")
        consumer = said.consumer or (found.consumer if found else "")
        stages = said.stages or (found.stages if found else 0)
        alone = sum(each.consumer == consumer for each in kernel.rings) + (found is None) == 1
        fill, consume, hand_off = _fill(said, table), _consume(said, rows, consumer, alone), _hand_off(said, table)
        lacks = [
            *(["stages"] if not stages else []),
            *(["producer"] if not producer else []),
            *(["consumer"] if not consumer else []),
            *([f"fill ({table.product} has no constant tma_latency_l2)"] if fill is None else []),
            *(["consume (how long a stage is held)"] if consume is None else []),
            *([f"hand_off ({table.product} has no constant mbarrier_round_trip)"] if hand_off is None else []),
        ]
        if fill is None or consume is None or hand_off is None or lacks:
            blind.append(f"ring {name} has no credit bound: it lacks {', '.join(lacks)}; [rings.{name}] gives it")
        else:
            rings.append(Ring(name, producer, consumer, stages, fill, consume, hand_off))
    return tuple(rings), blind


def _fill(said: GivenRing, table: MachineTable) -> tuple[Step, ...] | None:
    if said.fill is not None or "tma_latency_l2" not in table.constants:
        return said.fill
    return (latency(table, "TMA load out of L2", "tma_latency_l2"),)


def _consume(said: GivenRing, rows: Sequence[ResourceRow], consumer: str, alone: bool) -> tuple[Step, ...] | None:
    """How long the consumer holds a stage: given, or, of its only ring, as long as its MMAs of an iteration take."""
    if said.consume is not None or not alone:
        return said.consume
    steps = [
        Step(each.what, each.cycles, each.constant, False, each.origin, each.source)
        for each in rows
        if each.role == consumer and each.resource is Resource.TENSOR
    ]
    return tuple(steps) or None


def _hand_off(said: GivenRing, table: MachineTable) -> tuple[Step, ...] | None:
    if said.hand_off is not None or "mbarrier_round_trip" not in table.constants:
        return said.hand_off
    return (latency(table, "round trip", "mbarrier_round_trip"),)
