# SPDX-License-Identifier: Apache-2.0
"""A warp's time by state as disjoint spans, within a window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from autostamp.analysis.spans import Span, clip, length, subtract, union
from autostamp.model.timeline import State, WarpTimeline


@dataclass(frozen=True, slots=True)
class StateSpans:
    """Spans in start order, no two of which overlap. What none of them covers of `bounds` is untracked.

    Where slices of several states overlap, a stall counts before a pass, and a pass before work: a warp that waits works on
    nothing. `bounds` is the part of the window in which the warp ran, empty (start = end) where it did not.
    """

    bounds: Span
    stalled: list[Span]
    passed: list[Span]
    active: list[Span]

    @property
    def untracked(self) -> int:
        """Cycles of `bounds` in no state."""
        return self.bounds[1] - self.bounds[0] - length(self.stalled) - length(self.passed) - length(self.active)


WindowStates: TypeAlias = dict[int, StateSpans]
"""What was worked out already of one window, by warp."""


def states_of(warp: WarpTimeline, window: Span, known: WindowStates | None = None) -> StateSpans:
    """The states of one warp in a window of cycles. `known` are those of the same window: looked up there, and kept there."""
    if known is None:
        return _states_of(warp, window)
    if warp.warp not in known:
        known[warp.warp] = _states_of(warp, window)
    return known[warp.warp]


def _states_of(warp: WarpTimeline, window: Span) -> StateSpans:
    first, last = max(warp.start, window[0]), min(warp.end, window[1])
    bounds = (first, max(first, last))
    begin, end = bounds
    spans: dict[State, list[Span]] = {state: [] for state in State}
    for part in warp.slices:
        if part.start < end and part.end > begin:
            spans[part.state].append((part.start, part.end))
    stalled = clip(union(spans[State.STALL]), bounds)
    passed = subtract(clip(union(spans[State.PASS]), bounds), stalled)
    waiting = union([*stalled, *passed]) if passed else stalled
    return StateSpans(bounds, stalled, passed, subtract(clip(union(spans[State.ACTIVE]), bounds), waiting))
