# SPDX-License-Identifier: Apache-2.0
"""Finding the loops of a SASS listing, and the instructions of one trip through each.

Loops are natural ones: a jump back to a block that dominates it, with all blocks from there to the jump. That finds blocks
which ptxas moved behind the kernel's end, and does not take the jumps back from there for loops of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Final

from autostamp.model.cubin import Instruction, is_opcode
from autostamp.passes import flow_graph, schedule
from autostamp.passes.flow_graph import FlowGraph

MEMORY: Final = frozenset(
    {"ATOM", "ATOMG", "ATOMS", "LD", "LDG", "LDL", "LDS", "LDSM", "RED", "REDG", "ST", "STG", "STL", "STS", "STSM"}
)
WORK: Final = (schedule.CORE | MEMORY) - {"SYNCS.PHASECHK", "WARPSYNC"}
"""Families that make a loop more than a wait."""

_POLLS: Final = ("LD", "LDG", "LDS", "ATOM", "ATOMG", "ATOMS")
_STRONG: Final = frozenset({"STRONG", "ACQUIRE", "MMIO"})
"""Modifiers of a load that sees what others write: what a spin on a flag reads with."""


_TRIES: Final = ("SYNCS.PHASECHK", "USETMAXREG.TRY_ALLOC")
"""What is tried until it succeeds: an mbarrier's phase, more registers. A spilled address is loaded (LDL) for each try."""


class LoopKind(Enum):
    """What a loop is for.

    WORK does something each trip. WAIT is one wait written as a loop (`try_wait` until it passes, a poll of a flag). ONCE takes
    the threads of a warp in turn until all have passed (`BRA.U.ANY`), where the compiler does not know that one will.
    """

    WORK = "work"
    WAIT = "wait"
    ONCE = "once"


@dataclass(frozen=True)
class Loop:
    """One natural loop: the block at its top, the blocks that jump back there, and all its blocks."""

    header: int
    latches: tuple[int, ...]
    blocks: frozenset[int]
    kind: LoopKind


@dataclass(frozen=True)
class Trip:
    """The instructions of one trip in the order of execution, retries of waits left out.

    `is_conditional` says of each whether some trips pass it by.
    """

    instructions: tuple[Instruction, ...]
    is_conditional: tuple[bool, ...]


class Loops:
    """All loops of one function's listing. Instructions at the indices in `left_out` appear in no trip."""

    def __init__(self, instructions: Sequence[Instruction], left_out: frozenset[int] = frozenset()) -> None:
        self.instructions = tuple(instructions)
        self.left_out = left_out
        self.graph = flow_graph.build(self.instructions)
        self.all = _natural_loops(self.instructions, self.graph)

    @cached_property
    def work(self) -> tuple[Loop, ...]:
        """Loops that do something, in address order."""
        return tuple(loop for loop in self.all if loop.kind is LoopKind.WORK)

    @cached_property
    def irregular(self) -> tuple[int, ...]:
        """Addresses at which cycles with several ways in begin. Such a cycle is no natural loop."""
        edges = {
            (block, each)
            for block, ends in enumerate(self.graph.successors)
            for each in ends
            if not self.graph.dominates(each, block)
        }
        # What is left when blocks that no edge enters or none leaves are taken away again and again lies on a cycle.
        while (rest := _inner(edges)) != edges:
            edges = rest
        tops = {each for block, each in edges if each <= block}
        return tuple(self.instructions[self.graph.starts[block]].address for block in sorted(tops))

    def around(self, loop: Loop) -> tuple[Loop, ...]:
        """Work loops that this one stands in."""
        return tuple(each for each in self.work if each is not loop and loop.blocks < each.blocks)

    def inside(self, loop: Loop) -> tuple[Loop, ...]:
        """Work loops within this one."""
        return tuple(each for each in self.work if each is not loop and each.blocks < loop.blocks)

    def trip(self, loop: Loop) -> Trip:
        """One trip, without the loops inside that do work of their own."""
        own = loop.blocks - {block for each in self.inside(loop) for block in each.blocks}
        own -= self._retries(loop, own)
        order = [block for block in self._order(loop) if block in own]
        straight = {block for block in own if all(self.graph.dominates(block, latch) for latch in loop.latches)}
        # Padding within a loop aligns it; it is issued, so NOPs stay.
        indices = [index for block in order for index in self.graph.indices(block) if index not in self.left_out]
        conditional = {index for block in own - straight for index in self.graph.indices(block)}
        kept = schedule.kept_without_retries([self.instructions[index] for index in indices])
        indices = [index for index, is_kept in zip(indices, kept, strict=True) if is_kept]
        return Trip(
            tuple(self.instructions[index] for index in indices), tuple(index in conditional for index in indices)
        )

    def _order(self, loop: Loop) -> list[int]:
        inner = [
            tuple(each for each in ends if each in loop.blocks and each != loop.header)
            for ends in self.graph.successors
        ]
        return flow_graph.reverse_postorder(inner, [loop.header])

    def _retries(self, loop: Loop, own: frozenset[int]) -> set[int]:
        """Blocks that only a wait which has failed once reaches: wait loops beside the straight path, and their way back."""
        retries: set[int] = set()
        for each in self.all:
            is_beside = not all(self.graph.dominates(each.header, latch) for latch in loop.latches)
            if each.kind is LoopKind.WAIT and each.blocks <= own and is_beside:
                retries |= each.blocks
        for block in sorted(own - retries):
            held = self.graph.indices(block)
            before = {each for each in own if block in self.graph.successors[each]}
            if len(held) == 1 and is_opcode(self.instructions[held[0]].opcode, "BRA") and before <= retries:
                retries.add(block)
        return retries


