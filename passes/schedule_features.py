# SPDX-License-Identifier: Apache-2.0
"""How far a stamped build's schedule is from the clean one's, as one number with its parts, from the two cubins alone.

Loops are matched by role; the stamps' own instructions are left out of everything but the length of a trip. The measured
cost of stamps follows what this compares: the order of the core opcodes in the main loops, and where the waits fall in their
streams of exponentials and matrix instructions.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Final

from autostamp.model.cubin import CubinFacts, Instruction, is_opcode
from autostamp.model.kernel_loops import LoopReport
from autostamp.model.placement import Effect, ScheduleFeatures
from autostamp.passes import loop_mix, schedule
from autostamp.passes.loop_report import KernelLoops
from autostamp.passes.loop_waits import allowed

REGISTER_UNIT: Final = 8
"""Registers per thread are allocated in this granularity (256 per warp: CUDA C++ Programming Guide, occupancy)."""

MMA_RATE: Final = 2048
"""Multiply-adds of 16-bit operands a cycle and SM on sm_90: 4096 FLOP/clk/SM (NVIDIA H100 data sheet: 989.4 TFLOPS at 1830 MHz
on 132 SMs). Of later architectures only the order of sites matters, which a rate does not change.
"""

_NAMES: Final = {
    "SYNCS": "mbarrier", "BAR": "barrier", "DEPBAR": "bulk group", "WARPGROUP": "wait_group", "WARPSYNC": "warp barrier",
    "UCGABAR_WAIT": "cluster barrier", "ACQBULK": "grid",
}  # fmt: skip
"""What a wait is called, by the head of its opcode."""


@dataclass(frozen=True, slots=True)
class Weights:
    """The data of `schedule_weights.toml`: weights of the parts, ranges of what moves, and limits."""

    moved: float
    trip: float
    unroll: float
    registers: float
    spills: float
    once: float
    order: tuple[float, float]
    wait: tuple[float, float]
    free: float
    near_clean: float


@cache
def weights() -> Weights:
    """The weights that come with the package."""
    table = tomllib.loads((resources.files("autostamp.passes") / "schedule_weights.toml").read_text(encoding="utf-8"))
    ranges = {name: (float(first), float(last)) for name, (first, last) in table["ranges"].items()}
    return Weights(**table["weights"], **table["limits"], order=ranges["order"], wait=ranges["wait"])


@dataclass(frozen=True, slots=True)
class Stream:
    """One trip of a main loop without stamps, its length and its stamps when they are in, and its waits by name.

    A wait for a group stands after so many exponentials since the group wait before it in the trip, or matrix instructions
    where a trip has no exponentials; another wait after so many matrix instructions of the trip. `waits` maps a name to that
    position and the number of such instructions in a trip; `work` is the trip's exponentials and matrix instructions;
    `cycles` estimates how long a trip is: its instructions, or its matrix instructions at full rate. `local_bytes` is what a
    thread moves to and from local memory in it. `straight` is the trip less the mbarrier checks that some trips pass by.
    """

    trip: tuple[Instruction, ...]
    length: int
    copies: int
    waits: Mapping[str, tuple[int, int]]
    work: int
    stamps: int
    cycles: float
    local_bytes: int
    straight: Stream | None = None


@dataclass(frozen=True, slots=True)
class Parts:
    """What the distance is made of, each without its weight: see `schedule_weights.toml`.

    `order` is the share of core opcodes of a main loop that left the clean order, `shift` how far one of its waits moved as a
    share of its stream, `trip` by what share of its cycles a trip got longer; of each the worst main loop. `spills` is bytes
    that a trip of the main loops moves to and from local memory, `once` those that the rest of the kernel does.
    """

    order: float
    shift: float
    trip: float
    unroll: float
    registers: float
    spills: float
    once: float = 0.0

    def distance(self, by: Weights) -> float:
        """The weighted sum. A wait that moves takes the order with it, so the two are not added up."""
        moved = max(_within(self.order, by.order), _within(self.shift, by.wait))
        return (
            by.moved * moved
            + by.trip * self.trip
            + by.unroll * self.unroll
            + by.registers * self.registers
            + by.spills * self.spills
            + by.once * self.once
        )


def _within(value: float, limits: tuple[float, float]) -> float:
    """Where a value lies in a range: 0 up to its begin, 1 from its end."""
    first, last = limits
    return min(1.0, max(0.0, (value - first) / (last - first)))


class Outline:
    """What of one build's schedule is compared."""

    def __init__(self, facts: CubinFacts) -> None:
        self.facts = facts
        loops = KernelLoops(facts, without_stamps=True)
        plain = KernelLoops(facts)
        self.core = schedule.core_sequence(facts.instructions)
        self.streams: dict[str, Stream] = {}
        for loop in loops.report().main_loops:
            trip = loops.trip_at(loop.facts.start)
            stamped = _with_stamps(plain, trip.instructions)
            passed = [
                each
                for each, is_conditional in zip(trip.instructions, trip.is_conditional, strict=True)
                if not (is_conditional and is_opcode(each.opcode, "SYNCS.PHASECHK"))
            ]
            straight = _stream(loop, tuple(passed), stamped)
            self.streams[loop.role] = replace(_stream(loop, trip.instructions, stamped), straight=straight)

    @property
    def stamped_roles(self) -> frozenset[str]:
        """The roles whose main loop holds a stamp."""
        return frozenset(role for role, stream in self.streams.items() if stream.stamps)

    @property
    def spill_bytes(self) -> int:
        """Bytes a thread writes to and reads from local memory."""
        return self.facts.spill_store_bytes + self.facts.spill_load_bytes

    @property
    def loop_bytes(self) -> int:
        """Of these, the bytes that one trip of each main loop moves."""
        return sum(each.local_bytes for each in self.streams.values())


