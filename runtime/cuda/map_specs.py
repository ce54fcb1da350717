# SPDX-License-Identifier: Apache-2.0
"""What is said of a tensor map in an argument: `box=[128,64], swizzle=128B` in `a_map=map(a, box=[128,64], swizzle=128B)`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from autostamp.diagnostics import AutostampError, Position
from autostamp.runtime.cuda.tensor_map import FILLS, L2_PROMOTIONS, SWIZZLES, TYPES

_WORDS: Final[dict[str, tuple[str, ...]]] = {
    "swizzle": tuple(SWIZZLES),
    "l2": tuple(L2_PROMOTIONS),
    "fill": tuple(FILLS),
    "type": tuple(TYPES),
}
_LENGTHS: Final = ("box", "steps")


@dataclass(frozen=True, slots=True)
class MapOptions:
    """`box` and `steps` hold numbers and names of integer arguments, in the order of the array's shape; `steps` is empty for
    all 1, and `type` for the type of the array's elements. `text` is the whole argument.
    """

    text: str
    box: tuple[int | str, ...]
    steps: tuple[int | str, ...] = ()
    swizzle: str = "none"
    l2: str = "none"
    fill: str = "zeros"
    type: str = ""

    def where(self, option: str = "") -> Position:
        """Where an option stands in the argument, or the map where the option is not given."""
        found = re.search(rf"\b{option}\s*=[^=]*?(?=,\s*\w+\s*=|\)\s*$)", self.text) if option else None
        return place_in(self.text, found[0] if found else self.text.partition("=")[2].strip())


def place_in(text: str, part: str) -> Position:
    """Where a part of an argument's text stands in it."""
    at = text.rfind(part)
    return Position("--arg", 1, max(at, 0) + 1, text, max(len(part), 1))


def read_options(parts: Sequence[str], text: str, length: Callable[[str, str], int | str]) -> MapOptions:
    """The options of a map; `length` reads one number or name. Raises AS8001, with the place in the argument."""
    given: dict[str, str] = {}
    for part in parts:
        name, equals, value = (each.strip() for each in part.partition("="))
        if not equals or name not in (*_LENGTHS, *_WORDS):
            raise unreadable(text, part, f"{part!r} is no option of a map; there are {_shown((*_LENGTHS, *_WORDS))}")
        if name in given:
            raise unreadable(text, part, f"{name} is given twice")
        if name in _WORDS and value not in _WORDS[name]:
            raise unreadable(text, part, f"{value!r} is no {name}; there are {_shown(_WORDS[name])}")
        given[name] = value
    if "box" not in given:
        raise unreadable(text, text.partition("=")[2].strip(), "a map needs its box, such as box=[128,64]")
    box, steps = (_lengths(given, name, text, length) for name in _LENGTHS)
    return MapOptions(text, box, steps, **{name: given[name] for name in _WORDS if name in given})


def unreadable(text: str, part: str, detail: str) -> AutostampError:
    """AS8001 at a part of an argument."""
    return AutostampError.of("AS8001", place_in(text, part), text=text, detail=detail)


def _lengths(
    given: Mapping[str, str], name: str, text: str, length: Callable[[str, str], int | str]
) -> tuple[int | str, ...]:
    if name not in given:
        return ()
    value = given[name]
    if not re.fullmatch(r"\[.*\]", value, re.DOTALL):
        raise unreadable(text, value, f"{name} is written as [128,64], in the order of the array's shape")
    return tuple(length(part.strip(), text) for part in value[1:-1].split(","))


def _shown(words: Sequence[str]) -> str:
    return ", ".join(words)
