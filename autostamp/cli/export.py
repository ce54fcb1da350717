# SPDX-License-Identifier: Apache-2.0
"""`autostamp export RUN --perfetto FILE --svg FILE`: a run for other viewers."""

from __future__ import annotations

import re
from pathlib import Path

import click

from autostamp.cli.options import no_color_option, quiet_option
from autostamp.cli.outputs import perfetto_bytes, svg_text
from autostamp.cli.report_prediction import PredictionInputs, prediction_options
from autostamp.cli.traces import kernel_option, run_argument, select, trace_option

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@run_argument
@click.option("--perfetto", type=_FILE, metavar="FILE", help="Write a Perfetto trace (.pftrace).")
@click.option("--svg", type=_FILE, metavar="FILE", help="Write a picture (.svg).")
@click.option("--from", "first", type=click.IntRange(min=0), metavar="CYCLE", help="Begin the picture here.")
@click.option("--to", "last", type=click.IntRange(min=0), metavar="CYCLE", help="End the picture here.")
@prediction_options
@kernel_option
@trace_option
@quiet_option
@no_color_option
def command(
    run: Path,
    perfetto: Path | None,
    svg: Path | None,
    first: int | None,
    last: int | None,
    prediction: Path | None,
    clean_us: float | None,
    cubin: Path | None,
    renamed: tuple[str, ...],
    kernel: re.Pattern[str] | None,
    trace: int | None,
    quiet: bool,
) -> None:
    """Write the timelines of RUN as a Perfetto trace, as a picture, or both.

    Perfetto: one process per kernel, one track per warp, holds below it. Picture: one panel per kernel, one row per warp;
    --from and --to zoom into a range of cycles. With --prediction the predicted timeline stands above the one that it was held
    against.
    """
    if perfetto is None and svg is None:
        message = "Nothing to write: give --perfetto FILE, --svg FILE or both."
        raise click.UsageError(message)
    if svg is None and (first is not None or last is not None):
        message = "--from and --to need --svg."
        raise click.UsageError(message)
    given = PredictionInputs.of(prediction, cubin, renamed, clean_us)
    from autostamp.analysis import analyse
    from autostamp.analysis.alignment import aligned
    from autostamp.analysis.flow import explain
    from autostamp.runtime.manifest_file import write_all
    from autostamp.runtime.store import load_run

    data = load_run(run)
    traces = select(data, kernel, trace)
    timelines = aligned([analyse(found, longest=0) for found in traces], traces)
    pairs = [(timeline, explain(found, timeline)) for found, timeline in zip(traces, timelines, strict=True)]
    predicted = {}
    if given is not None:
        from autostamp.cli.costs import read_costs

        (number, *_) = (timeline.trace for timeline, _ in pairs)
        known = read_costs([traces[0].kernel], None, None, None, run)[number].time_ratio
        predicted = given.held_against(data, traces, pairs, given.ratio(data, pairs, known))
    # Both are made before either is written, so that a refusal leaves nothing behind.
    made: dict[Path, tuple[bytes, str]] = {}
    if svg is not None:
        viewer = "any browser shows it, with details under the pointer"
        made[svg] = svg_text(pairs, data, (first, last), predicted).encode(), viewer
    if perfetto is not None:
        made[perfetto] = (
            perfetto_bytes(pairs, data, predicted),
            "open it at ui.perfetto.dev, which reads it in the browser",
        )
    write_all({path: content for path, (content, _) in made.items()})
    for path, (_, viewer) in made.items():
        if not quiet:
            click.echo(f"wrote {path}: {viewer}", err=True)
