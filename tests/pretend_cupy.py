# SPDX-License-Identifier: Apache-2.0
"""As much of cupy as launching uses, over host memory: kernels are Python functions of their parameters' bytes.

It shows what is called in which order with which values. What a GPU does with them is for the tests in tests/gpu.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

_APART = 1 << 28


class Memory:
    """Allocations by address."""

    def __init__(self) -> None:
        self.arrays: dict[int, np.ndarray] = {}
        self._addresses = itertools.count(0x7F00_0000_0000, _APART)

    def add(self, array: np.ndarray) -> Array:
        address = next(self._addresses)
        self.arrays[address] = np.array(array, np.uint8)
        return Array(self, address)

    def memset(self, address: int, value: int, size: int, stream: int) -> None:
        """Part of one allocation, of which none is longer than they are apart."""
        begin = address & -_APART
        self.arrays[begin][address - begin :][:size] = value

    def view(self, address: bytes, kind: str) -> np.ndarray:
        """The array that a pointer parameter means."""
        return self.arrays[int.from_bytes(address, "little")].view(kind)


class Array:
    def __init__(self, memory: Memory, address: int) -> None:
        self._memory = memory
        self.data = SimpleNamespace(ptr=address)
        self.nbytes = memory.arrays[address].nbytes

    def get(self) -> np.ndarray:
        return self._memory.arrays[self.data.ptr].copy()


Kernel = Callable[[str, list[bytes], Memory], None]


@dataclass
class Launch:
    """One launch as cupy got it."""

    path: str
    symbol: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    values: list[bytes]
    shared_bytes: int


@dataclass
class Pretend:
    """What was asked of the pretended device, and how its kernels behave."""

    kernel: Kernel
    memory: Memory = field(default_factory=Memory)
    launches: list[Launch] = field(default_factory=list)
    attributes: list[tuple[str, int]] = field(default_factory=list)
    max_threads: int = 1024
    capability: str = "90"
    devices: int = 1
    clock: float = 0.0

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        module = ModuleType("cupy")
        module.uint8 = np.uint8
        module.empty = lambda size, dtype: self.memory.add(np.full(size, 0xEE, dtype))
        module.asarray = self.memory.add
        module.RawModule = lambda path: SimpleNamespace(
            path=path, get_function=lambda symbol: Function(self, path, symbol), get_global=lambda name: name
        )
        error = type("CUDARuntimeError", (RuntimeError,), {})
        properties = {"name": b"Pretended GPU", "major": 9, "minor": 0, "multiProcessorCount": 4}
        module.cuda = SimpleNamespace(
            runtime=SimpleNamespace(
                CUDARuntimeError=error,
                getDeviceCount=lambda: self.devices,
                deviceSynchronize=lambda: None,
                memsetAsync=self.memory.memset,
                getDevice=lambda: 0,
                getDeviceProperties=lambda device: properties,
                runtimeGetVersion=lambda: 13000,
            ),
            driver=SimpleNamespace(
                funcSetAttribute=lambda function, attribute, value: self.attributes.append((attribute, value))
            ),
            Device=lambda: SimpleNamespace(compute_capability=self.capability),
            Event=lambda: SimpleNamespace(record=lambda stream: None),
            get_elapsed_time=lambda begin, end: self.clock,
            get_current_stream=lambda: SimpleNamespace(
                ptr=7, synchronize=lambda: None, launch_host_func=lambda function, argument: None
            ),
        )
        monkeypatch.setitem(sys.modules, "cupy", module)


class Function:
    """A kernel of a module."""

    num_regs, local_size_bytes = 40, 0
    kernel = SimpleNamespace(ptr=0xF00)

    def __init__(self, pretend: Pretend, path: str, symbol: str) -> None:
        self._pretend, self._path, self._symbol = pretend, path, symbol
        self.max_threads_per_block = pretend.max_threads

    def __setattr__(self, name: str, value: object) -> None:
        if name == "max_dynamic_shared_size_bytes":
            self._pretend.attributes.append((name, value))
        super().__setattr__(name, value)

    def __call__(self, grid, block, args, *, shared_mem) -> None:
        assert all(isinstance(value, np.ndarray) and value.size == 1 for value in args)  # cupy's condition for a value
        values = [value.tobytes() for value in args]
        self._pretend.launches.append(Launch(self._path, self._symbol, grid, block, values, shared_mem))
        self._pretend.kernel(self._path, values, self._pretend.memory)
