# SPDX-License-Identifier: Apache-2.0
"""`autostamp report RUN -o report.html`: the verdict and the timeline of a run as one page, and in other forms.

What is reported on may also be a buffer stamped by hand (`--spec` with `--npz`) or an IKET trace (`--iket`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from autostamp.cli.options import cost_options, no_color_option, quiet_option
from autostamp.cli.outputs import Window, perfetto_bytes, png_bytes, svg_text
from autostamp.cli.report_prediction import PredictionInputs, prediction_options
from autostamp.cli.traces import NO_LANES_HINT, kernel_option, select, trace_option
from autostamp.diagnostics import AutostampError, Diagnostic, ExitStatus, render

if TYPE_CHECKING:
    from autostamp.cli.outputs import Pair
    from autostamp.model.comparison import LaunchFigure
    from autostamp.model.trace import Trace
    from autostamp.report.cost import Cost
    from autostamp.report.document_prediction import Predicted
    from autostamp.runtime.store import RunData

DEFAULT_NAME: Final = "report.html"
_FILE: Final = click.Path(path_type=Path, dir_okay=False)
_INPUT: Final = click.Path(path_type=Path, dir_okay=False, exists=True)


@dataclass(frozen=True, slots=True)
class _Report:
    """What every form of the report is made from. `findings` are those of each pair's records."""

    data: RunData
    traces: Sequence[Trace]
    pairs: Sequence[Pair]
    findings: Sequence[Sequence[Diagnostic]]
    costs: Mapping[int, Cost]
    window: Window
    predicted: Mapping[int, Predicted]

    def document(self, **options: Any) -> dict[str, Any]:  # noqa: ANN401  # passed on
        """The report document. Raises AS7003 where the page's columns cannot hold it."""
        from autostamp.cli.unrecorded import bounds_of
        from autostamp.report.document import document
        from autostamp.runtime.sources import original_texts

        texts = original_texts(self.data.path, self.data.manifest)
        findings = [[f"{each.code} {each.message}" for each in group] for group in self.findings]
        return document(
            self.pairs,
            self.data.manifest,
            self.data.facts,
            texts,
            costs=self.costs,
            findings=findings,
            predicted=self.predicted,
            launches=self._launches(),
            replays=self.data.replays,
            bounds=bounds_of(self.data, self.traces),
            **options,
        )

    def _launches(self) -> dict[int, Sequence[LaunchFigure]]:
        """Figures over the launches of each kernel trace, none for one that has a single launch."""
        from autostamp.analysis.spreads import by_kernel, launch_figures

        flows = {id(timeline): flow for timeline, flow in self.pairs}
        kernels = by_kernel([timeline for timeline, _ in self.pairs])
        return {each[0].trace: launch_figures(each, [flows[id(timeline)] for timeline in each]) for each in kernels}


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
    from autostamp.report.predicted_rows import with_predicted
    from autostamp.report.spans_csv import spans_csv

    shown = with_predicted(report.pairs, report.data.manifest, report.predicted, report.data.facts)
    return spans_csv(shown.pairs, shown.manifest).encode()


def _perfetto(report: _Report, _: Path) -> bytes:
    return perfetto_bytes(report.pairs, report.data, report.predicted)


def _svg(report: _Report, _: Path) -> bytes:
    return svg_text(report.pairs, report.data, report.window, report.predicted).encode()


def _png(report: _Report, path: Path) -> bytes:
    return png_bytes(svg_text(report.pairs, report.data, report.window, report.predicted), path)


_FORMS: Final[Mapping[str, tuple[Callable[[_Report, Path], bytes], str]]] = {
    "html": (_html, "open it in any browser; it needs no network"),
    "svg": (_svg, "any browser shows it, with details under the pointer"),
    "png": (_png, "the same picture as --svg"),
    "perfetto": (_perfetto, "open it at ui.perfetto.dev, which reads it in the browser"),
    "json": (_json, "docs/formats/report.md says what it holds"),
    "csv": (_csv, "one row for each span"),
}
"""Each form: who makes its bytes, and what to do with the file."""


