# SPDX-License-Identifier: Apache-2.0
"""Device memory for records. Plain allocations through cupy, in the context that the program itself uses."""

from __future__ import annotations

from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from autostamp.diagnostics import AutostampError

BEYOND: Final = 1 << 26
"""Bytes that a cursor may move past the end of its lane: 2^23 stamps of one thread in one launch."""

MEMSET_PIECE: Final = 1 << 17
"""Bytes that one cudaMemset zeroes: after a larger one kernels of the process may be slower (ADR 0014)."""


class Memory(Protocol):
    """Where regions live."""

    def allocate(self, size: int) -> int:
        """Address of `size` zeroed bytes, kept for the life of the process."""

    def read(self, address: int) -> npt.NDArray[np.uint8]:
        """The bytes at an address that `allocate` gave, after all launched work has finished."""


def suits(address: int, size: int) -> bool:
    """True for a place where a region may lie: far enough below the next 4 GiB boundary.

    Stamps move only the low word of their address, those of full lanes and of threads that do not record as well. Past the
    boundary that word would be below the lane's limit again, and the stamp would write there.
    """
    return (address & 0xFFFFFFFF) + size + BEYOND <= 1 << 32


class DeviceMemory:
    """Regions on the current CUDA device. Raises AS5008 without cupy and AS5001 without a device."""

    def __init__(self) -> None:
        try:
            import cupy
        except ImportError as error:
            raise AutostampError.of("AS5008", detail=str(error)) from error
        try:
            if cupy.cuda.runtime.getDeviceCount() < 1:
                raise AutostampError.of("AS5001", detail="no CUDA device is visible")
        except cupy.cuda.runtime.CUDARuntimeError as error:
            raise AutostampError.of("AS5001", detail=str(error)) from error
        self._cupy: Any = cupy
        self._arrays: dict[int, Any] = {}

    def allocate(self, size: int) -> int:
        """Address of `size` zeroed bytes on the current device."""
        # cudaMalloc aligns to 256 bytes at least (CUDA C++ Programming Guide, device memory accesses): records need 8.
        array = self._empty(size)
        address = int(array.data.ptr)
        if not suits(address, size):
            # Of a block so much longer than the places that do not suit, one end does.
            block = self._empty(2 * (size + BEYOND))
            first = int(block.data.ptr)
            address = first if suits(first, size) else first + size + BEYOND
            array = block[address - first :][:size]
        self._clear(array)
        self._cupy.cuda.get_current_stream().synchronize()
        self._arrays[address] = array
        return address

    def _empty(self, size: int) -> Any:  # noqa: ANN401 - cupy has no types
        try:
            array = self._cupy.empty(size, dtype=self._cupy.uint8)
        except MemoryError as error:
            what = f"{size >> 20} MiB of records"
            hint = "Record fewer CTAs (--block), fewer launches (--repeat) or fewer records (--capacity)."
            raise AutostampError.of("AS5020", what=what, limit=str(error), hint=hint) from error
        return array

    def _clear(self, array: Any) -> None:  # noqa: ANN401 - cupy has no types
        stream = self._cupy.cuda.get_current_stream().ptr
        for done in range(0, array.nbytes, MEMSET_PIECE):
            piece = min(MEMSET_PIECE, array.nbytes - done)
            self._cupy.cuda.runtime.memsetAsync(array.data.ptr + done, 0, piece, stream)

    def read(self, address: int) -> npt.NDArray[np.uint8]:
        """Copy a region to the host, after a device-wide synchronisation."""
        self._cupy.cuda.runtime.deviceSynchronize()
        found: npt.NDArray[np.uint8] = self._arrays[address].get()
        return found

    def clear(self) -> None:
        """Zero every region, so that what an earlier session recorded is not read again."""
        self._cupy.cuda.runtime.deviceSynchronize()
        for array in self._arrays.values():
            self._clear(array)
        self._cupy.cuda.runtime.deviceSynchronize()


class NoMemory:
    """Addresses that are only compiled in, never written: for machines without a GPU."""

    _FIRST = 0x7F00_0000_0000

    def __init__(self) -> None:
        self._next = self._FIRST
        self._sizes: dict[int, int] = {}

    def allocate(self, size: int) -> int:
        """A made-up address, the same for the same sequence of calls."""
        address, self._next = self._next, self._next + -(-size // 4096) * 4096
        self._sizes[address] = size
        return address

    def read(self, address: int) -> npt.NDArray[np.uint8]:
        """Zeros: nothing can have been recorded."""
        return np.zeros(self._sizes[address], dtype=np.uint8)

    def clear(self) -> None:
        """Nothing to clear."""
