# SPDX-License-Identifier: Apache-2.0
"""Does a probe's machine code hold what the probe says it measures?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from autostamp.model.cubin import CubinFacts, Instruction, is_opcode
from autostamp.runtime.probes.probe import Loop

_BARRIERS: Final = ("BAR.SYNC", "BAR.RED", "UCGABAR_WAIT")
_MEMORY: Final = ("ST", "STG", "STS", "LD", "LDG", "LDS", "ATOM", "ATOMG", "ATOMS", "RED", "SYNCS")
_LOCAL: Final = ("LDL", "STL")
_CLOCK: Final = "SR_CLOCK"


def findings(facts: CubinFacts, loops: Sequence[Loop]) -> list[str]:
    """What is wrong with the function; empty when it is what the probe needs.

    Each of `loops` must be there; there may be no local memory, whose traffic would be measured too; and no clock may be read
    right behind a hardware barrier, before which it would come (docs/adr/0009).
    """
    found = [text for loop in loops for text in _loop_findings(facts.instructions, loop)]
    if any(is_opcode(each.opcode, *_LOCAL) for each in facts.instructions):
        found.append("it uses local memory")
    early = _early_clock(facts.instructions)
    if early is not None:
        found.append(f"the clock read at {early.address:#x} stands right behind a barrier")
    return found


def loops_of(instructions: Sequence[Instruction]) -> list[tuple[Instruction, ...]]:
    """Bodies of loops, the shortest first: from the target of a branch that goes back to the branch itself."""
    bodies = []
    for last, branch in enumerate(instructions):
        target = _target(branch)
        if target is not None and target < branch.address:
            bodies.append(tuple(each for each in instructions[: last + 1] if each.address >= target))
    return sorted(bodies, key=len)


def _target(instruction: Instruction) -> int | None:
    if not is_opcode(instruction.opcode, "BRA", "JMP") or not instruction.operands:
        return None
    try:
        return int(instruction.operands[-1], 0)
    except ValueError:
        return None


def count(instructions: Sequence[Instruction], key: str) -> int:
    """Instructions of an opcode, with any modifiers; of `CS2R SR_CLOCK` those of just this opcode whose first source is such.

    So `CS2R` alone includes `CS2R.32`, and with a source it does not.
    """
    opcode, _, operand = key.partition(" ")
    if operand:
        return sum(
            each.opcode == opcode and len(each.operands) > 1 and each.operands[1].startswith(operand)
            for each in instructions
        )
    return sum(is_opcode(each.opcode, opcode) for each in instructions)


def _loop_findings(instructions: Sequence[Instruction], loop: Loop) -> Iterator[str]:
    bodies = loops_of(instructions)
    matching = [body for body in bodies if _matches(body, loop)]
    wanted = _text(loop.counts)
    if len(matching) != loop.copies:
        nearest = min(bodies, key=lambda body: _distance(body, loop.counts), default=None)
        have = "there is no loop" if nearest is None else f"the nearest has {_text(_counts(nearest, loop.counts))}"
        extra = "" if nearest is None else f" among {len(nearest)} instructions"
        yield (
            f"{len(matching)} loops instead of {loop.copies} hold {wanted} and at most {loop.others} other instructions; "
            f"{have}{extra}"
        )
        return
    first, number = next(iter(loop.counts.items()))
    everywhere = count(instructions, first)
    if loop.alone and everywhere != number * loop.copies:
        yield f"{first} stands {everywhere} times in the function, of which {number * loop.copies} in the loop"


def _matches(body: Sequence[Instruction], loop: Loop) -> bool:
    others = len(body) - sum(loop.counts.values())
    return _counts(body, loop.counts) == dict(loop.counts) and 0 <= others <= loop.others


def _counts(body: Sequence[Instruction], keys: Mapping[str, int]) -> dict[str, int]:
    return {key: count(body, key) for key in keys}


def _distance(body: Sequence[Instruction], wanted: Mapping[str, int]) -> int:
    return sum(abs(count(body, key) - number) for key, number in wanted.items())


def _text(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {key}" for key, number in counts.items())


def _early_clock(instructions: Sequence[Instruction]) -> Instruction | None:
    """The first read of the SM clock with no memory instruction between it and the barrier before it, by address."""
    is_behind = False
    for each in instructions:
        if is_opcode(each.opcode, *_BARRIERS):
            is_behind = True
        elif is_opcode(each.opcode, *_MEMORY):
            is_behind = False
        elif is_behind and any(operand.startswith(_CLOCK) for operand in each.operands):
            return each
    return None
