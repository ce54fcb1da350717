# SPDX-License-Identifier: Apache-2.0
"""A tensor map of a matrix in device memory: cupy has no call for it, so the driver is called directly.

Numbers are those of cuda.h (CUDA driver API, cuTensorMapEncodeTiled). What C++ gets through cudaGetDriverEntryPoint is the same
symbol of the driver's library.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Final

BYTES: Final = 128
"""sizeof(CUtensorMap)."""
_ALIGNMENT: Final = 64
_BFLOAT16: Final = 9
_INTERLEAVE_NONE: Final = 0
_SWIZZLE_128B: Final = 3
_L2_PROMOTION_256B: Final = 3
_FILL_ZEROS: Final = 0


@dataclass(frozen=True, slots=True)
class Matrix:
    """bf16, row after row: `columns` and `rows` in elements, `address` on the device."""

    address: int
    rows: int
    columns: int


def encode(matrix: Matrix, box_rows: int, box_columns: int) -> bytes:
    """The map whose boxes are `box_rows` by `box_columns`, each row of a box 128 bytes, with the swizzle of 128 bytes.

    Raises RuntimeError with what the driver says, or where it is too old to know tensor maps (before CUDA 12.0).
    """
    driver = ctypes.CDLL("libcuda.so.1")
    try:
        encoder = driver.cuTensorMapEncodeTiled
    except AttributeError as error:
        message = "the driver has no cuTensorMapEncodeTiled"
        raise RuntimeError(message) from error
    memory = ctypes.create_string_buffer(BYTES + _ALIGNMENT)
    start = -ctypes.addressof(memory) % _ALIGNMENT
    status = encoder(
        ctypes.c_void_p(ctypes.addressof(memory) + start),
        ctypes.c_int(_BFLOAT16),
        ctypes.c_uint(2),
        ctypes.c_void_p(matrix.address),
        (ctypes.c_uint64 * 2)(matrix.columns, matrix.rows),
        (ctypes.c_uint64 * 1)(2 * matrix.columns),
        (ctypes.c_uint32 * 2)(box_columns, box_rows),
        (ctypes.c_uint32 * 2)(1, 1),
        ctypes.c_int(_INTERLEAVE_NONE),
        ctypes.c_int(_SWIZZLE_128B),
        ctypes.c_int(_L2_PROMOTION_256B),
        ctypes.c_int(_FILL_ZEROS),
    )
    if status:
        name = ctypes.c_char_p()
        driver.cuGetErrorName(status, ctypes.byref(name))
        raise RuntimeError(name.value.decode() if name.value else f"CUDA driver error {status}")
    return memory.raw[start : start + BYTES]
