# SPDX-License-Identifier: Apache-2.0
"""Where each stamp stands in SASS, and whether a wait's two stamps stand on both sides of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from autostamp.model.cubin import Instruction, is_opcode
from autostamp.model.manifest import Instance
from autostamp.model.sync import Side
from autostamp.passes.definitions import Definitions, written
from autostamp.passes.known_bits import value_of

EVENT_BITS: Final = 16
"""Width of the event number in the low half of the event word (the record layout of the runtime)."""

_REGISTER: Final = re.compile(r"R(\d+)")
_COPIES: Final = ("MOV", "IMAD.MOV")
_MBARRIER: Final = ("SYNCS.PHASECHK",)
_POLL: Final = ("LD", "LDG", "LDS", "ATOM", "ATOMG", "ATOMS")

WAITS_OF: Final[Mapping[str, tuple[str, ...]]] = {
    Side.FULL: _MBARRIER,
    Side.EMPTY: _MBARRIER,
    Side.MBARRIER: _MBARRIER,
    Side.NAMED: ("BAR.SYNC", "BAR.RED"),
    Side.CTA: ("BAR.SYNC", "BAR.RED"),
    Side.CLUSTER: ("UCGABAR_WAIT", "BAR.SYNC"),
    Side.ASYNC_GROUP: ("DEPBAR", "WARPGROUP.DEPBAR"),
    Side.GRID: ("ACQBULK", *_POLL),
    Side.FLAG: _POLL,
}
"""SASS that a wait on each side of a barrier becomes. A warp barrier is absent: ptxas drops it where the warp is converged."""


class Verdict(Enum):
    """Outcome for one wait instance."""

    AROUND = "around"
    MISPLACED = "misplaced"
    UNPLACED = "unplaced"


@dataclass(frozen=True, slots=True)
class Found:
    """A clock read of the SASS: its index among the instructions and the event its record is stored with (0: not known)."""

    index: int
    event: int


def find_stamps(instructions: Sequence[Instruction]) -> tuple[Found, ...]:
    """Every clock read in address order, with the event number of the store that writes it out, or of the one after it."""
    code = Definitions(instructions)
    events: dict[int, int] = {}
    for index, instruction in enumerate(instructions):
        pair, word = stored_pair(instruction), index
        if pair is None:
            second = second_store(code, index)
            if second is None:
                continue
            word = second
            pair = (instruction.operands[-1], instructions[second].operands[-1])
        clock = clock_behind(code, pair[0], index)
        event = value_of(code, pair[1], word).low(EVENT_BITS)
        if clock is not None and event:
            events[clock] = event
    return tuple(
        Found(index, events.get(index, 0))
        for index, instruction in enumerate(instructions)
        if instruction.is_clock_read
    )


def stored_pair(instruction: Instruction) -> tuple[str, str] | None:
    """The two registers that a 64-bit global store writes."""
    if not is_opcode(instruction.opcode, "STG", "ST") or "64" not in instruction.opcode.split("."):
        return None
    match = _REGISTER.fullmatch(instruction.operands[-1])
    return (match[0], f"R{int(match[1]) + 1}") if match else None


def second_store(code: Definitions, index: int) -> int | None:
    """Index of the store to the word behind the one that instruction `index` stores, at the same address register; else None.

    Where registers are short a record is written by two stores of 32 bits.
    """
    first = code.instructions[index]
    place = _stored_word(first)
    base = re.search(r"\[(R\d+)\.64\]\Z", place)
    if base is None:
        return None
    for at in range(index + 1, len(code.instructions)):
        each = code.instructions[at]
        if _stored_word(each) == f"{place[:-1]}+0x4]":
            return at
        if base[1] in written(each) or is_opcode(each.opcode, "BRA", "EXIT", "RET"):
            return None
    return None


def _stored_word(instruction: Instruction) -> str:
    """The address of a global store of one 32-bit register; '' for anything else."""
    is_store = is_opcode(instruction.opcode, "STG", "ST") and not {"64", "128"} & set(instruction.opcode.split("."))
    is_word = is_store and _REGISTER.fullmatch(instruction.operands[-1]) is not None
    return instruction.operands[0] if is_word else ""


def clock_behind(code: Definitions, register: str, before: int) -> int | None:
    """Index of the clock read whose value `register` holds before index `before`; None where it holds something else."""
    index = code.last(register, before)
    while index is not None and is_opcode(code.instructions[index].opcode, *_COPIES):
        index = code.last(code.instructions[index].operands[-1], index)
    return index if index is not None and code.instructions[index].is_clock_read else None


def judge(instructions: Sequence[Instruction], stamps: Sequence[Found], instance: Instance) -> Verdict:
    """Whether a wait of the instance's kind stands between its enter and its exit stamp, in every copy of the two.

    The path from an enter stamp is the straight one: conditional branches are not taken (they lead to the retry loop, which
    ptxas moves out of line, or skip a wait that a try_wait has already passed) and unconditional ones are followed.
    """
    names = WAITS_OF.get(instance.side, ())
    exits = {found.index for found in stamps if found.event == instance.exit}
    enters = [found.index for found in stamps if found.event == instance.enter]
    if not names or not exits or not enters:
        return Verdict.UNPLACED
    verdicts = {_judge_copy(instructions, enter, exits, names) for enter in enters}
    return next(each for each in (Verdict.MISPLACED, Verdict.UNPLACED, Verdict.AROUND) if each in verdicts)


def _judge_copy(instructions: Sequence[Instruction], enter: int, exits: set[int], names: tuple[str, ...]) -> Verdict:
    at_address = {each.address: index for index, each in enumerate(instructions)}
    index, has_waited, seen = enter + 1, False, set[int]()
    while index < len(instructions) and index not in seen:
        seen.add(index)
        instruction = instructions[index]
        if index in exits:
            return Verdict.AROUND if has_waited else Verdict.MISPLACED
        has_waited = has_waited or is_opcode(instruction.opcode, *names)
        if is_opcode(instruction.opcode, "BRA") and not instruction.predicate and len(instruction.operands) == 1:
            index = at_address.get(int(instruction.operands[0], 16), len(instructions))
        elif is_opcode(instruction.opcode, "EXIT", "RET") and not instruction.predicate:
            break
        else:
            index += 1
    return Verdict.UNPLACED
