# SPDX-License-Identifier: Apache-2.0
"""Bytes that a trip's loads and stores move, and those that its mbarriers expect of TMA."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from autostamp.model.cubin import Instruction, is_opcode
from autostamp.model.loop_traffic import LoopTraffic
from autostamp.passes.definitions import Definitions
from autostamp.passes.known_bits import value_of

LANES: Final = 32
MATRIX_BYTES: Final = 128
"""One 8 x 8 matrix of 16-bit elements of `ldmatrix` and `stmatrix`: PTX ISA, "ldmatrix"."""

_MATRICES: Final = re.compile(r"\.MT?88(?:\.([24]))?$")
_REGISTERS: Final = re.compile(r"\.x(\d+)\b")
"""`LDTM.x32` moves 32 registers of each lane: PTX ISA, tcgen05.ld, shape 32x32b."""


def traffic(instructions: Iterable[Instruction], code: Definitions) -> LoopTraffic:
    """Sums over these instructions; `code` is the whole function's listing, where amounts to expect are looked up."""
    trip = tuple(instructions)
    at = {each.address: index for index, each in enumerate(code.instructions)}
    announced = [_expected(each, code, at[each.address]) for each in trip if is_announcement(each)]
    known = [each for each in announced if each is not None]
    return LoopTraffic(
        shared_read=sum(_shared_bytes(each) for each in trip if is_opcode(each.opcode, "LDS", "LDSM")),
        shared_written=sum(_shared_bytes(each) for each in trip if is_opcode(each.opcode, "STS", "STSM")),
        tensor_loaded=sum(_tensor_bytes(each) for each in trip if is_opcode(each.opcode, "LDTM")),
        tensor_stored=sum(_tensor_bytes(each) for each in trip if is_opcode(each.opcode, "STTM")),
        announced=sum(known) if len(known) == len(announced) else -1,
        announcements=len(announced),
        releases=sum(is_opcode(each.opcode, "SYNCS.ARRIVE") and not is_announcement(each) for each in trip),
    )


def is_announcement(instruction: Instruction) -> bool:
    """True for `mbarrier.arrive.expect_tx`: an arrival with an amount, of no arrival count (A1T0 is a plain arrival)."""
    parts = instruction.opcode.split(".")
    return is_opcode(instruction.opcode, "SYNCS.ARRIVE.TRANS64") and not {"A1T0", "ART0", "RED"} & set(parts)


def _expected(instruction: Instruction, code: Definitions, index: int) -> int | None:
    return value_of(code, instruction.operands[-1], index).low(32)


def _shared_bytes(instruction: Instruction) -> int:
    if is_opcode(instruction.opcode, "LDSM", "STSM"):
        match = _MATRICES.search(instruction.opcode)
        return MATRIX_BYTES * int(match[1] or 1) if match else 0
    return LANES * instruction.width_bytes


def _tensor_bytes(instruction: Instruction) -> int:
    match = _REGISTERS.search(instruction.opcode)
    return LANES * 4 * int(match[1]) if match else LANES * 4
