# SPDX-License-Identifier: Apache-2.0
"""Arrows from the arrival that completed a use of a barrier to the waits for that use.

Who belongs together follows from the barrier's identity in the records and from counting; time is only the check. Where lanes
dropped records, a wait whose use may hold one of them gets no arrow.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from autostamp.analysis import sequences
from autostamp.analysis.counting import arrivals_per_use, number_waits
from autostamp.analysis.in_order import number_in_order
from autostamp.analysis.latencies import Latencies
from autostamp.analysis.losses import Losses
from autostamp.analysis.meetings import number_by_warp, number_generations
from autostamp.analysis.nearest_uses import nearest
from autostamp.analysis.pairing import Found, Groups, Numbered, pair, pair_tail
from autostamp.analysis.uses import UNKNOWN, Gathered, Uses, gather
from autostamp.model.flow import Arrow
from autostamp.model.manifest import Instance
from autostamp.model.trace import Trace

Late = Callable[[Uses], int]
"""By how many cycles an arrival at a barrier may be stamped after the exit of the wait that it ended."""


@dataclass(frozen=True, slots=True)
class Dependencies:
    """All arrows, in the order of their waits' exits, and what is known of the waits without one, by (warp, instance, visit).

    `granted`: nobody had to arrive. `lost`: records that may have completed it were dropped. `own`: the waiting warp itself was
    the last to arrive. In none of them: no record of this CTA completed it.
    """

    arrows: tuple[Arrow, ...]
    granted: frozenset[tuple[int, int, int]]
    lost: frozenset[tuple[int, int, int]]
    own: frozenset[tuple[int, int, int]]
    notes: tuple[str, ...]

    def without(self, is_late: Callable[[Arrow], bool]) -> Dependencies:
        """All but the arrows that start too long after the wait's end to have ended it, which a note counts."""
        kept = tuple(each for each in self.arrows if not is_late(each))
        left = len(self.arrows) - len(kept)
        if not left:
            return self
        which = f"{left:,} arrows are left out: their arrivals" if left > 1 else "1 arrow is left out: its arrival"
        return replace(self, arrows=kept, notes=(*self.notes, f"{which} came after the wait's end"))


def is_enter(arrow: Arrow, instances: Mapping[int, Instance]) -> bool:
    """Whether an arrow starts where a warp began to wait: a call that waits on such a barrier arrives on it as well."""
    row = instances[arrow.signal.instance]
    return row.kind == "wait" and row.side == arrow.side


def find_dependencies(trace: Trace, latencies: Latencies, late_of: Late | None = None) -> Dependencies:
    """The dependencies between the warps of one CTA. `late_of` has other figures for `latencies.late`, by barrier."""
    late = late_of or (lambda _: latencies.late)
    gathered = gather(trace, latencies.late)
    numbered, notes = _Numbering(trace, gathered, late, latencies.late).all()
    found = Found()
    for one in numbered:
        pair(one, found, late(one.uses))
    for barrier, wait in gathered.tails:
        rows = [one for one in numbered if one.uses.key[:3] == ("stage", barrier, "empty")]
        pair_tail(rows, wait, found, max((late(one.uses) for one in rows), default=latencies.late))
    found.arrows.sort(key=lambda arrow: (arrow.wait.cycles, arrow.wait.warp))
    all_of = Dependencies(
        tuple(found.arrows), frozenset(found.granted), frozenset(found.lost), frozenset(found.own), notes
    )
    return all_of if late_of else all_of.without(lambda each: each.signal.cycles > each.wait.cycles + latencies.late)


_MOST_LATE: Final = 8
"""Times what stamps need: a warp may be kept from issuing between its arrival and the stamp behind. By 90 cycles where 50 are
usual, in one of ten launches of CUTLASS's pingpong on an H200.
"""


