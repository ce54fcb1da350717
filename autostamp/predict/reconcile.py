# SPDX-License-Identifier: Apache-2.0
"""A prediction held against the measured timeline, and the verdict on the difference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from autostamp.diagnostics import AutostampError
from autostamp.model.budget import Budget, Prediction
from autostamp.model.flow import Flow, Steady
from autostamp.model.prediction_file import PredictionFile
from autostamp.model.reconciliation import (
    Period,
    Reconciliation,
    Region,
    RoleCheck,
    Trial,
)
from autostamp.model.timeline import Timeline
from autostamp.predict.agreement import TIE, direction, ranking
from autostamp.predict.bounds import predict
from autostamp.predict.edges import edges
from autostamp.predict.finding import finding_of, headline
from autostamp.predict.measured import period_of, role_checks, steady_of
from autostamp.predict.path_stalls import path_stalls
from autostamp.predict.residual import split
from autostamp.predict.spans import regions, worked
from autostamp.predict.trials import longest, terms, tried, without

SHARE: Final = 0.1
"""What may stay unexplained of the period before the model counts as incomplete."""


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
        stalls = path_stalls(self.timeline, self.flow, self.steady, budget, prediction, self.period, names)
        explained = prediction.period / self.period.clean
        found, order = direction(budget, prediction, self.flow), ranking(checks)
        finding = finding_of(explained, self.share, over, found, order)
        return Reconciliation(
            kernel=self.timeline.kernel,
            trace=self.timeline.trace,
            predicted=prediction.period,
            bottleneck=prediction.bottleneck.name,
            period=self.period,
            residual=self.period.mean - prediction.period,
            explained=explained,
            direction=found,
            ranking=order,
            roles=checks,
            parts=split(self.timeline, self.flow, self.steady, budget, prediction, self.period, untracked),
            regions=untracked,
            trials=trials,
            stalls=stalls,
            over=over,
            finding=finding,
            headline=headline(finding, explained, self.period, over, trials, stalls, found, order),
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
