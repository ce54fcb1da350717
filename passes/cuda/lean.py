# SPDX-License-Identifier: Apache-2.0
"""Which kernels get the lean form of stamps: those with a role that keeps so few registers that a usual stamp is spilled there.

A role says what it keeps in `setmaxnreg.dec` or a wrapper of it (`warpgroup_reg_dealloc<24>()`). The number may be a named
constant: its definition is read as text, so a conditional gives several numbers, of which any may be it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from autostamp.passes.cuda.functions import Asm, Function
from autostamp.passes.cuda.register_calls import GIVES, INSTRUCTION

FEW: Final = 32
"""Registers a thread. Of the public kernels of docs/adr/0007 those whose producers keep 24 spill with usual stamps, and those
whose producers keep 40 do not."""

_PLACE = re.compile(r"%(\d+)\Z")
_NAME = re.compile(r"[A-Za-z_]\w*")
_COMPARED = re.compile(r"[<>=!]=?\s*\d+")
_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")
_DEPTH = 3
_LEAST, _MOST, _STEP = 24, 256, 8
"""What setmaxnreg takes (PTX ISA, "setmaxnreg")."""


class LaneForm(StrEnum):
    """What the user asks for."""

    AUTO = "auto"
    LEAN = "lean"
    USUAL = "usual"


@dataclass(frozen=True, slots=True)
class Kept:
    """The numbers of registers, in order, of which one is what a role keeps; none where the source does not say."""

    numbers: tuple[int, ...]

    @property
    def is_few(self) -> bool:
        """True when the role keeps few registers, whichever number it is."""
        return bool(self.numbers) and self.numbers[-1] <= FEW


def kept_by(functions: Sequence[Function]) -> Iterator[Kept]:
    """What the roles keep that give registers away in these functions."""
    wrappers: dict[str, int] = {}
    for function in functions:
        for asm in function.asms:
            match = INSTRUCTION.search(asm.text)
            if match is not None:
                operand = _operand(asm, match[1])
                if operand in function.template_parameters:
                    wrappers[function.name] = function.template_parameters.index(operand)
                yield Kept(_numbers(operand, function, asm.start))
    for function in functions:
        for call in function.calls:
            if call.name in wrappers or GIVES.search(call.name):
                given = [*call.template[1:-1].split(",")] if call.template else list(call.arguments)
                yield Kept(_numbers(",".join(given[wrappers.get(call.name, 0) :][:1]), function, call.start))


def spread(lean: set[int], reached: Mapping[int, int]) -> int:
    """Add to `lean` the kernels that come to a function with stamps of a lean one, and give all those functions (bits).

    `reached` has for each kernel the functions with stamps that it comes to (bits): a stamp has one form.
    """
    mask = 0
    while True:
        for kernel in lean:
            mask |= reached[kernel]
        more = {kernel for kernel, functions in reached.items() if functions & mask} - lean
        if not more:
            return mask
        lean |= more


def _operand(asm: Asm, text: str) -> str:
    place = _PLACE.match(text)
    if place is None:
        return text
    number = int(place[1])
    return asm.operands[number] if number < len(asm.operands) else ""


def _numbers(text: str, function: Function, at: int) -> tuple[int, ...]:
    """The numbers of registers that an expression may be that stands at a place in a function."""
    code = function.source.code
    before = code[function.start : at].decode("utf-8", "replace")
    return tuple(sorted(_values(text, before, code.decode("utf-8", "replace"), _DEPTH)))


def _values(text: str, before: str, file: str, depth: int) -> set[int]:
    found = {
        number
        for number in map(int, _NUMBER.findall(_COMPARED.sub("", text)))
        if _LEAST <= number <= _MOST and number % _STEP == 0
    }
    if found or not depth:
        return found
    for name in _NAME.findall(text):
        # Of a function's own definitions the last one counts, of those outside any: classes have constants of one name.
        for definition in _definitions(name, before)[-1:] or _definitions(name, file):
            found |= _values(definition, before, file, depth - 1)
    return found


def _definitions(name: str, text: str) -> list[str]:
    pattern = rf"(?<![\w.]){name}\s*=(?!=)([^,;{{}}]+)[,;]|^[ \t]*#[ \t]*define[ \t]+{name}[ \t]+([^\n]+)"
    return [first or second for first, second in re.findall(pattern, text, re.MULTILINE)]
