# SPDX-License-Identifier: Apache-2.0
"""Replay sets as they are run, and what their times say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from autostamp.model.placement import Form, Placement, ReplaySet
from autostamp.model.replay import SetTimes
from autostamp.model.trace import Trace

CTA_TIME: Final = "CTA time, entry to last release, in SM cycles"
"""The method where the program prints no time of its own: the clock is read at both ends of the clean kernel, too."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A set to be run. `sites` include the anchors."""

    number: int
    sites: tuple[tuple[str, Form], ...]
    anchors: tuple[str, ...]

    @classmethod
    def of(cls, chosen: ReplaySet) -> Trial:
        """One set of a placement."""
        return cls(chosen.number, chosen.sites, chosen.anchors)

    @property
    def own(self) -> tuple[tuple[str, Form], ...]:
        """Its sites that are no anchors."""
        return tuple(site for site in self.sites if site[0] not in self.anchors)


def initial(placement: Placement, *, with_untried: bool) -> list[Trial]:
    """The sets of a placement, with the one of `untried` where that is asked for, and the one of all their sites at the end.

    Most kernels that stamps cost anything do not bear all of them at once, but those that do need no second replay.
    """
    trials = [Trial.of(each) for each in placement.sets]
    left = untried(placement) if with_untried else None
    if left is not None:
        trials.append(left)
    whole = everything(trials)
    return [*trials, whole] if whole is not None else trials


def everything(trials: Sequence[Trial]) -> Trial | None:
    """All sites of several sets in one, each with all its stamps, and the first one's anchors; None where one is that."""
    if not trials:
        return None
    keys = dict.fromkeys(key for each in trials for key, _ in each.sites)
    sites = tuple((key, Form.BOTH) for key in keys)
    if any(set(each.sites) == set(sites) for each in trials):
        return None
    return Trial(1 + max(each.number for each in trials), sites, trials[0].anchors)


def spans_of(traces: Sequence[Trace]) -> list[float]:
    """Cycles of every launch of a CTA: from its first warp's entry to its last warp's release."""
    found = []
    for trace in traces:
        lanes = [lane for lane in trace.lanes if lane.exit_cycles >= 0]
        if lanes:
            found.append(float(max(lane.exit_cycles for lane in lanes) - min(lane.entry_cycles for lane in lanes)))
    return found


def times_of(clean: Sequence[Sequence[float]], stamped: Sequence[Sequence[float]], method: str) -> SetTimes:
    """Times of a set from runs in the order A/B/B/A: `clean` has those of the runs before and after, `stamped` the two between.

    The ratio is median over median. Its spread is that of each stamped time over the clean median, the control that of each
    clean one. All is zero where either has no time.
    """
    before = np.array([time for times in clean for time in times], float)
    after = np.array([time for times in stamped for time in times], float)
    if not before.size or not after.size or not np.median(before):
        return SetTimes(method=method)
    base = float(np.median(before))
    p10, p90 = (float(value) for value in np.percentile(after / base, (10, 90)))
    low, high = (float(value) for value in np.percentile(before / base, (10, 90)))
    rounds = min(before.size, after.size)
    return SetTimes(rounds, base, float(np.median(after)), float(np.median(after)) / base, p10, p90, high - low, method)


def noise_of(runs: Sequence[Sequence[float]]) -> float:
    """By how much the medians of runs differ: from the least to the largest, as a share of the median. 0 for one run, or none."""
    medians = [float(np.median(np.array(times, float))) for times in runs if times]
    return (max(medians) - min(medians)) / float(np.median(medians)) if medians and min(medians) > 0 else 0.0


def is_within(times: SetTimes, bar: float) -> bool:
    """Whether a set may be kept. One that was not timed is, and the report says so."""
    return not times.rounds or times.ratio <= bar


def untried(placement: Placement) -> Trial | None:
    """A set of all stamps that the placement leaves out, with the anchors of its first set; None where there is none.

    A placement leaves out what changes the compiled schedule, which need not change the time. Split as often as it takes, this
    set shows which of them do.
    """
    if not placement.sets:
        return None
    first = placement.sets[0]
    anchors = tuple(site for site in first.sites if site[0] in first.anchors)
    number = 1 + max(each.number for each in placement.sets)
    placed = {site for each in placement.sets for site in each.sites}
    halved = {Form.ENTER: Form.EXIT, Form.EXIT: Form.ENTER}
    left = [(key, Form.BOTH) for key in placement.uncovered]
    left += [(key, halved[form]) for key, form in sorted(placed) if form in halved and (key, Form.BOTH) not in placed]
    own = tuple(site for site in left if site[0] not in first.anchors and site not in placed)
    return Trial(number, (*anchors, *own), first.anchors) if own else None
