# SPDX-License-Identifier: Apache-2.0
"""`autostamp report RUN --prediction FILE`: the prediction held against the run, and played out for the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from autostamp.diagnostics import render

if TYPE_CHECKING:
    from autostamp.cli.outputs import Pair
    from autostamp.model.timeline import Timeline
    from autostamp.model.trace import Trace
    from autostamp.report.document_prediction import Predicted
    from autostamp.runtime.store import RunData

Command = TypeVar("Command", bound=Callable[..., object])
_INPUT = click.Path(path_type=Path, dir_okay=False, exists=True)
SHARE = 0.1
"""What may stay unexplained before the model counts as incomplete: the default of `autostamp reconcile`."""
ALONE = "note: the budget holds no ring, so predicted roles are drawn without waiting for each other"
LEAST = 2
"""Iterations that a simulation needs to have a period."""
_ROLE = "With --prediction: what the trace calls a role of the budget."


def prediction_options(command: Command) -> Command:
    """Add `--prediction`, `--clean-us`, `--cubin` and `--role`."""
    prediction = click.option(
        "--prediction",
        type=_INPUT,
        metavar="FILE",
        help="Hold a prediction against RUN, and draw it above what was measured.",
    )
    cubin = click.option(
        "--cubin",
        type=_INPUT,
        metavar="FILE",
        help="With --prediction: the cubin that ran, where RUN does not hold it.",
    )
    role = click.option("--role", "renamed", multiple=True, metavar="BUDGET=TRACE", help=_ROLE)
    clean = click.option(
        "--clean-us",
        type=click.FloatRange(min=0, min_open=True),
        metavar="MICROSECONDS",
        help="With --prediction: time of the clean kernel, of one wave.",
    )
    return prediction(clean(cubin(role(command))))


@dataclass(frozen=True, slots=True)
class PredictionInputs:
    """What the options name."""

    path: Path
    cubin: Path | None
    roles: Mapping[str, str]
    clean_us: float | None = None

    @classmethod
    def of(
        cls, path: Path | None, cubin: Path | None, renamed: tuple[str, ...], clean_us: float | None = None
    ) -> PredictionInputs | None:
        """None without `--prediction`. Raises UsageError for what makes sense only with it, and for what is no pair."""
        from autostamp.cli.reconcile import role_names

        if path is not None:
            return cls(path, cubin, role_names(renamed), clean_us)
        if cubin is not None or renamed or clean_us is not None:
            message = "--cubin, --role and --clean-us need --prediction."
            raise click.UsageError(message)
        return None

    def held_against(
        self, data: RunData, traces: Sequence[Trace], pairs: Sequence[Pair], ratio: float | None
    ) -> dict[int, Predicted]:
        """By index: the prediction against the CTA whose period is the median. `ratio` is stamped over clean time, None where it
        is unknown.

        Raises what `autostamp reconcile` raises for the same files.
        """
        from autostamp.cli.reconcile import Measured, check_source, compare, lessons_of, of_one_kernel, remarks
        from autostamp.predict.ctas import chosen
        from autostamp.predict.measured import steady_of
        from autostamp.predict.simulate import simulate
        from autostamp.predict.simulated_manifest import manifest_of
        from autostamp.report.document_prediction import Predicted
        from autostamp.report.reconcile_text import reconcile_lines
        from autostamp.runtime.prediction_file import read_prediction

        prediction = read_prediction(self.path)
        check_source(prediction, data, self.cubin)
        of_one_kernel(traces)
        places = chosen(len(pairs))
        measured = Measured(data, [pairs[place] for place in places], len(pairs), prediction)
        number, found = compare(measured, ratio, SHARE, self.roles)
        place = places[number]
        timeline, flow = pairs[place]
        said = remarks(found, measured)
        for remark in said:
            click.echo(render(remark), err=True)
        steady = steady_of(timeline, flow)
        iterations = max(steady.iterations, LEAST)
        played = simulate(prediction.budget, iterations)
        alone = () if prediction.budget.rings else (ALONE,)
        _, *lines = reconcile_lines(found, lessons_of(found, prediction))
        predicted = Predicted(
            found.headline,
            (*lines, *alone, *(f"{remark.code} {remark.message}" for remark in said)),
            found.predicted,
            found.period.mean,
            iterations,
            steady.start,
            self._as_measured(played.timeline, timeline),
            manifest_of(prediction.budget, played),
        )
        return {place: predicted}

    def ratio(self, data: RunData, pairs: Sequence[Pair], known: float | None) -> float | None:
        """Stamped over clean time by `--clean-us`, else what is `known`. Raises AS9001 without an SM clock."""
        if self.clean_us is None:
            return known
        from autostamp.cli.reconcile import clean_ratio

        return clean_ratio([timeline for timeline, _ in pairs], data, self.clean_us)

    def _as_measured(self, played: Timeline, measured: Timeline) -> Timeline:
        """Roles with the trace's names and in its order, so that both groups of rows read the same."""
        first = {role.role: min(role.warps, default=0) for role in measured.roles}
        named = [replace(warp, role=self.roles.get(warp.role, warp.role)) for warp in played.warps]
        ordered = sorted(named, key=lambda warp: first.get(warp.role, len(measured.warps) + warp.warp))
        return replace(played, warps=tuple(replace(warp, warp=row) for row, warp in enumerate(ordered)))
