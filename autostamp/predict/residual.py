# SPDX-License-Identifier: Apache-2.0
"""Where the difference between the measured and the predicted period lies.

The critical path covers the steady window without gaps: measured = work + transfers + hand-offs + stalls. What a prediction
holds already is hidden behind it, so each observation takes only as much of the residual as those before it left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from autostamp.model.budget import BoundKind, Budget, Prediction, Step
from autostamp.model.flow import Cause, Flow, PathKind, Steady
from autostamp.model.reconciliation import PartKind, Period, Region, ResidualPart
from autostamp.model.timeline import Timeline
from autostamp.predict.chains import role_of
from autostamp.predict.measured import imbalance, passes_on, path_cycles
from autostamp.predict.spans import clipped, path_spans

HAND_OFFS: Final = frozenset({"named_handoff", "mbarrier_handoff", "mbarrier_round_trip"})
_NO_PATH: Final = "no critical path"


def split(
    timeline: Timeline,
    flow: Flow,
    steady: Steady,
    budget: Budget,
    prediction: Prediction,
    period: Period,
    untracked: Sequence[Region],
) -> tuple[ResidualPart, ...]:
    """The residual's parts in the order of `PartKind`; they sum to it.

    A residual below zero, where the run is faster than predicted, is all unexplained.
    """
    observed = dict(
        _observed(timeline, flow, steady, period, untracked, hand_off_in(budget, prediction))
        if flow.path
        else _stamps_alone(period)
    )
    residual = period.mean - prediction.period
    left = max(residual, 0.0)
    parts = []
    for kind in PartKind:
        if kind is PartKind.UNEXPLAINED:
            continue
        amount, detail = observed[kind]
        taken = min(max(amount or 0.0, 0.0), left)
        left -= taken
        parts.append(ResidualPart(kind, amount, taken, detail))
    rest = residual - sum(part.cycles for part in parts)
    return (*parts, ResidualPart(PartKind.UNEXPLAINED, None, rest))


def hand_off_in(budget: Budget, prediction: Prediction) -> float:
    """Cycles of hand-offs that the binding bound holds: of a ring, over its stages; of a chain, its latencies."""
    bound = prediction.bottleneck
    if bound.kind is BoundKind.CREDIT:
        ring = next((ring for ring in budget.rings if ring.name == bound.name), None)
        return _cycles(ring.hand_off) / ring.stages if ring else 0.0
    if bound.kind is BoundKind.RECURRENCE:
        names = bound.name.split(" -> ")
        edges = set(pairwise(names)) or {(bound.name, bound.name)}
        chain = [edge for edge in budget.dependencies if (edge.start, edge.end) in edges]
        distance = sum(edge.distance for edge in chain)
        # Of a chain that was read out of a loop, most latencies are those of its own instructions.
        is_read = bool(role_of(bound.name))
        steps = [step for edge in chain for step in edge.steps if step.is_latency]
        found = _cycles(step for step in steps if not is_read or step.constant in HAND_OFFS)
        return found / distance if distance else 0.0
    return 0.0


def _cycles(steps: Iterable[Step]) -> float:
    return sum(step.cycles for step in steps)


def _observed(
    timeline: Timeline,
    flow: Flow,
    steady: Steady,
    period: Period,
    untracked: Sequence[Region],
    held: float,
) -> dict[PartKind, tuple[float | None, str]]:
    count = steady.iterations
    kinds = path_cycles(flow.path, count)
    ready, longer = (cycles / count for cycles in passes_on(timeline, path_spans(flow.path, PathKind.ACTIVE)))
    hand_off = kinds[PathKind.HAND_OFF] + ready - held
    late, off = _after_arrival(flow, steady)
    more, warp = imbalance(timeline, steady.role, (steady.start, steady.end))
    named = [each for each in untracked if each.on_path >= 0.5]
    where = "; ".join(f"{each.role} {each.on_path:,.0f} between {each.where}" for each in named[:2])
    return {
        **_stamps_alone(period),
        PartKind.HAND_OFF: (
            hand_off,
            f"on the path: {kinds[PathKind.HAND_OFF]:,.0f} from arrival to exit, {ready:,.0f} in ready waits"
            + (f", {held:,.0f} of it predicted" if held else ""),
        ),
        PartKind.UNTRACKED: (kinds[PathKind.UNTRACKED], where or "none on the path"),
        PartKind.CONTENTION: (
            kinds[PathKind.STALL] + longer,
            (
                f"on the path: ready waits {longer:,.0f} longer than the shortest of their kind,"
                f" {kinds[PathKind.STALL]:,.0f} of stall without a cause; anywhere: {late:,.0f} a warp after arrivals"
                f" ({off:,} stalls)"
            ),
        ),
        PartKind.IMBALANCE: (
            more / count,
            f"warp {warp} of {steady.role} works that much longer than the mean" if warp >= 0 else "one warp",
        ),
    }


def _stamps_alone(period: Period) -> dict[PartKind, tuple[float | None, str]]:
    if period.ratio is None:
        cost: tuple[float | None, str] = (None, "not measured: give --overhead with --case, or --clean-us")
    else:
        cost = (
            period.mean * (1 - 1 / period.ratio),
            f"the stamped kernel takes {period.ratio:.3f} times the clean time",
        )
    return {PartKind.STAMPS: cost, **{kind: (None, _NO_PATH) for kind in PartKind if kind is not PartKind.STAMPS}}


def _after_arrival(flow: Flow, steady: Steady) -> tuple[float, int]:
    """What stalls of the window last after their arrivals and no hand-off explains: a warp's mean an iteration, and how many."""
    window = (steady.start, steady.end)
    found = [each for each in flow.causes if each.unexplained and each.arrow and _is_within(each, window)]
    warps = {each.warp for each in found}
    cycles = sum(each.unexplained for each in found)
    return (cycles / len(warps) / steady.iterations if warps else 0.0), len(found)


def _is_within(cause: Cause, window: tuple[int, int]) -> bool:
    return clipped(cause.stall.start, cause.stall.end, window) > 0
