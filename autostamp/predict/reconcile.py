# SPDX-License-Identifier: Apache-2.0
"""A prediction held against the measured timeline, and the verdict on the difference."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import combinations
from typing import Final

from autostamp.diagnostics import AutostampError
from autostamp.model.budget import BoundKind, Budget, Prediction
from autostamp.model.flow import Cause, Flow, PathKind, PathPart, Steady
from autostamp.model.prediction_file import PredictionFile
from autostamp.model.reconciliation import (
    Direction,
    Finding,
    PathStall,
    Period,
    Ranking,
    Reconciliation,
    Region,
    RoleCheck,
    Trial,
)
from autostamp.model.timeline import Timeline
from autostamp.predict.bounds import predict
from autostamp.predict.measured import path_work, period_of, regions, role_checks, steady_of, worked
from autostamp.predict.residual import split
from autostamp.predict.trials import TOLERANCE, edges, longest, terms, tried, without

SHARE: Final = 0.1
"""What may stay unexplained of the period before the model counts as incomplete."""
TIE: Final = 0.05
"""Idle shares this close are not ranked: no rate is known much better."""
_WAITING: Final = frozenset({PathKind.TRANSFER, PathKind.HAND_OFF, PathKind.STALL})


def reconcile(
    timeline: Timeline,
    flow: Flow,
    file: PredictionFile,
    *,
    ratio: float | None = None,
    recorded_at: str = "",
    places: Mapping[int, str] | None = None,
    barriers: Mapping[int, str] | None = None,
    share: float = SHARE,
    roles: Mapping[str, str] | None = None,
) -> Reconciliation:
    """Compare. `ratio` is stamped over clean time of the kernel, `places` and `barriers` name instances and barriers.

    `roles` says what the trace calls a role of the budget. Raises AS7140 where the budget names a role that the trace lacks,
    AS7141 where the run has no steady state or no cycles, and what `predict` raises.
    """
    steady = steady_of(timeline, flow)
    budget, prediction = _in_the_trace_s_words(file, roles or {})
    _check_roles(budget, timeline)
    run = _Run(timeline, flow, steady, period_of(timeline, steady, ratio), places or {}, barriers or {}, share)
    return replace(run.against(budget, prediction), is_written_after=_is_after(file.written_at, recorded_at))


@dataclass(frozen=True, slots=True)
class _Run:
    """What was measured, and the share that may stay unexplained."""

    timeline: Timeline
    flow: Flow
    steady: Steady
    period: Period
    places: Mapping[int, str]
    barriers: Mapping[int, str]
    share: float

    def against(self, budget: Budget, prediction: Prediction) -> Reconciliation:
        """The comparison with one prediction; of one that is too long, also without what is in error."""
        checks = role_checks(prediction, self.flow, self.steady)
        untracked = regions(self.timeline, self.flow, self.steady, self.places)
        over = tuple((bound.name, bound.cycles) for bound in prediction.bounds if self._is_over(bound.cycles))
        better = without(budget, [name for name, _ in over], self.period.clean) if over else None
        trials = () if over else self._trials(budget, prediction, untracked)
        names = self.places, self.barriers
        stalls = _stalls(self.timeline, self.flow, self.steady, budget, prediction, self.period, names)
        explained = prediction.period / self.period.clean
        finding = _finding(explained, self.share, over)
        return Reconciliation(
            kernel=self.timeline.kernel,
            trace=self.timeline.trace,
            predicted=prediction.period,
            bottleneck=prediction.bottleneck.name,
            period=self.period,
            residual=self.period.mean - prediction.period,
            explained=explained,
            direction=_direction(budget, prediction, self.flow, self.steady),
            ranking=_ranking(checks),
            roles=checks,
            parts=split(self.timeline, self.flow, self.steady, budget, prediction, self.period, untracked),
            regions=untracked,
            trials=trials,
            stalls=stalls,
            over=over,
            finding=finding,
            headline=_headline(finding, explained, self.period, over, trials, stalls),
            share=self.share,
            is_written_after=None,
            notes=tuple(_notes(checks, self.flow, self.period)),
            blind_spots=prediction.blind_spots,
            correction=better.what if better else "",
            corrected=self.against(better.budget, predict(better.budget)) if better else None,
        )

    def _is_over(self, cycles: float) -> bool:
        return cycles > longest(self.period)

    def _trials(self, budget: Budget, prediction: Prediction, untracked: tuple[Region, ...]) -> tuple[Trial, ...]:
        work = worked(self.timeline, self.flow, self.steady, self.places)
        changes = [
            *edges(budget, self.timeline, self.flow, self.steady, self.barriers, self.period.scale),
            *terms(budget, prediction, self.flow, self.steady, self.period, untracked, work),
        ]
        return tried(changes, prediction, self.period)


def _in_the_trace_s_words(file: PredictionFile, roles: Mapping[str, str]) -> tuple[Budget, Prediction]:
    """Budget and prediction with roles renamed; two that become one share its time, so the idle shares are new."""
    if not roles:
        return file.budget, file.prediction
    budget = file.budget
    named = replace(
        budget,
        rows=tuple(replace(row, role=roles.get(row.role, row.role)) for row in budget.rows),
        rings=tuple(
            replace(
                ring, producer=roles.get(ring.producer, ring.producer), consumer=roles.get(ring.consumer, ring.consumer)
            )
            for ring in budget.rings
        ),
    )
    return named, predict(named)


def _check_roles(budget: Budget, timeline: Timeline) -> None:
    there = dict.fromkeys(role.role for role in timeline.roles)
    missing = [role for role in dict.fromkeys(row.role for row in budget.rows) if role not in there]
    if missing:
        raise AutostampError.of("AS7140", roles=", ".join(missing), kernel=timeline.kernel, there=", ".join(there))


def _direction(budget: Budget, prediction: Prediction, flow: Flow, steady: Steady) -> Direction:
    """A bound is a role's where the role's rows, or its end of the ring, make it."""
    bound = prediction.bottleneck
    if bound.kind is BoundKind.RESOURCE:
        expected = tuple(dict.fromkeys(row.role for row in budget.rows if row.resource == bound.name))
    elif bound.kind is BoundKind.CREDIT:
        ring = next((ring for ring in budget.rings if ring.name == bound.name), None)
        expected = (ring.producer, ring.consumer) if ring else ()
    else:
        named = set(bound.name.split(" -> "))
        expected = tuple(role.role for role in prediction.roles if role.role in named)
    shares: dict[str, float] = defaultdict(float)
    for (role, _), cycles in path_work(flow.path, steady.iterations).items():
        shares[role] += cycles
    most = max(shares, key=lambda role: shares[role], default="")
    return Direction(expected, most, most in expected if expected and most else None)


def _ranking(checks: tuple[RoleCheck, ...]) -> Ranking:
    known = [(check.role, check.predicted_idle, check.idle) for check in checks if check.predicted_idle is not None]
    swapped = []
    for first, second in combinations(known, 2):
        more, less = (first, second) if first[1] > second[1] else (second, first)
        if more[1] - less[1] > TIE and less[2] - more[2] > TIE:
            swapped.append((more[0], less[0]))
    return Ranking(
        tuple(role for role, _, _ in sorted(known, key=lambda one: -one[1])),
        tuple(role for role, _, _ in sorted(known, key=lambda one: -one[2])),
        tuple(swapped),
    )


def _stalls(
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
        if part.kind is not PathKind.STALL and arrow is not None:
            if (arrow.signal.warp, arrow.barrier, arrow.side) == (part.warp, part.barrier, part.side):
                return cause
        if cause.warp == part.warp:
            own = cause
    return own


def _finding(explained: float, share: float, over: tuple[tuple[str, float], ...]) -> Finding:
    if over:
        return Finding.MODEL_ERROR
    if explained < 1 - share:
        return Finding.INCOMPLETE
    return Finding.AT_BOUND if explained >= 1 - TOLERANCE else Finding.KERNEL


def _headline(
    finding: Finding,
    explained: float,
    period: Period,
    over: tuple[tuple[str, float], ...],
    trials: tuple[Trial, ...],
    stalls: tuple[PathStall, ...],
) -> str:
    if finding is Finding.MODEL_ERROR:
        name, cycles = over[0]
        what = "clean" if period.ratio else "measured"
        return f"model error: the bound of {name}, {cycles:,.0f} cycles, is above the {what} {period.clean:,.0f}"
    if finding is Finding.INCOMPLETE:
        said = f"the model is incomplete: it explains {100 * explained:.0f} % of the period"
        if not trials:
            return f"{said}, and nothing that was tried explains more"
        first = trials[0]
        what = first.what.split(";")[0]
        return f"{said}; with {what} ({first.cycles:,.0f} cycles) it is {100 * first.explained:.0f} %"
    if finding is Finding.AT_BOUND:
        return f"the kernel runs at its bound: the model explains {100 * explained:.0f} % of the period"
    said = f"the kernel leaves performance: the model explains {100 * explained:.0f} % of the period"
    if not stalls:
        return f"{said}, and no stall lies on the critical path"
    worst = stalls[0]
    return f"{said}; {worst.role}'s {worst.kind} at {worst.where} is worth up to {worst.worth:,.0f} cycles an iteration"


def _is_after(written_at: datetime, recorded_at: str) -> bool | None:
    """Whether the prediction is younger than the run; None where the run does not say when it was made."""
    try:
        recorded = datetime.fromisoformat(recorded_at)
    except ValueError:
        return None
    if recorded.tzinfo is None:
        recorded = recorded.replace(tzinfo=UTC)
    return written_at > recorded


def _notes(checks: tuple[RoleCheck, ...], flow: Flow, period: Period) -> list[str]:
    notes = [
        f"{check.role} has no row in the budget"
        for check in checks
        if check.predicted_idle is None and check.active + check.untracked > TIE
    ]
    if flow.path is None:
        notes.append("no critical path was found, so the residual cannot be split")
    if period.ratio is not None and period.ratio < 1:
        notes.append(
            "the stamped kernel was faster than the clean one: the ratio is noise, and no cost of stamps is taken"
        )
    return notes
