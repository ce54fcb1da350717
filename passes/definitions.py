# SPDX-License-Identifier: Apache-2.0
"""Which registers a SASS instruction reads and writes, and which instruction of a listing last wrote one."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from autostamp.model.cubin import Instruction

_REGISTER: Final = re.compile(r"(U?R)(\d+)")
_USE: Final = re.compile(r"\b(U?R)(\d+)(\.64)?")
_ACCUMULATORS: Final = 128
"""Registers of the largest accumulator of a warpgroup MMA: 64 by 256 in f32 over 128 threads."""

_PREDICATE: Final = re.compile(r"!?U?P(T|\d+)")
_READ_ONLY: Final = frozenset(
    {"BAR", "BRX", "CALL", "NANOSLEEP", "R2P", "RET", "UBLKCP", "UTMALDG", "UTMASTG", "WARPSYNC"}
)
"""Opcodes whose first operand may be a register that they read."""


def is_register(operand: str) -> bool:
    """True for a vector or uniform register as a whole, with no sign or half selection."""
    return _REGISTER.fullmatch(operand) is not None


def is_predicate(operand: str) -> bool:
    """True for a predicate register, negated or not."""
    return _PREDICATE.fullmatch(operand) is not None


class Definitions:
    """A listing with an index of the places that write each register.

    Address order stands in for control flow: ptxas puts the definition of what a stamp stores above the store, in its block
    or above the loop, so the last one above is the one that counts. A guard on the definition is taken to hold.
    """

    def __init__(self, instructions: Sequence[Instruction]) -> None:
        self.instructions = instructions
        self._writers: dict[str, list[int]] = {}
        for index, instruction in enumerate(instructions):
            for register in written(instruction):
                self._writers.setdefault(register, []).append(index)

    def last(self, register: str, before: int) -> int | None:
        """Index of the last instruction above index `before` that writes `register`, or None."""
        writers = self._writers.get(register, [])
        position = bisect_left(writers, before)
        return writers[position - 1] if position else None


def written(instruction: Instruction) -> list[str]:
    """The vector or uniform registers that an instruction writes (predicates are not among them)."""
    operands = instruction.operands
    if not operands or instruction.opcode.split(".")[0] in _READ_ONLY:
        return []
    # SHFL, ATOMG and LOP3 may name a predicate result before the register.
    first = operands[1] if is_predicate(operands[0]) and len(operands) > 1 else operands[0]
    match = _REGISTER.fullmatch(first)
    if match is None:
        return []
    return [f"{match[1]}{int(match[2]) + offset}" for offset in range(_registers_written(instruction.opcode))]


def _registers_written(opcode: str) -> int:
    parts = opcode.split(".")
    if parts[0] == "LDTM":  # at least one for each repetition, `.x32`
        return max((int(part[1:]) for part in parts if part[0] == "x" and part[1:].isdigit()), default=1)
    if "128" in parts:
        return 4
    return 2 if "64" in parts or "WIDE" in parts or opcode == "CS2R" else 1


def read(instruction: Instruction) -> set[str]:
    """The vector and uniform registers that an instruction reads.

    Where the width of an operand depends on the opcode, the wider one is taken: data of a 128-bit store, the accumulator and
    operand A of a warpgroup MMA.
    """
    found: set[str] = set()
    results = set(written(instruction)[:1])
    is_store = not results
    parts = instruction.opcode.split(".")
    for place, operand in enumerate(instruction.operands):
        # An accumulator is written and read under one name, so a result is passed over at its own place only.
        if place < 2 and operand in results and not _is_accumulated(instruction):
            results = set()
            continue
        for match in _USE.finditer(operand):
            wide = 2 if match[3] or operand.startswith(("desc[", "gdesc[", "idesc[")) or "WIDE" in parts else 1
            if is_store and place == len(instruction.operands) - 1:
                wide = max(wide, 4 if "128" in parts else 2 if "64" in parts else 1)
            if parts[0].endswith("GMMA"):
                wide = _ACCUMULATORS if _is_accumulated(instruction) and place == 0 else 4
            found |= {f"{match[1]}{int(match[2]) + offset}" for offset in range(wide)}
    return found


def _is_accumulated(instruction: Instruction) -> bool:
    return instruction.opcode.split(".")[0].endswith("GMMA")
