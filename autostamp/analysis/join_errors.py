# SPDX-License-Identifier: Apache-2.0
"""By how much a joined record's place may be wrong: how wrong it comes out when launches of one set are joined to each other.

There the right place is known, since every launch recorded it. What a gap's own length says of one record (`Placed.slack`)
comes on top of that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from autostamp.analysis.join_checks import ENOUGH, Launches
from autostamp.analysis.join_lanes import Guides, Kind, Mark, Track
from autostamp.analysis.join_map import blocks_of, place

MARGIN: Final = 1.5
"""What the 99th percentile of at least ENOUGH errors is multiplied by. Fewer say nothing, and the anchors around must do."""


GUIDED: Final = 9.0
"""Launches by which samples fall short for a warp that another guides: two warps drift against each other through a whole launch,
so that all records of a launch are nearly one sample. Errors are multiplied by 1 + GUIDED / launches."""


@dataclass(frozen=True, slots=True)
class Errors:
    """For each kind of record, over all warps: by how much a record was misplaced, by visit.

    `typical` are median and 95th percentile of all that a record was misplaced by.
    """

    misplaced: Mapping[Kind, tuple[tuple[int, int], ...]]
    typical: tuple[int, int]
    launches: int

    @property
    def drift(self) -> float:
        """What the error of a guided warp's record is multiplied by."""
        return 1 + GUIDED / self.launches

    def of(self, mark: Mark) -> float | None:
        """What a mark may be misplaced by, None where too little is known.

        It rests on all visits of its site but the first and the last: those stand alone, as fill and drain are unlike the rest.
        """
        samples = self.misplaced.get(Kind(mark.instance, mark.kind), ())
        ends = (0, samples[-1][0]) if samples else ()
        is_inside = mark.visit not in ends
        known = [error for visit, error in samples if (visit not in ends if is_inside else visit == mark.visit)]
        return MARGIN * float(np.percentile(known, 99)) if len(known) >= ENOUGH else None


def errors_of(launches: Launches, guides: Guides, wanted: Mapping[int, frozenset[Kind]]) -> Errors:
    """Join each launch of a set to the next one by its anchors alone, and compare with what that one recorded."""
    found: dict[Kind, list[tuple[int, int]]] = {}
    every: list[int] = []
    for launch, target in zip(launches, (*launches[1:], launches[0]), strict=True):
        for warp in launch:
            for mark, error in _misplaced(launch, target, warp, guides, wanted[warp]):
                found.setdefault(Kind(mark.instance, mark.kind), []).append((mark.visit, error))
                every.append(error)
    typical = (round(float(np.percentile(every, 50))), round(float(np.percentile(every, 95)))) if every else (0, 0)
    return Errors({key: tuple(sorted(samples)) for key, samples in found.items()}, typical, len(launches))


def _misplaced(
    launch: Mapping[int, Track], target: Mapping[int, Track], warp: int, guides: Guides, wanted: frozenset[Kind]
) -> Iterator[tuple[Mark, int]]:
    """Each wanted record of a warp with its error."""
    blocks = blocks_of(launch[warp], wanted)
    if not blocks:
        return
    common = guides.between(launch, target, warp, [(block.start, block.end) for block in blocks])
    truth = dict(zip(target[warp].marks, target[warp].times, strict=True))
    for each in place(blocks, common) if common.marks else ():
        for mark, time in zip(each.block.marks, (each.start, each.end), strict=False):
            if mark in truth:
                yield mark, abs(time - truth[mark])