def _inner(edges: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """The edges that another one leads to and another one follows."""
    begin, end = {first for first, _ in edges}, {second for _, second in edges}
    return {(first, second) for first, second in edges if first in end and second in begin}


def _natural_loops(instructions: Sequence[Instruction], graph: FlowGraph) -> tuple[Loop, ...]:
    latches: dict[int, list[int]] = {}
    before: dict[int, list[int]] = {}
    for block, following in enumerate(graph.successors):
        for each in following:
            before.setdefault(each, []).append(block)
            if graph.dominates(each, block):
                latches.setdefault(each, []).append(block)
    found = []
    for header, ends in sorted(latches.items()):
        blocks, waiting = {header}, list(ends)
        while waiting:
            block = waiting.pop()
            if block not in blocks:
                blocks.add(block)
                waiting.extend(before.get(block, ()))
        found.append(Loop(header, tuple(ends), frozenset(blocks), _kind(instructions, graph, blocks, ends)))
    return tuple(found)


def _kind(instructions: Sequence[Instruction], graph: FlowGraph, blocks: set[int], latches: Sequence[int]) -> LoopKind:
    closing = [instructions[graph.starts[block + 1] - 1] for block in latches]
    if all(is_opcode(each.opcode, "BRA.U.ANY") for each in closing):
        return LoopKind.ONCE
    body = [instructions[index] for block in blocks for index in graph.indices(block)]
    is_polling = any(is_opcode(each.opcode, *_TRIES) or is_poll(each) for each in body)
    is_working = any(schedule.family(each.opcode) in WORK - {"LDL"} and not is_poll(each) for each in body)
    # The jump to itself behind a kernel's end, which nothing reaches, is no work either.
    is_idle = all(is_opcode(each.opcode, "BRA", "NOP", "YIELD", "NANOSLEEP") for each in body)
    return LoopKind.WAIT if is_idle or (is_polling and not is_working) else LoopKind.WORK


def is_poll(instruction: Instruction) -> bool:
    """True for a load or atomic that looks whether another thread has written."""
    head = instruction.opcode.split(".")[0]
    return head in _POLLS and (head.startswith("ATOM") or not _STRONG.isdisjoint(instruction.opcode.split(".")))


def copies(trip: Trip) -> int:
    """How many copies of one body follow each other in a trip: 1, or the factor of an unrolled loop.

    Compared are the sync and matrix instructions in order. They must split into equal parts with a wait or a barrier in
    each, so that the k-steps of one tile, which have none between them, are no copies.
    """
    names = [name for each in trip.instructions if (name := schedule.family(each.opcode)) in schedule.SYNC - {"MUFU"}]
    for length in range(1, len(names) // 2 + 1):
        if len(names) % length == 0 and names == names[:length] * (len(names) // length):
            return len(names) // length if _WAITS & set(names[:length]) else 1
    return 1


_WAITS: Final = frozenset(
    {"BAR.RED", "BAR.SYNC", "DEPBAR", "LDGDEPBAR", "SYNCS.PHASECHK", "UCGABAR_WAIT", "WARPGROUP.DEPBAR"}
)
