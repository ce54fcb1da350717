# SPDX-License-Identifier: Apache-2.0
"""Reading what the binary tools print: `nvdisasm -json` and `cuobjdump -res-usage`. No tool is run here."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import msgspec

from autostamp.model.cubin import Instruction

_USAGE: Final = re.compile(
    r"^ Function (?P<kernel>\S+):\n"
    r"\s+REG:(?P<registers>\d+) STACK:(?P<stack>\d+) SHARED:(?P<shared>\d+) LOCAL:(?P<local>\d+)",
    re.MULTILINE,
)


class _Sass(msgspec.Struct):
    opcode: str
    operands: str = ""
    predicate: str = ""


class _Function(msgspec.Struct, rename={"name": "function-name", "sass": "sass-instructions"}):
    name: str
    start: int
    length: int
    sass: list[_Sass]


@dataclass(frozen=True, slots=True)
class Usage:
    """What one function needs: registers, stack and local memory per thread, static shared memory per CTA (bytes)."""

    registers: int
    stack: int
    local: int
    shared: int


def parse_disassembly(text: str) -> dict[str, tuple[Instruction, ...]]:
    """Functions and their instructions from `nvdisasm -json` output (schema 13, which CUDA 13 prints).

    The output names no addresses; instructions are equally long (16 bytes since sm_70), so they follow from the function's
    length. Raises ValueError when the text is not such output.
    """
    try:
        _, functions = msgspec.json.decode(text, type=tuple[dict[str, object], list[_Function]])
    except msgspec.DecodeError as error:
        raise ValueError(f"not nvdisasm's JSON: {error}") from error
    return {function.name: _instructions(function) for function in functions}


def _instructions(function: _Function) -> tuple[Instruction, ...]:
    step = function.length // max(1, len(function.sass))
    return tuple(
        Instruction(function.start + index * step, sass.opcode, _operands(sass.operands), sass.predicate)
        for index, sass in enumerate(function.sass)
    )


def _operands(text: str) -> tuple[str, ...]:
    return tuple(part.strip().replace(".reuse", "") for part in text.split(",")) if text else ()


def parse_usage(text: str) -> dict[str, Usage]:
    """Resources of each function from `cuobjdump -res-usage` output. Raises ValueError when the text holds none."""
    found = {
        match["kernel"]: Usage(
            int(match["registers"]), int(match["stack"]), local=int(match["local"]), shared=int(match["shared"])
        )
        for match in _USAGE.finditer(text)
    }
    if not found:
        raise ValueError("no resource usage in cuobjdump's output")
    return found
