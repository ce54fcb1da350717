# SPDX-License-Identifier: Apache-2.0
"""Rings of a budget: what a run shows of them, what the user says, and the machine's latencies."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from autostamp.model.budget import Resource, ResourceRow, Ring, Step
from autostamp.model.machine import MachineTable
from autostamp.predict.given import Given, GivenRing
from autostamp.predict.kernel import Kernel, KnownRing
from autostamp.predict.rings import latency

TMA_LATENCY: Final = "tma_latency_l2"
ROUND_TRIP: Final = "mbarrier_round_trip"


def budget_rings(
    kernel: Kernel, rows: Sequence[ResourceRow], given: Given, table: MachineTable
) -> tuple[tuple[Ring, ...], list[str]]:
    """The rings of which every part is known. What one lacks is said, and is no error: there are other bounds."""
    known = {ring.name: ring for ring in kernel.rings}
    all_rings = [
        _Terms.of(name, known.get(name), given.rings.get(name)) for name in dict.fromkeys([*known, *given.rings])
    ]
    loading = {each.role for each in rows if each.is_write}
    rings, blind = [], []
    for each in all_rings:
        if each.said.is_left_out:
            continue
        is_only = sum(other.consumer == each.consumer for other in all_rings) == 1
        fill = _fill(each.said, table, each.producer in loading)
        consume = _consume(each.said, rows, each.consumer if is_only else "")
        hand_off = _hand_off(each.said, table)
        lacks = each.lacks()
        if fill is None:
            why = f" ({table.product} has no constant {TMA_LATENCY})" if each.producer in loading else ""
            lacks.append(f"fill{why}")
        if consume is None:
            lacks.append("consume, how long a stage is held")
        if hand_off is None:
            lacks.append(f"hand_off ({table.product} has no constant {ROUND_TRIP})")
        if fill is None or consume is None or hand_off is None or lacks:
            blind.append(
                f"ring {each.name} has no credit bound: it lacks {', '.join(lacks)}; {_key(each.name)} gives it"
            )
        else:
            rings.append(Ring(each.name, each.producer, each.consumer, each.stages, fill, consume, hand_off))
    return tuple(rings), blind


@dataclass(frozen=True, slots=True)
class _Terms:
    """A ring as far as run and user name it."""

    name: str
    producer: str
    consumer: str
    stages: int
    said: GivenRing

    @classmethod
    def of(cls, name: str, found: KnownRing | None, said: GivenRing | None) -> _Terms:
        said = said or GivenRing()
        found = found or KnownRing(name, "", "", 0)
        return cls(
            name, said.producer or found.producer, said.consumer or found.consumer, said.stages or found.stages, said
        )

    def lacks(self) -> list[str]:
        named = {"stages": self.stages, "producer": self.producer, "consumer": self.consumer}
        return [key for key, value in named.items() if not value]


def _key(name: str) -> str:
    """The table of a ring in a budget file; TOML wants quotes around what is no plain word."""
    return f"[rings.{name}]" if re.fullmatch(r"[A-Za-z0-9_-]+", name) else f'[rings."{name}"]'


def _fill(said: GivenRing, table: MachineTable, is_loaded: bool) -> tuple[Step, ...] | None:
    """How long a stage takes to be filled: given, or the latency of a TMA load where its producer makes them."""
    if said.fill is not None or not is_loaded or TMA_LATENCY not in table.constants:
        return said.fill
    return (latency(table, "TMA load out of L2", TMA_LATENCY),)


def _consume(said: GivenRing, rows: Sequence[ResourceRow], consumer: str) -> tuple[Step, ...] | None:
    """How long the consumer holds a stage: given, or, of its only ring, as long as its MMAs of an iteration take."""
    if said.consume is not None:
        return said.consume
    steps = [
        Step(each.what, each.cycles, each.constant, False, each.origin, each.source)
        for each in rows
        if each.role == consumer and each.resource is Resource.TENSOR
    ]
    return tuple(steps) or None


def _hand_off(said: GivenRing, table: MachineTable) -> tuple[Step, ...] | None:
    if said.hand_off is not None or ROUND_TRIP not in table.constants:
        return said.hand_off
    return (latency(table, "round trip", ROUND_TRIP),)
