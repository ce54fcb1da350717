# SPDX-License-Identifier: Apache-2.0
"""The critical path of the steady window: what every cycle of it waited for, followed back from its last event.

In a warp, the path goes back over its work to the stall before. Where an arrival of another warp, made after that wait was
entered, ended the stall, the path goes on in that warp, for until then the waiter could not have gone on. An asynchronous
arrival is followed to its issue also from before the wait, if it surely held the wait up: to follow one that had landed would
lay most of the path on transfers that nothing waits for. Any other stall belongs to the warp itself.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar

from autostamp.analysis.slack import slack_of
from autostamp.analysis.spans import Span, union
from autostamp.analysis.states import WindowStates, states_of
from autostamp.analysis.transfers import Use, is_held_up, landed_by, landing
from autostamp.model.flow import Arrow, Cause, CriticalPath, Ending, PathKind, PathPart, Steady
from autostamp.model.manifest import Instance
from autostamp.model.timeline import Slice, State, Timeline, WarpTimeline
from autostamp.model.trace import Trace

_WORK: Final = (PathKind.ACTIVE, PathKind.UNTRACKED)

_Key: TypeAlias = tuple[int, int, int]
"""Warp, instance and visit of a wait."""

_Name = TypeVar("_Name", str, tuple[int, str])


def critical_path(
    trace: Trace,
    timeline: Timeline,
    arrows: Sequence[Arrow],
    causes: Iterable[Cause],
    steady: Steady | None,
    known: WindowStates | None = None,
) -> CriticalPath | None:
    """The path that ends where the steady window does, in the warp that the window is of. None without a steady state.

    Its parts lie in order of time without gaps and cover the window exactly. A pass is work: the warp waits for nobody. A part
    between an arrival and the exit that it allowed has the arriving warp and role, one of a stall the waiting warp's.
    """
    if steady is None or steady.end <= steady.start:
        return None
    instances = {row.number: row for row in trace.kernel.instances}
    landed = landed_by(arrows)
    known = {} if known is None else known
    walk = _Walk(timeline, instances, causes, landed, (steady.start, steady.end), known)
    parts = tuple(walk.parts(steady.warp))[::-1]
    span = steady.end - steady.start
    roles: dict[str, int] = {}
    barriers: dict[tuple[int, str], int] = {}
    for part in parts:
        cycles = part.end - part.start
        if part.kind in _WORK:
            roles[part.role] = roles.get(part.role, 0) + cycles
        else:
            key = (part.barrier, part.side)
            barriers[key] = barriers.get(key, 0) + cycles
    return CriticalPath(
        parts=parts,
        by_role=tuple((role, cycles / span) for role, cycles in _largest_first(roles)),
        by_barrier=tuple((*key, cycles / span) for key, cycles in _largest_first(barriers)),
        slack=slack_of(timeline, arrows, landed, (steady.start, steady.end)),
    )


def _largest_first(cycles: Mapping[_Name, int]) -> list[tuple[_Name, int]]:
    return sorted(cycles.items(), key=lambda item: (-item[1], item[0]))


class _Lane:
    """One warp, indexed for the walk: its stalls in order of their exits, and its active time and passes in the window."""

    def __init__(self, warp: WarpTimeline, window: Span, known: WindowStates) -> None:
        self.role = warp.role
        self.stalls = sorted(
            (part for part in warp.slices if part.state is State.STALL and part.end > part.start),
            key=lambda part: (part.end, part.start),
        )
        self._ends = [part.end for part in self.stalls]
        states = states_of(warp, window, known)
        self._active = union([*states.active, *states.passed])
        self._active_ends = [end for _, end in self._active]

    def before(self, at: int) -> Slice | None:
        """The stall that `at` lies in, else the last that ended by then."""
        after = bisect_right(self._ends, at)
        if after < len(self.stalls) and self.stalls[after].start < at:
            return self.stalls[after]
        return self.stalls[after - 1] if after else None

    def work(self, start: int, end: int) -> Iterator[tuple[PathKind, int, int]]:
        """The span cut into active and untracked parts, last first."""
        index = min(bisect_left(self._active_ends, end), len(self._active) - 1)
        at = end
        while index >= 0 and at > start:
            first, last = self._active[index]
            first, last = max(first, start), min(last, at)
            if last <= start:
                break
            if first < last:
                if last < at:
                    yield PathKind.UNTRACKED, last, at
                yield PathKind.ACTIVE, first, last
                at = first
            index -= 1
        if at > start:
            yield PathKind.UNTRACKED, start, at


class _Walk:
    """The walk back through `window`; lanes are indexed when the path first enters them."""

    def __init__(
        self,
        timeline: Timeline,
        instances: Mapping[int, Instance],
        causes: Iterable[Cause],
        landed: Mapping[Use, int],
        window: Span,
        known: WindowStates,
    ) -> None:
        self._known = known
        self._warps = {warp.warp: warp for warp in timeline.warps}
        self._instances = instances
        self._causes = {(cause.warp, cause.stall.instance, cause.stall.visit): cause for cause in causes}
        self._landed = landed
        self._window = window
        self._lanes: dict[int, _Lane] = {}

    def parts(self, warp: int) -> Iterator[PathPart]:
        """The parts of the path that ends in `warp` with the window, last first."""
        first, at = self._window
        followed: set[_Key] = set()
        while at > first:
            stall = self._lane(warp).before(at)
            worked_from = first if stall is None else min(at, max(first, stall.end))
            yield from self._work(warp, worked_from, at)
            at = worked_from
            if stall is None or at <= first:
                return
            key = (warp, stall.instance, stall.visit)
            cause = self._causes.get(key) if at == stall.end else None
            arrow = None if cause is None or key in followed else self._leading(cause)
            if cause is None or arrow is None:
                yield from self._own(warp, stall, cause, at)
                at = stall.start
            else:
                # Clocks of two warps may tie: a stall that was followed once is not followed again, in a circle.
                followed.add(key)
                yield from self._between(warp, cause, arrow, at)
                warp, at = arrow.signal.warp, min(arrow.signal.cycles, at)

    def _lane(self, warp: int) -> _Lane:
        if warp not in self._lanes:
            self._lanes[warp] = _Lane(self._warps[warp], self._window, self._known)
        return self._lanes[warp]

    def _work(self, warp: int, start: int, end: int) -> Iterator[PathPart]:
        lane = self._lane(warp)
        return (PathPart(warp, lane.role, kind, 0, "", *span) for kind, *span in lane.work(start, end))

    def _leading(self, cause: Cause) -> Arrow | None:
        """The cause's arrow, where the wait could not end before the arrival, so that the path goes on in the arriving warp."""
        arrow = cause.arrow
        if arrow is None or arrow.signal.warp not in self._warps:
            return None
        if arrow.is_async:
            return arrow if is_held_up(cause.stall, arrow, self._landed) else None
        return arrow if arrow.signal.cycles > cause.stall.start else None

    def _between(self, warp: int, cause: Cause, arrow: Arrow, end: int) -> Iterator[PathPart]:
        """From an arrival to the exit of the wait that could not end before."""
        start = min(arrow.signal.cycles, end)
        handed = start + (end - start if cause.is_binding else min(cause.handed_over, end - start))
        if arrow.is_async:
            yield from self._waited(arrow.signal.warp, PathKind.TRANSFER, arrow.barrier, arrow.side, start, end)
        else:
            yield from self._unexplained(warp, cause.stall, handed, end)
            yield from self._waited(arrow.signal.warp, PathKind.HAND_OFF, arrow.barrier, arrow.side, start, handed)

    def _own(self, warp: int, stall: Slice, cause: Cause | None, end: int) -> Iterator[PathPart]:
        """A stall up to `end` that leads to no other warp."""
        arrow = None if cause is None else cause.arrow
        row = self._instances[stall.instance]
        if cause is not None and arrow is not None and arrow.signal.cycles <= stall.start:
            # What it took to pass on an arrival that was there, or that may have landed since, is the barrier's.
            until = landing(arrow, self._landed) if arrow.is_async else stall.start + cause.handed_over
            until = max(stall.start, min(until, end))
            kind = PathKind.TRANSFER if arrow.is_async else PathKind.HAND_OFF
            yield from self._unexplained(warp, stall, until, end)
            yield from self._waited(arrow.signal.warp, kind, arrow.barrier, arrow.side, stall.start, until)
        elif cause is not None and arrow is None and cause.ending is Ending.GROUP:
            yield from self._waited(warp, PathKind.TRANSFER, row.barrier, row.side, stall.start, end)
        elif cause is not None and arrow is None and cause.ending is Ending.SIGNAL:
            # The warp itself was the last to arrive.
            until = min(end, stall.start + cause.handed_over)
            yield from self._unexplained(warp, stall, until, end)
            yield from self._waited(warp, PathKind.HAND_OFF, row.barrier, row.side, stall.start, until)
        else:
            yield from self._unexplained(warp, stall, stall.start, end)

    def _unexplained(self, warp: int, stall: Slice, start: int, end: int) -> Iterator[PathPart]:
        row = self._instances[stall.instance]
        return self._waited(warp, PathKind.STALL, row.barrier, row.side, start, end)

    def _waited(self, warp: int, kind: PathKind, barrier: int, side: str, start: int, end: int) -> Iterator[PathPart]:
        start = max(start, self._window[0])
        if start < end:
            role = self._warps[warp].role if warp in self._warps else ""
            yield PathPart(warp, role, kind, barrier, side, start, end)
