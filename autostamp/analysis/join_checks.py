# SPDX-License-Identifier: Apache-2.0
"""Whether two replays of a kernel are the same schedule, as far as what both recorded can say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from autostamp.analysis.join_lanes import END, START, Kind, Mark, Track, anchors_of
from autostamp.model.manifest import EventKind, Instance
from autostamp.model.replay import Refusal

Launches: TypeAlias = Sequence[Mapping[int, Track]]
"""The tracks of one set's launches by warp."""

GapKind: TypeAlias = tuple[int, tuple[Kind, Kind]]
"""A warp, and what records a gap lies between, whichever iteration."""

ENOUGH: Final = 48
"""Samples of a difference from which its largest is taken for what can come. They are not independent: one launch gives many."""

LAUNCHES: Final = 3
"""Launches of one set from which noise can be told at all."""

STAMPS: Final = 50
"""Cycles of a gap that say nothing of the schedule: about 25 lie between an instruction and the stamp beside it
(docs/adr/0007-cuda-stamp-form.md), at each end, and they are others where other stamps stand near."""


class Agreement(NamedTuple):
    """What the anchors of one set say against the reference, in cycles.

    By warp and kind of gap: the shift of its median, and the 99th percentile of the difference of one gap between two launches of
    one set.
    """

    shifts: Mapping[GapKind, int]
    largest: Mapping[GapKind, int]
    noise: int
    refusal: Refusal | None = None

    @property
    def shift(self) -> int:
        """The largest shift of any kind of gap."""
        return max((abs(value) for value in self.shifts.values()), default=0)


class Tolerance(NamedTuple):
    """By what share of a gap two sets may differ: `allowance` is what the bar lets a set cost, `measured` by what share the whole
    launch was measured to be longer with the other set than with the reference.
    """

    allowance: float
    measured: float = 0.0

    def excess(self, shift: float, median: float) -> float:
        """What of a gap's shift neither of them explains: a launch that takes a hundredth less has gaps up to that shorter. Of
        what was measured no more counts than the bar allows.
        """
        expected = max(-self.allowance, min(self.measured, self.allowance)) * median
        beyond = max(shift - max(expected, 0.0), min(expected, 0.0) - shift, 0.0)
        return beyond - self.allowance * abs(median)


def own_faults(number: int, launches: Launches, lost: int, instances: Mapping[int, Instance]) -> Refusal | None:
    """Why a set cannot be joined to any other, whatever that is."""
    if not launches or not any(launches[0].values()):
        return Refusal(number, "AS8123", "it recorded nothing")
    if lost:
        return Refusal(number, "AS8123", f"{lost} records were lost: give a larger --capacity")
    if len(launches) < LAUNCHES:
        detail = f"{len(launches)} launches were recorded, and what varies from run to run shows in {LAUNCHES} or more"
        return Refusal(number, "AS8124", detail)
    for launch in launches[1:]:
        found = _other_counts(launches[0], launch, instances)
        if found:
            return Refusal(number, "AS8122", f"from one of its launches to another, {found}")
    return None


def same_counts(number: int, reference: Launches, other: Launches, instances: Mapping[int, Instance]) -> Refusal | None:
    """AS8122 when a site that both recorded was reached another number of times."""
    found = _other_counts(reference[0], other[0], instances)
    return Refusal(number, "AS8122", f"against the reference, {found}") if found else None


