# SPDX-License-Identifier: Apache-2.0
"""Launching probes through cupy."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from autostamp.diagnostics import AutostampError
from autostamp.runtime.cuda import tensor_map as tensor_maps
from autostamp.runtime.cuda.device import Device, Shape, attempts
from autostamp.runtime.probes import tensor_map, tma
from autostamp.runtime.probes.build import Built
from autostamp.runtime.probes.probe import WORDS, Launch, Launched, Pair, Path, Probe

SOURCE_BYTES: Final = 1 << 30
"""What is read from device memory: many times any L2, so that nothing of it is there when it is read again."""

_WARP: Final = 32
_RESERVED_SHARED: Final = 2 << 10
"""Static shared memory of a probe, and what the driver keeps of a CTA's."""


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """What the driver says of the device: name, SMs, bytes of L2, and of shared memory that one CTA may have."""

    name: str
    sms: int
    l2_bytes: int
    shared_bytes: int


class Session:
    """A device with the memory that probes need. Raises AS5008 without cupy and AS5001 without a device."""

    def __init__(self) -> None:
        self._device = Device()
        import cupy

        self._cupy: Any = cupy
        properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.runtime.getDevice())
        self.facts = DeviceFacts(
            properties["name"].decode(),
            int(properties["multiProcessorCount"]),
            int(properties["l2CacheSize"]),
            int(properties["sharedMemPerBlockOptin"]),
        )
        self.arch: Final = self._device.arch
        self._built: Built | None = None
        # What the probes of L2 leave there is the beginning of the source, so the probes of device memory begin elsewhere.
        self._next = SOURCE_BYTES // 2
        self._source: Any = None

    def open(self, built: Built) -> None:
        """Take the cubins, and fill the source. `built` must hold `tma.FILE`."""
        free = int(self._cupy.cuda.runtime.memGetInfo()[0])
        size = min(SOURCE_BYTES, 1 << max(0, (free // 2).bit_length() - 1))
        if size < 4 * self.facts.l2_bytes:
            detail = f"{free} bytes are free, and probes of device memory need {8 * self.facts.l2_bytes}"
            raise AutostampError.of("AS8008", copy="probe's", detail=detail)
        self._built = built
        with attempts("probe's"):
            self._source = self._cupy.empty(size, np.uint8)
        self._launch(tma.FILE, tma.FILL_KERNEL, Launch(256, (1, 1), every_sm=True), 1)

    def pairs(self, probe: Probe, repeats: int) -> Iterator[Pair]:
        """`repeats` pairs of launches, after one that is not counted.

        Raises AS8008 when a launch fails, and ValueError where a CTA cannot have the shared memory.
        """
        few, many = probe.launch.trips
        for repeat in range(repeats + 1):
            pair = Pair(*(self._launch(probe.file, probe.kernel, probe.launch, trips) for trips in (few, many)))
            if repeat:
                yield pair

    def _launch(self, file: str, kernel: str, launch: Launch, trips: int) -> Launched:
        assert self._built is not None
        grid = self.facts.sms if launch.every_sm else 1
        stages = min(launch.stages, (self.facts.shared_bytes - _RESERVED_SHARED) // tma.STAGE_BYTES)
        shared = launch.shared_bytes + stages * tma.STAGE_BYTES
        if shared > self.facts.shared_bytes - _RESERVED_SHARED:
            message = f"it needs {shared} bytes of shared memory, and a CTA may have {self.facts.shared_bytes}"
            raise ValueError(message)
        extra = stages if launch.stages else launch.extra
        walk = self._walk(launch.path, grid, trips + stages)
        warps = -(-launch.threads // _WARP)
        with attempts(f"probe {kernel}'s"):
            shape = Shape((grid, 1, 1), (launch.threads, 1, 1), shared)
            loaded = self._device.load(self._built.cubins[file], kernel, shape)
            records = self._cupy.zeros((grid, warps, WORDS), np.int64)
            # cupy passes a numpy array of one element by value, whatever its type.
            by_value = np.frombuffer(struct.pack("<4Q", *walk), np.dtype((np.void, 32)))
            values = [records, self._source, by_value, np.int32(trips), np.int32(extra)]
            if launch.box_rows:
                values += [self._map(launch.box_rows), np.int32(launch.box_rows)]
            loaded.function((grid, 1, 1), (launch.threads, 1, 1), tuple(values), shared_mem=shared)
            return Launched(records.get(), trips)

    def _map(self, rows: int) -> NDArray[np.void]:
        """A tensor map of the source with boxes of `rows` rows, as an argument that is passed by value."""
        columns = tensor_map.MATRIX_COLUMNS
        shape, box = (int(self._source.size) // (2 * columns), columns), (rows, tensor_map.COLUMNS)
        tiled = tensor_maps.Tiled("bf16", shape, box, (1, 1), swizzle="128B", l2="256B")
        encoded = tensor_maps.encode(tiled, int(self._source.data.ptr))
        return np.frombuffer(encoded, np.dtype((np.void, tensor_maps.BYTES)))

    def _walk(self, path: Path | None, grid: int, trips: int) -> tuple[int, int, int, int]:
        """start, block stride, trip stride and mask, as the kernel takes them."""
        size = int(self._source.size)
        if path is None:
            return 0, 0, 0, size - 1
        if path.footprint:
            return 0, path.block, path.trip, min(path.footprint, size) - 1
        start, self._next = self._next, (self._next + grid * trips * path.trip) % size
        return start, path.trip, grid * path.trip, size - 1
