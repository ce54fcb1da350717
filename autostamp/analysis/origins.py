# SPDX-License-Identifier: Apache-2.0
"""What arrows of a joined trace rest on: which replays recorded their ends, and by how much those may be off.

Arrows are found as in any trace, by barrier and count. What hangs on clocks is who arrived last, and whether the arrival came
before the wait ended: where the errors of the ends are larger than the time between them, the arrow says that it may be another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from autostamp.analysis.dependencies import Dependencies, Late
from autostamp.analysis.latencies import Latencies
from autostamp.analysis.uses import Uses
from autostamp.model.flow import Arrow, End
from autostamp.model.trace import Trace


@dataclass(frozen=True, slots=True)
class Origins:
    """(set, error) of every record by its end, and the median error of those that were placed."""

    ends: Mapping[End, tuple[int, int]]
    typical: int

    @classmethod
    def of(cls, trace: Trace) -> Origins | None:
        """None for a trace that was recorded as it is."""
        if not any(lane.replays for lane in trace.lanes):
            return None
        ends = {
            End(lane.warp, event.instance, event.visit, event.cycles): (replay, error)
            for lane in trace.lanes
            for event, replay, error in zip(lane.events, lane.replays, lane.errors, strict=True)
        }
        placed = [error for _, error in ends.values() if error]
        return cls(ends, round(float(np.median(placed))) if placed else 0)

    def late(self, latencies: Latencies) -> Late:
        """By how much an arrival may come later than the wait that it ended: more than in any trace by what a place is typically
        off among the records of the barrier. More would let arrivals of the next use in, and so count wrongly; records of the
        reference are right against each other.
        """

        def late_of(uses: Uses) -> int:
            arrivals = (end for arrival in uses.arrivals for end in arrival.ends)
            errors = [self._end(end)[1] for end in (*arrivals, *(wait.exit for wait in uses.waits))]
            placed = [error for error in errors if error]
            return latencies.late + (round(float(np.median(placed))) if placed else 0)

        return late_of

    def marked(self, found: Dependencies, late: int) -> Dependencies:
        """The arrows with their errors. One that contradicts its ends' order by more than these is dropped, and noted; `late` is
        by how much an arrival's stamp may follow the wait's exit in any trace.
        """
        arrows = tuple(self._marked(arrow) for arrow in found.arrows)
        kept = replace(found, arrows=arrows, notes=()).without(
            lambda each: each.signal.cycles > each.wait.cycles + late + (each.error + self.typical if each.error else 0)
        )
        uncertain = sum(each.is_uncertain for each in kept.arrows)
        between = sum(each.is_between for each in kept.arrows)
        notes = list(found.notes)
        if between:
            notes.append(
                f"{between:,} of {len(kept.arrows):,} arrows join records of two replays; of all, {uncertain:,} may start at "
                "another arrival: the errors of their ends are larger than what decides it"
            )
        return replace(kept, notes=(*notes, *kept.notes))

    def _marked(self, arrow: Arrow) -> Arrow:
        first, last = self._end(arrow.signal), self._end(arrow.wait)
        others = [(end, self._end(end)) for end in arrow.others]
        # Records of the reference are right against each other, whatever their number.
        is_late = arrow.signal.cycles > arrow.wait.cycles
        is_close = any(arrow.signal.cycles - end.cycles < first[1] + error for end, (_, error) in others)
        is_guess = arrow.is_inferred and first[1] + last[1] > 0
        return arrow._replace(
            error=first[1] + last[1],
            is_between=first[0] != last[0],
            is_uncertain=(is_late and first[1] + last[1] > 0) or is_close or is_guess,
        )

    def _end(self, end: End) -> tuple[int, int]:
        return self.ends.get(end, (0, 0))
