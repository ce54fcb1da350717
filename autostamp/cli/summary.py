# SPDX-License-Identifier: Apache-2.0
"""`autostamp summary RUN`: where the time of every role, warp and wait went."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Final

import click

from autostamp.cli.options import json_option, no_color_option
from autostamp.cli.traces import kernel_option, run_argument, select, trace_option

SCHEMA_VERSION: Final = 1
PIPE_WIDTH: Final = 120
"""Columns of the text when it does not go to a terminal, so that two runs can be compared line by line."""


@click.command()
@run_argument
@kernel_option
@trace_option
@click.option("--top", type=click.IntRange(min=1), default=10, show_default=True, help="Rows of the longer tables.")
@json_option
@no_color_option
def command(run: Path, kernel: re.Pattern[str] | None, trace: int | None, top: int, as_json: bool) -> None:
    """Say what bound RUN and where its time went: per role, per warp, per wait, the longest stalls, and what was not reached.

    Of several CTAs or launches of a kernel the first is told in full; a table says when and where the others ran, and another
    how the roles' times spread over the launches. --json has them all.
    """
    from autostamp.analysis import analyse
    from autostamp.analysis.alignment import aligned
    from autostamp.analysis.flow import explain
    from autostamp.analysis.spreads import by_kernel, launch_figures, spreads
    from autostamp.cli.unrecorded import bounds_of
    from autostamp.report.cost import Cost
    from autostamp.report.ctas_text import ctas_text
    from autostamp.report.joined_notes import caveat, unrecorded_waits
    from autostamp.report.launches_text import launch_lines
    from autostamp.report.places import places_of
    from autostamp.report.replays_text import replay_lines, replays_object, worst_ratio
    from autostamp.report.summary import as_text
    from autostamp.report.summary_json import as_object
    from autostamp.runtime.decode import check
    from autostamp.runtime.store import load_run

    data = load_run(run)
    traces = select(data, kernel, trace)
    timelines = aligned([analyse(found, longest=top) for found in traces], traces)
    rows = {
        id(timeline): (explain(found, timeline), [f"{each.code} {each.message}" for each in check(found)])
        for found, timeline in zip(traces, timelines, strict=True)
    }
    if as_json:
        kernels = [as_object(timeline, data.manifest, data.facts, *rows[id(timeline)]) for timeline in timelines]
        launches = {
            of_kernel[0].trace: [
                asdict(each) for each in launch_figures(of_kernel, [rows[id(timeline)][0] for timeline in of_kernel])
            ]
            for of_kernel in by_kernel(timelines)
        }
        found = {"schema_version": SCHEMA_VERSION, "kernels": kernels, "launches": launches}
        if data.replays is not None:
            found["replays"] = replays_object(data.replays, data.manifest, bounds_of(data, traces))
        click.echo(json.dumps(found, indent=2))
        return
    is_terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if is_terminal else PIPE_WIDTH
    is_styled = is_terminal and "NO_COLOR" not in os.environ
    texts = []
    if data.replays is not None:
        lines = replay_lines(data.replays, data.manifest, bounds_of(data, traces))
        texts.append("".join(f"{line}\n" for line in lines))
    for of_kernel in by_kernel(timelines):
        flow, wrong = rows[id(of_kernel[0])]
        trace_number = of_kernel[0].trace
        missing = unrecorded_waits(data.replays, data.manifest, trace_number) if data.replays is not None else ()
        texts.append(
            as_text(
                of_kernel[0],
                data.manifest,
                data.facts,
                width=width,
                top=top,
                is_terminal=is_styled,
                flow=flow,
                findings=wrong,
                cost=Cost(time_ratio=worst_ratio(data.replays)) if data.replays is not None else None,
                notes=missing,
                caveat=caveat(data.replays, data.manifest, trace_number),
            )
        )
        if len(of_kernel) > 1:
            texts.append(ctas_text(of_kernel, spreads(of_kernel), top))
            figures = launch_figures(of_kernel, [rows[id(each)][0] for each in of_kernel])
            told = launch_lines(figures, places_of(data.manifest, of_kernel[0].trace))
            texts += [f"{line}\n" for line in told]
    click.echo("\n".join(texts), nl=False)
