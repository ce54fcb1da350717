# SPDX-License-Identifier: Apache-2.0
"""Phases of mbarriers numbered by counting arrivals: how many complete a use, and which use each wait was for.

Every use takes the same number of arrivals. A wait is for the last use that was complete when it ended: an mbarrier's next
phase cannot complete before all who waited for this one have left. The first to leave a use leaves before anyone arrives for
the next, so at that moment the arrivals are a whole number of uses; and no warp waits twice for one use. The number is the
least that fits so that no use went unwaited which others follow. Order of appearance decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import product
from math import inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from autostamp.analysis.uses import Uses

MOST: Final = 256
"""Records of arrivals on one use: 32 warps, each with up to 8."""

GRANTED: Final = -1
"""The use of a wait that a fresh barrier lets pass."""

FREE: Final = frozenset({"empty", "mbarrier"})
"""Sides on which a wait may be for the phase before the first."""

_SAMPLE: Final = 64
"""Waits of a stage that a number is tried on before all are."""

_Ints = NDArray[np.int64]


class _Rest(IntEnum):
    """Which arrivals beyond the last complete use may have been made when the first who waited for it left."""

    NONE = 0
    LATE = 1
    """Those stamped within `late` cycles after."""
    ANY = 2
    """Any: some that complete the use are of no record here (another CTA's)."""


@dataclass(frozen=True, slots=True)
class _Table:
    """Waits of one stage by warp, each warp's in order of time, with the arrivals made by the exit: at least (stamped before
    it) and at most (stamped within `late` cycles after). `own` is the index of the wait's own arrival, -1 without one; `order`
    the wait's place among all.
    """

    order: _Ints
    warps: _Ints
    exits: _Ints
    least: _Ints
    most: _Ints
    own: _Ints

    @classmethod
    def of(cls, uses: Uses, late: int, until: float) -> _Table:
        times = np.array([arrival.by(late) for arrival in uses.arrivals], np.int64)
        waits = uses.waits if until == inf else [wait for wait in uses.waits if wait.exit.cycles + late < until]
        exits = np.array([wait.exit.cycles for wait in waits], np.int64)
        warps = np.array([wait.exit.warp for wait in waits], np.int64)
        own = np.full(len(waits), -1, np.int64)
        if any(wait.own for wait in waits):
            index = {id(arrival): place for place, arrival in enumerate(uses.arrivals)}
            own[:] = [index[id(wait.own)] if wait.own else -1 for wait in waits]
        least, most = np.searchsorted(times, exits, "left"), np.searchsorted(times, exits + late, "right")
        return cls(np.arange(len(waits)), warps, exits, least, most, own)._at(np.lexsort((exits, warps)))

    def _at(self, places: _Ints) -> _Table:
        columns = (self.order, self.warps, self.exits, self.least, self.most, self.own)
        return _Table(*(column[places] for column in columns))

    def sample(self) -> _Table:
        """The waits that ended first."""
        return self._at(np.sort(np.argsort(self.exits, kind="stable")[:_SAMPLE]))

    def uses(self, number: int) -> _Ints:
        """The use of each wait when `number` arrivals complete one, -1: none was complete."""
        found = np.where(self.own >= 0, self.own, self.most - number) // number
        if len(found) > 1:
            # The next use's arrival may be stamped within `late` cycles too: then a warp's next wait has the same number.
            twice = (found[:-1] == found[1:]) & (self.warps[:-1] == self.warps[1:])
            found = found - (np.append(twice, False) & (self.least // number - 1 < found) & (self.own < 0))
        return np.asarray(found, np.int64)

    def fits(self, number: int, *, is_free: bool, rest: _Rest) -> bool:
        """No warp waits twice for one use, none leaves before its use is complete; the first leaves before the next begins."""
        found = self.uses(number)
        complete = (found + 1) * number
        if np.any((found[:-1] >= found[1:]) & (self.warps[:-1] == self.warps[1:])) or np.any(complete > self.most):
            return False
        if not is_free and np.any(found < 0):
            return False
        if rest is _Rest.ANY:
            return True
        arrived = self.most if rest is _Rest.NONE else self.least
        # Whoever is granted the phase before the first leaves before any arrival: those come after it has filled its stage.
        return not np.any((arrived > complete)[self._first_exits(found)]) and not np.any((found < 0) & (self.least > 0))

    def _first_exits(self, found: _Ints) -> _Ints:
        places = np.lexsort((self.exits, found))
        return places[np.flatnonzero(np.diff(found[places], prepend=GRANTED - 1))]

    def shows_uses(self, first_loss: float) -> bool:
        """Someone waited for an arrival, and no wait was lost by then."""
        return bool(np.any((self.most > 0) & (self.exits < first_loss)))

    def covers(self, number: int, first_loss: float) -> bool:
        """Every use was waited for, up to the last that someone waited for before records were lost."""
        waited = np.unique(self.uses(number)[self.exits < first_loss])
        waited = waited[waited >= 0]
        return bool(len(waited)) and len(waited) == waited[-1] + 1


def arrivals_per_use(
    ring: Sequence[Uses], late: int, until: float, first_loss: float = inf, *, is_whole: bool = False
) -> int:
    """How many arrivals complete a use, on every stage of one side of a ring; 0: no number fits the waits that ended by `until`.

    `first_loss`: from here on waits may be missing. Where uses went unwaited (a skipped tile), the greatest number that no
    wait contradicts; with `is_whole`, none.
    """
    tables = [(_Table.of(uses, late, until), uses.side in FREE) for uses in ring]
    tables = [(table, is_free) for table, is_free in tables if len(table.order)]
    # A consumer's wait that nobody arrived for is granted only if nothing else can be (the first of an order of groups).
    for may_grant, rest in product((False, True), _Rest):
        found, is_covered = _least([(table, is_free or may_grant) for table, is_free in tables], rest, first_loss)
        if found and (is_covered or not is_whole):
            return found
    return 0


def _least(tables: Sequence[tuple[_Table, bool]], rest: _Rest, first_loss: float) -> tuple[int, bool]:
    """A number, and whether every use was waited for with it."""
    samples = [(table.sample(), is_free) for table, is_free in tables]
    shown = [table for table, _ in tables if table.shows_uses(first_loss)]
    most = max((int(table.most.max()) for table, _ in tables), default=1)
    unwaited = 0
    for number in range(1, max(1, min(MOST, most)) + 1):
        for some in (samples, tables):
            if not all(table.fits(number, is_free=is_free, rest=rest) for table, is_free in some):
                break
        else:
            if shown and all(table.covers(number, first_loss) for table in shown):
                return number, True
            unwaited = number
    return unwaited, False


def number_waits(uses: Uses, number: int, late: int, until: float) -> None:
    """Give every wait that ended before `until` its use."""
    table = _Table.of(uses, late, until)
    waits = [wait for wait in uses.waits if wait.exit.cycles + late < until]
    for place, use in zip(table.order.tolist(), table.uses(number).tolist(), strict=True):
        waits[place].use = max(use, GRANTED)