def _with_stamps(plain: KernelLoops, trip: Sequence[Instruction]) -> tuple[Instruction, ...]:
    """The trip of the same loop with its stamps: the one that shares the most addresses."""
    addresses = {each.address for each in trip}
    found = [each.instructions for each in plain.trips.values()]
    return max(found, key=lambda each: len(addresses & {one.address for one in each}), default=())


def _stream(loop: LoopReport, trip: tuple[Instruction, ...], stamped: Sequence[Instruction]) -> Stream:
    exponentials = sum(is_opcode(each.opcode, "MUFU.EX2") for each in trip)
    products = sum(schedule.family(each.opcode) in schedule.MMA for each in trip)
    waits: dict[str, tuple[int, int]] = {}
    exponential = product = last = 0
    for each in trip:
        exponential += is_opcode(each.opcode, "MUFU.EX2")
        product += schedule.family(each.opcode) in schedule.MMA
        if not each.is_wait:
            continue
        name = _unused(_name(each), waits)
        if is_opcode(each.opcode, "DEPBAR", "WARPGROUP.DEPBAR"):
            passed, total = (exponential, exponentials) if exponentials else (product, products)
            waits[name] = (passed - last, total)
            last = passed
        else:
            waits[name] = (product, products)
    clocks = sum(each.is_clock_read for each in stamped)
    busy = sum(each.count * each.m * each.n * each.k * _bits(each.dtype) / 16 for each in loop.facts.mma) / MMA_RATE
    cycles = max(len(trip), float(busy), 1.0)
    return Stream(
        trip,
        len(stamped),
        loop.copies,
        waits,
        exponentials + products,
        clocks,
        cycles,
        loop_mix.local_bytes(trip),
    )


def _bits(dtype: str) -> int:
    """Bits of an operand: an instruction on narrower ones is deeper by as much, and takes as long."""
    match = re.search(r"\d+", dtype.partition(",")[0])
    if dtype.startswith(("e4m3", "e5m2")):
        return 8
    return int(match[0]) if match else 16


def _name(wait: Instruction) -> str:
    name = _NAMES.get(wait.opcode.partition(".")[0], wait.opcode)
    return f"{name}({allowed(wait)})" if name == "wait_group" else name


def _unused(name: str, used: Collection[str]) -> str:
    number = 1
    while (found := name if number == 1 else f"{name} {number}") in used:
        number += 1
    return found


