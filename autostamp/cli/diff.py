# SPDX-License-Identifier: Apache-2.0
"""`autostamp diff RUN_A RUN_B`: what changed, by role and by wait, and whether it is more than noise."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from autostamp.cli.options import json_option, no_color_option
from autostamp.cli.traces import kernel_option, select
from autostamp.diagnostics import AutostampError, ExitStatus

if TYPE_CHECKING:
    from autostamp.analysis.compare import Sample
    from autostamp.model.trace import Trace
    from autostamp.runtime.store import RunData

SCHEMA_VERSION: Final = 1


@click.command()
@click.argument("run_a", metavar="RUN_A", type=click.Path(path_type=Path))
@click.argument("run_b", metavar="RUN_B", type=click.Path(path_type=Path))
@kernel_option
@click.option(
    "--fail-over",
    type=click.FloatRange(min=0),
    metavar="PERCENT",
    help="Exit status 1 where a CTA's cycles, the period or a stall (as a part of its role's span) grew by more.",
)
@click.option("--top", type=click.IntRange(min=1), default=10, show_default=True, help="Rows of the longer tables.")
@json_option
@no_color_option
def command(
    run_a: Path, run_b: Path, kernel: re.Pattern[str] | None, fail_over: float | None, top: int, as_json: bool
) -> int:
    """Say what changed from RUN_A to RUN_B in each kernel that both have.

    A difference counts as a change where it is more than the launches of each run differ among themselves: record several with
    `autostamp run --repeat`. Of a run with one launch the noise is unknown; then --fail-over takes differences as they are.
    """
    from autostamp.analysis.compare import compare, growths
    from autostamp.report.diff_text import as_object, as_text, growths_text
    from autostamp.runtime.store import load_run

    runs = load_run(run_a), load_run(run_b)
    samples = [_samples(run, select(run, kernel)) for run in runs]
    names = [name for name in samples[0] if name in samples[1]]
    if not names:
        has = [", ".join(sample) for sample in samples]
        raise AutostampError.of("AS7010", first=run_a, first_has=has[0], second=run_b, second_has=has[1])
    _note_others(samples, (run_a, run_b))
    compared = [compare(samples[0][name], samples[1][name]) for name in names]
    grown = [growths(each, fail_over) if fail_over is not None else () for each in compared]
    if as_json:
        kernels = [as_object(each, past) for each, past in zip(compared, grown, strict=True)]
        click.echo(json.dumps({"schema_version": SCHEMA_VERSION, "kernels": kernels}, indent=2))
    else:
        click.echo("\n".join(as_text(each, (str(run_a), str(run_b)), top) for each in compared), nl=False)
    for past in grown:
        click.echo(growths_text(past, fail_over or 0.0), nl=False, err=True)
    return ExitStatus.FINDINGS if any(grown) else ExitStatus.OK


def _samples(run: RunData, traces: Sequence[Trace]) -> dict[str, Sample]:
    """The timelines of each kernel by name; of several compilations of one name, the first that has records."""
    from autostamp.analysis import analyse
    from autostamp.analysis.compare import Sample
    from autostamp.analysis.steady import steady_state

    found: dict[str, list[Trace]] = {}
    for trace in traces:
        members = found.setdefault(trace.kernel.kernel, [])
        if members and members[0].kernel.number != trace.kernel.number:
            note = f"{run.path} has several compilations of {trace.kernel.kernel}"
            click.echo(f"note: {note}: kernel trace {members[0].kernel.number} is compared", err=True)
            continue
        members.append(trace)
    samples = {}
    for name, members in found.items():
        timelines = tuple(analyse(trace, longest=0) for trace in members)
        steady = [steady_state(trace, timeline)[0] for trace, timeline in zip(members, timelines, strict=True)]
        samples[name] = Sample(run.manifest, timelines, tuple(each.period.median if each else None for each in steady))
    return samples


def _note_others(samples: Sequence[dict[str, Sample]], runs: Sequence[Path]) -> None:
    """Say which kernels only one run has."""
    for own, other, path in ((samples[0], samples[1], runs[0]), (samples[1], samples[0], runs[1])):
        for name in own.keys() - other.keys():
            click.echo(f"note: only {path} has {name}", err=True)
