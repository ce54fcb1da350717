# SPDX-License-Identifier: Apache-2.0
"""How far a stamped kernel's instruction schedule is from the clean one's.

A stamp costs little by its own instructions and much where it makes ptxas order the kernel's own work differently. Two
figures show that at compile time: the share of core opcodes still in the clean order, and where the waits for asynchronous
groups fall in the stream of MUFU and matrix instructions. Stamps add no core opcode, so nothing needs removing first.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from autostamp.model.cubin import CubinFacts, Instruction, Schedule, WaitPlace, is_opcode

TWO_PART: Final = frozenset({"BAR", "SYNCS", "WARPGROUP"})
"""Opcodes whose second component says what they do (BAR.SYNC waits, BAR.ARV does not)."""

MMA: Final = frozenset(
    {"HGMMA", "QGMMA", "IGMMA", "BGMMA", "HMMA", "IMMA", "DMMA", "UTCHMMA", "UTCQMMA", "UTCIMMA", "UTCOMMA"}
)
"""Matrix instructions: warpgroup (sm_90), warp, and tensor-memory (sm_100) ones."""

SYNC: Final = MMA | {
    "BAR.ARV", "BAR.RED", "BAR.SYNC", "DEPBAR", "LDGDEPBAR", "LDGSTS", "MUFU", "SYNCS.ARRIVE", "SYNCS.EXCH",
    "SYNCS.PHASECHK", "UBLKCP", "UCGABAR_ARV", "UCGABAR_WAIT", "UTCBAR", "UTMACMDFLUSH", "UTMALDG", "UTMASTG",
    "WARPGROUP.ARRIVE", "WARPGROUP.DEPBAR", "WARPSYNC",
}  # fmt: skip
"""Families whose number a stamp must not change: barriers, waits, asynchronous copies, matrix instructions and MUFU, whose
number shows changed unrolling.
"""

CORE: Final = SYNC | {"F2FP", "FADD", "FFMA", "FMNMX", "FMUL", "LDTM", "SHFL", "STTM"}
"""Families whose order is compared: the above and floating-point work. Integer and address instructions are left out, because
stamps are made of them.
"""

SHORT_WINDOW: Final = 32
"""Moves in a shorter window are measured against this many instructions: passing one of two is no change of schedule."""


def family(opcode: str) -> str:
    """The part of an opcode that says what it does: `MUFU` for `MUFU.EX2`, `BAR.SYNC` for `BAR.SYNC.DEFER_BLOCKING`."""
    head, _, rest = opcode.partition(".")
    return f"{head}.{rest.partition('.')[0]}" if head in TWO_PART and rest else head


def without_retries(instructions: Sequence[Instruction]) -> tuple[Instruction, ...]:
    """The instructions less what only a failed mbarrier wait executes."""
    kept = kept_without_retries(instructions)
    return tuple(each for each, is_kept in zip(instructions, kept, strict=True) if is_kept)


def kept_without_retries(instructions: Sequence[Instruction]) -> tuple[bool, ...]:
    """Of each instruction, False where only a failed mbarrier wait executes it.

    ptxas writes one wait as a loop in line, or as one try in line and the loop behind the kernel's end, and a stamp near it
    may turn the one into the other. Left out are the second check after the pause (both forms have it) and the tries of a
    loop that ends with a jump back into the kernel (only the second form has one), so that a wait is one try in both.
    """
    dropped: set[int] = set()
    for index, instruction in enumerate(instructions):
        if "TRYWAIT" not in instruction.opcode.split("."):
            continue
        after = index + 1
        while after < len(instructions) and _is_retry(instructions[after]):
            dropped.add(after)
            after += 1
        branches = instructions[after : after + 2]
        if [each.opcode for each in branches] == ["BRA", "BRA"] and branches[0].predicate and not branches[1].predicate:
            dropped.add(index)
    return tuple(index not in dropped for index in range(len(instructions)))


def _is_retry(instruction: Instruction) -> bool:
    is_check = is_opcode(instruction.opcode, "SYNCS.PHASECHK") and "TRYWAIT" not in instruction.opcode
    return bool(instruction.predicate) and (is_check or is_opcode(instruction.opcode, "NANOSLEEP.SYNCS"))


def core_sequence(instructions: Sequence[Instruction]) -> tuple[str, ...]:
    """Families of the core opcodes in address order, retries of mbarrier waits left out."""
    return tuple(name for each in without_retries(instructions) if (name := family(each.opcode)) in CORE)


def common_length(first: Sequence[str], second: Sequence[str]) -> int:
    """Length of the longest common subsequence.

    Bit-parallel (H. Hyyro, "Bit-parallel LCS-length computation revisited", 2004): bit i of `row` is 0 where the dynamic
    programme's row steps up at i, so one addition handles a whole row. 10,000 by 10,000 takes well under a second.
    """
    positions: dict[str, int] = {}
    for index, item in enumerate(first):
        positions[item] = positions.get(item, 0) | 1 << index
    every = (1 << len(first)) - 1
    row = every
    for item in second:
        matched = row & positions.get(item, 0)
        row = ((row + matched) | (row - matched)) & every
    return len(first) - row.bit_count()


def wait_places(instructions: Sequence[Instruction]) -> tuple[WaitPlace, ...]:
    """Each DEPBAR (scoreboard or wgmma group) in address order, with the MUFU and matrix instructions around it."""
    waits, mufu, mma = [], [0], [0]
    for each in instructions:
        if is_opcode(each.opcode, "DEPBAR", "WARPGROUP.DEPBAR"):
            waits.append(each)
            mufu.append(0)
            mma.append(0)
        mufu[-1] += is_opcode(each.opcode, "MUFU")
        mma[-1] += family(each.opcode) in MMA
    return tuple(
        WaitPlace(wait.opcode, mufu_before, mufu_before + mufu_after, mma_before, mma_before + mma_after)
        for wait, (mufu_before, mufu_after), (mma_before, mma_after) in zip(
            waits, pairwise(mufu), pairwise(mma), strict=True
        )
    )


def compare(clean: CubinFacts, stamped: CubinFacts) -> Schedule:
    """Both figures for one kernel."""
    return compare_sequences(clean.instructions, stamped.instructions)


def compare_sequences(clean: Sequence[Instruction], stamped: Sequence[Instruction]) -> Schedule:
    """Both figures for a part of a kernel, such as one trip through a loop."""
    before, after = core_sequence(clean), core_sequence(stamped)
    return Schedule(len(before), len(after), common_length(before, after), wait_places(clean), wait_places(stamped))


def shift(clean: WaitPlace, stamped: WaitPlace) -> float:
    """How far a wait moved, as a share of the instructions that it moved among: of MUFU or of matrix ones, the larger."""
    return max(
        abs(stamped.mufu - clean.mufu) / max(clean.mufu_window, SHORT_WINDOW),
        abs(stamped.mma - clean.mma) / max(clean.mma_window, SHORT_WINDOW),
    )
