# SPDX-License-Identifier: Apache-2.0
"""Kernels for the machine: a ring between producers and consumers, in the forms that real kernels have."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from autostamp.analysis.latencies import CUDA, CUTEDSL, Latencies
from autostamp.model.manifest import Barrier as BarrierRow
from autostamp.model.manifest import KernelTrace, Payload
from autostamp.model.trace import Trace
from autostamp.runtime.decode import decode_region
from tests.simulator.machine import Arrive, Barrier, Commit, Copy, Machine, Meet, Step, Timing, Truth, Wait, Work
from tests.simulator.region import write_region
from tests.simulator.tables import ACQUIRE, COMMIT, CONSUME, KINDS, RELEASE, kernel_trace, signal_row, wait_row

MEET, TAIL, COPY = 5, 6, 7
NAMED_ID = 3
FULL_AT, EMPTY_AT = 0x4080, 0x4090
"""Shared addresses divided by 8 of the first stage's barriers, where records carry addresses."""


class Form(StrEnum):
    """How a producer fills a stage, and what records say of it.

    TMA: the acquire arms the full barrier and the commit emits nothing, as PipelineTmaAsync. PLAIN: the commit is the arrival, as
    PipelineAsync. RAW: mbarriers by address, an expect_tx and a stamped copy, as CUDA C++.
    """

    TMA = "tma"
    PLAIN = "plain"
    RAW = "raw"


@dataclass(frozen=True)
class Pipeline:
    """A kernel: warps 0.. are producers, those after them consumers, and tile t goes through stage t modulo `stages`.

    `fillers` (`drainers`): for each tile the producer (consumer) that owns it, or None where all take part in every tile.
    """

    stages: int
    producers: int
    consumers: int
    tiles: int
    form: Form = Form.TMA
    fillers: tuple[int, ...] | None = None
    drainers: tuple[int, ...] | None = None
    meets: bool = False
    has_tail: bool = False
    load: tuple[int, int] = (5, 40)
    compute: tuple[int, int] = (5, 80)
    timing: Timing = field(default_factory=Timing)
    seed: int = 0
    base: int = 0
    entries: tuple[int, ...] = ()
    capacity: int = 4096

    @property
    def latencies(self) -> Latencies:
        """What is true of this kernel."""
        return Latencies(
            {(language, kind): self.timing.ready for language in (CUDA, CUTEDSL) for kind in KINDS},
            dict.fromkeys(KINDS, self.timing.hand_off[1]),
            self.timing.late[1],
        )

    def kernel(self) -> KernelTrace:
        """Its instances."""
        payload = Payload.ADDRESS if self.form is Form.RAW else Payload.STAGE
        arms = ("full",) if self.form is Form.TMA else ()
        common = {"payload": payload, "barrier": 1}
        rows = (
            wait_row(ACQUIRE, 1, 2, role="load", side="empty", signals=arms, **common),
            signal_row(COMMIT, 3, role="load", side="full", is_noop=self.form is Form.TMA, **common),
            wait_row(CONSUME, 4, 5, role="mma", side="full", **common),
            signal_row(RELEASE, 6, role="mma", side="empty", **common),
            wait_row(MEET, 7, 8, role="mma", side="named", signals=("named",), barrier=2, payload=Payload.BARRIER_ID),
            wait_row(TAIL, 9, 10, role="load", side="empty", **common),
            signal_row(COPY, 11, role="load", side="full", is_async=True, **common),
        )
        depth = 0 if self.form is Form.RAW else self.stages
        barriers = (BarrierRow(1, "K", "", depth, False), BarrierRow(2, "sync", "NamedBarrier", 0, False))
        return kernel_trace(rows, barriers, self.capacity)

    def run(self) -> tuple[Trace, Truth]:
        """The decoded trace, and what really happened."""
        kernel = self.kernel()
        full_by = self.producers if self.fillers is None else 1
        empty_by = self.consumers if self.drainers is None else 1
        raw = self.form is Form.RAW
        full = [Barrier(f"full{s}", full_by, FULL_AT + s if raw else s) for s in range(self.stages)]
        empty = [Barrier(f"empty{s}", empty_by, EMPTY_AT + s if raw else s) for s in range(self.stages)]
        meeting = Barrier("sync", self.consumers, NAMED_ID)
        chance = random.Random(self.seed + 1)
        warps: dict[int, Iterator[Step]] = {
            warp: self._producer(warp, full, empty, chance) for warp in range(self.producers)
        }
        for consumer in range(self.consumers):
            warps[self.producers + consumer] = self._consumer(consumer, full, empty, meeting, chance)
        entries = dict(zip(warps, self.entries, strict=False)) if self.entries else {}
        machine = Machine(kernel, self.timing, self.seed, self.base)
        truth = machine.run(warps, {warp: entries.get(warp, 0) for warp in warps})
        region = write_region(kernel.capacity, truth.logs, kernel.signature)
        return decode_region(region, kernel), truth

    def _producer(self, own: int, full: list[Barrier], empty: list[Barrier], chance: random.Random) -> Iterator[Step]:
        for tile in range(self.tiles):
            lap, stage = divmod(tile, self.stages)
            if self.fillers is not None and self.fillers[tile] != own:
                continue
            yield Wait(ACQUIRE, empty[stage], lap - 1, arms=full[stage] if self.form is Form.TMA else None)
            yield Work(chance.randint(*self.load))
            if self.form is Form.TMA:
                yield Copy(0, full[stage])
                yield Commit(COMMIT, full[stage])
            else:
                yield Arrive(COMMIT, full[stage], announces=int(self.form is Form.RAW))
            if self.form is Form.RAW:
                yield Copy(COPY, full[stage])
        if self.has_tail and self.tiles:
            last = [(empty[stage], (self.tiles - 1 - stage) // self.stages) for stage in range(self.stages)]
            waits = [last[(self.tiles + step) % self.stages] for step in range(self.stages)]
            yield Wait(TAIL, waits[0][0], waits[0][1], all_of=tuple(waits[1:]))

    def _consumer(
        self, own: int, full: list[Barrier], empty: list[Barrier], meeting: Barrier, chance: random.Random
    ) -> Iterator[Step]:
        for tile in range(self.tiles):
            lap, stage = divmod(tile, self.stages)
            if self.drainers is not None and self.drainers[tile] != own:
                continue
            yield Wait(CONSUME, full[stage], lap)
            yield Work(chance.randint(*self.compute))
            yield Arrive(RELEASE, empty[stage])
            yield Work(chance.randint(1, 9))
            if self.meets and self.drainers is None:
                yield Meet(MEET, meeting)
                yield Work(chance.randint(1, 9))
