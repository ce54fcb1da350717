# SPDX-License-Identifier: Apache-2.0
"""`autostamp lessons add` and `autostamp lessons list`: what was learnt where a prediction and a run differed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import click

from autostamp.cli.options import json_option, no_color_option
from autostamp.cli.traces import kernel_option, run_argument, trace_option
from autostamp.diagnostics import ExitStatus

SCHEMA_VERSION: Final = 1
_FILE: Final = click.Path(path_type=Path, dir_okay=False)
_file_option = click.option(
    "--file", type=_FILE, metavar="FILE", help="Default: $AUTOSTAMP_LESSONS, or autostamp-lessons.toml in this folder."
)


@click.group()
@no_color_option
def command() -> None:
    """Keep causes that were accepted, for `autostamp reconcile` to show when the same resource comes up again."""


@command.command()
@run_argument
@click.argument("prediction", metavar="prediction.json", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@click.option("--cause", required=True, metavar="TEXT", help="Why they differed, in a sentence.")
@click.option("--resource", required=True, metavar="NAME", help="What it is about, as the prediction calls it.")
@click.option("--cubin", type=_FILE, metavar="FILE", help="The cubin that ran, where RUN does not hold it.")
@_file_option
@kernel_option
@trace_option
@no_color_option
def add(
    run: Path,
    prediction: Path,
    cause: str,
    resource: str,
    cubin: Path | None,
    file: Path | None,
    kernel: re.Pattern[str] | None,
    trace: int | None,
) -> int:
    """Add one lesson, with both periods, to the lessons file."""
    from datetime import UTC, datetime

    from autostamp.cli.reconcile import read
    from autostamp.model.lesson import Lesson
    from autostamp.predict.measured import period_of, steady_of
    from autostamp.runtime.lessons_file import add_lesson, lessons_path

    measured = read(run, prediction, kernel, trace, cubin)
    known = [bound.name for bound in measured.prediction.prediction.bounds]
    if resource not in known:
        listed = ", ".join(known)
        message = f"--resource {resource}: the prediction has {listed}."
        raise click.UsageError(message)
    period = period_of(measured.timeline, steady_of(measured.timeline, measured.flow), None)
    lesson = Lesson(
        resource=resource,
        cause=" ".join(cause.split()),
        kernel=measured.timeline.kernel,
        machine=measured.prediction.machine,
        predicted=measured.prediction.prediction.period,
        measured=round(period.mean, 1),
        written_at=datetime.now(UTC).replace(microsecond=0),
    )
    path = lessons_path(file)
    add_lesson(path, lesson)
    click.echo(f"added to {path}", err=True)
    return ExitStatus.OK


@command.command(name="list")
@click.option("--resource", metavar="NAME", help="Only lessons about this resource.")
@_file_option
@json_option
@no_color_option
def list_lessons(resource: str | None, file: Path | None, as_json: bool) -> int:
    """Print lessons, newest first."""
    from autostamp.runtime.lessons_file import lessons_path, read_lessons

    path = lessons_path(file)
    lessons = [each for each in reversed(read_lessons(path)) if resource in (None, each.resource)]
    if as_json:
        import json

        import msgspec

        click.echo(json.dumps({"schema_version": SCHEMA_VERSION, "lessons": msgspec.to_builtins(lessons)}, indent=2))
        return ExitStatus.OK
    for each in lessons:
        periods = f"{each.predicted:,.0f} predicted, {each.measured:,.0f} measured on {each.machine}"
        click.echo(f"{each.written_at:%Y-%m-%d}  {each.resource}: {each.cause} ({each.kernel}; {periods})")
    if not lessons:
        click.echo(f"note: no lesson in {path}", err=True)
    return ExitStatus.OK
