# SPDX-License-Identifier: Apache-2.0
"""`autostamp report RUN -o report.html`: the verdict and the timeline of a run as one page, and in other forms."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from autostamp.cli.options import no_color_option, quiet_option
from autostamp.cli.outputs import Window, perfetto_bytes, png_bytes, svg_text
from autostamp.cli.traces import NO_LANES_HINT, kernel_option, run_argument, select, trace_option
from autostamp.diagnostics import AutostampError, Diagnostic, ExitStatus, render

if TYPE_CHECKING:
    from autostamp.cli.outputs import Pair
    from autostamp.model.trace import Trace
    from autostamp.report.cost import Cost
    from autostamp.runtime.store import RunData

DEFAULT_NAME: Final = "report.html"
_FILE: Final = click.Path(path_type=Path, dir_okay=False)
_INPUT: Final = click.Path(path_type=Path, dir_okay=False, exists=True)


@dataclass(frozen=True, slots=True)
class _Report:
    """What every form of the report is made from. `findings` are those of each pair's records."""

    data: RunData
    pairs: Sequence[Pair]
    findings: Sequence[Sequence[Diagnostic]]
    costs: Mapping[int, Cost]
    window: Window

    def document(self, **options: Any) -> dict[str, Any]:  # noqa: ANN401  # passed on
        """The report document. Raises AS7003 where the page's columns cannot hold it."""
        from autostamp.report.document import document
        from autostamp.runtime.sources import original_texts

        texts = original_texts(self.data.path, self.data.manifest)
        findings = [[f"{each.code} {each.message}" for each in group] for group in self.findings]
        return document(
            self.pairs, self.data.manifest, self.data.facts, texts, costs=self.costs, findings=findings, **options
        )


def _html(report: _Report, path: Path) -> bytes:
    from autostamp.report.html import page

    try:
        return page(report.document())
    except OverflowError as error:
        hint = "Write --json, whose columns have no bound."
        raise AutostampError.of("AS7003", path=path, detail=str(error), hint=hint) from error


