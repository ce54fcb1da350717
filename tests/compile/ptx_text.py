# SPDX-License-Identifier: Apache-2.0
"""Reading the PTX of stamped kernels: what each stamp writes, and which constants a register is made of."""

from __future__ import annotations

import re
from dataclasses import dataclass

_STAMP = re.compile(
    r"// autostamp (?P<event>\d+)\n"
    r"mov\.u32 c, %clock;\n"
    r"setp\.lt\.u32 p, (?P<low>%?\w+), (?P<limit>%?\w+);\n"
    r"mov\.b64 a, \{(?P=low), (?P<high>%?\w+)\};\n"
    r"@p st\.global\.v2\.b32 \[a\], \{c, (?P<word>%?\w+)\};"
)
_INSTRUCTION = re.compile(r"^\s*(?:@!?%p\d+ )?[\w.]+\s+(\{[^}]*\}|%\w+)(?:\|%p\d+)?, (.*);$", re.MULTILINE)
_REGISTER = re.compile(r"%r[ds]?\d+")
_CONSTANT = re.compile(r"(?<![%\w])-?\d+\b")


@dataclass(frozen=True, slots=True)
class StampText:
    """One stamp: event number, and the operands (register or constant) of its address, its bound and its event word."""

    event: int
    low: str
    high: str
    limit: str
    word: str


def body(ptx: str, kernel: str) -> str:
    """The text of one kernel, up to the next one."""
    return ptx[ptx.index(f".entry {kernel}(") :].split("\n.visible .entry ", 1)[0]


def stamps(text: str) -> list[StampText]:
    """The stamps in `text`, in order."""
    return [
        StampText(int(found["event"]), found["low"], found["high"], found["limit"], found["word"])
        for found in _STAMP.finditer(text)
    ]


def registers_behind(text: str, operand: str) -> set[str]:
    """Registers that reach `operand` through any chain of instructions in `text`, its own included."""
    sources: dict[str, set[str]] = {}
    for target, operands in _INSTRUCTION.findall(text):
        for register in _REGISTER.findall(target):
            sources.setdefault(register, set()).update(_REGISTER.findall(operands))
    waiting, seen = set(_REGISTER.findall(operand)), set[str]()
    while waiting:
        register = waiting.pop()
        seen.add(register)
        waiting |= sources.get(register, set()) - seen
    return seen


def constants_behind(text: str, operand: str) -> set[int]:
    """Integer constants that reach `operand` in the same way."""
    registers = registers_behind(text, operand)
    operands = [
        found for target, found in _INSTRUCTION.findall(text) if registers.intersection(_REGISTER.findall(target))
    ]
    return {int(number) for part in (operand, *operands) for number in _CONSTANT.findall(part)}