@dataclass(frozen=True, slots=True)
class _Inputs:
    """What the command line names: a run folder, or the files of another tool. With a run, spec and npz are outputs."""

    run: Path | None
    spec: Path | None
    npz: Path | None
    iket: Path | None

    @property
    def path(self) -> Path:
        """What is read."""
        return self.run or self.iket or self.npz or Path()

    def read(self, trace: int | None) -> RunData:
        """The decoded input. Raises what `load_run` and `read_inputs` raise."""
        from autostamp.cli.report_inputs import read_inputs
        from autostamp.runtime.store import RunData, load_run

        found = read_inputs(self.run, self.spec, self.npz, self.iket, trace)
        if found is None:
            return load_run(self.path)
        by_number = {each.kernel.number: each for each in found.traces}
        return RunData(found.manifest, by_number, found.facts, self.path, tuple(found.traces))


@click.command()
@click.argument("run", metavar="[RUN]", required=False, type=click.Path(path_type=Path))
@click.option("--spec", type=_FILE, metavar="FILE", help="With RUN: write a slot spec. Without: the spec of --npz.")
@click.option("--npz", type=_FILE, metavar="FILE", help="The fixed-slot buffer that goes with --spec.")
@click.option("--iket", type=_INPUT, metavar="FILE", help="Report on what NVIDIA IKET recorded (.json, .json.gz).")
@click.option("-o", "html", type=_FILE, metavar="FILE", help=f"Write the page (default: {DEFAULT_NAME}).")
@click.option("--svg", type=_FILE, metavar="FILE", help="Write the timeline as a picture (.svg).")
@click.option("--png", type=_FILE, metavar="FILE", help="Write the same picture as pixels; needs autostamp[png].")
@click.option("--perfetto", type=_FILE, metavar="FILE", help="Write a Perfetto trace (.pftrace), with flows.")
@click.option("--json", type=_FILE, metavar="FILE", help="Write the report's data as JSON.")
@click.option("--csv", type=_FILE, metavar="FILE", help="Write all spans as comma-separated values.")
@click.option("--from", "first", type=click.IntRange(min=0), metavar="CYCLE", help="Begin the picture here.")
@click.option("--to", "last", type=click.IntRange(min=0), metavar="CYCLE", help="End the picture here.")
@cost_options
@prediction_options
@kernel_option
@trace_option
@quiet_option
@no_color_option
def command(
    run: Path | None,
    spec: Path | None,
    npz: Path | None,
    iket: Path | None,
    first: int | None,
    last: int | None,
    safety: Path | None,
    overhead: Path | None,
    case: str | None,
    prediction: Path | None,
    clean_us: float | None,
    cubin: Path | None,
    renamed: tuple[str, ...],
    kernel: re.Pattern[str] | None,
    trace: int | None,
    quiet: bool,
    **files: Path | None,
) -> int:
    """Report on RUN: what bound the kernel, every warp's timeline, who waited for whom, and what measuring cost.

    Without a form it writes report.html, one file that opens from disk. Exit status 1 when records contradict themselves; the
    report is written all the same and says so.
    """
    inputs = _Inputs(run, spec, npz, iket)
    wanted = _wanted(files, (first, last), has_spec=run is not None and spec is not None)
    if clean_us is not None and overhead is not None:
        message = "--clean-us and --overhead both say what stamps cost: give one."
        raise click.UsageError(message)
    given = _prediction(PredictionInputs.of(prediction, cubin, renamed, clean_us), inputs, wanted)
    from autostamp.cli.progress import collector_off, steps
    from autostamp.runtime.manifest_file import write_all

    with steps(quiet) as say, collector_off():
        report = _analysed(
            inputs,
            select_by=(kernel, trace),
            costs=(safety, overhead, case),
            window=(first, last),
            prediction=given,
            say=say,
        )
        made: dict[Path, bytes] = {}
        for form, path in wanted.items():
            say(f"making {path}")
            made[path] = _FORMS[form][0](report, path)
        # All are made before any is written, so that a refusal leaves nothing behind.
        write_all(made)
        written = _spec(report, inputs)
    if written and not quiet:
        click.echo(f"wrote {written[0]} and {written[1]}: docs/formats/spec.md says what they hold", err=True)
    for form, path in wanted.items():
        if not quiet:
            click.echo(f"wrote {path}: {_FORMS[form][1]}", err=True)
    found = [each for group in report.findings for each in group]
    for finding in found:
        click.echo(render(finding), err=True)
    return ExitStatus.FINDINGS if found else ExitStatus.OK


