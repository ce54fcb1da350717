# SPDX-License-Identifier: Apache-2.0
"""Phases of mbarriers numbered by counting arrivals: how many complete a use, and which use each wait was for.

Every use takes the same number of arrivals. A wait is for the last use that was complete when it ended: an mbarrier's next
phase cannot complete before all who waited for this one have left. So the number is the least for which no use that others
follow went unwaited and no warp waited twice for one use. Nothing depends on the order of arrivals and waits among each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from autostamp.analysis.uses import Uses

MOST: Final = 256
"""Records of arrivals on one use: 32 warps, each with up to 8."""

GRANTED: Final = -1
"""The use of a wait that a fresh barrier lets pass."""

_FREE: Final = frozenset({"empty", "mbarrier"})
"""Sides on which a wait may be for the phase before the first."""

_SAMPLE: Final = 64
"""Waits of a stage that a number is tried on before all are."""

_Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Table:
    """Waits of one stage by warp, each warp's in order of time, with the arrivals made by the exit: at least (stamped before
    it) and at most (stamped within `late` cycles after). `own` is the index of the wait's own arrival, -1 without one.
    """

    order: _Ints
    warps: _Ints
    least: _Ints
    most: _Ints
    own: _Ints
    is_free: bool

    @classmethod
    def of(cls, uses: Uses, late: int, until: float, *, is_free: bool = True) -> _Table:
        times = np.array([arrival.ends[0].cycles for arrival in uses.arrivals], np.int64)
        index = {id(arrival): place for place, arrival in enumerate(uses.arrivals)}
        waits = [wait for wait in uses.waits if wait.exit.cycles + late < until]
        exits = np.array([wait.exit.cycles for wait in waits], np.int64)
        warps = np.array([wait.exit.warp for wait in waits], np.int64)
        own = np.array([index[id(wait.own)] if wait.own else -1 for wait in waits], np.int64)
        order = np.lexsort((exits, warps))
        return cls(
            order,
            warps[order],
            np.searchsorted(times, exits, "left")[order],
            np.searchsorted(times, exits + late, "right")[order],
            own[order],
            is_free,
        )

    def first(self, count: int) -> _Table:
        """The first waits of every warp, `count` of all."""
        kept = np.sort(np.argsort(self.most, kind="stable")[:count])
        return _Table(
            self.order[kept], self.warps[kept], self.least[kept], self.most[kept], self.own[kept], self.is_free
        )

    def uses(self, number: int) -> _Ints:
        """The use of each wait when `number` arrivals complete one, -1: none was complete."""
        found = np.where(self.own >= 0, self.own, self.most - number) // number
        if len(found) > 1:
            # The next use's arrival may be stamped within `late` cycles too: then a warp's next wait has the same number.
            twice = (found[:-1] == found[1:]) & (self.warps[:-1] == self.warps[1:])
            earlier = np.append(twice, False) & (self.least // number - 1 < found) & (self.own < 0)
            found = found - earlier
        return np.asarray(found, np.int64)

    def fits(self, number: int, *, all_waited: bool) -> bool:
        found = self.uses(number)
        same_warp = self.warps[:-1] == self.warps[1:]
        if np.any((found[:-1] >= found[1:]) & same_warp) or np.any((found + 1) * number > self.most):
            return False
        if not self.is_free and np.any(found < 0):
            return False
        waited = np.unique(found[found >= 0])
        return not all_waited or len(waited) == (waited[-1] + 1 if len(waited) else 0)


def arrivals_per_use(ring: Sequence[Uses], late: int, until: float) -> int:
    """How many arrivals complete a use, on every stage of one side of a ring; 0: no number fits the waits that ended by `until`.

    Where uses went unwaited (a skipped tile), the greatest number that no wait contradicts.
    """
    # A consumer's wait that nobody arrived for is granted only if nothing else can be (the first of an order of groups).
    for is_free in (False, True):
        tables = [_Table.of(uses, late, until, is_free=is_free or uses.side in _FREE) for uses in ring]
        found = _least([table for table in tables if len(table.order)])
        if found:
            return found
    return 0


def _least(tables: Sequence[_Table]) -> int:
    samples = [table.first(_SAMPLE) for table in tables]
    most = max((int(table.most.max()) for table in tables), default=1)
    skipping = 0
    for number in range(1, max(1, min(MOST, most)) + 1):
        if not all(table.fits(number, all_waited=False) for table in samples):
            continue
        if all(table.fits(number, all_waited=True) for table in tables):
            return number
        if all(table.fits(number, all_waited=False) for table in tables):
            skipping = number
    return skipping


def number_waits(uses: Uses, number: int, late: int, until: float) -> None:
    """Give every wait that ended before `until` its use."""
    table = _Table.of(uses, late, until)
    waits = [wait for wait in uses.waits if wait.exit.cycles + late < until]
    for place, use in zip(table.order.tolist(), table.uses(number).tolist(), strict=True):
        waits[place].use = max(use, GRANTED)
