# SPDX-License-Identifier: Apache-2.0
"""What the disassembly says of one main loop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MmaShape:
    """Matrix instructions of one kind in one trip.

    `m`, `n` and `k` are of one instruction (of the CTA pair for `.2CTA` ones; 0 where the code does not show them); `dtype` is
    that of the operands ("bf16"; "e4m3,e5m2" where they differ); `operand_a` is where A comes from: "smem", "registers" or
    "tmem". `count` is per warp that runs the loop; a warpgroup instruction counts once in each of its four warps.
    """

    opcode: str
    m: int
    n: int
    k: int
    dtype: str
    operand_a: str
    count: int


@dataclass(frozen=True, slots=True)
class LoopFacts:
    """One loop of a kernel, as one warp runs one trip of it.

    `start` and `end` are the byte addresses of its first and last instruction, `depth` is 1 for an outermost loop. `counts` maps
    an opcode family to its instructions in one trip, with every conditional part taken, loops inside left out and retries of
    mbarrier waits left out; `instructions` is their sum. `local_bytes` is what one thread moves to and from local memory.
    """

    kernel: str
    start: int
    end: int
    depth: int
    counts: Mapping[str, int]
    mma: tuple[MmaShape, ...]
    instructions: int
    local_bytes: int
