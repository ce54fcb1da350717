# SPDX-License-Identifier: Apache-2.0
"""Columns of integers in a report document: packed for the page, or as plain lists for other readers.

Packed: `{"n": N, "i32": BASE64, "delta": BOOL}`, the base64 of N little-endian 32-bit integers. With `delta` they are the first
value and then differences, which keeps clocks beyond 2^31 within 32 bits and makes them small for the compressor.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any, Final, Protocol, TypeAlias

import numpy as np

Column: TypeAlias = dict[str, Any] | list[int]


class Encode(Protocol):
    """One of the two functions below. `delta`: store differences, for values that mostly grow."""

    def __call__(self, values: Iterable[int], delta: bool = False) -> Column:
        """The values as a column."""


_LEAST: Final = -(1 << 31)
_MOST: Final = (1 << 31) - 1


def packed(values: Iterable[int], delta: bool = False) -> dict[str, Any]:
    """A column as the page reads it. Raises OverflowError for a value (or difference) that 32 bits do not hold."""
    numbers = np.fromiter(values, np.int64)
    stored = np.diff(numbers, prepend=0) if delta and numbers.size else numbers
    if stored.size and (stored.min() < _LEAST or stored.max() > _MOST):
        message = "a column holds a value beyond 32 bits: records more than a second apart"
        raise OverflowError(message)
    text = base64.b64encode(stored.astype("<i4").tobytes()).decode("ascii")
    return {"n": int(numbers.size), "i32": text, "delta": delta}


def plain(values: Iterable[int], delta: bool = False) -> list[int]:  # noqa: ARG001  # how a packed one is stored
    """A column as a list of its values."""
    return list(values)


def unpacked(column: dict[str, Any]) -> list[int]:
    """The values of a packed column."""
    stored = np.frombuffer(base64.b64decode(column["i32"]), "<i4").astype(np.int64)
    values: list[int] = (np.cumsum(stored) if column["delta"] else stored).tolist()
    return values