def agreement(
    number: int, reference: Launches, other: Launches, tolerance: Tolerance, instances: Mapping[int, Instance]
) -> Agreement:
    """Compare each kind of gap between anchors, and each warp's phase against the others.

    A median gap may differ by STAMPS, by `tolerance` (shares of it: what a set may cost, and what the two were measured to differ
    by) and by the noise: the 95th percentile of the difference of one gap between two launches of one set. Where there are fewer
    than ENOUGH of those, twice that of the noisiest kind of gap.

    It may also differ by what the warp waits less, or more, in the same iterations: time passes from work to waits and back from
    one run of a build to the next, and few launches do not show it. All of the warp's time together may not. From its entry and
    to its end a warp shares the GPU with the begin and the end of a grid, once a launch: that time is only part of the whole.
    """
    gaps = _gaps(reference, other)
    shifts = {(gap.warp, gap.kind): round(gap.shift) for gap in gaps}
    largest = {(gap.warp, gap.kind): round(gap.largest) for gap in gaps}
    noises = [gap.noise for gap in gaps if gap.is_known]
    noise = round(float(np.median(noises))) if noises else 0
    for gap in (*(each for each in gaps if not each.is_end), *_whole(reference, other)):
        # What happens once in a launch varies like the rest of the kernel, and a few launches do not show by how much.
        own = gap.noise if gap.is_known else 2 * max([(2 if gap.occurrences else 1) * gap.noise, *noises])
        if tolerance.excess(gap.shift, gap.median) > own + STAMPS + _passed(gap, gaps):
            names = " to ".join(_name(each, instances) for each in gap.kind)
            detail = (
                f"in warp {gap.warp} the time from {names} is {gap.median + gap.shift:,.0f} cycles, {gap.median:,.0f} in the "
                f"reference; two launches of one set differ by {own:,.0f}"
            )
            return Agreement(shifts, largest, noise, Refusal(number, "AS8121", detail))
    return Agreement(shifts, largest, noise, _phases(number, reference, other, tolerance, gaps))


class _Gap(NamedTuple):
    """One kind of gap of one warp: its median in the reference, what the other set adds to that, and the noise of one gap."""

    warp: int
    kind: tuple[Kind, Kind]
    median: float
    shift: float
    noise: float
    is_known: bool
    largest: float
    occurrences: int = 0

    @property
    def is_end(self) -> bool:
        """Whether it begins at the lane's entry or ends at its release."""
        return START in {each.instance for each in self.kind} or END in {each.instance for each in self.kind}

    @property
    def is_wait(self) -> bool:
        """Whether it lies between the two records of one wait."""
        before, after = self.kind
        return before.instance == after.instance and before.kind is EventKind.ENTER and after.kind is EventKind.EXIT


def _passed(gap: _Gap, gaps: Sequence[_Gap]) -> float:
    """What the warp's waits give to this gap, or take from it, an occurrence; a wait also what any other gap does."""
    others = [
        each for each in gaps if each.warp == gap.warp and each.kind != gap.kind and (gap.is_wait or each.is_wait)
    ]
    opposite = [each for each in others if each.shift * gap.shift < 0]
    return sum(abs(each.shift) * each.occurrences for each in opposite) / gap.occurrences if gap.occurrences else 0.0


def _whole(reference: Launches, other: Launches) -> list[_Gap]:
    """For each warp all the time between its first and last anchor (its `occurrences` are 0). Nothing is passed to it or from
    it, and what varies within adds up to little.
    """
    found = []
    for warp, marks in _common(reference, other).items():
        if len(marks) > 1:
            ends = (marks[0], marks[-1])
            first, second = (np.diff(_times(launches, warp, ends), axis=1) for launches in (reference, other))
            found.append(_Gap(warp, (Kind(*ends[0][:2]), Kind(*ends[1][:2])), *_difference(first, second)))
    return found


def _gaps(reference: Launches, other: Launches) -> list[_Gap]:
    found = []
    for warp, marks in _common(reference, other).items():
        if len(marks) < 2:
            continue
        first, second = (np.diff(_times(launches, warp, marks), axis=1) for launches in (reference, other))
        by_kind: dict[tuple[Kind, Kind], list[int]] = {}
        for at, (before, after) in enumerate(pairwise(marks)):
            by_kind.setdefault((Kind(*before[:2]), Kind(*after[:2])), []).append(at)
        found += [_Gap(warp, kind, *_difference(first[:, at], second[:, at]), len(at)) for kind, at in by_kind.items()]
    return found


