# SPDX-License-Identifier: Apache-2.0
"""`autostamp reconcile RUN prediction.json`: what was predicted against what was measured, and why they differ."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from autostamp.cli.options import json_option, no_color_option
from autostamp.cli.traces import kernel_option, run_argument, select, trace_option
from autostamp.diagnostics import AutostampError, Diagnostic, ExitStatus, render

if TYPE_CHECKING:
    from autostamp.model.flow import Flow
    from autostamp.model.lesson import Lesson
    from autostamp.model.prediction_file import PredictionFile
    from autostamp.model.reconciliation import Reconciliation
    from autostamp.model.timeline import Timeline
    from autostamp.model.trace import Trace
    from autostamp.runtime.store import RunData

SCHEMA_VERSION: Final = 1
_FILE: Final = click.Path(path_type=Path, dir_okay=False, exists=True)


@dataclass(frozen=True, slots=True)
class Measured:
    """CTAs of one kernel of a run, explained, with the prediction that they are held against. `recorded` are in the run."""

    run: RunData
    pairs: Sequence[tuple[Timeline, Flow]]
    recorded: int
    prediction: PredictionFile

    @property
    def timeline(self) -> Timeline:
        """The first CTA's."""
        return self.pairs[0][0]

    @property
    def flow(self) -> Flow:
        """The first CTA's."""
        return self.pairs[0][1]


@click.command()
@run_argument
@click.argument("prediction", metavar="prediction.json", type=_FILE)
@click.option(
    "--fail-over",
    type=click.FloatRange(min=0),
    metavar="PERCENT",
    help="Exit status 1 where the predicted period is further off the clean one (the measured one, where that is unknown).",
)
@click.option(
    "--clean-us",
    type=click.FloatRange(min=0, min_open=True),
    metavar="MICROSECONDS",
    help="Time of the clean kernel, of one wave: the stamped time is that of the recorded CTA.",
)
@click.option("--overhead", type=_FILE, metavar="FILE", help="What benchmarks/overhead.py --json wrote.")
@click.option("--case", metavar="NAME", help="The case of --overhead that this run is.")
@click.option(
    "--explain-all-but",
    type=click.FloatRange(0, 100),
    default=10,
    show_default=True,
    metavar="PERCENT",
    help="What may stay unexplained of the period before the model counts as incomplete.",
)
@click.option(
    "--role", "renamed", multiple=True, metavar="BUDGET=TRACE", help="What the trace calls a role of the budget."
)
@click.option(
    "--block", metavar="X,Y,Z", help="Only this recorded CTA (default: all, and the one with the median period)."
)
@click.option("--cubin", type=_FILE, metavar="FILE", help="The cubin that ran, where RUN does not hold it.")
@kernel_option
@trace_option
@json_option
@no_color_option
def command(
    run: Path,
    prediction: Path,
    fail_over: float | None,
    clean_us: float | None,
    overhead: Path | None,
    case: str | None,
    explain_all_but: float,
    renamed: tuple[str, ...],
    block: str | None,
    cubin: Path | None,
    kernel: re.Pattern[str] | None,
    trace: int | None,
    as_json: bool,
) -> int:
    """Hold a prediction against RUN: the period, each role, where the difference lies, and what to do about it.

    Exit status 1 where a bound is longer than the clean period, and past --fail-over.
    """
    if clean_us is not None and overhead is not None:
        message = "--clean-us and --overhead both say what stamps cost: give one."
        raise click.UsageError(message)
    measured = read(run, prediction, kernel, trace, cubin, block)
    ratio = _ratio(measured, clean_us, overhead, case)
    _, found = compare(measured, ratio, explain_all_but / 100, role_names(renamed))
    lessons = lessons_of(found, measured.prediction)
    if as_json:
        click.echo(_json(found, lessons))
    else:
        from autostamp.report.reconcile_text import as_text

        click.echo(as_text(found, lessons), nl=False)
    findings = [*remarks(found, measured), *_findings(found, fail_over)]
    for finding in findings:
        click.echo(render(finding), err=True)
    return max((finding.status for finding in findings), default=ExitStatus.OK)


def read(
    run: Path,
    path: Path,
    kernel: re.Pattern[str] | None,
    trace: int | None,
    cubin: Path | None,
    block: str | None = None,
) -> Measured:
    """The recorded CTAs of the kernel that is chosen, or the one that `block` names, analysed.

    Raises AS7142 where the prediction is of another source, AS9001 where several kernel traces fit or no such CTA is recorded,
    and what reading raises.
    """
    from autostamp.analysis import analyse
    from autostamp.analysis.flow import explain
    from autostamp.predict.ctas import chosen
    from autostamp.runtime.prediction_file import read_prediction
    from autostamp.runtime.store import load_run

    prediction = read_prediction(path)
    data = load_run(run)
    check_source(prediction, data, cubin)
    traces = of_block(of_one_kernel(select(data, kernel, trace)), block)
    pairs = []
    for place in chosen(len(traces)):
        timeline = analyse(traces[place])
        pairs.append((timeline, explain(traces[place], timeline)))
    return Measured(data, pairs, len(traces), prediction)


def of_one_kernel(traces: Sequence[Trace]) -> Sequence[Trace]:
    """The same traces. Raises AS9001 for several kernel traces."""
    kernels = {each.kernel.number: each.kernel.kernel for each in traces}
    if len(kernels) > 1:
        there = ", ".join(f"{number} {name}" for number, name in kernels.items())
        raise AutostampError.of(
            "AS9001", detail=f"a prediction is of one kernel: choose it with --kernel or --trace ({there})"
        )
    return traces


