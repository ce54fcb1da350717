# SPDX-License-Identifier: Apache-2.0
"""`autostamp summary RUN`: where the time of every role, warp and wait went."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from autostamp.cli.options import cost_options, json_option, no_color_option
from autostamp.cli.traces import kernel_option, run_argument, select, trace_option

if TYPE_CHECKING:
    from autostamp.model.flow import Flow
    from autostamp.model.timeline import Timeline
    from autostamp.model.trace import Trace
    from autostamp.report.cost import Cost
    from autostamp.runtime.store import RunData

SCHEMA_VERSION: Final = 1
PIPE_WIDTH: Final = 120
"""Columns of the text when it does not go to a terminal, so that two runs can be compared line by line."""


@click.command()
@run_argument
@kernel_option
@trace_option
@click.option("--top", type=click.IntRange(min=1), default=10, show_default=True, help="Rows of the longer tables.")
@cost_options
@json_option
@no_color_option
def command(
    run: Path,
    kernel: re.Pattern[str] | None,
    trace: int | None,
    top: int,
    safety: Path | None,
    overhead: Path | None,
    case: str | None,
    as_json: bool,
) -> None:
    """Say what bound RUN and where its time went: per role, per warp, per wait, the longest stalls, and what was not reached.

    Of several CTAs or launches of a kernel the first is told in full; a table says when and where the others ran, and another
    how the roles' times spread over the launches. --json has them all.
    """
    from autostamp.analysis import analyse
    from autostamp.analysis.alignment import aligned
    from autostamp.analysis.flow import explain
    from autostamp.cli.costs import read_costs
    from autostamp.runtime.decode import check
    from autostamp.runtime.store import load_run

    data = load_run(run)
    traces = select(data, kernel, trace)
    costs = read_costs([found.kernel for found in traces], safety, overhead, case, run, data.replays)
    timelines = aligned([analyse(found, longest=top) for found in traces], traces)
    rows = {
        id(timeline): (explain(found, timeline), [f"{each.code} {each.message}" for each in check(found)])
        for found, timeline in zip(traces, timelines, strict=True)
    }
    found = _Found(data, traces, timelines, rows, costs)
    click.echo(json.dumps(found.as_object(), indent=2) if as_json else found.as_text(top), nl=as_json)


@dataclass(frozen=True, slots=True)
class _Found:
    """What is told: `rows` are the flow of each timeline and what is wrong with its records, `costs` are by kernel trace."""

    data: RunData
    traces: Sequence[Trace]
    timelines: Sequence[Timeline]
    rows: Mapping[int, tuple[Flow, list[str]]]
    costs: Mapping[int, Cost]

    def as_object(self) -> dict[str, Any]:
        """Everything as an object that JSON can hold."""
        from autostamp.analysis.spreads import by_kernel, launch_figures
        from autostamp.cli.unrecorded import bounds_of
        from autostamp.report.joined_notes import caveat
        from autostamp.report.replays_text import replays_object
        from autostamp.report.summary_json import as_object

        data = self.data
        kernels = []
        for each in self.timelines:
            flow, wrong = self.rows[id(each)]
            doubt = caveat(data.replays, data.manifest, each.trace)
            kernels.append(as_object(each, data.manifest, data.facts, flow, wrong, self.costs[each.trace], doubt))
        launches = {
            of_kernel[0].trace: [
                asdict(each) for each in launch_figures(of_kernel, [self.rows[id(one)][0] for one in of_kernel])
            ]
            for of_kernel in by_kernel(self.timelines)
        }
        found = {"schema_version": SCHEMA_VERSION, "kernels": kernels, "launches": launches}
        if data.replays is not None:
            found["replays"] = replays_object(data.replays, data.manifest, bounds_of(data, self.traces))
        return found

    def as_text(self, top: int) -> str:
        """As lines: what a joined run says of itself, then kernel by kernel."""
        from autostamp.analysis.spreads import by_kernel, launch_figures, spreads
        from autostamp.cli.unrecorded import bounds_of
        from autostamp.report.ctas_text import ctas_text
        from autostamp.report.launches_text import launch_lines
        from autostamp.report.places import places_of
        from autostamp.report.replays_text import replay_lines

        data = self.data
        texts = []
        if data.replays is not None:
            lines = replay_lines(data.replays, data.manifest, bounds_of(data, self.traces))
            texts.append("".join(f"{line}\n" for line in lines))
        for of_kernel in by_kernel(self.timelines):
            texts.append(self._first(of_kernel[0], top))
            if len(of_kernel) > 1:
                texts.append(ctas_text(of_kernel, spreads(of_kernel), top))
                figures = launch_figures(of_kernel, [self.rows[id(each)][0] for each in of_kernel])
                told = launch_lines(figures, places_of(data.manifest, of_kernel[0].trace))
                texts += [f"{line}\n" for line in told]
        return "\n".join(texts)

    def _first(self, timeline: Timeline, top: int) -> str:
        from autostamp.report.joined_notes import caveat, unrecorded_waits
        from autostamp.report.summary import as_text

        replays, manifest = self.data.replays, self.data.manifest
        flow, wrong = self.rows[id(timeline)]
        is_terminal = sys.stdout.isatty()
        return as_text(
            timeline,
            manifest,
            self.data.facts,
            width=shutil.get_terminal_size().columns if is_terminal else PIPE_WIDTH,
            top=top,
            is_terminal=is_terminal and "NO_COLOR" not in os.environ,
            flow=flow,
            findings=wrong,
            cost=self.costs[timeline.trace],
            notes=unrecorded_waits(replays, manifest, timeline.trace) if replays is not None else (),
            caveat=caveat(replays, manifest, timeline.trace),
        )
