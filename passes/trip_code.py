# SPDX-License-Identifier: Apache-2.0
"""A trip's instructions as the model plays them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from autostamp.model.cubin import Instruction, is_opcode
from autostamp.model.trip_code import Op, OpKind
from autostamp.passes import loop_mix, schedule
from autostamp.passes.definitions import Definitions, read, written
from autostamp.passes.loop_traffic import is_announcement
from autostamp.passes.loop_waits import allowed
from autostamp.passes.mma_shapes import MMA, shapes

_OFFSET: Final = re.compile(r"\+(0x[0-9a-f]+)\]")
_REGISTER: Final = re.compile(r"R(\d+)")
_A_REGISTERS: Final = 4
"""Of each thread, in a 64 by 16 operand A of 16-bit elements over 128 threads (PTX ISA, wgmma register fragments)."""


def trip_code(trip: Iterable[Instruction], code: Definitions) -> tuple[Op, ...]:
    """One operation for each instruction; `code` is the whole function's listing. A second try of the same wait is left out."""
    found = list(_ops(trip, code))
    kept = [
        each
        for index, each in enumerate(found)
        if not (each.kind is OpKind.MBARRIER_WAIT and each.offset >= 0 and _tried_before(found, index))
    ]
    return tuple(kept)


def _tried_before(found: list[Op], index: int) -> bool:
    """Whether nothing but arithmetic and branches lies between this wait and an equal one above."""
    for each in reversed(found[:index]):
        if each.kind is OpKind.MBARRIER_WAIT:
            return each.offset == found[index].offset
        if each.kind is not OpKind.PLAIN:
            return False
    return False


def _ops(trip: Iterable[Instruction], code: Definitions) -> Iterator[Op]:
    for each in trip:
        family = loop_mix.counted_as(each)
        op = Op(family, reads=frozenset(read(each)), writes=frozenset(written(each)))
        if schedule.family(each.opcode) in MMA:
            yield _mma(each, op, code)
        elif is_opcode(each.opcode, "WARPGROUP.DEPBAR"):
            yield replace(op, kind=OpKind.GROUP_WAIT, allowed=allowed(each))
        elif is_opcode(each.opcode, "SYNCS.PHASECHK"):
            yield replace(op, kind=OpKind.MBARRIER_WAIT, offset=_offset(each))
        elif is_opcode(each.opcode, "SYNCS.ARRIVE"):
            yield replace(op, kind=OpKind.MBARRIER_ARRIVE, offset=_offset(each), announces=is_announcement(each))
        elif is_opcode(each.opcode, "BAR.SYNC", "BAR.ARV"):
            kind = OpKind.NAMED_SYNC if is_opcode(each.opcode, "BAR.SYNC") else OpKind.NAMED_ARRIVE
            yield replace(op, kind=kind, threads=_threads(each))
        else:
            yield op


def _mma(instruction: Instruction, op: Op, code: Definitions) -> Op:
    (shape,) = shapes([instruction], code)
    if not instruction.opcode.split(".")[0].endswith("GMMA"):
        return replace(op, mma=shape)
    match = _REGISTER.fullmatch(instruction.operands[1]) if len(instruction.operands) > 1 else None
    operand = frozenset(f"R{int(match[1]) + each}" for each in range(_A_REGISTERS)) if match else frozenset()
    closes = any(each.startswith("gsb") for each in instruction.operands)
    return replace(op, kind=OpKind.MMA, reads=operand, writes=frozenset(), mma=shape, closes=closes)


def _offset(instruction: Instruction) -> int:
    """The constant behind the registers of an mbarrier's address, 0 where there are registers alone; -1 without an address."""
    address = next((each for each in instruction.operands if each.startswith("[")), "")
    match = _OFFSET.search(address)
    return int(match[1], 0) if match else 0 if address else -1


def _threads(instruction: Instruction) -> int:
    """0 where all threads of the CTA meet, or where the number is in a register."""
    try:
        return int(instruction.operands[1], 0)
    except (IndexError, ValueError):
        return 0
