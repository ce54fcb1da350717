# SPDX-License-Identifier: Apache-2.0
"""Launches of many CTAs on SMs whose clocks began at different times, read beside a global timer that moves in steps."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autostamp.model.manifest import KernelTrace
from autostamp.runtime.layout import WARPS, lane_bytes
from tests.simulator.kernel import Simulation
from tests.simulator.region import WarpLog, write_header, write_region
from tests.simulator.tables import consumer, producer

GRID_OFFSET = 8


@dataclass(frozen=True)
class Sm:
    """A multiprocessor: %clock reads `clock` (before it is cut to 32 bits) at time 0."""

    number: int
    clock: int


@dataclass(frozen=True)
class Timers:
    """`cycles_per_ns` of all SMs; the global timer reads `ns` at time 0 and moves by `tick` ns at a time."""

    cycles_per_ns: float = 1.755
    ns: int = 1_700_000_000_000_000_000
    tick: int = 32

    def global_ns(self, cycle: int) -> int:
        """What %globaltimer reads `cycle` cycles after time 0."""
        return self.ns + int(cycle / self.cycles_per_ns) // self.tick * self.tick


@dataclass(frozen=True)
class Placed:
    """One CTA's region, and the true cycle since time 0 at which its first warp entered."""

    region: NDArray[np.uint8]
    begin: int
    end: int


def run_cta(
    kernel: KernelTrace,
    sm: Sm,
    begin: int,
    grid: tuple[int, int, int],
    timers: Timers = Timers(),
    uses: int = 4,
    launch: int = 0,
) -> Placed:
    """The ring kernel as one CTA that begins on `sm` at cycle `begin`; its second warp enters 7 cycles later."""
    simulation = Simulation(kernel, {0: begin, 1: begin + 7})
    logs = simulation.run({0: producer(uses, 400), 1: consumer(uses, 900)})
    for log in logs:
        _on_sm(log, sm, timers)
    region = bytearray(write_region(kernel.capacity, logs, kernel.signature).tobytes())
    struct.pack_into("<III", region, WARPS * lane_bytes(kernel.capacity) + GRID_OFFSET, *grid)
    for log in logs:
        write_header(region, kernel.capacity, log.warp, {"launch": launch})
    end = max(log.exit or 0 for log in logs) - sm.clock
    return Placed(np.frombuffer(bytes(region), np.uint8), begin, end)


def _on_sm(log: WarpLog, sm: Sm, timers: Timers) -> None:
    """From cycles since time 0 to what this SM's clock and the global timer read."""
    log.entry_ns = timers.global_ns(log.entry)
    log.entry += sm.clock
    log.smid = sm.number
    for stamp in (*log.stamps, *log.single):
        stamp.clock += sm.clock
    if log.exit is not None:
        log.exit_ns = timers.global_ns(log.exit)
        log.exit += sm.clock
