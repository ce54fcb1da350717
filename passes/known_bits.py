# SPDX-License-Identifier: Apache-2.0
"""What is known about a register's value in straight SASS: constant folding on single bits.

A stamp's event word is `event | payload << 16`, and ptxas builds it in many ways: MOV, IADD3, LEA, LOP3, IMAD, PRMT or a half
precision HFMA2, in vector or uniform registers, at the stamp or far above it. Its low half is a constant in all of them, which
following the definitions backwards recovers.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from autostamp.passes.definitions import Definitions, is_predicate, is_register

WORD: Final = 0xFFFF_FFFF
DEPTH: Final = 12
"""Definitions followed before giving up; what ptxas makes of an event word takes at most five."""

_INTEGER: Final = re.compile(r"0x[0-9a-f]+|\d+")
_ZERO: Final = frozenset({"RZ", "URZ", "SRZ"})
_PARTIAL: Final = frozenset({"X", "HI", "WIDE", "SX32", "F4E", "B4E", "RC8", "ECL", "ECR", "RC16"})
"""Modifiers that make another function of an opcode in the rules: carries, upper halves, PRMT's modes."""


@dataclass(frozen=True, slots=True)
class Bits:
    """A 32-bit value of which the bits in `mask` are known; the others are 0 in `value`."""

    mask: int
    value: int

    @classmethod
    def constant(cls, value: int) -> Bits:
        """A value known in full."""
        return cls(WORD, value & WORD)

    def low(self, count: int) -> int | None:
        """The low `count` bits, or None unless all of them are known."""
        wanted = (1 << count) - 1
        return self.value & wanted if self.mask & wanted == wanted else None

    def shifted(self, count: int) -> Bits:
        """Shifted left; zeros come in."""
        fill = (1 << count) - 1
        return Bits(((self.mask << count) | fill) & WORD, (self.value << count) & WORD)


UNKNOWN: Final = Bits(0, 0)


def add(*terms: Bits) -> Bits:
    """Sum. Carries run upwards, so it is known up to the lowest bit that some term does not know."""
    known = WORD
    for term in terms:
        known &= term.mask
    unknown = ~known & WORD
    mask = (unknown & -unknown) - 1 if unknown else WORD
    return Bits(mask, sum(term.value for term in terms) & mask)


def multiply(first: Bits, second: Bits) -> Bits:
    """Product, where one side is a constant."""
    if second.mask != WORD:
        first, second = second, first
    if second.mask != WORD:
        return UNKNOWN
    terms = [first.shifted(bit) for bit in range(32) if second.value >> bit & 1]
    return add(*terms) if terms else Bits.constant(0)


def logic(table: int, first: Bits, second: Bits, third: Bits) -> Bits:
    """LOP3: bit i of the result is bit `a << 2 | b << 1 | c` of `table`, a, b, c being bits i of the operands."""
    mask = value = 0
    for bit in range(32):
        outcomes = {
            table >> (a << 2 | b << 1 | c) & 1
            for a in _choices(first, bit)
            for b in _choices(second, bit)
            for c in _choices(third, bit)
        }
        if len(outcomes) == 1:
            mask |= 1 << bit
            value |= outcomes.pop() << bit
    return Bits(mask, value)


def _choices(bits: Bits, bit: int) -> tuple[int, ...]:
    return (bits.value >> bit & 1,) if bits.mask >> bit & 1 else (0, 1)


def permute(first: Bits, selector: int, second: Bits) -> Bits:
    """PRMT without a mode: byte i of the result is the byte that nibble i of `selector` names, counting 4-7 in `second`."""
    mask = value = 0
    for byte in range(4):
        pick = selector >> (4 * byte) & 0xF
        source = second if pick & 4 else first
        if pick & 8:  # replicates the sign bit
            return UNKNOWN
        mask |= (source.mask >> (8 * (pick & 3)) & 0xFF) << (8 * byte)
        value |= (source.value >> (8 * (pick & 3)) & 0xFF) << (8 * byte)
    return Bits(mask, value)


