# SPDX-License-Identifier: Apache-2.0
"""Instance tables and manifests for simulated kernels, and the ring kernel that most tests run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autostamp.analysis.latencies import CUDA, CUTEDSL, Latencies
from autostamp.model.manifest import (
    MANIFEST_VERSION,
    Barrier,
    Instance,
    KernelTrace,
    Manifest,
    Payload,
    SourceFile,
)
from autostamp.model.site import KernelDef, Shape, Site, Skip, Span
from autostamp.model.sync import Kind, Side, StageFrom
from tests.simulator.kernel import Action, Arrive, Simulation, Wait, Work
from tests.simulator.region import WarpLog, write_region

FILE_KEY = "0123456789abcdef"
SIGNATURE = 0xC0FFEE
NO_PASS = Latencies(ready={}, hand_off={}, late=0)
"""Every wait is a stall, also one of no cycles, and nothing hands over in any time."""

KINDS = ("mbarrier", "named", "cta", "cluster", "async-group")
AT_ONCE = Latencies({(language, kind): 0 for language in (CUDA, CUTEDSL) for kind in KINDS}, {}, late=0)
"""What is true of a simulated kernel without delays: a ready wait takes no cycle, and neither does a hand-off."""

ACQUIRE, COMMIT, CONSUME, RELEASE, EPILOGUE = 1, 2, 3, 4, 5


def wait_row(number: int, enter: int, exit_: int, **fields: Any) -> Instance:
    """An instance of a wait; its site has the same number."""
    defaults: dict[str, Any] = {"role": "", "side": "full", "barrier": 1, "payload": Payload.NONE, "call_path": ()}
    row = defaults | fields
    return Instance(number=number, file=FILE_KEY, site=number, kind="wait", enter=enter, exit=exit_, **row)


def signal_row(number: int, signal: int, **fields: Any) -> Instance:
    """An instance of a signal; its site has the same number."""
    defaults: dict[str, Any] = {"role": "", "side": "empty", "barrier": 1, "payload": Payload.NONE, "call_path": ()}
    row = defaults | fields
    return Instance(number=number, file=FILE_KEY, site=number, kind="signal", signal=signal, **row)


def kernel_trace(
    instances: Sequence[Instance],
    barriers: Sequence[Barrier] = (),
    capacity: int = 64,
    number: int = 1,
    **fields: Any,
) -> KernelTrace:
    """A kernel trace named `ring` unless `fields` say otherwise."""
    row: dict[str, Any] = {"kernel": "ring", "region": number, "signature": SIGNATURE, "block": (0, 0, 0)} | fields
    return KernelTrace(
        number=number,
        file=FILE_KEY,
        capacity=capacity,
        barriers=tuple(barriers),
        instances=tuple(instances),
        **row,
    )


def ring_kernel(stages: int = 2, capacity: int = 64, **fields: Any) -> KernelTrace:
    """A ring K between a load warp and MMA warps, and a named barrier that the simulated launch never reaches."""
    stage = Payload.STAGE
    instances = (
        wait_row(ACQUIRE, 1, 2, role="load", side="empty", payload=stage, signals=("full",)),
        signal_row(COMMIT, 3, role="load", side="full", payload=stage, is_noop=True),
        wait_row(CONSUME, 4, 5, role="mma", side="full", payload=stage),
        signal_row(RELEASE, 6, role="mma", side="empty", payload=stage),
        wait_row(EPILOGUE, 7, 8, role="mma", side="named", barrier=2),
    )
    barriers = (Barrier(1, "K", "PipelineTmaAsync", stages, False), Barrier(2, "epilogue", "NamedBarrier", 0, False))
    return kernel_trace(instances, barriers, capacity, **fields)


def producer(uses: int, load: int, stages: int = 2, consumers: int = 1) -> Iterator[Action]:
    """Fill `uses` stages, each after the consumers released its use before."""
    for use in range(uses):
        lap, stage = divmod(use, stages)
        yield Wait(ACQUIRE, ("empty", stage), lap * consumers, stage)
        yield Work(load)
        yield Arrive(COMMIT, ("full", stage), stage)


def consumer(uses: int, compute: int, stages: int = 2) -> Iterator[Action]:
    """Use every stage once it is full, for `compute` cycles, and release it."""
    for use in range(uses):
        lap, stage = divmod(use, stages)
        yield Wait(CONSUME, ("full", stage), lap + 1, stage)
        yield Work(compute)
        yield Arrive(RELEASE, ("empty", stage), stage)


def run_ring(
    kernel: KernelTrace, uses: int = 4, load: int = 10, compute: int = 30, entries: Mapping[int, int] | None = None
) -> list[WarpLog]:
    """Warp 0 loads, warp 1 computes, both from clock 0 unless `entries` says otherwise.

    With the default arguments and two stages, by hand:
    producer  acquires 0-0, 10-10, 20-40, 50-70 and commits at 10, 20, 50, 80, where it ends;
    consumer  waits 0-10, 40-40, 70-70, 100-100 and releases at 40, 70, 100, 130, where it ends.
    """
    simulation = Simulation(kernel, entries or {0: 0, 1: 0})
    return simulation.run({0: producer(uses, load), 1: consumer(uses, compute)})


def ring_region(kernel: KernelTrace, **arguments: Any) -> NDArray[np.uint8]:
    """The region that `run_ring` leaves."""
    return write_region(kernel.capacity, run_ring(kernel, **arguments), kernel.signature)


_RING_SITES = (
    (12, "pipeline_k.producer_acquire(state)", "producer_acquire", Kind.WAIT, Side.EMPTY, "load"),
    (15, "pipeline_k.producer_commit(state)", "producer_commit", Kind.SIGNAL, Side.FULL, "load"),
    (31, "pipeline_k.consumer_wait(read_state)", "consumer_wait", Kind.WAIT, Side.FULL, "mma"),
    (34, "pipeline_k.consumer_release(read_state)", "consumer_release", Kind.SIGNAL, Side.EMPTY, "mma"),
    (40, "self.epilogue_barrier.arrive_and_wait()", "arrive_and_wait", Kind.WAIT, Side.NAMED, "mma"),
)


def ring_manifest(*kernels: KernelTrace) -> Manifest:
    """A manifest whose one source file has the five sites of the ring kernel, two skipped calls, and `kernels`."""
    sites = tuple(
        Site(
            number=number,
            span=Span(100 * number, 100 * number + len(text), line, 9),
            text=text,
            method=method,
            owner="",
            kind=kind,
            side=side,
            stage_from=StageFrom.STATE,
            shape=Shape.STATEMENT,
            function="kernel",
            barrier="pipeline_k",
            role=role,
            loop_depth=1,
        )
        for number, (line, text, method, kind, side, role) in enumerate(_RING_SITES, start=1)
    )
    skips = tuple(
        Skip(Span(0, 4, line, 1), "try_wait()", "consumer_try_wait", Kind.POLL, "kernel", "AS2101", "never blocks")
        for line in (30, 33)
    )
    definition = KernelDef("Ring.kernel", 10, True, "Ring.__call__")
    source = SourceFile(FILE_KEY, "src/ring.py", "ring", FILE_KEY * 4, sites, skips, (definition,))
    return Manifest(MANIFEST_VERSION, "autostamp 0.1.0", (source,), kernels or (ring_kernel(),))
