# SPDX-License-Identifier: Apache-2.0
"""Uses of a ring: when each of its stages was taken, and when it was free again.

A stage is in use from where a producer came to own it (the exit of its acquire, or its first arrival where no acquire was
stamped) to the consumers' last release before the stage is taken again. No stage is taken again before all have released it,
so the next acquire bounds a use whose releases are not stamped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from autostamp.analysis.arrows import LATE
from autostamp.analysis.spans import Span
from autostamp.model.manifest import Instance
from autostamp.model.timeline import State, Timeline, WarpTimeline
from autostamp.model.trace import Trace


class Step(NamedTuple):
    """What one warp did to one stage of a ring, and when."""

    cycles: int
    warp: int
    stage: int


@dataclass(slots=True)
class Ring:
    """Steps on one barrier: `acquires` and `arrivals` on the full side are the producers', `releases` the consumers'."""

    acquires: list[Step] = field(default_factory=list)
    arrivals: list[Step] = field(default_factory=list)
    releases: list[Step] = field(default_factory=list)

    @property
    def takes(self) -> list[Step]:
        """Steps at which uses may begin."""
        return self.acquires or self.arrivals

    @property
    def warps(self) -> set[int]:
        """All warps that use the ring."""
        return {step.warp for steps in (self.acquires, self.arrivals, self.releases) for step in steps}


def rings_of(trace: Trace, timeline: Timeline) -> dict[int, Ring]:
    """The steps on every barrier that has a full or an empty side, by barrier number."""
    stages = {barrier.number: barrier.stages for barrier in trace.kernel.barriers}
    meanings = {
        row.number: meaning for row in trace.kernel.instances if (meaning := _Meaning.of(row, stages)).is_about_a_ring
    }
    rings: dict[int, Ring] = {}
    for warp in timeline.warps:
        for barrier, ours in _of_warp(warp, meanings).items():
            ring = rings.setdefault(barrier, Ring())
            ring.acquires += ours.acquires
            ring.arrivals += ours.arrivals
            ring.releases += ours.releases
    return rings


def uses_of(ring: Ring, timeline: Timeline) -> list[Span]:
    """The spans in which a stage was in use, of all stages. Those of one stage do not overlap."""
    end = max((warp.end for warp in timeline.warps), default=0)
    taken, released = _by_stage(ring.takes), _by_stage(ring.releases)
    return [span for stage, takes in taken.items() for span in _uses_of_stage(takes, released.get(stage, []), end)]


@dataclass(frozen=True, slots=True)
class _Meaning:
    """What a wait's exit, or a signal, of one instance does to its ring. `stages` is the declared depth (0: unknown).

    `acquires_if_held`: a wait for an empty stage takes it if an arrival follows; a producer's tail waits and fills nothing.
    """

    barrier: int
    stages: int
    acquires: bool
    acquires_if_held: bool
    arrives: bool
    releases: bool

    @classmethod
    def of(cls, row: Instance, stages: Mapping[int, int]) -> _Meaning:
        is_acquire = bool(row.enter) and row.side == "empty"
        # Of an instance that waits, `side` is what it waits on; only `signals` are arrived on.
        sides = row.signals if row.enter else (row.side, *row.signals)
        arms = "full" in sides
        depth = stages.get(row.barrier, 0)
        return cls(row.barrier, depth, is_acquire and arms, is_acquire and not arms, arms, "empty" in sides)

    @property
    def is_about_a_ring(self) -> bool:
        return self.acquires or self.acquires_if_held or self.arrives or self.releases


def _of_warp(warp: WarpTimeline, meanings: Mapping[int, _Meaning]) -> dict[int, Ring]:
    tails = {number for number, meaning in meanings.items() if meaning.acquires_if_held}
    held = {(at.instance, at.visit) for at in warp.slices if at.instance in tails and at.state is State.ACTIVE}
    records = [
        (part.end, part.instance, part.visit, part.stage)
        for part in warp.slices
        if part.state is not State.ACTIVE and part.instance in meanings
    ]
    records += [(at.cycles, at.instance, at.visit, at.stage) for at in warp.signals if at.instance in meanings]
    rings: dict[int, Ring] = {}
    for cycles, instance, visit, stage in sorted(records):
        meaning = meanings[instance]
        ring = rings.get(meaning.barrier)
        if ring is None:
            ring = rings[meaning.barrier] = Ring()
        kinds = [ring.arrivals] if meaning.arrives else []
        kinds += [ring.releases] if meaning.releases else []
        if meaning.acquires or (meaning.acquires_if_held and (instance, visit) in held):
            kinds.append(ring.acquires)
        for steps in kinds:
            # Stages that no record names come round in order.
            named = len(steps) % meaning.stages if stage < 0 < meaning.stages else stage
            steps.append(Step(cycles, warp.warp, named))
    return rings


def _by_stage(steps: Iterable[Step]) -> dict[int, list[Step]]:
    """The steps on each stage in order of time."""
    stages: dict[int, list[Step]] = {}
    for step in sorted(steps):
        stages.setdefault(step.stage, []).append(step)
    return stages


def _uses_of_stage(taken: list[Step], released: list[Step], end: int) -> Iterator[Span]:
    """One span a use, from its first take to its last release, or to the next use where none of its releases is known."""
    at = 0
    late: set[int] = set()
    for start, following in pairwise([*_starts(taken, released), end]):
        ours: dict[int, int] = {}
        while at < len(released) and released[at].cycles <= following:
            if at not in late and released[at].cycles > start:
                ours[released[at].warp] = released[at].cycles
            at += 1
        late = {
            index
            for index in _until(released, at, following + LATE if following < end else end)
            if released[index].warp not in ours
        }
        yield start, following if late or not ours else max(ours.values())


def _starts(taken: list[Step], released: list[Step]) -> list[int]:
    """Where uses begin: at a take by a warp that takes the stage again, or by another warp once it was released."""
    starts: list[int] = []
    warps: set[int] = set()
    last = 0
    for take in taken:
        while last < len(released) and released[last].cycles <= take.cycles:
            last += 1
        # A release whose stamp comes after the acquire that it allowed is of the use before.
        is_released = bool(starts) and last > 0 and released[last - 1].cycles > starts[-1] + LATE
        if not starts or take.warp in warps or is_released:
            starts.append(take.cycles)
            warps = set()
        warps.add(take.warp)
    return starts


def _until(released: list[Step], at: int, cycles: int) -> Iterator[int]:
    """Indexes from `at` of the releases up to `cycles`."""
    while at < len(released) and released[at].cycles <= cycles:
        yield at
        at += 1
