# SPDX-License-Identifier: Apache-2.0
"""Bit for bit: which elements of two arrays differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Difference:
    """`count` of `size` elements have other bits. `first` is the index of the first in C order, `bits` its hexadecimal bits
    in the first and in the second array.
    """

    count: int
    size: int
    first: tuple[int, ...]
    bits: tuple[str, str]

    def __str__(self) -> str:
        index = ",".join(str(each) for each in self.first)
        return f"{self.count} of {self.size} elements, the first at [{index}]: {self.bits[0]}, {self.bits[1]}"


def difference(one: NDArray[Any], other: NDArray[Any]) -> Difference | None:
    """How two arrays of one type and shape differ; None where every bit is equal, whatever the numbers mean (NaN, -0)."""
    bits = [array.view(f"u{array.dtype.itemsize}") for array in (one, other)]
    differing = np.flatnonzero(bits[0] != bits[1])
    if not differing.size:
        return None
    first = tuple(int(each) for each in np.unravel_index(differing[0], one.shape))
    width = 2 * one.dtype.itemsize
    shown = [f"0x{int(array[first]):0{width}x}" for array in bits]
    return Difference(int(differing.size), one.size, first, (shown[0], shown[1]))