def _json(report: _Report, _: Path) -> bytes:
    from autostamp.report.columns import plain

    found = report.document(columns=plain)
    return (json.dumps(found, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n").encode()


def _csv(report: _Report, _: Path) -> bytes:
    from autostamp.report.spans_csv import spans_csv

    return spans_csv(report.pairs, report.data.manifest).encode()


def _perfetto(report: _Report, _: Path) -> bytes:
    return perfetto_bytes(report.pairs, report.data)


def _svg(report: _Report, _: Path) -> bytes:
    return svg_text(report.pairs, report.data, report.window).encode()


def _png(report: _Report, path: Path) -> bytes:
    return png_bytes(svg_text(report.pairs, report.data, report.window), path)


_FORMS: Final[Mapping[str, tuple[Callable[[_Report, Path], bytes], str]]] = {
    "html": (_html, "open it in any browser; it needs no network"),
    "svg": (_svg, "any browser shows it, with details under the pointer"),
    "png": (_png, "the same picture as --svg"),
    "perfetto": (_perfetto, "open it at ui.perfetto.dev, which reads it in the browser"),
    "json": (_json, "docs/formats/report.md says what it holds"),
    "csv": (_csv, "one row for each span"),
}
"""Each form: who makes its bytes, and what to do with the file."""


@click.command()
@run_argument
@click.option("-o", "html", type=_FILE, metavar="FILE", help=f"Write the page (default: {DEFAULT_NAME}).")
@click.option("--svg", type=_FILE, metavar="FILE", help="Write the timeline as a picture (.svg).")
@click.option("--png", type=_FILE, metavar="FILE", help="Write the same picture as pixels; needs autostamp[png].")
@click.option("--perfetto", type=_FILE, metavar="FILE", help="Write a Perfetto trace (.pftrace), with flows.")
@click.option("--json", type=_FILE, metavar="FILE", help="Write the report's data as JSON.")
@click.option("--csv", type=_FILE, metavar="FILE", help="Write all spans as comma-separated values.")
@click.option("--from", "first", type=click.IntRange(min=0), metavar="CYCLE", help="Begin the picture here.")
@click.option("--to", "last", type=click.IntRange(min=0), metavar="CYCLE", help="End the picture here.")
@click.option("--safety", type=_INPUT, metavar="FILE", help="What `autostamp safety --json` printed.")
@click.option("--overhead", type=_INPUT, metavar="FILE", help="What benchmarks/overhead.py --json wrote.")
@click.option("--case", metavar="NAME", help="The case of --overhead that this run is.")
@kernel_option
@trace_option
@quiet_option
@no_color_option
def command(
    run: Path,
    first: int | None,
    last: int | None,
    safety: Path | None,
    overhead: Path | None,
    case: str | None,
    kernel: re.Pattern[str] | None,
    trace: int | None,
    quiet: bool,
    **files: Path | None,
) -> int:
    """Report on RUN: what bound the kernel, every warp's timeline, who waited for whom, and what measuring cost.

    Without a form it writes report.html, one file that opens from disk. Exit status 1 when records contradict themselves; the
    report is written all the same and says so.
    """
    wanted = _wanted(files, (first, last))
    from autostamp.cli.progress import collector_off, steps
    from autostamp.runtime.manifest_file import write_all

    with steps(quiet) as say, collector_off():
        report = _analysed(
            run, select_by=(kernel, trace), costs=(safety, overhead, case), window=(first, last), say=say
        )
        made: dict[Path, bytes] = {}
        for form, path in wanted.items():
            say(f"making {path}")
            made[path] = _FORMS[form][0](report, path)
        # All are made before any is written, so that a refusal leaves nothing behind.
        write_all(made)
    for form, path in wanted.items():
        if not quiet:
            click.echo(f"wrote {path}: {_FORMS[form][1]}", err=True)
    found = [each for group in report.findings for each in group]
    for finding in found:
        click.echo(render(finding), err=True)
    return ExitStatus.FINDINGS if found else ExitStatus.OK


def _wanted(files: Mapping[str, Path | None], window: Window) -> dict[str, Path]:
    """Forms to make, and where to. Raises UsageError for choices that contradict each other."""
    wanted = {form: path for form in _FORMS if (path := files[form]) is not None} or {"html": Path(DEFAULT_NAME)}
    if not wanted.keys() & {"svg", "png"} and window != (None, None):
        message = "--from and --to need --svg or --png."
        raise click.UsageError(message)
    if len({path.absolute() for path in wanted.values()}) < len(wanted):
        message = "Two forms go to the same file."
        raise click.UsageError(message)
    return wanted


def _analysed(
    run: Path,
    select_by: tuple[re.Pattern[str] | None, int | None],
    costs: tuple[Path | None, Path | None, str | None],
    window: Window,
    say: Callable[[str], None],
) -> _Report:
    from autostamp.analysis import analyse
    from autostamp.analysis.flow import explain
    from autostamp.cli.costs import read_costs
    from autostamp.runtime.decode import check
    from autostamp.runtime.store import load_run

    data = load_run(run)
    traces = _with_records(select(data, *select_by), run)
    safety, overhead, case = costs
    known = read_costs([trace.kernel for trace in traces], safety, overhead, case)
    pairs: list[Pair] = []
    for number, trace in enumerate(traces, start=1):
        say(f"analysing {trace.kernel.kernel} ({number} of {len(traces)})")
        timeline = analyse(trace, longest=0)
        pairs.append((timeline, explain(trace, timeline)))
    return _Report(data, pairs, [check(trace) for trace in traces], known, window)


def _with_records(traces: Sequence[Trace], run: Path) -> list[Trace]:
    """Traces of which at least one warp passed a stamp; the others are noted. Raises AS5003 when there is none."""
    there = [trace for trace in traces if any(lane.events for lane in trace.lanes)]
    if not there:
        detail = f"lanes in {run} were entered and no warp passed a stamp"
        raise AutostampError.of("AS5003", detail=detail, hint=NO_LANES_HINT)
    for trace in traces:
        if trace not in there:
            name = f"kernel trace {trace.kernel.number} ({trace.kernel.kernel})"
            click.echo(f"note: {name} is left out: its lanes were entered and no warp passed a stamp", err=True)
    return there
