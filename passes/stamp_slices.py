# SPDX-License-Identifier: Apache-2.0
"""Which instructions of a listing are stamps: clock reads, the stores that write them out, and what serves these alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from autostamp.model.cubin import Instruction, is_opcode
from autostamp.passes.definitions import Definitions, read, written
from autostamp.passes.flow_graph import is_conditional
from autostamp.passes.stamp_places import clock_behind, second_store

SERVANTS: Final = (
    "CS2R", "HFMA2", "IADD", "IADD3", "IMAD", "ISETP", "LDC", "LDCU", "LEA", "LOP3", "MOV", "PLOP3", "PRMT", "R2UR", "S2R",
    "SEL", "SGXT", "SHF", "UIADD3", "UIMAD", "UISETP", "ULDC", "ULEA", "ULOP3", "UMOV", "UPLOP3", "UPRMT", "USEL", "USHF",
    "VIADD", "VIADDMNMX",
)  # fmt: skip
"""Opcodes that ptxas makes addresses, cursors, limits and event words of."""

_GUARD: Final = re.compile(r"U?P\d")


def stamp_instructions(instructions: Sequence[Instruction]) -> frozenset[int]:
    """Indices of the instructions that would go if the stamps went.

    Every clock read that a global store writes out is taken for a stamp, with its store. Of what these use, an instruction
    goes too when nothing else reads what it writes, up to the next write of the same register.
    """
    code = Definitions(instructions)
    seeds: set[int] = set()
    for index, each in enumerate(instructions):
        if is_opcode(each.opcode, "ST", "STG"):
            match = re.fullmatch(r"R\d+", each.operands[-1])
            clock = clock_behind(code, match[0], index) if match else None
            if clock is not None:
                seeds |= {clock, index}
                second = second_store(code, index)
                if second is not None:
                    seeds.add(second)
    guards = _predicate_writers(instructions)
    candidates = _used_by(seeds, code, guards) | seeds
    # A cursor's step at a loop's end stands below what reads it.
    used = {name for index in candidates for name in read(instructions[index])}
    steps = {
        index
        for index, each in enumerate(instructions)
        if is_opcode(each.opcode, *SERVANTS) and not used.isdisjoint(written(each))
    }
    flow = _Reads(instructions)
    candidates |= {index for index in steps - candidates if flow.readers(index)}
    candidates |= _used_by(candidates, code, guards)
    is_changed = True
    while is_changed:
        kept_by_others = {index for index in candidates - seeds if not flow.readers(index) <= candidates}
        is_changed = bool(kept_by_others)
        candidates -= kept_by_others
    return frozenset(candidates)


def _predicates_written(instruction: Instruction) -> list[str]:
    """Predicates among the results: the first two operands, as in `ISETP P0, PT, …` and `IADD3 R6, P1, …`."""
    if is_opcode(instruction.opcode, "BRA", "JMP", "BRX", "EXIT", "STG", "ST", "SEL", "FSEL", "USEL"):
        return []
    return [each for each in instruction.operands[:2] if _GUARD.fullmatch(each)]


def _predicates_read(instruction: Instruction) -> set[str]:
    results = _predicates_written(instruction)
    rest = instruction.operands[2 if results else 0 :]
    return set(_GUARD.findall(" ".join((instruction.predicate, *rest))))


def _predicate_writers(instructions: Sequence[Instruction]) -> dict[str, list[int]]:
    writers: dict[str, list[int]] = {}
    for index, each in enumerate(instructions):
        for name in _predicates_written(each):
            writers.setdefault(name, []).append(index)
    return writers


def _used_by(seeds: set[int], code: Definitions, guards: dict[str, list[int]]) -> set[int]:
    """What the seeds use, and what that uses: the last write above of each register and predicate that is read."""
    found: set[int] = set()
    open_ = list(seeds)
    while open_:
        index = open_.pop()
        instruction = code.instructions[index]
        above = [code.last(name, index) for name in read(instruction)]
        for name in _predicates_read(instruction):
            above.append(max((each for each in guards.get(name, []) if each < index), default=None))
        for each in above:
            if each is not None and each not in found and is_opcode(code.instructions[each].opcode, *SERVANTS):
                found.add(each)
                open_.append(each)
    return found - seeds


class _Reads:
    """Which instructions read what one writes."""

    def __init__(self, instructions: Sequence[Instruction]) -> None:
        self._instructions = instructions
        self._reads = [read(each) | _predicates_read(each) for each in instructions]
        self._writes = [{*written(each), *_predicates_written(each)} for each in instructions]
        self._known: dict[int, set[int]] = {}
        at = {each.address: index for index, each in enumerate(instructions)}
        self._back = {
            index: target
            for index, each in enumerate(instructions)
            if is_opcode(each.opcode, "BRA") and (target := at.get(_address(each), index + 1)) <= index
        }

    def readers(self, index: int) -> set[int]:
        """Readers of any result, below in address order and, past a jump back, from its target on."""
        if index not in self._known:
            self._known[index] = {reader for name in self._writes[index] for reader in self._of(name, index)}
        return self._known[index]

    def _of(self, name: str, index: int) -> Iterator[int]:
        starts, seen = [index + 1], set[int]()
        while starts:
            place = starts.pop()
            while place < len(self._instructions) and place not in seen:
                seen.add(place)
                if name in self._reads[place]:
                    yield place
                if name in self._writes[place] and not self._instructions[place].predicate:
                    break
                if place in self._back:
                    starts.append(self._back[place])
                    if not is_conditional(self._instructions[place]):
                        break
                place += 1


def _address(branch: Instruction) -> int:
    try:
        return int(branch.operands[-1], 16)
    except (IndexError, ValueError):
        return -1
