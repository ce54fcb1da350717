# SPDX-License-Identifier: Apache-2.0
"""Early signals: arrivals that a warp made in the middle of other work."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from itertools import accumulate

from autostamp.analysis.dependencies import is_enter
from autostamp.model.flow import Arrow, EarlySignals
from autostamp.model.manifest import Instance
from autostamp.model.timeline import State, Timeline, WarpTimeline


def early_signals(
    timeline: Timeline, arrows: Iterable[Arrow], instances: Mapping[int, Instance]
) -> tuple[EarlySignals, ...]:
    """For every instance and role that signals, how many of its arrows leave strictly inside a hold of the same warp.

    The hold that the signal itself ends is not one of these: it ends there. Asynchronous arrivals are not counted at all;
    they are issued within the work and land after it. Nor are those of a wait that arrives: a warp that begins to wait is not
    in the middle of work, whatever it holds meanwhile.
    """
    warps = {warp.warp: (warp.role, *_work(warp)) for warp in timeline.warps}
    counts: dict[tuple[int, str], tuple[int, int]] = {}
    for arrow in arrows:
        if arrow.is_async or arrow.signal.warp not in warps or is_enter(arrow, instances):
            continue
        role, starts, reaches = warps[arrow.signal.warp]
        # Of the holds that began before the signal, the one that ends last tells whether any was still open.
        begun = bisect_left(starts, arrow.signal.cycles)
        is_early = begun > 0 and reaches[begun - 1] > arrow.signal.cycles
        key = (arrow.signal.instance, role)
        early, total = counts.get(key, (0, 0))
        counts[key] = (early + is_early, total + 1)
    return tuple(EarlySignals(*key, *count) for key, count in sorted(counts.items()))


def _work(warp: WarpTimeline) -> tuple[list[int], list[int]]:
    """Starts of the warp's holds in order, and for each the latest end up to it."""
    holds = sorted((part.start, part.end) for part in warp.slices if part.state is State.ACTIVE)
    return [start for start, _ in holds], list(accumulate((end for _, end in holds), max))