def _spec(report: _Report, inputs: _Inputs) -> tuple[Path, Path] | None:
    """Write the slot spec of a run and its buffer, where it was asked for. Raises what `write_spec_files` raises."""
    if inputs.run is None or inputs.spec is None:
        return None
    from autostamp.cli.report_inputs import write_spec_files

    rows = [(trace, timeline, flow.arrows) for trace, (timeline, flow) in zip(report.traces, report.pairs, strict=True)]
    return write_spec_files(inputs.spec, inputs.npz, rows, report.data.manifest, report.data.facts)


def _wanted(files: Mapping[str, Path | None], window: Window, *, has_spec: bool) -> dict[str, Path]:
    """Forms to make, and where to. Raises UsageError for choices that contradict each other."""
    wanted = {form: path for form in _FORMS if (path := files[form]) is not None}
    if not wanted and not has_spec:
        wanted = {"html": Path(DEFAULT_NAME)}
    if not wanted.keys() & {"svg", "png"} and window != (None, None):
        message = "--from and --to need --svg or --png."
        raise click.UsageError(message)
    if len({path.absolute() for path in wanted.values()}) < len(wanted):
        message = "Two forms go to the same file."
        raise click.UsageError(message)
    return wanted


def _prediction(given: PredictionInputs | None, inputs: _Inputs, wanted: Mapping[str, Path]) -> PredictionInputs | None:
    """Raises UsageError for a prediction without a run, or without a form that shows it."""
    if given is None:
        return None
    if inputs.run is None:
        message = "--prediction needs RUN."
        raise click.UsageError(message)
    if not wanted:
        message = "--prediction needs a form that shows it: --spec writes what was measured alone."
        raise click.UsageError(message)
    return given


def _analysed(
    inputs: _Inputs,
    select_by: tuple[re.Pattern[str] | None, int | None],
    costs: tuple[Path | None, Path | None, str | None],
    window: Window,
    prediction: PredictionInputs | None,
    say: Callable[[str], None],
) -> _Report:
    from autostamp.analysis import analyse
    from autostamp.analysis.alignment import aligned
    from autostamp.analysis.flow import explain
    from autostamp.cli.costs import read_costs
    from autostamp.runtime.decode import check

    data = inputs.read(select_by[1])
    traces = _with_records(select(data, *select_by), inputs.path)
    safety, overhead, case = costs
    known = read_costs([trace.kernel for trace in traces], safety, overhead, case, inputs.run, data.replays)
    say(f"analysing {len(traces)} kernel traces")
    timelines = aligned([analyse(trace, longest=0) for trace in traces], traces)
    pairs: list[Pair] = []
    for number, (trace, timeline) in enumerate(zip(traces, timelines, strict=True), start=1):
        say(f"explaining {trace.kernel.kernel} ({number} of {len(traces)})")
        pairs.append((timeline, explain(trace, timeline)))
    predicted = {}
    if prediction is not None:
        say("holding the prediction against it")
        number = traces[0].kernel.number
        known[number] = replace(known[number], time_ratio=prediction.ratio(data, pairs, known[number].time_ratio))
        predicted = prediction.held_against(data, traces, pairs, known[number].time_ratio)
    return _Report(data, traces, pairs, [check(trace) for trace in traces], known, window, predicted)


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
