# SPDX-License-Identifier: Apache-2.0
"""A warp's time by state as disjoint spans, within a window."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from autostamp.analysis.spans import Span, clip, length, subtract, union
from autostamp.model.timeline import Slice, State, WarpTimeline


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


def states_of(warp: WarpTimeline, window: Span) -> StateSpans:
    """The states of one warp in a window of cycles."""
    first, last = max(warp.start, window[0]), min(warp.end, window[1])
    bounds = (first, max(first, last))
    inside = [part for part in warp.slices if part.start < bounds[1] and part.end > bounds[0]]
    stalled = spans_in(State.STALL, inside, bounds)
    passed = subtract(spans_in(State.PASS, inside, bounds), stalled)
    waiting = union([*stalled, *passed])
    return StateSpans(bounds, stalled, passed, subtract(spans_in(State.ACTIVE, inside, bounds), waiting))


def spans_in(state: State, slices: Iterable[Slice], window: Span) -> list[Span]:
    """Union of the slices of one state, clipped to a window."""
    return clip(union((part.start, part.end) for part in slices if part.state is state), window)