class _Numbering:
    """Numbers the uses of every barrier, and says where it had to guess.

    `late` is as in `find_dependencies`, `least` what it is where all records are exact. A numbering that needs no more than this
    is taken first: records that may be far off seldom are, and with as much time as that arrivals of the next use come in.
    """

    def __init__(self, trace: Trace, gathered: Gathered, late: Late, least: int) -> None:
        self._late = late
        self._least = least
        self._losses = Losses(trace)
        self._labels: Mapping[int, str] = {barrier.number: barrier.label for barrier in trace.kernel.barriers}
        self._sequences = {barrier.number for barrier in trace.kernel.barriers if barrier.type in sequences.TYPES}
        self._uses = gathered.uses
        self._notes: dict[str, None] = {}

    def all(self) -> tuple[list[Numbered], tuple[str, ...]]:
        rings: dict[tuple[int, str], list[Uses]] = {}
        numbered: list[Numbered] = []
        for uses in self._uses.values():
            if uses.barriers <= self._sequences and (turns := self._turns(uses)):
                numbered.append(turns)
            elif uses.key[0] in ("id", "declared"):
                numbered.append(self._meeting(uses))
            elif uses.key[3] < 0 and uses.depth > 1:
                numbered.append(self._by_order(uses, self._losses.until([uses])))
            else:
                rings.setdefault((min(uses.barriers), uses.key[2]), []).append(uses)
        for ring in rings.values():
            numbered += self._ring(ring)
        return numbered, tuple(self._notes)

    def _turns(self, uses: Uses) -> Numbered | None:
        """Of a barrier at which groups take turns. None where its stage is known and counting may do."""
        until = self._losses.until([uses])
        late = self._late(uses)
        for by in sorted({min(self._least, late), late}):
            turns = sequences.number_in_sequence(uses, by, until)
            if turns is not None:
                return Numbered(uses, Groups(listed=turns), until)
        if uses.key[3] >= 0:
            return None
        # Counted over all its stages and groups, a group would seem to let itself in.
        if uses.waits and uses.arrivals:
            self._note(uses, "no order of turns fits its waits, so no arrow ends there")
        return Numbered(uses, Groups(), until)

    def _meeting(self, uses: Uses) -> Numbered:
        until = self._losses.until([uses])
        number = number_by_warp if uses.key[2] == "cluster" else number_generations
        generations = number(uses, self._late(uses), until)
        if generations is None:
            # Without a cluster the arrival is no instruction; on a named barrier the exit's clock was read too early.
            self._note(uses, "waits ended before all had arrived whom they meet, so no arrow ends there")
        return Numbered(uses, Groups(listed=generations or ()), until)

    def _ring(self, ring: list[Uses]) -> Iterable[Numbered]:
        until = self._losses.until(ring)
        number = self._number([uses for uses in ring if uses.arrivals], until)
        for uses in ring:
            if not uses.arrivals:
                yield Numbered(uses, Groups(), until)
            # Two rings may go by one declaration: then each stage is counted alone.
            elif own := number or self._number([uses], until):
                yield Numbered(uses, Groups(uses.arrivals, own), until)
            else:
                yield self._by_order(uses, until)

    def _number(self, ring: Sequence[Uses], until: float) -> int:
        """Number the waits of a ring; how many arrivals complete a use, 0 where no number fits.

        First with no more time than stamps need, then by the places of records, and last with all that those may be off by.
        Records that may be far off can seem to leave uses without a wait.
        """
        late = max((self._late(uses) for uses in ring), default=self._least)
        least = min(self._least, late)
        number = self._counted(ring, least, until, is_whole=late > least)
        if number:
            return number
        if found := nearest(ring, max(late, _MOST_LATE * least), until - late, self._losses.first):
            for wait, use in chain.from_iterable(found.uses):
                wait.use = use
            return found.number
        for by in (least, late) if late > least else ():
            if number := self._counted(ring, by, until):
                return number
        return 0

    def _counted(self, ring: Sequence[Uses], late: int, until: float, *, is_whole: bool = False) -> int:
        number = arrivals_per_use(ring, late, until, self._losses.first, is_whole=is_whole)
        for uses in ring if number else ():
            number_waits(uses, number, min(late, self._late(uses)), until)
        return number

    def _by_order(self, uses: Uses, until: float) -> Numbered:
        groups = number_in_order(uses, self._late(uses), until) if uses.key[3] < 0 else None
        if groups is not None:
            return Numbered(uses, Groups(listed=groups), until)
        if uses.arrivals:
            self._note(uses, "no number of arrivals fits its waits: each is paired with the arrival before its end")
            uses.is_inferred = True
            times = [arrival.ends[0].cycles for arrival in uses.arrivals]
            for wait in uses.waits:
                wait.use = bisect_right(times, wait.exit.cycles + self._least) - 1
                if wait.use < 0 and uses.side == "full":
                    wait.use = UNKNOWN
        return Numbered(uses, Groups(uses.arrivals, 1), until)

    def _note(self, uses: Uses, text: str) -> None:
        label = self._labels.get(min(uses.barriers), "") or "a barrier without a name"
        self._notes[f"{label} ({uses.side}): {text}"] = None