def _phases(
    number: int, reference: Launches, other: Launches, tolerance: Tolerance, gaps: Sequence[_Gap]
) -> Refusal | None:
    """AS8121 when a warp stands otherwise to the others than in the reference, iteration by iteration. One that waits less, or
    more, may come by as much earlier or later.
    """
    chains = {}
    for warp, marks in _common(reference, other).items():
        kinds = Counter(Kind(*mark[:2]) for mark in marks if mark.instance > 0)
        if kinds:
            kind = max(kinds, key=lambda each: (kinds[each], -each.instance))
            chains[warp] = [mark for mark in marks if Kind(*mark[:2]) == kind]
    if not chains:
        return None
    base = max(chains, key=lambda warp: (len(chains[warp]), -warp))
    for warp, chain in chains.items():
        if warp == base or len(chain) != len(chains[base]) or len(chain) < 3:
            continue
        first, second = (
            _times(launches, warp, chain) - _times(launches, base, chains[base]) for launches in (reference, other)
        )
        period = float(np.median(np.diff(_times(reference, base, chains[base]), axis=1)))
        phase, shift, noise, is_known, _ = _difference(first, second)
        waits = max((abs(gap.shift) for gap in gaps if gap.warp in (warp, base) and gap.is_wait), default=0.0)
        if is_known and tolerance.excess(shift, max(period, abs(phase))) > noise + STAMPS + waits:
            detail = (
                f"warp {warp} comes {phase + shift:,.0f} cycles after warp {base}, {phase:,.0f} in the reference; "
                f"two launches of one set differ by {noise:,.0f}"
            )
            return Refusal(number, "AS8121", detail)
    return None


def _difference(first: NDArray[np.int64], second: NDArray[np.int64]) -> tuple[float, float, float, bool, float]:
    """Median of the first, shift from it to the second, noise, whether it rests on enough differences, and their 99th percentile.

    Rows are launches, columns iterations. The noise is the 95th percentile of the difference between two launches of one set.
    """
    apart = np.concatenate([np.abs(rows - np.roll(rows, 1, axis=0)).ravel() for rows in (first, second)])
    shift = float(np.median(np.median(second, axis=0) - np.median(first, axis=0)))
    return (
        float(np.median(first)),
        shift,
        float(np.percentile(apart, 95)),
        apart.size >= ENOUGH,
        float(np.percentile(apart, 99)),
    )


def _common(reference: Launches, other: Launches) -> dict[int, tuple[Mark, ...]]:
    """By warp, the marks that are anchors in every pair of launches."""
    found: dict[int, tuple[Mark, ...]] = {}
    for warp, track in other[0].items():
        anchors = anchors_of(track, reference[0][warp]).marks
        everywhere = set.intersection(*(set(launch[warp].marks) for launch in (*reference, *other)))
        found[warp] = tuple(mark for mark in anchors if mark in everywhere)
    return found


def _times(launches: Launches, warp: int, marks: Sequence[Mark]) -> NDArray[np.int64]:
    rows = []
    for launch in launches:
        times = dict(zip(launch[warp].marks, launch[warp].times, strict=True))
        rows.append([times[mark] for mark in marks])
    return np.array(rows, np.int64)


def _other_counts(first: Mapping[int, Track], second: Mapping[int, Track], names: Mapping[int, Instance]) -> str:
    """What was reached another number of times, in words; empty when nothing was."""
    if first.keys() != second.keys():
        return f"other warps ran: {_listed(first)} and {_listed(second)}"
    for warp, track in first.items():
        counts, others = track.counts, second[warp].counts
        for kind in counts.keys() & others.keys():
            if counts[kind] != others[kind]:
                return f"warp {warp} came to {_name(kind, names)} {counts[kind]} times and {others[kind]} times"
    return ""


def _listed(warps: Iterable[int]) -> str:
    return ",".join(str(warp) for warp in sorted(warps)) or "none"


def _name(kind: Kind, instances: Mapping[int, Instance]) -> str:
    if kind.instance not in instances:
        return "its entry" if kind.instance == -1 else "its end"
    return f"the {kind.kind} of site {instances[kind.instance].site} (instance {kind.instance})"
