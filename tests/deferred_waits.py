# SPDX-License-Identifier: Apache-2.0
"""Which clock reads of a kernel may come before the wait that they follow (docs/adr/0009)."""

from __future__ import annotations

from collections.abc import Sequence

from autostamp.model.cubin import Instruction

DEFERRED = ("BAR.SYNC", "BAR.RED", "UCGABAR_WAIT")
"""They only ask the warp to wait: what touches no memory executes before it does."""


def waits(instructions: Sequence[Instruction]) -> list[int]:
    """Addresses of the instructions that defer their wait."""
    return [each.address for each in instructions if each.opcode.startswith(DEFERRED)]


def early_clocks(instructions: Sequence[Instruction]) -> list[int]:
    """Addresses of the first clock reads behind such an instruction that no store to memory keeps behind it."""
    early: list[int] = []
    is_open = False
    for each in instructions:
        if each.opcode.startswith(DEFERRED):
            is_open = True
        elif each.opcode.startswith("STG"):
            is_open = False
        elif is_open and each.opcode.startswith("CS2R") and "SR_CLOCKLO" in each.operands:
            early.append(each.address)
            is_open = False
    return early
