# SPDX-License-Identifier: Apache-2.0
"""The elements that an array argument begins with: made, or read from a file."""

from __future__ import annotations

import math
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from autostamp.diagnostics import AutostampError, Position
from autostamp.runtime.cuda.elements import REAL, SMALL, STORAGE, encode, limits
from autostamp.runtime.cuda.specs import File, Fill

_INTEGERS: Final = {"i": (-8, 8), "u": (0, 16), "b": (0, 2)}
"""What `random` gives without bounds, by the first letter of the number: from the first, below the second."""

_SAME_BITS: Final[dict[str, tuple[str, ...]]] = {
    "bool": ("|b1",),
    "bf16": ("<u2", "|V2"),
    "e4m3": ("|u1", "|V1"),
    "e5m2": ("|u1", "|V1"),
}
"""Types of a file that hold a number numpy has no type for; for any other number it is the number's own."""


def make(fill: Fill, number: str, shape: tuple[int, ...], seed: int, name: str, where: Position) -> NDArray[Any]:
    """Made elements in memory form. The same seed and name always give the same. Raises AS8004 for values that do not fit."""
    _check_kind(fill, number, name, where)
    try:
        values = _values(fill, number, shape, np.random.default_rng([seed, *name.encode()]))
        _check_limits(fill, number, values, name, where)
        encoded = encode(values, number)
        return encoded if encoded.shape == shape else np.full(shape, encoded)
    except (MemoryError, ValueError) as error:  # numpy raises ValueError for more elements than an address can count
        size = prod(shape) * np.dtype(STORAGE[number]).itemsize
        detail = f"its {size} bytes cannot be had on this machine"
        raise AutostampError.of("AS8004", where, name=name, detail=detail, hint="Choose a smaller shape.") from error


def _check_kind(fill: Fill, number: str, name: str, where: Position) -> None:
    """Refuse real numbers for integers, and empty ranges."""
    if number not in REAL and (fill.name == "normal" or any(isinstance(each, float) for each in fill.numbers)):
        detail = f"{fill.name} with real numbers for {number}, which holds integers"
        raise AutostampError.of("AS8004", where, name=name, detail=detail, hint="Choose contents of integers.")
    if fill.name != "random" or not fill.numbers:
        return
    low, high = fill.numbers
    smallest, largest = limits(number)
    if not low < high or low < smallest or high > largest + (number not in REAL):
        detail = f"there is nothing from {low} to below {high} that {number} holds"
        raise AutostampError.of("AS8004", where, name=name, detail=detail, hint="Write random(low,high).")


def _check_limits(fill: Fill, number: str, values: NDArray[Any], name: str, where: Position) -> None:
    low, high = values.min(), values.max()
    smallest, largest = limits(number)
    is_special = fill.name == "const" and isinstance(fill.numbers[0], float) and not math.isfinite(fill.numbers[0])
    if (is_special and number in SMALL) or not (is_special or smallest <= low <= high <= largest):
        detail = f"{fill.name} gives values from {low} to {high}, {number} holds {smallest} to {largest}"
        raise AutostampError.of(
            "AS8004", where, name=name, detail=detail, hint="Choose other contents or a wider type."
        )


def _values(fill: Fill, number: str, shape: tuple[int, ...], generator: np.random.Generator) -> NDArray[Any]:
    """Values before they are brought into memory form; of a constant, one."""
    # The widest type that the drawing needs: float32 holds every f16, bf16 and fp8, and takes half the memory of float64.
    wide = np.float64 if number == "f64" else np.float32
    match fill.name:
        case "zeros" | "ones":
            return np.asarray(int(fill.name == "ones"))
        case "const":
            # A large integer as an object, so that it is not rounded on the way.
            return np.asarray(fill.numbers[0], object if isinstance(fill.numbers[0], int) else np.float64)
        case "arange":
            return np.arange(prod(shape), dtype=np.float64 if number in REAL else np.int64).reshape(shape)
        case "normal":
            mean, deviation = fill.numbers or (0.0, 1.0)
            return generator.standard_normal(shape, dtype=wide) * wide(deviation) + wide(mean)
        case _ if number in REAL:
            low, high = fill.numbers or (-1.0, 1.0)
            return generator.random(shape, dtype=wide) * wide(high - low) + wide(low)
        case _:
            low, high = fill.numbers or _INTEGERS[number[0]]
            kind = np.uint64 if number == "u64" and low >= 0 else np.int64
            return generator.integers(int(low), int(high), shape, dtype=kind)


def load(file: File, name: str, where: Position) -> NDArray[Any]:
    """The array of a .npy or .npz file. Raises AS8004 when it cannot be read."""
    try:
        found: Any = np.load(file.path, allow_pickle=False)
        if not file.key:
            return np.ascontiguousarray(found)
        with found:
            if file.key not in found.files:
                detail, hint = f"{file.path} has no array {file.key}", f"It has: {', '.join(found.files)}."
                raise AutostampError.of("AS8004", where, name=name, detail=detail, hint=hint)
            return np.ascontiguousarray(found[file.key])
    except (OSError, ValueError, EOFError) as error:
        detail = f"{file.path} cannot be read: {error}"
        raise AutostampError.of(
            "AS8004", where, name=name, detail=detail, hint="Give a file that numpy.save wrote."
        ) from error


def number_of(array: NDArray[Any]) -> str:
    """What an array of a file holds; empty when no number is like it."""
    if array.dtype == np.bool_:
        return "bool"
    fitting = [
        number for number, kind in STORAGE.items() if number not in (*SMALL, "bool") and array.dtype == np.dtype(kind)
    ]
    return fitting[0] if fitting else ""


def as_number(array: NDArray[Any], number: str) -> NDArray[Any] | None:
    """The array's bits as a number; None when its type is another one."""
    accepted = _SAME_BITS.get(number, (np.dtype(STORAGE[number]).str,))
    if array.dtype.str not in accepted:
        return None
    return array.view(STORAGE[number])
