# SPDX-License-Identifier: Apache-2.0
"""Arrows and causes of the simulated ring kernel, by counting uses: a use's commit ends its waits, and the last release of
use n ends the acquire of use n + stages. Arrivals of the simulator take no time, so every stall with an arrow is bound by it.

Times are thousands of cycles: a wait takes either none, or more than any ready wait does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from autostamp.analysis import analyse
from autostamp.model.flow import Arrow, Cause, End, Ending
from autostamp.model.timeline import Slice, State, Timeline, WarpTimeline
from autostamp.model.trace import Trace
from autostamp.runtime.decode import decode_region
from tests.simulator.kernel import Action, Arrive, Simulation, Wait, Work
from tests.simulator.region import write_region
from tests.simulator.tables import ACQUIRE, COMMIT, CONSUME, RELEASE, ring_kernel

UNIT = 1000


def uneven_producer(loads: Sequence[int], stages: int, consumers: int = 1) -> Iterator[Action]:
    """As `producer`, with a load time for every use."""
    for use, load in enumerate(loads):
        lap, stage = divmod(use, stages)
        yield Wait(ACQUIRE, ("empty", stage), lap * consumers, stage)
        yield Work(load * UNIT)
        yield Arrive(COMMIT, ("full", stage), stage)


def uneven_consumer(computes: Sequence[int], stages: int) -> Iterator[Action]:
    """As `consumer`, with a compute time for every use."""
    for use, compute in enumerate(computes):
        lap, stage = divmod(use, stages)
        yield Wait(CONSUME, ("full", stage), lap + 1, stage)
        yield Work(compute * UNIT)
        yield Arrive(RELEASE, ("empty", stage), stage)


def simulate_ring(loads: Sequence[int], computes: Sequence[Sequence[int]], stages: int) -> tuple[Trace, Timeline]:
    """Warp 0 loads and warp 1 + n takes `computes[n]`, in units of `UNIT` cycles; all enter at 0."""
    kernel = ring_kernel(stages, capacity=4 * len(loads) + 8)
    warps = [uneven_producer(loads, stages, len(computes)), *(uneven_consumer(times, stages) for times in computes)]
    logs = Simulation(kernel, dict.fromkeys(range(len(warps)), 0)).run(dict(enumerate(warps)))
    trace = decode_region(write_region(kernel.capacity, logs, kernel.signature), kernel)
    return trace, analyse(trace)


def constant_ring(load: int, compute: int, stages: int = 2, uses: int = 8) -> tuple[Trace, Timeline]:
    """One load warp and one MMA warp with constant times."""
    return simulate_ring([load] * uses, [[compute] * uses], stages)


def ring_arrows(timeline: Timeline, stages: int) -> tuple[Arrow, ...]:
    """An arrow for every wait that an arrival ended: all but the first round of acquires."""
    return tuple(
        Arrow(last, End(warp.warp, part.instance, part.visit, part.end), 1, side, part.stage, use, tuple(others))
        for warp in timeline.warps
        for part in _waits(warp)
        for side, signal, use in (_awaited(part, stages),)
        if use >= 0
        for *others, last in (sorted(_arrivals(timeline.warps, signal, use), key=lambda end: end.cycles),)
    )


def ring_causes(timeline: Timeline, arrows: Iterable[Arrow]) -> tuple[Cause, ...]:
    """A cause for every wait that took time."""
    arrow_of = {(arrow.wait.warp, arrow.wait.instance, arrow.wait.visit): arrow for arrow in arrows}
    role = {warp.warp: warp.role for warp in timeline.warps}
    causes = []
    for warp in timeline.warps:
        for part in _waits(warp):
            arrow = arrow_of.get((warp.warp, part.instance, part.visit))
            if part.cycles and arrow is not None:
                by = role[arrow.signal.warp]
                causes.append(Cause(warp.warp, part, Ending.SIGNAL, arrow, by, part.cycles, 0, 0, 0, True))
    return tuple(causes)


def _waits(warp: WarpTimeline) -> Iterator[Slice]:
    return (part for part in warp.slices if part.state is not State.ACTIVE)


def _awaited(part: Slice, stages: int) -> tuple[str, int, int]:
    return ("full", COMMIT, part.visit) if part.instance == CONSUME else ("empty", RELEASE, part.visit - stages)


def _arrivals(warps: Iterable[WarpTimeline], instance: int, use: int) -> Iterator[End]:
    return (
        End(warp.warp, instance, use, signal.cycles)
        for warp in warps
        for signal in warp.signals
        if (signal.instance, signal.visit) == (instance, use)
    )
