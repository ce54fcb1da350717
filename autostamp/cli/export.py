# SPDX-License-Identifier: Apache-2.0
"""`autostamp export RUN --perfetto FILE --svg FILE`: a run for other viewers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from autostamp.cli.options import no_color_option, quiet_option
from autostamp.cli.traces import kernel_option, run_argument, select, trace_option
from autostamp.diagnostics import AutostampError

if TYPE_CHECKING:
    from autostamp.model.timeline import Timeline
    from autostamp.runtime.store import RunData

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@run_argument
@click.option("--perfetto", type=_FILE, metavar="FILE", help="Write a Perfetto trace (.pftrace).")
@click.option("--svg", type=_FILE, metavar="FILE", help="Write a picture (.svg).")
@click.option("--from", "first", type=click.IntRange(min=0), metavar="CYCLE", help="Begin the picture here.")
@click.option("--to", "last", type=click.IntRange(min=0), metavar="CYCLE", help="End the picture here.")
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
    kernel: re.Pattern[str] | None,
    trace: int | None,
    quiet: bool,
) -> None:
    """Write the timelines of RUN as a Perfetto trace, as a picture, or both.

    Perfetto: one process per kernel, one track per warp, holds below it. Picture: one panel per kernel, one row per warp;
    --from and --to zoom into a range of cycles.
    """
    if perfetto is None and svg is None:
        message = "Nothing to write: give --perfetto FILE, --svg FILE or both."
        raise click.UsageError(message)
    if svg is None and (first is not None or last is not None):
        message = "--from and --to need --svg."
        raise click.UsageError(message)
    from autostamp.analysis import analyse
    from autostamp.analysis.alignment import aligned
    from autostamp.runtime.manifest_file import write_whole
    from autostamp.runtime.store import load_run

    data = load_run(run)
    chosen = select(data, kernel, trace)
    timelines = aligned([analyse(found, longest=0) for found in chosen], chosen)
    # Both are made before either is written, so that a refusal leaves nothing behind.
    made: list[tuple[Path, bytes, str]] = []
    if svg is not None:
        viewer = "any browser shows it, with details under the pointer"
        made.append((svg, _picture(timelines, data, first, last), viewer))
    if perfetto is not None:
        made.append((perfetto, _trace(timelines, data), "open it at ui.perfetto.dev, which reads it in the browser"))
    for path, content, viewer in made:
        write_whole(path, content)
        if not quiet:
            click.echo(f"wrote {path}: {viewer}", err=True)


def _trace(timelines: Sequence[Timeline], data: RunData) -> bytes:
    from io import BytesIO

    from autostamp.report.perfetto import write_perfetto

    packed = BytesIO()
    write_perfetto(packed, timelines, data.manifest, data.facts)
    return packed.getvalue()


def _picture(timelines: Sequence[Timeline], data: RunData, first: int | None, last: int | None) -> bytes:
    from autostamp.report.svg import timeline_svg

    try:
        return timeline_svg(timelines, data.manifest, data.facts, (first, last)).encode()
    except ValueError as error:
        ends = ", ".join(f"{max(warp.end for warp in timeline.warps):,}" for timeline in timelines)
        raise AutostampError.of("AS9001", detail=f"--from and --to: {error}; the kernels end at {ends}") from error
