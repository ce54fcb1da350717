# SPDX-License-Identifier: Apache-2.0
"""The text of an argument: `NAME=1024`, `NAME=f32[N,N]:random`, `NAME=file.npy`, `p.field={1,2,3}`, `NAME=map(A,box=[128,64])`,
`NAME=null`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from autostamp.diagnostics import AutostampError
from autostamp.runtime.cuda.map_specs import MapOptions, read_options, unreadable

NUMBERS: Final = (
    "bool",
    "i8",
    "i16",
    "i32",
    "i64",
    "u8",
    "u16",
    "u32",
    "u64",
    "f16",
    "bf16",
    "f32",
    "f64",
    "e4m3",
    "e5m2",
)
"""What an array can hold, by the names that arguments use."""

FILLS: Final[dict[str, tuple[int, ...]]] = {
    "zeros": (0,),
    "ones": (0,),
    "arange": (0,),
    "const": (1,),
    "random": (0, 2),
    "normal": (0, 2),
}
"""Contents of an array that are made, and how many numbers each takes in parentheses."""

_NAME: Final = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*|\[\d+\])*")
_ARRAY: Final = re.compile(r"(?P<number>\w+)?\s*\[(?P<shape>[^\]]*)\]\s*(?::\s*(?P<fill>.*))?", re.DOTALL)
_FILL: Final = re.compile(r"(?P<name>[a-z]+)\s*(?:\((?P<numbers>.*)\))?")
_MAP: Final = re.compile(r"map\s*\((?P<inside>.*)\)", re.DOTALL)
_FILE: Final = re.compile(r"(?P<path>.+\.npz):(?P<key>.+)|(?P<alone>.+\.npy)")
_INTEGER: Final = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)(?:[uUlL]*)")
_REAL: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fF]?|[+-]?(?:inf|nan)")
_WORDS: Final[dict[str, bool | None]] = {"true": True, "false": False, "null": None, "nullptr": None, "NULL": None}


@dataclass(frozen=True, slots=True)
class Fill:
    """Made content: one of FILLS with its numbers."""

    name: str
    numbers: tuple[int | float, ...] = ()


@dataclass(frozen=True, slots=True)
class File:
    """Content from a .npy file, or from the array `key` of an .npz file."""

    path: str
    key: str = ""


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """An array. `number` is empty where the parameter says it; `shape` holds lengths and names of integer arguments, and is
    None for the shape of a file.
    """

    number: str
    shape: tuple[int | str, ...] | None
    content: Fill | File


@dataclass(frozen=True, slots=True)
class Number:
    """A number, `true`, `false`, or the name of an enumerator. `value` is None for null."""

    value: int | float | bool | str | None


@dataclass(frozen=True, slots=True)
class Values:
    """Values in braces, for an array or a vector inside a parameter."""

    items: tuple[Spec, ...]


@dataclass(frozen=True, slots=True)
class MapSpec:
    """A tensor map: of the array that another argument gives, by its name, or of one of its own."""

    array: str | ArraySpec
    options: MapOptions


Spec: TypeAlias = Number | ArraySpec | Values | MapSpec


def read_arguments(texts: Sequence[str]) -> dict[str, Spec]:
    """What was given for each name. Raises AS8001 for text that cannot be read or a name that is given twice."""
    found: dict[str, Spec] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not _NAME.fullmatch(name):
            raise _unreadable(text, "it does not begin with the name of a parameter and =")
        if name in found:
            raise _unreadable(text, f"{name} is given twice")
        found[name] = read_spec(value, text)
    return found


def read_spec(value: str, text: str) -> Spec:
    """One value; `text` is the whole argument, for the message of AS8001."""
    if value.startswith("{"):
        if not value.endswith("}"):
            raise _unreadable(text, "a brace is not closed")
        return Values(tuple(read_spec(item, text) for item in _items(value[1:-1])))
    if match := _MAP.fullmatch(value):
        return _map(match["inside"], text)
    if match := _ARRAY.fullmatch(value):
        return _array(match, text)
    if file := _file(value):
        return ArraySpec("", None, file)
    if value in _WORDS:
        return Number(_WORDS[value])
    number = read_number(value)
    if number is not None:
        return Number(number)
    if re.fullmatch(r"[A-Za-z_]\w*(?:::\w+)*", value):
        return Number(value)
    raise _unreadable(text, f"{value!r} is neither a number nor an array" if value else "there is no value")


def read_number(text: str) -> int | float | None:
    """A number as C or Python writes it; None for anything else."""
    if _INTEGER.fullmatch(text):
        digits = text.rstrip("uUlL")
        sign = digits.lstrip("+-")
        is_octal = re.fullmatch(r"0[0-7]+", sign)
        magnitude = int(sign, 8) if is_octal else int(sign, 0) if not re.fullmatch(r"0\d+", sign) else int(sign)
        return -magnitude if digits.startswith("-") else magnitude
    return float(text.rstrip("fF") if "inf" not in text else text) if _REAL.fullmatch(text) else None


def _map(inside: str, text: str) -> MapSpec:
    first, *parts = _items(inside) or [""]
    if not first:
        raise unreadable(text, "map", "a map needs an array: the name of another argument, or f32[1024,1024]")
    options = read_options(parts, text, _length)
    if _NAME.fullmatch(first) and first.partition("[")[0] not in NUMBERS:  # p.maps[0], not f32[4]
        return MapSpec(first, options)
    array = read_spec(first, text)
    if not isinstance(array, ArraySpec):
        raise unreadable(text, first, f"{first!r} is neither an array nor the name of one")
    return MapSpec(array, options)


def _array(match: re.Match[str], text: str) -> ArraySpec:
    number = match["number"] or ""
    if number and number not in NUMBERS:
        raise _unreadable(text, f"{number} is no type of elements; there are {', '.join(NUMBERS)}")
    shape = tuple(_length(part.strip(), text) for part in match["shape"].split(","))
    fill = match["fill"]
    if fill is None:
        return ArraySpec(number, shape, Fill("zeros"))
    return ArraySpec(number, shape, _file(fill.strip()) or _made(fill.strip(), text))


def _length(text: str, whole: str) -> int | str:
    if re.fullmatch(r"[A-Za-z_][\w.]*", text):
        return text
    number = read_number(text)
    if not isinstance(number, int):
        raise _unreadable(whole, f"{text!r} is no length" if text else "a length is missing in []")
    return number


def _made(text: str, whole: str) -> Fill:
    match = _FILL.fullmatch(text)
    if match is None or match["name"] not in FILLS:
        raise _unreadable(whole, f"{text!r} is no content; there are {', '.join(FILLS)}, a .npy file and file.npz:key")
    parts = [part.strip() for part in (match["numbers"] or "").split(",") if part.strip()]
    numbers = [read_number(part) for part in parts]
    values = [number for number in numbers if number is not None]
    if len(values) != len(parts) or len(parts) not in FILLS[match["name"]]:
        counts = " or ".join(str(count) for count in FILLS[match["name"]])
        raise _unreadable(whole, f"{match['name']} takes {counts} numbers")
    return Fill(match["name"], tuple(values))


def _file(text: str) -> File | None:
    match = _FILE.fullmatch(text)
    if match is None:
        return None
    return File(match["alone"]) if match["alone"] else File(match["path"], match["key"])


def _items(text: str) -> list[str]:
    """Items between commas that stand in no brace, bracket or parenthesis."""
    items, depth, begin = [], 0, 0
    for at, character in enumerate(text):
        depth += (character in "{[(") - (character in "}])")
        if character == "," and depth == 0:
            items.append(text[begin:at].strip())
            begin = at + 1
    last = text[begin:].strip()
    return [*items, last] if last or items else []


def _unreadable(text: str, detail: str) -> AutostampError:
    return AutostampError.of("AS8001", text=text, detail=detail)
