# SPDX-License-Identifier: Apache-2.0
"""Waiting on the critical path, and what the period would gain without it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Final

from autostamp.model.budget import BoundKind, Budget, Prediction
from autostamp.model.flow import Cause, Flow, PathKind, PathPart, Steady
from autostamp.model.reconciliation import PathStall, Period
from autostamp.model.timeline import Timeline

_WAITING: Final = frozenset({PathKind.TRANSFER, PathKind.HAND_OFF, PathKind.STALL})


def path_stalls(
    timeline: Timeline,
    flow: Flow,
    steady: Steady,
    budget: Budget,
    prediction: Prediction,
    period: Period,
    names: tuple[Mapping[int, str], Mapping[int, str]],
) -> tuple[PathStall, ...]:
    """Waiting on the path, what is worth most first. A transfer that the binding bound holds is worth what it takes longer."""
    above = max(0.0, period.mean - prediction.period)
    held = _in_flight(budget, prediction)
    places, barriers = names
    roles = {warp.warp: warp.role for warp in timeline.warps}
    cycles: dict[tuple[int, str, str, str, PathKind], int] = defaultdict(int)
    sites: dict[tuple[int, str, str, str, PathKind], Counter[int]] = defaultdict(Counter)
    for part in flow.path.parts if flow.path else ():
        if part.kind in _WAITING:
            stall = _stall_of(part, flow)
            key = (part.barrier, part.side, roles.get(stall.warp, "") if stall else part.role, part.role, part.kind)
            cycles[key] += part.end - part.start
            sites[key][stall.stall.instance if stall else 0] += part.end - part.start
    rows = []
    for (barrier, side, role, by, kind), total in cycles.items():
        most = sites[barrier, side, role, by, kind].most_common(1)[0][0]
        label = barriers.get(barrier) or side or "an unnamed barrier"
        each = total / steady.iterations
        where = places.get(most) or (f"instance {most}" if most else label)
        new = max(0.0, each - held.get(by, 0.0)) if kind is PathKind.TRANSFER else each
        rows.append(PathStall(barrier, side, role, by, kind, each, min(new, above), label, where))
    return tuple(sorted(rows, key=lambda one: (-one.worth, -one.cycles, one.barrier, one.role)))


def _in_flight(budget: Budget, prediction: Prediction) -> Mapping[str, float]:
    """By the role that issues them: cycles of transfers that the binding bound holds."""
    for ring in budget.rings:
        if prediction.bottleneck.kind is BoundKind.CREDIT and prediction.bottleneck.name == ring.name:
            return {ring.producer: sum(step.cycles for step in ring.fill) / ring.stages}
    return {}


def _stall_of(part: PathPart, flow: Flow) -> Cause | None:
    """The stall that a part of the path lies in: one that the part's warp ended, else one of its own."""
    own = None
    for cause in flow.causes:
        if not cause.stall.start < part.end <= cause.stall.end:
            continue
        arrow = cause.arrow
        ended_by = (arrow.signal.warp, arrow.barrier, arrow.side) if arrow else None
        if part.kind is not PathKind.STALL and ended_by == (part.warp, part.barrier, part.side):
            return cause
        if cause.warp == part.warp:
            own = cause
    return own
