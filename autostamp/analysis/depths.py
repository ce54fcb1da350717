# SPDX-License-Identifier: Apache-2.0
"""Pipeline depth: how many stages of a ring are in use at once."""

from __future__ import annotations

from itertools import pairwise

from autostamp.analysis.ring_uses import rings_of, uses_of
from autostamp.analysis.spans import Span, clip
from autostamp.model.flow import Depth, Steady
from autostamp.model.timeline import Timeline
from autostamp.model.trace import Trace


def depths(trace: Trace, timeline: Timeline, steady: Steady) -> tuple[Depth, ...]:
    """The depth in use of every ring of at least two stages, by barrier number.

    A ring is left out where a lane that uses it lost records within the window, where no release or nothing of its producer
    is stamped, or where it is not used in the window. `stages` is the number of stages seen where that is more than was
    declared. An asynchronous release counts from its issue.
    """
    declared = {barrier.number: barrier.stages for barrier in trace.kernel.barriers}
    window = (steady.start, steady.end)
    unreliable = {
        lane.warp for lane in trace.lanes if lane.is_lossy and (not lane.events or lane.events[-1].cycles < steady.end)
    }
    found = []
    for barrier, ring in sorted(rings_of(trace, timeline).items()):
        stages = max(declared.get(barrier, 0), len({step.stage for step in ring.takes}))
        if stages > 1 and ring.takes and ring.releases and not ring.warps & unreliable:
            uses = clip(uses_of(ring, timeline), window)
            if uses:
                found.append(Depth(barrier, stages, *_median_and_most(uses, window)))
    return tuple(found)


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
