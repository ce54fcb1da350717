# SPDX-License-Identifier: Apache-2.0
"""Rings of a budget: what a run or the cubin shows of them, what the user says, and the machine's latencies."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from autostamp.model.budget import Origin, Resource, ResourceRow, Ring, Step
from autostamp.model.machine import MachineTable
from autostamp.predict.cubin_rings import held, rings_of
from autostamp.predict.given import Given, GivenRing
from autostamp.predict.in_order import play
from autostamp.predict.kernel import Kernel, KnownRing, RoleLoop
from autostamp.predict.rings import latency
from autostamp.predict.tma_rows import constant_of

TMA_LATENCY: Final = "tma_latency_l2"
ROUND_TRIP: Final = "mbarrier_round_trip"


def budget_rings(
    kernel: Kernel, loops: Sequence[RoleLoop], rows: Sequence[ResourceRow], given: Given, table: MachineTable
) -> tuple[tuple[Ring, ...], list[str]]:
    """The rings of which every part is known. What one lacks is said, and is no error: there are other bounds.

    Rings are those of the run; without one, those that the loops' mbarriers show.
    """
    read, blind = rings_of(loops)
    known = {ring.name: ring for ring in kernel.rings or _not_given(read, given)}
    if kernel.rings:
        blind = []
    all_rings = [
        _Terms.of(name, known.get(name), given.rings.get(name)) for name in dict.fromkeys([*known, *given.rings])
    ]
    loading = {each.role for each in rows if each.is_write}
    holds = _Holds(loops, read, rows, table)
    rings = []
    for each in all_rings:
        if each.said.is_left_out:
            continue
        if each.found.source:
            blind.append(f"ring {each.name}: {each.stages} stages, by {each.found.source}")
        is_only = sum(other.consumer == each.consumer for other in all_rings) == 1
        fill = _fill(each, loops, table, each.producer in loading)
        consume = each.said.consume if each.said.consume is not None else holds.of(each, is_only)
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


def _not_given(read: Sequence[KnownRing], given: Given) -> list[KnownRing]:
    """Rings that the loops show between roles between which the user names none."""
    said = {
        (each.producer, each.consumer) for name, each in given.rings.items() if name not in {one.name for one in read}
    }
    return [each for each in read if (each.producer, each.consumer) not in said]


@dataclass(frozen=True, slots=True)
class _Holds:
    """How long consumers hold a stage, by the rows of their MMAs or by their loop."""

    loops: Sequence[RoleLoop]
    read: Sequence[KnownRing]
    rows: Sequence[ResourceRow]
    table: MachineTable

    def of(self, ring: _Terms, is_only: bool) -> tuple[Step, ...] | None:
        """Of its consumer's only ring, as long as that one's MMAs of an iteration take; else from wait to release in its loop."""
        if is_only and (steps := _multiplied(self.rows, ring.consumer)):
            return steps
        loop = next((each for each in self.loops if each.role == ring.consumer and each.code), None)
        alike = [
            each
            for each in self.read
            if (each.producer, each.consumer, each.stages) == (ring.producer, ring.consumer, ring.stages)
        ]
        if ring.found.full >= 0:
            alike = [ring.found]
        if loop is None or not alike:
            return None
        played = play(loop.code, self.table)
        cycles = min(held(loop.code, played.issued, each) for each in alike) if played is not None else 0.0
        if not cycles:
            return None
        return (Step(f"held by {loop.role}", cycles, "", False, Origin.CUBIN, loop.source),)


@dataclass(frozen=True, slots=True)
class _Terms:
    """A ring as far as run and user name it."""

    name: str
    producer: str
    consumer: str
    stages: int
    said: GivenRing
    found: KnownRing

    @classmethod
    def of(cls, name: str, found: KnownRing | None, said: GivenRing | None) -> _Terms:
        said = said or GivenRing()
        found = found or KnownRing(name, "", "", 0)
        return cls(
            name,
            said.producer or found.producer,
            said.consumer or found.consumer,
            said.stages or found.stages,
            said,
            found,
        )

    def lacks(self) -> list[str]:
        named = {"stages": self.stages, "producer": self.producer, "consumer": self.consumer}
        return [key for key, value in named.items() if not value]


def _key(name: str) -> str:
    """The table of a ring in a budget file; TOML wants quotes around what is no plain word."""
    return f"[rings.{name}]" if re.fullmatch(r"[A-Za-z0-9_-]+", name) else f'[rings."{name}"]'


def _fill(ring: _Terms, loops: Sequence[RoleLoop], table: MachineTable, is_loaded: bool) -> tuple[Step, ...] | None:
    """How long a stage takes to be filled: given, or the latency of a TMA load where its producer makes them."""
    loop = next((each for each in loops if each.role == ring.producer), None)
    name = constant_of(loop, table, TMA_LATENCY)
    if ring.said.fill is not None or not is_loaded or name not in table.constants:
        return ring.said.fill
    return (latency(table, "TMA load out of L2", name),)


def _multiplied(rows: Sequence[ResourceRow], consumer: str) -> tuple[Step, ...]:
    return tuple(
        Step(each.what, each.cycles, each.constant, False, each.origin, each.source)
        for each in rows
        if each.role == consumer and each.resource is Resource.TENSOR
    )


def _hand_off(said: GivenRing, table: MachineTable) -> tuple[Step, ...] | None:
    if said.hand_off is not None or ROUND_TRIP not in table.constants:
        return said.hand_off
    return (latency(table, "round trip", ROUND_TRIP),)
