# SPDX-License-Identifier: Apache-2.0
"""Generations of barriers at which warps meet: named barriers, the CTA's and the cluster's.

A call that waits on the hardware's barrier of a CTA arrives on it as well, so a wait is for the generation of its own arrival.
Nobody leaves a generation before it is complete, so it holds every arrival up to the first exit. How many that are is an
operand of the call: it may differ from one call to the next, but not between generations that one call waits for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from autostamp.analysis.uses import UNKNOWN, Arrival, Uses, Waiting


def number_generations(uses: Uses, late: int, until: float) -> list[list[Arrival]] | None:
    """The arrivals of each generation, with the waits given theirs; None where the records contradict each other.

    Generations whose first exit is at `until` or later are left out.
    """
    generations = _by_first_exit(uses, late, until)
    if _is_steady(uses.waits, generations):
        return generations
    # One arrival at a time would contradict nothing, whatever the records say.
    number = max(Counter(map(len, generations)).items(), key=lambda item: (item[1], item[0]))[0]
    counted = _by_number(uses, number, late, until) if number > 1 else None
    if counted is not None:
        return counted
    for wait in uses.waits:
        wait.use = UNKNOWN
    return None


def number_by_warp(uses: Uses, late: int, until: float) -> list[list[Arrival]] | None:
    """As `number_generations`, for a barrier that every warp arrives on once a generation (the cluster's)."""
    by_warp: dict[int, list[Arrival]] = {}
    for arrival in uses.arrivals:
        by_warp.setdefault(arrival.ends[0].warp, []).append(arrival)
    count = max((len(arrivals) for arrivals in by_warp.values()), default=0)
    generations = [
        [arrivals[place] for arrivals in by_warp.values() if place < len(arrivals)] for place in range(count)
    ]
    waited: dict[int, int] = {}
    for wait in uses.waits:
        use = waited.get(wait.exit.warp, 0)
        waited[wait.exit.warp] = use + 1
        if wait.exit.cycles + late >= until:
            continue
        if use >= count or any(arrival.ends[0].cycles > wait.exit.cycles + late for arrival in generations[use]):
            return None
        wait.use = use
    return generations


def _by_first_exit(uses: Uses, late: int, until: float) -> list[list[Arrival]]:
    generations: list[list[Arrival]] = []
    left: list[Arrival] = []
    place = 0
    waits_of = {id(wait.own): wait for wait in uses.waits}
    for first in uses.waits:
        if first.use >= 0:
            continue
        exit_ = first.exit.cycles
        if exit_ + late >= until:
            break
        while place < len(uses.arrivals) and uses.arrivals[place].ends[0].cycles <= exit_ + late:
            left.append(uses.arrivals[place])
            place += 1
        generation, left = _split(left, first)
        for arrival in generation:
            if id(arrival) in waits_of:
                waits_of[id(arrival)].use = len(generations)
        generations.append(generation)
    return generations


def _split(arrivals: Iterable[Arrival], first: Waiting) -> tuple[list[Arrival], list[Arrival]]:
    """Arrivals that a generation with this first exit holds, and those that are for a later one."""
    taken: list[Arrival] = []
    left: list[Arrival] = []
    warps: set[int] = set()
    exit_ = first.exit
    has_left = False
    for arrival in arrivals:
        end = arrival.ends[0]
        # A signal's stamp may be late; the warp that left first arrives anew only for a later generation.
        is_in_time = end.cycles <= exit_.cycles or (not arrival.is_entry and end.warp not in warps)
        if is_in_time and not (has_left and end.warp == exit_.warp):
            taken.append(arrival)
            warps.add(end.warp)
            has_left = has_left or arrival is first.own
        else:
            left.append(arrival)
    return taken, left


def _is_steady(waits: Sequence[Waiting], generations: Sequence[Sequence[Arrival]]) -> bool:
    """True when each call always waited for as many arrivals."""
    sizes: dict[int, int] = {}
    return all(
        sizes.setdefault(wait.exit.instance, len(generations[wait.use])) == len(generations[wait.use])
        for wait in waits
        if wait.use >= 0
    )


def _by_number(uses: Uses, number: int, late: int, until: float) -> list[list[Arrival]] | None:
    """Generations of `number` arrivals each, or None where a wait would have ended before its own was complete."""
    arrivals = uses.arrivals
    generations = [arrivals[place : place + number] for place in range(0, len(arrivals) - number + 1, number)]
    place_of = {id(arrival): place for place, arrival in enumerate(arrivals)}
    for wait in uses.waits:
        if wait.exit.cycles + late >= until:
            continue
        use = place_of[id(wait.own)] // number
        if use >= len(generations) or generations[use][-1].ends[0].cycles > wait.exit.cycles + late:
            return None
        wait.use = use
    return generations
