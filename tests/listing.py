# SPDX-License-Identifier: Apache-2.0
"""SASS written as text, for tests of what reads it."""

from __future__ import annotations

import re

from autostamp.model.cubin import CubinFacts, Instruction

_LINE = re.compile(r"(?P<predicate>@!?U?P\d)?\s*(?P<opcode>[\w.]+)\s*(?P<operands>.*)")


def listing(text: str) -> tuple[Instruction, ...]:
    """Instructions from one line each, as nvdisasm writes them without addresses; those count up from 0 by 16."""
    matches = [_LINE.fullmatch(line.strip()) for line in text.splitlines() if line.strip()]
    return tuple(
        Instruction(
            16 * index,
            match["opcode"],
            tuple(part.strip() for part in match["operands"].split(",") if part.strip()),
            match["predicate"] or "",
        )
        for index, match in enumerate(matches)
        if match is not None
    )


def facts(text: str, kernel: str = "k", registers: int = 168, shared_bytes: int = 1024) -> CubinFacts:
    """A kernel with these instructions."""
    return CubinFacts(kernel, registers, 0, 0, shared_bytes, listing(text))