def parts(clean: Outline, stamped: Outline) -> Parts:
    """The differences of two builds of one kernel. A main loop of the clean one without its counterpart counts as all moved; one
    that only the stamped build has is the stamps' own: binding a lane of CUDA C++ copies the kernel's name.
    """
    both = [_alike(one, stamped.streams[role]) for role, one in clean.streams.items() if role in stamped.streams]
    is_lost = len(both) < len(clean.streams)
    # Of a loop without exponentials and matrix instructions (a producer's) only the waits and the unrolling count: it has time.
    busy = [pair for pair in both if pair[0].work] or both
    return Parts(
        order=1.0 if is_lost else _disorder(clean, stamped, busy),
        shift=max([float(is_lost), *(_shift(*pair) for pair in both)]),
        trip=max([0.0, *((other.length - one.length) / one.cycles for one, other in busy)]),
        unroll=max([0.0, *(abs(math.log2(_growth(*pair))) for pair in both)]),
        registers=float(max(0, _units(stamped.facts) - _units(clean.facts))),
        spills=float(max(0, stamped.loop_bytes - clean.loop_bytes)),
        once=float(max(0, stamped.spill_bytes - stamped.loop_bytes - clean.spill_bytes + clean.loop_bytes)),
    )


def _alike(clean: Stream, stamped: Stream) -> tuple[Stream, Stream]:
    """Both trips in one form. Behind a `try_wait` ptxas writes the wait itself in line, to be passed by, or behind the kernel's
    end; where the builds differ in that, it is left out of both.
    """
    if clean.waits.keys() != stamped.waits.keys() and clean.straight is not None and stamped.straight is not None:
        return clean.straight, stamped.straight
    return clean, stamped


def _disorder(clean: Outline, stamped: Outline, both: Sequence[tuple[Stream, Stream]]) -> float:
    """Of the main loop that moved most; of the whole kernel where there is no main loop."""
    if not both:
        return 1 - _share(clean.core, stamped.core)
    return max(schedule.compare_sequences(one.trip, other.trip).distance for one, other in both)


def _share(first: Sequence[str], second: Sequence[str]) -> float:
    longer = max(len(first), len(second))
    return schedule.common_length(first, second) / longer if longer else 1.0


def _shift(clean: Stream, stamped: Stream) -> float:
    """How far the wait that moved most did, as a share of a trip's work; 1 where a wait has no counterpart."""
    if clean.waits.keys() != stamped.waits.keys():
        return 1.0
    return max(
        (abs(stamped.waits[name][0] - at) / max(total, 1) for name, (at, total) in clean.waits.items()), default=0
    )


def _growth(clean: Stream, stamped: Stream) -> float:
    """How many times the clean trip's core opcodes the stamped one has, to the nearest power of two that unrolling makes."""
    sizes = [len(schedule.core_sequence(each.trip)) or 1 for each in (clean, stamped)]
    return float(2 ** round(math.log2(sizes[1] / sizes[0])))


def _units(facts: CubinFacts) -> int:
    return -(-facts.registers // REGISTER_UNIT)


def features(clean: Outline, stamped: Outline, by: Weights | None = None) -> ScheduleFeatures:
    """The comparison of two builds of one kernel."""
    found = parts(clean, stamped)
    moved: dict[str, tuple[int, int]] = {}
    for role, whole in clean.streams.items():
        found_there = stamped.streams.get(role)
        one, other = _alike(whole, found_there) if found_there is not None else (whole, None)
        places = other.waits if other is not None else {}
        for name in dict.fromkeys([*one.waits, *places]):
            pair = (one.waits.get(name, (-1, 0))[0], places.get(name, (-1, 0))[0])
            if pair[0] != pair[1]:
                moved[f"{role} {name}"] = pair
    growths = [_growth(one, stamped.streams[role]) for role, one in clean.streams.items() if role in stamped.streams]
    most = max(growths, key=lambda each: abs(math.log2(each)), default=1.0)
    copies = float(max((each.copies for each in clean.streams.values()), default=1))
    return ScheduleFeatures(
        order_share=1 - found.order,
        waits_moved=moved,
        unroll=(copies, copies * most),
        registers=(clean.facts.registers, stamped.facts.registers),
        spills=(clean.spill_bytes, stamped.spill_bytes),
        distance=round(found.distance(by or weights()), 6),
    )


def effect(found: ScheduleFeatures, by: Weights | None = None) -> Effect:
    """What stamps did: FREE leaves the main loops as they are, NEAR_CLEAN stays below the limit."""
    limits = by or weights()
    if found.distance <= limits.free and not found.waits_moved:
        return Effect.FREE
    return Effect.NEAR_CLEAN if found.distance <= limits.near_clean else Effect.PERTURBING
