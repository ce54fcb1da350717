# SPDX-License-Identifier: Apache-2.0
"""Shape, operand types and the place of operand A of a matrix instruction, as far as SASS shows them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from autostamp.model.cubin import Instruction
from autostamp.model.loop import MmaShape
from autostamp.passes import schedule
from autostamp.passes.definitions import Definitions
from autostamp.passes.known_bits import value_of

MMA: Final = schedule.MMA | {"BMMA", "OMMA", "QMMA"}
"""Matrix instructions; OMMA and QMMA are the warp-wide ones of sm_120."""

_WRITTEN_OUT: Final = re.compile(r"\.(\d+)x(\d+)x(\d+)\b")
_RUN_TOGETHER: Final = re.compile(r"\.(8|16)(8)(4|8|16|32|64|128|256)\b")
"""Shapes of `mma.sync` are 16 or 8 by 8 by k, written without a separator: HMMA.16816 is 16 by 8 by 16."""

_TYPES: Final = (
    "BF16", "F16", "TF32", "F64", "E4M3", "E5M2", "E2M1", "E2M3", "E3M2", "S8", "U8", "S4", "U4",
)  # fmt: skip
_DEFAULT: Final = {"HGMMA": "f16", "HMMA": "f16", "DMMA": "f64", "BGMMA": "b1", "BMMA": "b1"}
"""The operand type of an opcode that names none."""


class _Kind(NamedTuple):
    """One kind of tcgen05 MMA: type names by the code in the descriptor, and the k of one instruction by type."""

    types: Mapping[int, str]
    depth: Mapping[str, int]


_TENSOR_MEMORY: Final = {
    "UTCHMMA": _Kind({0: "f16", 1: "bf16", 2: "tf32"}, {"f16": 16, "bf16": 16, "tf32": 8}),
    "UTCQMMA": _Kind(
        {0: "e4m3", 1: "e5m2", 3: "e2m3", 4: "e3m2", 5: "e2m1"},
        {"e4m3": 32, "e5m2": 32, "e2m3": 32, "e3m2": 32, "e2m1": 32},
    ),
    "UTCIMMA": _Kind({0: "u8", 1: "s8"}, {"u8": 32, "s8": 32}),
}
"""Types and k: PTX ISA, tcgen05 "Instruction descriptor" (kinds tf32 and f16, f8f6f4, i8) and "Matrix shape"."""


def shapes(instructions: Iterable[Instruction], code: Definitions) -> tuple[MmaShape, ...]:
    """The matrix instructions among these by kind, in the order in which each kind first appears.

    `code` is the whole function's listing: a tcgen05 instruction names the register of its descriptor, whose value is a
    constant that stands above. Where it is not, the shape is 0.
    """
    at = {each.address: index for index, each in enumerate(code.instructions)}
    found = Counter(_shape(each, code, at) for each in instructions if schedule.family(each.opcode) in MMA)
    return tuple(MmaShape(*key, count) for key, count in found.items())


_Key = tuple[str, int, int, int, str, str]


def _shape(instruction: Instruction, code: Definitions, at: Mapping[int, int]) -> _Key:
    family = schedule.family(instruction.opcode)
    if family.startswith("UTC"):
        return (instruction.opcode, *_described(instruction, code, at), _place_of_a(instruction, 0))
    match = _WRITTEN_OUT.search(instruction.opcode) or _RUN_TOGETHER.search(instruction.opcode)
    m, n, k = (int(each) for each in match.groups()) if match else (0, 0, 0)
    return instruction.opcode, m, n, k, _type(instruction.opcode, family), _place_of_a(instruction, 1)


def _type(opcode: str, family: str) -> str:
    """Operand types; an accumulator's type stands first and is left out."""
    named = [part.lower() for part in opcode.split(".") if part in _TYPES]
    if family in {"HGMMA", "HMMA"} and named and named[0] == "f16":
        named = named[1:]  # .F16 alone, or before the operands', is the accumulator's
    kinds = dict.fromkeys(named)
    return ",".join(kinds) or _DEFAULT.get(family, "")


def _place_of_a(instruction: Instruction, position: int) -> str:
    operand = instruction.operands[position] if position < len(instruction.operands) else ""
    return {"gdesc": "smem", "tmem": "tmem"}.get(operand.partition("[")[0], "registers")


def _described(instruction: Instruction, code: Definitions, at: Mapping[int, int]) -> tuple[int, int, int, str]:
    """m, n, k and types from the instruction descriptor: PTX ISA, tcgen05, "Instruction descriptor".

    Bits 7-9 are the type of A, 10-12 of B, 17-22 n / 8, 24-28 m / 16. Block-scaled kinds put m elsewhere and are not read;
    they name the tensor memory of their scales besides the accumulator and the descriptor's pair.
    """
    kind = _TENSOR_MEMORY.get(schedule.family(instruction.opcode))
    named = [each for each in instruction.operands if each.startswith("idesc[")]
    memories = [each for each in instruction.operands[1:] if each.startswith("tmem[")]
    if kind is None or not named or len(memories) > 2:
        return 0, 0, 0, ""
    value = value_of(code, named[0][len("idesc[") : -1], at[instruction.address]).low(32)
    if value is None:
        return 0, 0, 0, ""
    a, b = kind.types.get(value >> 7 & 7, ""), kind.types.get(value >> 10 & 7, "")
    return (value >> 24 & 31) * 16, (value >> 17 & 63) * 8, kind.depth.get(a, 0), a if a == b else f"{a},{b}"
