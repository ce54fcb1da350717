# SPDX-License-Identifier: Apache-2.0
"""What array elements are in memory: numpy types, and the floating-point formats that numpy lacks."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

STORAGE: Final[dict[str, str]] = {
    "bool": "u1",
    "i8": "i1",
    "i16": "<i2",
    "i32": "<i4",
    "i64": "<i8",
    "u8": "u1",
    "u16": "<u2",
    "u32": "<u4",
    "u64": "<u8",
    "f16": "<f2",
    "bf16": "<u2",
    "f32": "<f4",
    "f64": "<f8",
    "e4m3": "u1",
    "e5m2": "u1",
}
"""The numpy type that holds each number. bf16, e4m3 and e5m2 are kept as their bits."""

SMALL: Final = ("bf16", "e4m3", "e5m2")
REAL: Final = ("f16", "f32", "f64", *SMALL)
"""Floating-point numbers."""

_RANGES: Final = {name: np.iinfo(STORAGE[name]) for name in STORAGE if name[0] in "iu"}


def limits(number: str) -> tuple[float, float]:
    """The smallest and the largest finite value that a number can hold."""
    if number == "bool":
        return 0, 1
    if number in _RANGES:
        return int(_RANGES[number].min), int(_RANGES[number].max)
    if number in SMALL:
        largest = float(_finite(number)[0][-1])
        return -largest, largest
    information = np.finfo(STORAGE[number])
    return float(information.min), float(information.max)


def encode(values: NDArray[Any], number: str) -> NDArray[Any]:
    """Values in memory form. Floating-point numbers are rounded to nearest, ties to even; the caller has checked the limits."""
    if number == "bf16" and values.dtype == np.float32:
        return _upper_half(values)
    if number in SMALL:
        return _round(np.asarray(values, np.float64), number)
    stored: NDArray[Any] = np.asarray(values).astype(STORAGE[number])
    return stored


def _upper_half(values: NDArray[np.float32]) -> NDArray[np.uint16]:
    """bfloat16 of finite binary32 values: `_round` in a few integer operations, for arrays of many millions."""
    bits = values.view(np.uint32)
    return ((bits + np.uint32(0x7FFF) + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def decode_bfloat16(bits: NDArray[np.uint16]) -> NDArray[np.float64]:
    """Values of bfloat16 bits: the upper half of an IEEE binary32."""
    with np.errstate(invalid="ignore"):  # signalling NaNs become quiet ones
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def _decode_e4m3(bits: NDArray[np.uint16]) -> NDArray[np.float64]:
    """Values of E4M3 bits (arXiv 2209.05433, table 1): bias 7, no infinities, NaN where exponent and mantissa are all ones."""
    values = _decode(bits, 4, 3)
    return np.where((bits & 0x7F) == 0x7F, np.nan, values)


def _decode_e5m2(bits: NDArray[np.uint16]) -> NDArray[np.float64]:
    """Values of E5M2 bits: the upper half of an IEEE binary16."""
    with np.errstate(invalid="ignore"):
        return (bits << 8).astype(np.uint16).view(np.float16).astype(np.float64)


def _decode(bits: NDArray[np.uint16], exponent_bits: int, mantissa_bits: int) -> NDArray[np.float64]:
    bias = (1 << (exponent_bits - 1)) - 1
    exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1)
    mantissa = (bits & ((1 << mantissa_bits) - 1)).astype(np.float64) / (1 << mantissa_bits)
    normal = (1 + mantissa) * np.exp2(exponent.astype(np.float64) - bias)
    value = np.where(exponent == 0, mantissa * 2.0 ** (1 - bias), normal)
    return np.where(bits >> (exponent_bits + mantissa_bits) & 1, -value, value)


DECODE: Final[dict[str, Callable[[NDArray[np.uint16]], NDArray[np.float64]]]] = {
    "bf16": decode_bfloat16,
    "e4m3": _decode_e4m3,
    "e5m2": _decode_e5m2,
}
"""From bits to values, for the formats that numpy lacks."""


@cache
def _finite(number: str) -> tuple[NDArray[np.float64], NDArray[np.uint16]]:
    """(finite values from 0 up, their bits): positive values are in the order of their bits."""
    count = 1 << (15 if number == "bf16" else 7)
    bits = np.arange(count, dtype=np.uint16)
    values = DECODE[number](bits)
    return values[np.isfinite(values)], bits[np.isfinite(values)]


def _round(values: NDArray[np.float64], number: str) -> NDArray[Any]:
    """The nearest finite value's bits; of two equally near ones the one whose last bit is 0."""
    finite, bits = _finite(number)
    magnitudes = np.abs(values)
    above = np.clip(np.searchsorted(finite, magnitudes), 1, len(finite) - 1)
    low, high = finite[above - 1], finite[above]
    is_up = magnitudes - low > high - magnitudes
    is_tie = magnitudes - low == high - magnitudes
    chosen = np.where(is_up | (is_tie & (bits[above] & 1 == 0)), bits[above], bits[above - 1])
    sign = np.signbit(values).astype(np.uint16) * np.uint16(0x8000 if number == "bf16" else 0x80)
    rounded: NDArray[Any] = (chosen | sign).astype(STORAGE[number])
    return rounded
