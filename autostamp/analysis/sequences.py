# SPDX-License-Identifier: Apache-2.0
"""Uses of ordered sequence barriers, at which groups of warps take turns: an arrival lets in the next group, never one's own.

CUTLASS's OrderedSequenceBarrier and CuTe-DSL's PipelineOrder (cutlass/pipeline/sm90_pipeline.hpp) have an mbarrier for each group
and stage. A group waits for its own and arrives on the next group's of the same stage; its n-th wait and its n-th arrival are at
stage n modulo the depth. The first group's waits for the first round of stages are granted. Records name neither the group nor,
in CUDA C++, the stage: both follow from who waits first and from what no wait contradicts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from autostamp.analysis.counting import GRANTED
from autostamp.analysis.uses import Arrival, Uses, Waiting

TYPES: Final = frozenset({"OrderedSequenceBarrier", "PipelineOrder"})
"""What such barriers are called in a manifest."""

_MOST_DEEP: Final = 4
_WARPGROUP: Final = 4


def number_in_sequence(uses: Uses, late: int, until: float) -> list[list[Arrival]] | None:
    """The arrivals of each turn, with the waits given theirs, for the least depth that no wait contradicts; None without one."""
    waits = [wait for wait in uses.waits if wait.exit.cycles + late < until]
    depths = range(1, _MOST_DEEP + 1) if uses.key[3] < 0 else (1,)
    for groups in _groupings(waits, uses.arrivals):
        turns = [_turns(group, uses.arrivals) for group in groups]
        begins = [sum(map(len, turns[:at])) for at in range(len(turns))]
        for depth in depths:
            found = _numbered(groups, turns, waits, depth, late)
            if found is None:
                continue
            for wait, place in found:
                wait.use = GRANTED if place is None else begins[place[0]] + place[1]
            return [turn for of_group in turns for turn in of_group]
    return None


def _groupings(waits: Sequence[Waiting], arrivals: Sequence[Arrival]) -> Iterator[list[frozenset[int]]]:
    """Warps by group, who waits first in front: warpgroups where they are whole, else each warp by itself."""
    first = {wait.exit.warp: wait.exit.cycles for wait in reversed(waits)}
    warps = {*first, *(arrival.ends[0].warp for arrival in arrivals)}
    for size in (_WARPGROUP, 1):
        groups = [frozenset(warps & {*range(at, at + size)}) for at in range(0, max(warps, default=-1) + 1, size)]
        groups = [group for group in groups if group]
        if len(groups) > 1 and all(len(group) == size for group in groups):
            yield sorted(groups, key=lambda group: min((first.get(warp, 1 << 62), warp) for warp in group))


def _turns(group: frozenset[int], arrivals: Sequence[Arrival]) -> list[list[Arrival]]:
    by_warp: dict[int, list[Arrival]] = {}
    for arrival in arrivals:
        if arrival.ends[0].warp in group:
            by_warp.setdefault(arrival.ends[0].warp, []).append(arrival)
    return [list(turn) for turn in zip(*by_warp.values(), strict=False)]


def _numbered(
    groups: Sequence[frozenset[int]],
    turns: Sequence[Sequence[Sequence[Arrival]]],
    waits: Sequence[Waiting],
    depth: int,
    late: int,
) -> list[tuple[Waiting, tuple[int, int] | None]] | None:
    """The (group, turn) that let each wait in, None where it was granted; None for all where a wait ended too early for it."""
    of_warp = {warp: at for at, group in enumerate(groups) for warp in group}
    seen: dict[int, int] = {}
    found: list[tuple[Waiting, tuple[int, int] | None]] = []
    for wait in waits:
        group = of_warp[wait.exit.warp]
        visit = seen[wait.exit.warp] = seen.get(wait.exit.warp, -1) + 1
        before, turn = (group - 1) % len(groups), visit - (0 if group else depth)
        if turn < 0:
            found.append((wait, None))
            continue
        if turn >= len(turns[before]):
            return None
        complete = max(arrival.ends[0].cycles for arrival in turns[before][turn])
        if complete > wait.exit.cycles + late:
            return None
        found.append((wait, (before, turn)))
    return found
