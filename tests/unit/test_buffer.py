# SPDX-License-Identifier: Apache-2.0
"""Where regions may lie: a cursor that goes on past its lane's end must not come to a 4 GiB boundary. How they are zeroed."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from autostamp.runtime.buffer import DeviceMemory, NoMemory, suits
from autostamp.runtime.layout import DEFAULT_CAPACITY, region_bytes

BOUNDARY = 0x7F01_0000_0000
MIB = 1 << 20


@pytest.mark.parametrize(
    ("address", "size", "expected"),
    [
        (0x7F00_0000_0000, 2 * MIB, True),
        (BOUNDARY - 66 * MIB, 2 * MIB, True),  # ends 64 MiB below the boundary
        (BOUNDARY - 66 * MIB + 256, 2 * MIB, False),
        (BOUNDARY - 4096, 4096, False),  # ends at the boundary: the first stamp of a full lane would pass it
        (BOUNDARY - 256, 512, False),  # crosses it
    ],
)
def test_a_region_leaves_room_for_cursors_that_go_on(address, size, expected):
    assert suits(address, size) is expected


def test_made_up_addresses_suit():
    memory = NoMemory()
    size = region_bytes(DEFAULT_CAPACITY)
    assert all(suits(memory.allocate(size), size) for _ in range(64))


class FakeCupy:
    """As much of cupy as device memory needs: arrays full of 0xEE at the addresses asked for, and a memset that says its size."""

    def __init__(self, *addresses: int) -> None:
        self.uint8 = np.uint8
        self.addresses = list(addresses)
        self.arrays: list[tuple[int, np.ndarray]] = []
        self.memsets: list[int] = []
        synchronized = SimpleNamespace(ptr=0, synchronize=lambda: None)
        runtime = SimpleNamespace(
            getDeviceCount=lambda: 1,
            CUDARuntimeError=RuntimeError,
            memsetAsync=self.memset,
            deviceSynchronize=lambda: None,
        )
        self.cuda = SimpleNamespace(runtime=runtime, get_current_stream=lambda: synchronized)

    def empty(self, size: int, dtype: type) -> FakeArray:
        address = self.addresses.pop(0)
        self.arrays.append((address, np.full(size, 0xEE, dtype)))
        return FakeArray(self, address, size)

    def memset(self, address: int, value: int, size: int, stream: int) -> None:
        assert (value, stream) == (0, 0)
        self.memsets.append(size)
        self.bytes(address, size)[:] = 0

    def bytes(self, address: int, size: int) -> np.ndarray:
        first, held = next(each for each in self.arrays if each[0] <= address < each[0] + each[1].size)
        assert address + size <= first + held.size
        return held[address - first :][:size]


class FakeArray:
    def __init__(self, cupy: FakeCupy, address: int, size: int) -> None:
        self.cupy, self.nbytes, self.data = cupy, size, SimpleNamespace(ptr=address)

    def __getitem__(self, part: slice) -> FakeArray:
        start, stop, _ = part.indices(self.nbytes)
        return FakeArray(self.cupy, self.data.ptr + start, stop - start)

    def get(self) -> np.ndarray:
        return self.cupy.bytes(self.data.ptr, self.nbytes)


@pytest.mark.parametrize("address", [0x7F00_0000_0000, BOUNDARY - 256])
def test_regions_are_zeroed_by_pieces(monkeypatch, address):
    """At most 128 KiB each (ADR 0014); where the first place does not suit, only the region in the second is zeroed."""
    size = region_bytes(DEFAULT_CAPACITY)
    cupy = FakeCupy(address, 0x7F05_0000_0000)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    memory = DeviceMemory()
    at = memory.allocate(size)
    assert not memory.read(at).any()
    assert max(cupy.memsets) == 128 << 10
    assert sum(cupy.memsets) == size
    memory.read(at)[5] = 1
    memory.clear()
    assert not memory.read(at).any()
    assert sum(cupy.memsets) == 2 * size