def of_block(traces: Sequence[Trace], block: str | None) -> Sequence[Trace]:
    """Those of one CTA, all without it. Raises AS9001 for what is no CTA, or none that is recorded."""
    if block is None:
        return traces
    from autostamp.model.options import Blocks, parse_blocks

    try:
        wanted = parse_blocks(block)
    except ValueError as error:
        raise AutostampError.of("AS9001", detail=f"--block: {error}") from error
    if isinstance(wanted, Blocks):
        raise AutostampError.of("AS9001", detail=f"--block {block}: give one CTA as X,Y,Z")
    found = [each for each in traces if each.block == wanted]
    if not found:
        there = "; ".join(dict.fromkeys(",".join(map(str, each.block)) for each in traces))
        raise AutostampError.of("AS9001", detail=f"--block {block}: the run has {there}")
    return found


def compare(
    measured: Measured, ratio: float | None, share: float, roles: Mapping[str, str]
) -> tuple[int, Reconciliation]:
    """Reconcile, with names out of the manifest: the comparison that is shown, and the place of its CTA among the pairs."""
    from autostamp.predict.ctas import reconcile_ctas
    from autostamp.predict.reconcile import reconcile
    from autostamp.report.places import barriers_of, places_of
    from autostamp.report.verdict_words import Words

    manifest, number = measured.run.manifest, measured.timeline.trace
    places = {instance: Words.wait(place) for instance, place in places_of(manifest, number).items()}
    barriers = barriers_of(manifest, number)

    def one(timeline: Timeline, flow: Flow) -> Reconciliation:
        return reconcile(
            timeline,
            flow,
            measured.prediction,
            ratio=ratio,
            recorded_at=measured.run.facts.recorded_at,
            places=places,
            barriers=barriers,
            share=share,
            roles=roles,
        )

    return reconcile_ctas(measured.pairs, one, measured.recorded)


def check_source(prediction: PredictionFile, data: RunData, cubin: Path | None) -> None:
    """Raises AS7142 unless the prediction is of the run's sources, of a cubin in its folder, or of the one that is named."""
    from autostamp.runtime.prediction_file import digest_of, digest_of_sources

    cubins = [*sorted(data.path.glob("*.cubin")), *([cubin] if cubin is not None else [])]
    known = {digest_of_sources(data.manifest): "sources"} | {digest_of(each.read_bytes()): each.name for each in cubins}
    if prediction.source_sha256 not in known:
        there = ", ".join(f"{name} {digest[:12]}" for digest, name in known.items())
        raise AutostampError.of("AS7142", detail=f"it is of {prediction.source_sha256[:12]}, the run has {there}")


def _ratio(measured: Measured, clean_us: float | None, overhead: Path | None, case: str | None) -> float | None:
    """Stamped over clean time; None where neither the options nor the run folder say."""
    if clean_us is not None:
        return clean_ratio([timeline for timeline, _ in measured.pairs], measured.run, clean_us)
    from autostamp.cli.costs import read_costs

    kernel = measured.run.traces[measured.timeline.trace].kernel
    return read_costs([kernel], None, overhead, case, measured.run.path)[kernel.number].time_ratio


def clean_ratio(timelines: Sequence[Timeline], run: RunData, clean_us: float) -> float:
    """The median time of the recorded CTAs over that of a clean kernel of one wave. Raises AS9001 without an SM clock."""
    from statistics import median

    times = [each.cycles / mhz for each in timelines if (mhz := each.sm_mhz or run.facts.sm_mhz)]
    if not times:
        raise AutostampError.of("AS9001", detail="--clean-us needs the SM clock, which the run does not hold")
    return median(times) / clean_us


def role_names(renamed: tuple[str, ...]) -> dict[str, str]:
    """What the trace calls roles of the budget, from `--role`. Raises UsageError for what is no pair."""
    pairs = [text.partition("=") for text in renamed]
    for name, sign, other in pairs:
        if not (name and sign and other):
            message = f"--role takes BUDGET=TRACE, not {name}{sign}{other}."
            raise click.UsageError(message)
    return {name: other for name, _, other in pairs}


def lessons_of(found: Reconciliation, prediction: PredictionFile) -> tuple[Lesson, ...]:
    """Lessons of the resources that the prediction names."""
    from autostamp.runtime.lessons_file import lessons_path, of_resources, read_lessons

    names = {str(row.resource) for row in prediction.budget.rows} | {
        bound.name for bound in prediction.prediction.bounds
    }
    return of_resources(read_lessons(lessons_path()), names | {found.bottleneck})


def _json(found: Reconciliation, lessons: tuple[Lesson, ...]) -> str:
    import json

    import msgspec

    value = {"schema_version": SCHEMA_VERSION, **msgspec.to_builtins(found), "error": found.error}
    return json.dumps(value | {"lessons": msgspec.to_builtins(lessons)}, indent=2)


def remarks(found: Reconciliation, measured: Measured) -> list[Diagnostic]:
    """What does not fail a comparison and must be said: a prediction that was written after the run."""
    if not found.is_written_after:
        return []
    written, recorded = measured.prediction.written_at.isoformat(), measured.run.facts.recorded_at
    return [Diagnostic.of("AS7146", written_at=written, recorded_at=recorded)]


def _findings(found: Reconciliation, limit: float | None) -> list[Diagnostic]:
    what = "clean" if found.period.ratio else "measured"
    period = f"{found.period.clean:,.0f}"
    correction = f"the rest of the report has {found.correction}" if found.correction else "no row alone makes it"
    findings = [
        Diagnostic.of("AS7143", what=what, name=name, cycles=f"{cycles:,.0f}", period=period, correction=correction)
        for name, cycles in found.over
    ]
    error = 100 * found.error
    if limit is not None and abs(error) > limit:
        findings.append(Diagnostic.of("AS7144", error=f"{error:+.1f}", what=what, limit=f"{limit:g}"))
    return findings
