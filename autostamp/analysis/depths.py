# SPDX-License-Identifier: Apache-2.0
"""Pipeline depth: how many stages of a ring are in use at once.

A stage is in use from where a producer came to own it (the exit of its acquire, or its first arrival where no acquire was
stamped) to the consumers' last release before the stage is taken again. No stage is taken again before all have released it,
so the next acquire bounds a use whose releases are not stamped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from autostamp.analysis.arrows import LATE
from autostamp.analysis.spans import Span, clip
from autostamp.model.flow import Depth, Steady
from autostamp.model.manifest import Instance
from autostamp.model.timeline import State, Timeline, WarpTimeline
from autostamp.model.trace import Trace


@dataclass(frozen=True, slots=True)
class _At:
    """What one warp did to one stage of a ring."""

    cycles: int
    warp: int
    stage: int


@dataclass(slots=True)
class _Ring:
    """`acquires` and `arrivals` on the full side are the producers', `releases` the consumers'."""

    acquires: list[_At] = field(default_factory=list)
    arrivals: list[_At] = field(default_factory=list)
    releases: list[_At] = field(default_factory=list)

    @property
    def warps(self) -> set[int]:
        return {at.warp for at in (*self.acquires, *self.arrivals, *self.releases)}


def depths(trace: Trace, timeline: Timeline, steady: Steady) -> tuple[Depth, ...]:
    """The depth in use of every ring of at least two stages, by barrier number.

    A ring is left out where a lane that uses it lost records within the window, where no release or nothing of its producer
    is stamped, or where it is not used in the window. `stages` is the number of stages seen where that is more than was declared.
    An asynchronous release counts from its issue.
    """
    declared = {barrier.number: barrier.stages for barrier in trace.kernel.barriers}
    unreliable = {
        lane.warp for lane in trace.lanes if lane.is_lossy and (not lane.events or lane.events[-1].cycles < steady.end)
    }
    found = []
    for barrier, ring in sorted(_rings(trace, timeline, declared).items()):
        opens = ring.acquires or ring.arrivals
        stages = max(declared.get(barrier, 0), len({at.stage for at in opens}))
        if stages > 1 and opens and ring.releases and not ring.warps & unreliable:
            uses = clip(_uses(opens, ring.releases, timeline), (steady.start, steady.end))
            if uses:
                found.append(Depth(barrier, stages, *_median_and_most(uses, (steady.start, steady.end))))
    return tuple(found)


def _rings(trace: Trace, timeline: Timeline, declared: Mapping[int, int]) -> dict[int, _Ring]:
    instances = {instance.number: instance for instance in trace.kernel.instances}
    rings: dict[int, _Ring] = {}
    for warp in timeline.warps:
        for kind, barrier, at in _steps(warp, instances, declared):
            getattr(rings.setdefault(barrier, _Ring()), kind).append(at)
    return rings


def _steps(
    warp: WarpTimeline, instances: Mapping[int, Instance], declared: Mapping[int, int]
) -> Iterator[tuple[str, int, _At]]:
    """The warp's acquires, arrivals and releases in order of time, each with its barrier."""
    # A wait for an empty stage that fills nothing (a producer's tail) takes no stage.
    filled = {(part.instance, part.visit) for part in warp.slices if part.state is State.ACTIVE}
    counts: dict[tuple[str, int], int] = {}
    for cycles, instance, visit, stage, is_wait in sorted(_records(warp)):
        row = instances[instance]
        kinds = ["acquires"] if is_wait and row.side == "empty" and _takes(row, (instance, visit) in filled) else []
        sides = row.signals if is_wait else dict.fromkeys((row.side, *row.signals))
        kinds += [{"full": "arrivals", "empty": "releases"}[side] for side in sides if side in ("full", "empty")]
        for kind in kinds:
            count = counts.get((kind, row.barrier), 0)
            counts[kind, row.barrier] = count + 1
            depth = declared.get(row.barrier, 0)
            # Stages that no record names come round in order.
            named = stage if stage >= 0 else count % depth if depth else 0
            yield kind, row.barrier, _At(cycles, warp.warp, named)


def _takes(row: Instance, is_filled: bool) -> bool:
    return is_filled or "full" in row.signals


def _records(warp: WarpTimeline) -> Iterator[tuple[int, int, int, int, bool]]:
    """Cycles, instance, visit, stage and whether it is a wait's exit."""
    for part in warp.slices:
        if part.state is not State.ACTIVE:
            yield part.end, part.instance, part.visit, part.stage, True
    for signal in warp.signals:
        yield signal.cycles, signal.instance, signal.visit, signal.stage, False


def _uses(opens: Iterable[_At], releases: Iterable[_At], timeline: Timeline) -> list[Span]:
    """The spans in which a stage was in use, of all stages."""
    end = max(warp.end for warp in timeline.warps)
    opened, released = _by_stage(opens), _by_stage(releases)
    return [span for stage, taken in opened.items() for span in _uses_of_stage(taken, released.get(stage, []), end)]


def _by_stage(steps: Iterable[_At]) -> dict[int, list[_At]]:
    stages: dict[int, list[_At]] = {}
    for at in sorted(steps, key=lambda at: at.cycles):
        stages.setdefault(at.stage, []).append(at)
    return stages


def _uses_of_stage(taken: list[_At], released: list[_At], end: int) -> Iterator[Span]:
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


def _starts(taken: list[_At], released: list[_At]) -> list[int]:
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


def _until(released: list[_At], at: int, cycles: int) -> Iterator[int]:
    """Indexes from `at` of the releases up to `cycles`."""
    while at < len(released) and released[at].cycles <= cycles:
        yield at
        at += 1


def _median_and_most(uses: list[Span], window: Span) -> tuple[float, int]:
    """Weighted by time: the least depth that was not exceeded for half of the window, and the greatest."""
    changes: dict[int, int] = {window[0]: 0, window[1]: 0}
    for start, end in uses:
        changes[start] = changes.get(start, 0) + 1
        changes[end] = changes.get(end, 0) - 1
    cycles_at: dict[int, int] = {}
    depth = 0
    for at, following in pairwise(sorted(changes)):
        depth += changes[at]
        cycles_at[depth] = cycles_at.get(depth, 0) + following - at
    below = 0
    for depth in sorted(cycles_at):
        below += cycles_at[depth]
        if 2 * below >= window[1] - window[0]:
            return float(depth), max(cycles_at)
    return 0.0, 0
