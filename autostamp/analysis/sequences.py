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
    """The arrivals of each turn, with the waits given theirs; None where waits contradict every order of turns.

    Of the orders that none contradicts that is taken by which the fewest waits are granted: whose turn is the first, and at how
    many stages, is seen by the waits that end before anyone arrived.
    """
    waits = [wait for wait in uses.waits if wait.exit.cycles + late < until]
    depths = range(1, _MOST_DEEP + 1) if uses.key[3] < 0 else (1,)
    best: tuple[int, list[tuple[Waiting, list[Arrival] | None]]] | None = None
    for groups in _orders(waits, uses.arrivals):
        taken = [_turns(group, uses.arrivals) for group in groups]
        for depth in depths:
            found = _numbered(groups, taken, waits, depth, late)
            granted = sum(turn is None for _, turn in found or ())
            if found is not None and (best is None or granted < best[0]):
                best = granted, found
    if best is None:
        return None
    turns: list[list[Arrival]] = []
    places: dict[int, int] = {}
    for wait, turn in best[1]:
        if turn is None:
            wait.use = GRANTED
            continue
        wait.use = places.setdefault(id(turn[0]), len(turns))
        if wait.use == len(turns):
            turns.append(turn)
    return turns


def _orders(waits: Sequence[Waiting], arrivals: Sequence[Arrival]) -> Iterator[list[frozenset[int]]]:
    """Groups of warps in the order of turns, each of them first once: warpgroups where they are whole, else each warp alone."""
    begins: dict[int, int] = {}
    for end in (*(wait.exit for wait in waits), *(arrival.ends[0] for arrival in arrivals)):
        begins[end.warp] = min(begins.get(end.warp, end.cycles), end.cycles)
    for size in (_WARPGROUP, 1):
        found = [
            frozenset(begins.keys() & {*range(at, at + size)}) for at in range(0, max(begins, default=-1) + 1, size)
        ]
        groups = sorted(
            (group for group in found if group), key=lambda group: min((begins[warp], warp) for warp in group)
        )
        if len(groups) > 1 and all(len(group) == size for group in groups):
            yield from (groups[at:] + groups[:at] for at in range(len(groups)))
            return


def _turns(group: frozenset[int], arrivals: Sequence[Arrival]) -> list[list[Arrival]]:
    by_warp: dict[int, list[Arrival]] = {}
    for arrival in arrivals:
        if arrival.ends[0].warp in group:
            by_warp.setdefault(arrival.ends[0].warp, []).append(arrival)
    return [list(turn) for turn in zip(*by_warp.values(), strict=False)]


def _numbered(
    groups: Sequence[frozenset[int]],
    turns: Sequence[Sequence[list[Arrival]]],
    waits: Sequence[Waiting],
    depth: int,
    late: int,
) -> list[tuple[Waiting, list[Arrival] | None]] | None:
    """The turn that let each wait in, None where it was granted; None for all where a wait ended too early for it."""
    of_warp = {warp: at for at, group in enumerate(groups) for warp in group}
    seen: dict[int, int] = {}
    found: list[tuple[Waiting, list[Arrival] | None]] = []
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
        found.append((wait, turns[before][turn]))
    return found
