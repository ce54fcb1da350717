# SPDX-License-Identifier: Apache-2.0
"""Uses of mbarriers where records lie off by more than stamps do: the numbering that contradicts their places least.

`counting` takes every arrival within `late` cycles of an exit for one that came before it. Where `late` must be large, because
records are of several replays, that lets arrivals of the next use in. Here a wait may be for the use that was complete where its
exit lies, for the one before or for the one after. Of all choices by which no warp waits twice for one use that is taken which
needs the fewest cycles of arrivals after the exits that they allowed, and of exits after the use that they had to come before. A
use that a warp leaves out counts as half a round: warps that take turns leave out many, whichever way they are numbered.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from autostamp.analysis.counting import FREE, GRANTED, MOST
from autostamp.analysis.uses import Uses, Waiting

_SAMPLE = 64
"""Waits of a warp that a number is tried on before all are."""


@dataclass(frozen=True, slots=True)
class Nearest:
    """`number` arrivals complete a use; `uses` has the use of every wait that ended in time, by stage in the ring's order."""

    number: int
    uses: tuple[tuple[tuple[Waiting, int], ...], ...]


def nearest(ring: Sequence[Uses], late: int, until: float, first_loss: float) -> Nearest | None:
    """Of the numbers by which every use was waited for, and no record is off by more than `late` cycles, that of the fewest.

    None where there is no such number, or where waits arrive themselves. `until` and `first_loss` are as in `counting`.
    """
    stages = [_Stage.of(uses, until) for uses in ring]
    if any(wait.own for uses in ring for wait in uses.waits) or not any(stage.lanes for stage in stages):
        return None
    most = max(len(stage.times) for stage in stages)
    for may_grant in (False, True):
        best: tuple[float, Nearest] | None = None
        for number in range(1, min(MOST, most) + 1):
            if any(stage.numbered(number, late, may_grant=may_grant, most=_SAMPLE) is None for stage in stages):
                continue
            found = [stage.numbered(number, late, may_grant=may_grant) for stage in stages]
            whole = [each for each in found if each is not None and _is_covered(each[1], first_loss)]
            cost = sum(each[0] for each in whole)
            if len(whole) == len(stages) and (best is None or cost < best[0]):
                best = cost, Nearest(number, tuple(uses for _, uses in whole))
        if best is not None:
            return best[1]
    return None


def _is_covered(waits: Sequence[tuple[Waiting, int]], first_loss: float) -> bool:
    """Every use was waited for, up to the last that someone waited for before records were lost."""
    waited = {use for wait, use in waits if use >= 0 and wait.exit.cycles < first_loss}
    return not waited or len(waited) == max(waited) + 1


@dataclass(frozen=True, slots=True)
class _Stage:
    """Cycles of one stage's arrivals in order, and each warp's waits in order. `is_free`: a first wait may be for no use."""

    times: list[int]
    lanes: tuple[tuple[Waiting, ...], ...]
    is_free: bool

    @classmethod
    def of(cls, uses: Uses, until: float) -> _Stage:
        lanes: dict[int, list[Waiting]] = {}
        for wait in uses.waits:
            if wait.exit.cycles < until:
                lanes.setdefault(wait.exit.warp, []).append(wait)
        times = sorted(arrival.ends[0].cycles for arrival in uses.arrivals)
        return cls(times, tuple(map(tuple, lanes.values())), uses.side in FREE)

    def numbered(
        self, number: int, late: int, *, may_grant: bool, most: int | None = None
    ) -> tuple[float, tuple[tuple[Waiting, int], ...]] | None:
        """By how many cycles records are off, and the use of every wait, or of each warp's first `most`.

        None where some wait has no use.
        """
        ends = self.times[number - 1 :: number]
        complete = [-inf, *ends, inf, inf]
        gap = (ends[-1] - ends[0]) / (2 * len(ends) - 2) if len(ends) > 1 else 0.0
        least = GRANTED if self.is_free or may_grant else 0
        total = 0.0
        found: list[tuple[Waiting, int]] = []
        for lane in self.lanes:
            waits = lane[:most]
            chosen = _chain([wait.exit.cycles for wait in waits], complete, least, late, gap)
            if chosen is None:
                return None
            total += chosen[0]
            found += zip(waits, chosen[1], strict=True)
        return total, tuple(found)


def _chain(
    exits: Sequence[int], complete: Sequence[float], least: int, late: int, gap: float
) -> tuple[float, list[int]] | None:
    """Rising uses of one warp's waits that are off by the fewest cycles, and by how many; `complete[1 + use]` is when a use was.

    `gap` is what leaving out uses between two waits counts.
    """
    fresh = least - 1
    costs: dict[int, float] = {fresh: 0.0}
    back: list[dict[int, int]] = []
    for at in exits:
        nominal = bisect_right(complete, at, hi=len(complete) - 2) - 2
        here: dict[int, float] = {}
        came: dict[int, int] = {}
        for use in range(max(least, nominal - 1), nominal + 2):
            if use + 3 > len(complete) or use < least:
                continue
            early, overdue = complete[use + 1] - at, at - complete[use + 2]
            before = [(cost + gap * (fresh < last < use - 1), last) for last, cost in costs.items() if last < use]
            if not before or early > late or overdue > late:
                continue
            cost, came[use] = min(before)
            here[use] = cost + max(0.0, early) + max(0.0, overdue)
        if not here:
            return None
        costs = here
        back.append(came)
    use = min(costs, key=lambda each: (costs[each], each))
    total = costs[use]
    found: list[int] = []
    for came in reversed(back):
        found.append(use)
        use = came[use]
    return total, found[::-1]
