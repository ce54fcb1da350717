# SPDX-License-Identifier: Apache-2.0
"""What the disassembly says of a kernel's loops, and of two builds side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from autostamp.model.cubin import Schedule
from autostamp.model.loop import LoopFacts


@dataclass(frozen=True, slots=True)
class GroupWait:
    """One wait for asynchronous groups in a trip: `WARPGROUP.DEPBAR` for wgmma, `DEPBAR` for bulk and cp.async groups.

    It leaves the `allowed` latest groups in flight. `distance` instructions were issued since the one that closed the group it
    waits for, among them `mufu` and `mma`; that one stands `trips` trips back (0: the same trip). -1 everywhere where a trip
    closes no such group.
    """

    opcode: str
    address: int
    allowed: int
    distance: int
    mufu: int
    mma: int
    trips: int


@dataclass(frozen=True, slots=True)
class Alternation:
    """How two streams of instructions are mixed in a trip.

    `switches` counts neighbours of unlike kind when all other instructions are left out: 1 for one block behind the other, up
    to 2 x the smaller count when they alternate. `longest` is the longest run of the first kind without one of the second.
    """

    first: str
    second: str
    first_count: int
    second_count: int
    switches: int
    longest: int


@dataclass(frozen=True, slots=True)
class Pattern:
    """A stall-prone sequence: what it means and who says so."""

    name: str
    meaning: str
    source: str


@dataclass(frozen=True, slots=True)
class PatternFound:
    """A pattern's occurrences in one trip, with the address of the first."""

    pattern: Pattern
    count: int
    address: int


@dataclass(frozen=True, slots=True)
class LoopReport:
    """One loop: facts of a trip, and how its instructions are arranged.

    `role` is guessed from the instructions; `is_main` marks the loop where that role does its work. Some trips pass by
    `conditional` of the instructions. A trip is `copies` alike parts (an unrolled loop, or alike steps). `inside` holds the first
    addresses of loops within, whose instructions are not counted here. `units` maps a unit to its instructions.
    """

    facts: LoopFacts
    role: str
    is_main: bool
    conditional: int
    copies: int
    inside: tuple[int, ...]
    units: Mapping[str, int]
    waits: tuple[GroupWait, ...]
    alternations: tuple[Alternation, ...]
    patterns: tuple[PatternFound, ...]


@dataclass(frozen=True, slots=True)
class KernelReport:
    """One kernel: resources (bytes per thread; `shared_bytes` per CTA), and its loops in address order.

    `irregular` holds the addresses at which cycles with several ways in begin: those are in no loop.
    `stamps` counts the instructions that are stamps. They were left out of everything but the resources when
    `is_without_stamps`.
    """

    kernel: str
    registers: int
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    shared_bytes: int
    instructions: int
    stamps: int
    is_without_stamps: bool
    loops: tuple[LoopReport, ...]
    irregular: tuple[int, ...] = ()

    @property
    def main_loops(self) -> tuple[LoopReport, ...]:
        """The loops in which the roles do their work."""
        return tuple(loop for loop in self.loops if loop.is_main)


@dataclass(frozen=True, slots=True)
class LoopPair:
    """A loop of the first build and its counterpart in the second; None where there is no such loop. `order` compares both."""

    first: LoopReport | None
    second: LoopReport | None
    order: Schedule | None


@dataclass(frozen=True, slots=True)
class KernelComparison:
    """Two builds of one kernel: both reports, the order of the core opcodes in the whole kernel, and the loops in pairs."""

    first: KernelReport
    second: KernelReport
    order: Schedule
    loops: tuple[LoopPair, ...]

    @property
    def distance(self) -> float:
        """The largest distance: of the whole kernel and of every pair of main loops; 1 where a main loop has no counterpart."""
        mains = [
            each for each in self.loops if any(side is not None and side.is_main for side in (each.first, each.second))
        ]
        return max([self.order.distance, *(each.order.distance if each.order is not None else 1.0 for each in mains)])
