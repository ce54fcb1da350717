# SPDX-License-Identifier: Apache-2.0
"""Timelines written down slice by slice, for schedules that no simulation makes."""

from __future__ import annotations

from collections.abc import Sequence

from autostamp.analysis.spans import length, subtract, union
from autostamp.model.manifest import KernelTrace
from autostamp.model.timeline import RoleTotals, Signal, Slice, State, Timeline, WarpTimeline
from autostamp.model.trace import Trace


def stall(start: int, end: int, instance: int = 1, visit: int = 0, stage: int = -1) -> Slice:
    return Slice(start, end, State.STALL, instance, visit, stage)


def passed(start: int, end: int, instance: int = 1, visit: int = 0, stage: int = -1) -> Slice:
    return Slice(start, end, State.PASS, instance, visit, stage)


def hold(start: int, end: int, instance: int = 1, visit: int = 0, signal: int = 0) -> Slice:
    return Slice(start, end, State.ACTIVE, instance, visit, -1, signal)


def warp_of(
    number: int, role: str, slices: Sequence[Slice], end: int, start: int = 0, signals: Sequence[Signal] = ()
) -> WarpTimeline:
    """A warp whose slices of unlike state do not overlap but for waits inside a hold."""
    spans = {state: union((part.start, part.end) for part in slices if part.state is state) for state in State}
    waits = union([*spans[State.STALL], *spans[State.PASS]])
    stalled, passed_ = length(spans[State.STALL]), length(spans[State.PASS])
    active = length(subtract(spans[State.ACTIVE], waits))
    return WarpTimeline(
        warp=number,
        role=role,
        slices=tuple(sorted(slices, key=lambda part: (part.start, -part.end, part.instance))),
        span=end - start,
        stall=stalled,
        active=active,
        untracked=end - start - stalled - passed_ - active,
        lost=0,
        start=start,
        end=end,
        signals=tuple(signals),
        passed=passed_,
    )


def timeline_of(*warps: WarpTimeline) -> Timeline:
    roles = dict.fromkeys(warp.role for warp in warps)
    totals = []
    for role in roles:
        ours = [warp for warp in warps if warp.role == role]
        sums = [
            sum(getattr(warp, name) for warp in ours) for name in ("span", "stall", "active", "untracked", "passed")
        ]
        totals.append(RoleTotals(role, tuple(warp.warp for warp in ours), *sums))
    return Timeline("hand made", warps, tuple(totals), (), (), 0.0)


def trace_without_lanes(kernel: KernelTrace) -> Trace:
    return Trace(kernel, (), 0.0)
