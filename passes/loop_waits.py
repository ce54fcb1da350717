# SPDX-License-Identifier: Apache-2.0
"""How the instructions of a trip are arranged: what lies between an asynchronous group and its wait, how streams are mixed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from autostamp.model.cubin import Instruction, is_opcode
from autostamp.model.kernel_loops import Alternation, GroupWait
from autostamp.passes import schedule
from autostamp.passes.mma_shapes import MMA

MIXED: Final[tuple[tuple[str, frozenset[str], str, frozenset[str]], ...]] = (
    ("MUFU", frozenset({"MUFU"}), "F2FP", frozenset({"F2FP"})),
    ("MUFU", frozenset({"MUFU"}), "FMA", frozenset({"FADD", "FADD2", "FFMA", "FFMA2", "FMUL", "FMUL2"})),
    ("MMA", MMA, "MUFU", frozenset({"MUFU"})),
)
"""Pairs of streams that are worth alternating, because different units execute them."""


def group_waits(trip: Sequence[Instruction]) -> tuple[GroupWait, ...]:
    """The waits for groups in a trip, each with what was issued since the group it waits for was closed."""
    return tuple(
        _group_wait(trip, place)
        for place, each in enumerate(trip)
        if is_opcode(each.opcode, "DEPBAR", "WARPGROUP.DEPBAR")
    )


def closes_group(instruction: Instruction, wait: Instruction) -> bool:
    """True for an instruction that closes a group which `wait` waits for: an MMA that names its scoreboard, or a commit."""
    if is_opcode(wait.opcode, "WARPGROUP.DEPBAR"):
        return schedule.family(instruction.opcode) in MMA and wait.operands[0] in instruction.operands
    return is_opcode(instruction.opcode, "LDGDEPBAR", "UTMACMDFLUSH")


def allowed(wait: Instruction) -> int:
    """How many groups the wait leaves in flight."""
    try:
        return int(wait.operands[1], 0)
    except (IndexError, ValueError):
        return 0


def _group_wait(trip: Sequence[Instruction], place: int) -> GroupWait:
    wait, left = trip[place], allowed(trip[place])
    closing = [index for index, each in enumerate(trip) if closes_group(each, wait)]
    if not closing:
        return GroupWait(wait.opcode, wait.address, left, -1, -1, -1, -1)
    before = sum(index < place for index in closing)
    # Groups in the order of issue: negative places are those of trips before.
    trips, nth = divmod(before - 1 - left, len(closing))
    start = closing[nth] + trips * len(trip)
    between = [trip[index % len(trip)] for index in range(start + 1, place)]
    return GroupWait(
        wait.opcode,
        wait.address,
        left,
        len(between),
        sum(is_opcode(each.opcode, "MUFU") for each in between),
        sum(schedule.family(each.opcode) in MMA for each in between),
        -trips,
    )


def alternations(trip: Sequence[Instruction]) -> tuple[Alternation, ...]:
    """How the pairs of streams of which a trip has both are mixed."""
    found = []
    names = [schedule.family(each.opcode) for each in trip]
    for first, firsts, second, seconds in MIXED:
        stream = [name in firsts for name in names if name in firsts | seconds]
        if any(stream) and not all(stream):
            switches = sum(one != other for one, other in pairwise(stream))
            found.append(Alternation(first, second, sum(stream), len(stream) - sum(stream), switches, _longest(stream)))
    return tuple(found)


def _longest(stream: Sequence[bool]) -> int:
    longest = run = 0
    for each in stream:
        run = run + 1 if each else 0
        longest = max(longest, run)
    return longest