def value_of(code: Definitions, operand: str, before: int, depth: int = DEPTH) -> Bits:
    """What is known of `operand` as the instruction at index `before` reads it."""
    sign = -1 if operand.startswith("-") else 1
    name = operand.removeprefix("-")
    if name in _ZERO:
        return Bits.constant(0)
    if _INTEGER.fullmatch(name):
        return Bits.constant(sign * int(name, 0))
    index = code.last(name, before) if is_register(name) and depth > 0 else None
    if index is None:
        return UNKNOWN
    found = _evaluate(code, index, name, depth - 1)
    return found if sign > 0 else multiply(found, Bits.constant(-1))


def _evaluate(code: Definitions, index: int, register: str, depth: int) -> Bits:
    instruction = code.instructions[index]
    head, *modifiers = instruction.opcode.removeprefix("U").split(".")
    sources = [each for each in instruction.operands if not is_predicate(each)]
    if sources[0] != register:  # the upper half of a wide result
        return Bits.constant(0) if instruction.opcode == "CS2R" and sources[-1] in _ZERO else UNKNOWN
    if head == "HFMA2":
        return _half_immediates(sources[1:])
    name = f"{head}.L" if head == "SHF" and "L" in modifiers else head
    # The upper half of a word over zero that is shifted left is that word shifted left: a funnel shift.
    is_funnel = "HI" in modifiers and name in ("LEA", "SHF.L") and sources[1] in _ZERO
    rule = _RULES.get(f"{name}.HI" if is_funnel else name)
    if rule is None or not _PARTIAL.isdisjoint(set(modifiers) - ({"HI"} if is_funnel else set())):
        return UNKNOWN
    try:
        return rule([value_of(code, each, index, depth) for each in sources[1:]])
    except IndexError:  # a form with fewer operands than the rule reads
        return UNKNOWN


def _half_immediates(sources: Sequence[str]) -> Bits:
    """`HFMA2 R, -RZ, RZ, a, b`: ptxas writes 32-bit constants as two halves, the upper one first."""
    if [each.removeprefix("-") for each in sources[:2]] != ["RZ", "RZ"]:
        return UNKNOWN
    try:
        upper, lower = (int.from_bytes(struct.pack("<e", float(each)), "little") for each in sources[2:4])
    except (ValueError, OverflowError, struct.error):
        return UNKNOWN
    return Bits.constant(upper << 16 | lower)


def _shift(values: Sequence[Bits]) -> Bits:
    return values[0].shifted(values[1].value) if values[1].mask == WORD and values[1].value < 32 else UNKNOWN


def _load_address(values: Sequence[Bits]) -> Bits:
    return add(_shift([values[0], values[2]]), values[1])


def _permute(values: Sequence[Bits]) -> Bits:
    return permute(values[0], values[1].value, values[2]) if values[1].mask == WORD else UNKNOWN


def _logic(values: Sequence[Bits]) -> Bits:
    return logic(values[3].value, values[0], values[1], values[2])


def _select(values: Sequence[Bits]) -> Bits:
    agreed = values[0].mask & values[1].mask & ~(values[0].value ^ values[1].value)
    return Bits(agreed, values[0].value & agreed)


_RULES: Final[dict[str, Callable[[Sequence[Bits]], Bits]]] = {
    "MOV": lambda values: values[0],
    "R2UR": lambda values: values[0],
    "CS2R": lambda values: values[0],
    "IADD": lambda values: add(*values),
    "IADD3": lambda values: add(*values),
    "VIADD": lambda values: add(*values),
    "IMAD": lambda values: add(multiply(values[0], values[1]), values[2]),
    "SHF.L": _shift,
    "LEA": _load_address,
    "LEA.HI": lambda values: _load_address([values[2], values[1], values[3]]),
    "SHF.L.HI": lambda values: _shift([values[2], values[1]]),
    "LOP3": _logic,
    "PRMT": _permute,
    "SEL": _select,
}
