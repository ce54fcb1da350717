# SPDX-License-Identifier: Apache-2.0
"""A tensor map of an array in device memory: cupy has no call for it, so the driver is called directly.

Numbers are those of cuda.h (CUDA driver API, cuTensorMapEncodeTiled). What C++ gets through cudaGetDriverEntryPoint is the same
symbol of the driver's library.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from itertools import accumulate
from operator import mul
from typing import Final

BYTES: Final = 128
"""sizeof(CUtensorMap)."""
_ALIGNMENT: Final = 64

TYPES: Final[dict[str, tuple[int, int]]] = {
    "u8": (0, 1),
    "u16": (1, 2),
    "u32": (2, 4),
    "i32": (3, 4),
    "u64": (4, 8),
    "i64": (5, 8),
    "f16": (6, 2),
    "f32": (7, 4),
    "f64": (8, 8),
    "bf16": (9, 2),
    "f32-ftz": (10, 4),
    "tf32": (11, 4),
    "tf32-ftz": (12, 4),
}
"""Types of elements, each with its CUtensorMapDataType and bytes."""

FLOATING: Final = ("f16", "f32", "f64", "bf16", "f32-ftz", "tf32", "tf32-ftz")
"""Types that can be filled with NaN outside the array."""

SWIZZLES: Final[dict[str, int]] = {"none": 0, "32B": 1, "64B": 2, "128B": 3}
"""CUtensorMapSwizzle, by the bytes that a row of a box has at most."""

L2_PROMOTIONS: Final[dict[str, int]] = {"none": 0, "64B": 1, "128B": 2, "256B": 3}
"""CUtensorMapL2promotion."""

FILLS: Final[dict[str, int]] = {"zeros": 0, "nan": 1}
"""CUtensorMapFloatOOBfill: what a box has outside the array."""

_INTERLEAVE_NONE: Final = 0


@dataclass(frozen=True, slots=True)
class Tiled:
    """A map of a dense array. `shape`, `box` and `steps` are in the array's order, outermost dimension first, in elements.

    `type`, `swizzle`, `l2` and `fill` are names of TYPES, SWIZZLES, L2_PROMOTIONS and FILLS.
    """

    type: str
    shape: tuple[int, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]
    swizzle: str = "none"
    l2: str = "none"
    fill: str = "zeros"

    @property
    def element_bytes(self) -> int:
        """Bytes of an element."""
        return TYPES[self.type][1]

    @property
    def extents(self) -> tuple[int, ...]:
        """Elements of each dimension as the driver takes them, innermost first."""
        return self.shape[::-1]

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next of each dimension but the innermost one, whose stride is implied."""
        return tuple(accumulate(self.extents[:-1], mul, initial=self.element_bytes))[1:]


def encode(tiled: Tiled, address: int) -> bytes:
    """The map of an array at `address` on the device.

    Raises RuntimeError with what the driver says, or where it is too old to know tensor maps (before CUDA 12.0).
    """
    driver = ctypes.CDLL("libcuda.so.1")
    try:
        encoder = driver.cuTensorMapEncodeTiled
    except AttributeError as error:
        message = "the driver has no cuTensorMapEncodeTiled"
        raise RuntimeError(message) from error
    rank = len(tiled.shape)
    memory = ctypes.create_string_buffer(BYTES + _ALIGNMENT)
    start = -ctypes.addressof(memory) % _ALIGNMENT
    status = encoder(
        ctypes.c_void_p(ctypes.addressof(memory) + start),
        ctypes.c_int(TYPES[tiled.type][0]),
        ctypes.c_uint(rank),
        ctypes.c_void_p(address),
        (ctypes.c_uint64 * rank)(*tiled.extents),
        (ctypes.c_uint64 * max(rank - 1, 1))(*tiled.strides),
        (ctypes.c_uint32 * rank)(*tiled.box[::-1]),
        (ctypes.c_uint32 * rank)(*tiled.steps[::-1]),
        ctypes.c_int(_INTERLEAVE_NONE),
        ctypes.c_int(SWIZZLES[tiled.swizzle]),
        ctypes.c_int(L2_PROMOTIONS[tiled.l2]),
        ctypes.c_int(FILLS[tiled.fill]),
    )
    if status:
        name = ctypes.c_char_p()
        driver.cuGetErrorName(status, ctypes.byref(name))
        raise RuntimeError(name.value.decode() if name.value else f"CUDA driver error {status}")
    return memory.raw[start : start + BYTES]
