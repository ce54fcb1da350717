# SPDX-License-Identifier: Apache-2.0
"""Uses of a ring whose records name no stage, numbered over the whole ring by the order in which each warp comes by.

This rests on the source's declaration: what it gives is inferred.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from autostamp.analysis.counting import GRANTED
from autostamp.analysis.uses import Arrival, Uses, Waiting


def number_in_order(uses: Uses, late: int, until: float) -> list[list[Arrival]] | None:
    """The arrivals of each use, with the waits given theirs, by the first rule under which no wait ends before its use.

    Every arriving warp arrives for each use, or they take turns; every waiting warp waits for each use, or they take turns; and
    a fresh ring grants nothing, or one round.
    """
    waits = [wait for wait in uses.waits if wait.exit.cycles + late < until]
    for groups in _groupings(uses.arrivals):
        for numbered in _numberings(waits):
            for granted in (0, uses.depth or 1):
                if _fits(groups, numbered, granted, late):
                    for use, wait in numbered:
                        wait.use = max(use - granted, GRANTED)
                    return groups
    return None


def _groupings(arrivals: Sequence[Arrival]) -> Iterator[list[list[Arrival]]]:
    by_warp: dict[int, list[Arrival]] = {}
    for arrival in arrivals:
        by_warp.setdefault(arrival.ends[0].warp, []).append(arrival)
    yield [list(group) for group in zip(*by_warp.values(), strict=False)]
    yield [[arrival] for arrival in arrivals]


def _numberings(waits: Iterable[Waiting]) -> Iterator[list[tuple[int, Waiting]]]:
    ordered = sorted(waits, key=lambda wait: (wait.exit.cycles, wait.exit.warp))
    seen: dict[int, int] = {}
    by_warp = []
    for wait in ordered:
        use = seen.get(wait.exit.warp, 0)
        seen[wait.exit.warp] = use + 1
        by_warp.append((use, wait))
    yield by_warp
    yield list(enumerate(ordered))


def _fits(
    groups: Sequence[Sequence[Arrival]], numbered: Sequence[tuple[int, Waiting]], granted: int, late: int
) -> bool:
    complete = [max(arrival.ends[0].cycles for arrival in group) for group in groups]
    return all(
        use < granted or (use - granted < len(complete) and complete[use - granted] <= wait.exit.cycles + late)
        for use, wait in numbered
    )
