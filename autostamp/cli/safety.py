# SPDX-License-Identifier: Apache-2.0
"""`autostamp safety`: compare a stamped cubin with the clean one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from autostamp.cli.options import json_option, no_color_option
from autostamp.diagnostics import AutostampError, Diagnostic, ExitStatus, render
from autostamp.model.cubin import Delta, SafetyReport, WaitPlace
from autostamp.model.manifest import KernelTrace, Manifest

SCHEMA_VERSION = 1
Rows = list[tuple[str, ...]]

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.option("--clean", required=True, type=_FILE, help="Cubin of the kernel as its author wrote it.")
@click.option("--stamped", required=True, type=_FILE, help="Cubin of the stamped kernel.")
@click.option("--ptx", type=_FILE, help="PTX of the stamped kernel: checks that every stamp was compiled.")
@click.option(
    "--manifest", type=_FILE, help="Manifest of the stamped kernel: names instances, checks both sides of waits."
)
@click.option("--clean-log", type=_FILE, help="What nvcc printed for the clean cubin, for the C75xx messages of ptxas.")
@click.option("--stamped-log", type=_FILE, help="What nvcc printed for the stamped one.")
@click.option("--trace", type=int, help="Number of the kernel trace in the manifest (default: the one of this kernel).")
@json_option
@no_color_option
def command(
    clean: Path,
    stamped: Path,
    ptx: Path | None,
    manifest: Path | None,
    clean_log: Path | None,
    stamped_log: Path | None,
    trace: int | None,
    as_json: bool,
) -> int:
    """Compare the stamped kernel with the clean one: resources, sync instructions, schedule, and where the stamps stand.

    Exits with 1 when the stamped kernel is more than the clean one plus stamps. Needs no GPU.
    """
    from autostamp.passes import safety
    from autostamp.runtime import cubin
    from autostamp.runtime.manifest_file import read_manifest

    text = _text(ptx) if ptx is not None else None
    known = read_manifest(manifest) if manifest is not None else None
    pairs = safety.pair(cubin.read_file(clean), cubin.read_file(stamped))
    reports = [
        safety.compare(before, after, text, _choose_trace(known, after.kernel, trace, len(pairs)))
        for before, after in pairs
    ]
    found = [safety.findings(report) for report in reports]
    said = safety.log_findings(*(_text(log) for log in (clean_log, stamped_log)))
    if as_json:
        _print_json(reports, found, said)
    else:
        for report in reports:
            _print_report(report)
        for diagnostic in (each for group in (*found, said) for each in group):
            click.echo(render(diagnostic), err=True)
    return ExitStatus.FINDINGS if any(found) or said else ExitStatus.OK


def _text(log: Path | None) -> str:
    return log.read_text(encoding="utf-8", errors="replace") if log is not None else ""


def _choose_trace(manifest: Manifest | None, kernel: str, number: int | None, kernels: int) -> KernelTrace | None:
    """The trace of `kernel`: the one asked for, else the one of that symbol, else the only one."""
    if manifest is None:
        return None
    numbers = ", ".join(str(each.number) for each in manifest.traces) or "none"
    if number is not None:
        chosen = [each for each in manifest.traces if each.number == number]
        if not chosen:
            raise AutostampError.of("AS9001", detail=f"the manifest holds no trace {number} (it holds {numbers})")
    else:
        chosen = [each for each in manifest.traces if each.symbol == kernel] or list(manifest.traces)
    if len(chosen) != 1 or (kernels > 1 and chosen[0].symbol != kernel):
        raise AutostampError.of(
            "AS9001", detail=f"choose the kernel's trace with --trace (the manifest holds {numbers})"
        )
    return chosen[0]


def _print_json(
    reports: Sequence[SafetyReport], found: Sequence[Sequence[Diagnostic]], said: Sequence[Diagnostic]
) -> None:
    import msgspec

    kernels = [
        msgspec.to_builtins(report)
        | {
            "schedule_distance": report.schedule.distance,
            "findings": [_as_object(each) for each in group],
        }
        for report, group in zip(reports, found, strict=True)
    ]
    value = {"schema_version": SCHEMA_VERSION, "kernels": kernels, "findings": [_as_object(each) for each in said]}
    click.echo(msgspec.json.encode(value).decode())


def _as_object(found: Diagnostic) -> dict[str, str]:
    return {"code": found.code, "message": found.message, "help": found.help}


def _print_report(report: SafetyReport) -> None:
    click.echo(report.kernel)
    _print_table(("", "clean", "stamped", "change"), [_delta_row(each) for each in (*report.resources, *report.syncs)])
    order = report.schedule
    click.echo(
        f"schedule distance {order.distance:.3f}: {order.common_length} core opcodes in the clean order,"
        f" of {order.clean_length} clean and {order.stamped_length} stamped"
    )
    if order.clean_waits or order.stamped_waits:
        _print_table(
            ("waits for groups, after", "clean", "stamped"), _wait_rows(order.clean_waits, order.stamped_waits)
        )
    if report.stamps is not None:
        for line in _stamp_lines(report):
            click.echo(line)


def _delta_row(delta: Delta) -> tuple[str, ...]:
    return delta.name, str(delta.clean), str(delta.stamped), f"{delta.change:+d}" if delta.change else ""


def _wait_rows(clean: Sequence[WaitPlace], stamped: Sequence[WaitPlace]) -> Rows:
    rows: Rows = []
    for index in range(max(len(clean), len(stamped))):
        pair = [places[index] if index < len(places) else None for places in (clean, stamped)]
        name = next(place.opcode for place in pair if place is not None)
        rows.append((f"{index + 1} {name}", *(_place(place) for place in pair)))
    return rows


def _place(place: WaitPlace | None) -> str:
    if place is None:
        return "-"
    return f"{place.mufu} of {place.mufu_window} MUFU, {place.mma} of {place.mma_window} MMA"


def _stamp_lines(report: SafetyReport) -> list[str]:
    stamps = report.stamps
    if stamps is None:
        return []
    traced = f"{stamps.identified} of them traced to their event"
    lines = [f"stamps: {stamps.expected} expected, {stamps.clock_reads} clock reads added, {traced}"]
    if stamps.ptx_comments >= 0:
        lines.append(f"stamps written in the PTX, the lane's own included: {stamps.ptx_comments}")
    judged = len(stamps.around) + len(stamps.misplaced)
    if judged or stamps.unplaced:
        lines.append(
            f"waits with a stamp on each side: {len(stamps.around)} of {judged}; {len(stamps.unplaced)} not judged"
        )
    return lines


def _print_table(header: tuple[str, ...], rows: Rows) -> None:
    """A table in rich's form on a terminal, as aligned plain text elsewhere."""
    from rich.console import Console

    console = Console()
    if console.is_terminal:
        from rich.table import Table

        table = Table(*header)
        for row in rows:
            table.add_row(*row)
        console.print(table)
        return
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    for row in (header, *rows):
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
