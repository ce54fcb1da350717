# SPDX-License-Identifier: Apache-2.0
"""Overlap: how much of the time that either of two was busy, both were."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from autostamp.analysis.spans import Span, clip, length, overlap, subtract, union
from autostamp.analysis.states import WindowStates, states_of
from autostamp.model.flow import Overlap, Steady
from autostamp.model.timeline import State, Timeline, WarpTimeline


@dataclass(frozen=True, slots=True)
class Selection:
    """Work to compare, under a name: of `warps` (empty: all), in holds that waits of `instances` opened (empty: all)."""

    name: str
    warps: frozenset[int] = frozenset()
    instances: frozenset[int] = frozenset()


def overlaps(timeline: Timeline, steady: Steady, known: WindowStates | None = None) -> tuple[Overlap, ...]:
    """Every pair of roles that were busy in the steady window, in the order of the timeline's roles.

    A role is busy while a warp of it is active. One with no active time is left out: what it did is not known.
    """
    busy = {
        total.role: spans
        for total in timeline.roles
        if (spans := busy_spans(timeline, steady, Selection(total.role, frozenset(total.warps)), known))
    }
    return tuple(_overlap(first, second, busy[first], busy[second]) for first, second in combinations(busy, 2))


def overlap_of(timeline: Timeline, steady: Steady, first: Selection, second: Selection) -> Overlap:
    """The overlap of two chosen kinds of work in the steady window, as of two warpgroups, or of loads of K and of V."""
    spans = (busy_spans(timeline, steady, chosen) for chosen in (first, second))
    return _overlap(first.name, second.name, *spans)


def busy_spans(
    timeline: Timeline, steady: Steady, selection: Selection, known: WindowStates | None = None
) -> list[Span]:
    """When any warp of the selection was active in the steady window, in start order. Its stalls and passes are left out."""
    window = (steady.start, steady.end)
    warps = [warp for warp in timeline.warps if not selection.warps or warp.warp in selection.warps]
    return union(span for warp in warps for span in _busy(warp, window, selection.instances, known))


def _busy(warp: WarpTimeline, window: Span, instances: frozenset[int], known: WindowStates | None) -> list[Span]:
    states = states_of(warp, window, known)
    if not instances:
        return states.active
    holds = (
        (part.start, part.end) for part in warp.slices if part.state is State.ACTIVE and part.instance in instances
    )
    return subtract(clip(union(holds), states.bounds), union([*states.stalled, *states.passed]))


def _overlap(first: str, second: str, ours: list[Span], theirs: list[Span]) -> Overlap:
    common = overlap(ours, theirs)
    return Overlap(first, second, common, length(ours) + length(theirs) - common)
