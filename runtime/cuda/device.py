# SPDX-License-Identifier: Apache-2.0
"""Loading a cubin and launching one of its kernels through cupy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from autostamp.diagnostics import AutostampError
from autostamp.runtime.buffer import DeviceMemory
from autostamp.runtime.cuda import clusters
from autostamp.runtime.cuda.arguments import Arguments
from autostamp.runtime.cuda.held_stream import held

Dim3 = tuple[int, int, int]

MAX_THREADS: Final = 1024
MAX_BLOCK: Final[Dim3] = (1024, 1024, 64)
MAX_GRID: Final[Dim3] = (2**31 - 1, 65535, 65535)
"""Limits of every compute capability since 3.0 (CUDA C++ Programming Guide, technical specifications per capability)."""

PLAIN_SHARED_BYTES: Final = 48 << 10
"""Dynamic shared memory beyond this must be allowed for the kernel first (same guide, shared memory of capability 9.0)."""

_FIRST_FEATURE_CAPABILITY: Final = 90
"""From here on architectures have features of their own, which only code for sm_90a, sm_100a, … may use (PTX ISA, targets)."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A launch: CTAs, threads of a CTA, bytes of dynamic shared memory, and CTAs of a cluster (None: as the kernel says)."""

    grid: Dim3
    block: Dim3
    shared_bytes: int = 0
    cluster: Dim3 | None = None

    def check(self) -> None:
        """Raise AS8005 for what no device can launch."""
        for name, sizes, limits in (("block", self.block, MAX_BLOCK), ("grid", self.grid, MAX_GRID)):
            for axis, size, limit in zip("xyz", sizes, limits, strict=True):
                if size > limit:
                    raise AutostampError.of("AS8005", detail=f"{name} {axis} is {size}, at most {limit}")
        if prod(self.block) > MAX_THREADS:
            raise AutostampError.of("AS8005", detail=f"{prod(self.block)} threads a block, at most {MAX_THREADS}")
        if self.cluster is None:
            return
        if prod(self.cluster) > clusters.MAX_CLUSTER_SIZE:
            detail = f"{prod(self.cluster)} CTAs a cluster, at most {clusters.MAX_CLUSTER_SIZE}"
            raise AutostampError.of("AS8005", detail=detail)
        for axis, size, whole in zip("xyz", self.cluster, self.grid, strict=True):
            if whole % size:
                raise AutostampError.of("AS8005", detail=f"cluster {axis} {size} does not divide grid {axis} {whole}")


@dataclass(frozen=True, slots=True)
class Loaded:
    """A kernel on the device: cupy's module and function, registers and bytes of local memory of a thread."""

    module: Any
    function: Any
    registers: int
    local_bytes: int


@contextmanager
def attempts(copy: str) -> Iterator[None]:
    """Turn what cupy and the driver raise into AS8008, naming the clean or the stamped copy."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        raise AutostampError.of("AS8008", copy=copy, detail=str(error)) from error


class Device:
    """The current CUDA device. Raises AS5008 without cupy and AS5001 without a device."""

    def __init__(self) -> None:
        self.memory = DeviceMemory()
        import cupy  # present: DeviceMemory has used it

        self._cupy: Any = cupy

    @property
    def arch(self) -> str:
        """What to compile for: the device's architecture with its own features."""
        capability = str(self._cupy.cuda.Device().compute_capability)
        return f"sm_{capability}{'a' if int(capability) >= _FIRST_FEATURE_CAPABILITY else ''}"

    def load(self, cubin: Path, symbol: str, shape: Shape) -> Loaded:
        """Load a kernel and prepare it for a shape. Raises AS8005 when it cannot have that many threads.

        cupy keeps one module for each path for the life of the process, so every cubin needs a path of its own.
        """
        module = self._cupy.RawModule(path=str(cubin))
        function = module.get_function(symbol)
        most = int(function.max_threads_per_block)
        if prod(shape.block) > most:
            detail = f"{prod(shape.block)} threads a block; this kernel, compiled, takes at most {most}"
            raise AutostampError.of("AS8005", detail=detail)
        if shape.shared_bytes > PLAIN_SHARED_BYTES:
            function.max_dynamic_shared_size_bytes = shape.shared_bytes
        if shape.cluster is not None and prod(shape.cluster) > clusters.PORTABLE_CLUSTER_SIZE:
            attribute = clusters.NON_PORTABLE_CLUSTER_SIZE_ALLOWED
            self._cupy.cuda.driver.funcSetAttribute(function.kernel.ptr, attribute, 1)
        return Loaded(module, function, int(function.num_regs), int(function.local_size_bytes))

    def put(self, arguments: Arguments) -> list[Any]:
        """Fresh device copies of the arrays, as bytes."""
        return [self._cupy.asarray(buffer.data.reshape(-1).view(np.uint8)) for buffer in arguments.buffers]

    def launch(self, loaded: Loaded, shape: Shape, arguments: Arguments, arrays: Sequence[Any]) -> float:
        """Launch once, wait, and return the microseconds that the GPU took, by events in a stream that was held meanwhile."""
        parameters = arguments.packed([int(array.data.ptr) for array in arrays])
        begin, end = self._cupy.cuda.Event(), self._cupy.cuda.Event()
        stream = self._cupy.cuda.get_current_stream()
        with held(stream):
            begin.record(stream)
            if shape.cluster is None:
                # cupy passes a numpy array of one element by value, whatever its type (cupy, examples/custom_struct).
                values = tuple(np.frombuffer(data, np.dtype((np.void, len(data)))) for data in parameters)
                loaded.function(shape.grid, shape.block, values, shared_mem=shape.shared_bytes)
            else:
                config = clusters.config(shape.grid, shape.block, shape.cluster, shape.shared_bytes, int(stream.ptr))
                clusters.launch(int(loaded.function.kernel.ptr), config, parameters)
            end.record(stream)
        self._cupy.cuda.runtime.deviceSynchronize()
        return float(self._cupy.cuda.get_elapsed_time(begin, end)) * 1000

    @staticmethod
    def get(arguments: Arguments, arrays: Sequence[Any]) -> tuple[NDArray[Any], ...]:
        """The arrays' contents, in the types and shapes of the arguments."""
        return tuple(
            array.get().view(buffer.data.dtype).reshape(buffer.shape)
            for buffer, array in zip(arguments.buffers, arrays, strict=True)
        )
