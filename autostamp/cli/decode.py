# SPDX-License-Identifier: Apache-2.0
"""`autostamp decode RUN`: the records of a run as lanes of events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from autostamp.cli.options import json_option, no_color_option
from autostamp.cli.traces import run_argument, select, trace_option
from autostamp.diagnostics import ExitStatus, render
from autostamp.report.verdict_words import kernel_name

if TYPE_CHECKING:
    from autostamp.model.timeline import Timeline
    from autostamp.model.trace import Lane, Trace

SCHEMA_VERSION: Final = 1
_COLUMNS: Final = ("warp", "SM", "events", "lost", "span")


@click.command()
@run_argument
@click.option(
    "-o", "output", type=click.Path(path_type=Path), metavar="PATH", help="Write to a file instead of stdout."
)
@trace_option
@json_option
@no_color_option
def command(run: Path, output: Path | None, trace: int | None, as_json: bool) -> int:
    """Decode the records of RUN: one line per lane, or with --json every event.

    Exit status 1 when a lane contradicts itself (an enter without its exit, say); what was decoded is printed all the same.
    """
    from autostamp.analysis import analyse
    from autostamp.runtime.decode import check
    from autostamp.runtime.manifest_file import write_whole
    from autostamp.runtime.store import load_run

    chosen = [(found, analyse(found, longest=0)) for found in select(load_run(run), trace=trace)]
    text = _as_json(chosen) if as_json else "\n".join(_as_text(found, timeline) for found, timeline in chosen)
    if output is None:
        click.echo(text, nl=False)
    else:
        write_whole(output, text.encode())
        click.echo(f"wrote {output}", err=True)
    findings = [finding for found, _ in chosen for finding in check(found)]
    for note in (note for found, _ in chosen for note in found.warnings):
        click.echo(f"warning: {note}", err=True)
    for finding in findings:
        click.echo(render(finding), err=True)
    return ExitStatus.FINDINGS if findings else ExitStatus.OK


def _as_text(trace: Trace, timeline: Timeline) -> str:
    role = max((len(warp.role) for warp in timeline.warps), default=0)
    launch = f", launch {trace.launch}" if trace.launch else ""
    heading = f"{kernel_name(trace.kernel.kernel)} (kernel trace {trace.kernel.number}), CTA {trace.block}{launch}"
    lines = [heading, "  ".join([f"{'role':<{max(role, 4)}}", *(f"{name:>10}" for name in _COLUMNS)])]
    for lane, warp in zip(trace.lanes, timeline.warps, strict=True):
        cells = (lane.warp, lane.smid, len(lane.events), lane.lost, warp.span)
        lines.append("  ".join([f"{warp.role:<{max(role, 4)}}", *(f"{cell:>10,}" for cell in cells)]))
    return "\n".join(lines) + "\n"


def _as_json(chosen: list[tuple[Trace, Timeline]]) -> str:
    kernels = [
        {
            "kernel": trace.kernel.kernel,
            "trace": trace.kernel.number,
            "block": list(trace.block),
            "launch": trace.launch,
            "sm_mhz": trace.sm_mhz or None,
            "warnings": list(trace.warnings),
            "lanes": [
                _lane(lane, warp.role, warp.span) for lane, warp in zip(trace.lanes, timeline.warps, strict=True)
            ],
        }
        for trace, timeline in chosen
    ]
    return json.dumps({"schema_version": SCHEMA_VERSION, "kernels": kernels}) + "\n"


def _lane(lane: Lane, role: str, span: int) -> dict[str, Any]:
    """One lane; `events` are rows of cycles, kind, instance, payload and visit."""
    return {
        "warp": lane.warp,
        "role": role,
        "smid": lane.smid,
        "lost": lane.lost,
        "span": span,
        "entry_cycles": lane.entry_cycles,
        "exit_cycles": lane.exit_cycles if lane.exit_cycles >= 0 else None,
        "entry_ns": lane.entry_ns,
        "exit_ns": lane.exit_ns if lane.exit_cycles >= 0 else None,
        "columns": ["cycles", "kind", "instance", "payload", "visit"],
        "events": [[event.cycles, event.kind, event.instance, event.payload, event.visit] for event in lane.events],
    }
