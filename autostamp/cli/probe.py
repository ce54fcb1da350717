# SPDX-License-Identifier: Apache-2.0
"""`autostamp probe`: measure what this GPU can do, and write it as a machine file."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from autostamp.cli.options import output_options
from autostamp.diagnostics import AutostampError, Diagnostic, ExitStatus, render

if TYPE_CHECKING:
    from autostamp.model.run import MachineFacts
    from autostamp.runtime.probes.build import Built
    from autostamp.runtime.probes.probe import Probe
    from autostamp.runtime.probes.results import Result
    from autostamp.runtime.probes.session import Session

SCHEMA_VERSION = 1
DEFAULT_ARCH = "sm_90a"


def _names(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Names from options that may each hold several, with commas between them."""
    return tuple(name.strip() for value in values for name in value.split(",") if name.strip())


@click.command()
@click.option("--only", multiple=True, callback=_names, metavar="NAME,...", help="Probes, constants or families.")
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE.toml", help="Write a machine file."
)
@click.option(
    "--repeats", type=click.IntRange(1), default=7, show_default=True, help="Pairs of launches of each probe."
)
@click.option("--compile-only", is_flag=True, help="Compile and check the machine code; launch nothing. Needs no GPU.")
@click.option("--arch", metavar="ARCH", help=f"With --compile-only: what to compile for (default: {DEFAULT_ARCH}).")
@output_options
def command(
    only: tuple[str, ...],
    out: Path | None,
    repeats: int,
    compile_only: bool,
    arch: str | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Measure rates and latencies of this GPU in seconds: clocks, pipes, wgmma, hand-offs, copies, shared memory.

    Each probe checks its own machine code first. docs/probes.md says what each measures and how it could mislead. Exit
    status 1 when a probe failed its check or gave no figure: the others are still printed and written.
    """
    from autostamp.runtime.probes.build import build
    from autostamp.runtime.probes.registry import select
    from autostamp.runtime.probes.session import Session
    from autostamp.runtime.probes.tma import FILE as FILL_FILE

    probes = select(only)
    if compile_only and out is not None:
        raise AutostampError.of("AS9001", detail="--out: nothing is measured with --compile-only")
    if arch is not None and not compile_only:
        raise AutostampError.of("AS9001", detail="--arch: what is launched is compiled for this GPU")
    session = None if compile_only else Session()
    target = session.arch if session is not None else arch or DEFAULT_ARCH
    with tempfile.TemporaryDirectory(prefix="autostamp-probe-") as folder:
        built = build(probes, target, Path(folder), () if session is None else (FILL_FILE,))
        if session is None:
            return _report_build(built, as_json=as_json, quiet=quiet)
        session.open(built)
        results, findings = _measure(session, built, repeats, quiet=quiet or as_json)
    return _report(session, built, results, findings, out, as_json=as_json, quiet=quiet)


def _measure(session: Session, built: Built, repeats: int, *, quiet: bool) -> tuple[list[Result], list[Diagnostic]]:
    """Results of the probes that passed their check and what follows from them, and what went wrong."""
    from autostamp.cli.progress import steps
    from autostamp.runtime.probes import results as reading
    from autostamp.runtime.probes.registry import DERIVED

    results = list(reading.of_driver(session.facts))
    findings = list(built.findings)
    with steps(quiet) as say:
        for probe in built.good:
            say(f"probe {probe.name}")
            try:
                found = list(reading.read(probe, list(session.pairs(probe, repeats))))
            except (ValueError, ArithmeticError) as error:
                findings.append(Diagnostic.of("AS5023", probe=probe.name, detail=str(error)))
                continue
            findings += [_unusable(probe, each) for each in found if not each.is_usable]
            results += found
    results += reading.derive(DERIVED, results)
    return results, findings


def _unusable(probe: Probe, result: Result) -> Diagnostic:
    detail = f"{result.name} is {result.constant.value:.5g} {result.constant.unit}"
    return Diagnostic.of("AS5023", probe=probe.name, detail=detail)


def _report(
    session: Session,
    built: Built,
    results: Sequence[Result],
    findings: Sequence[Diagnostic],
    out: Path | None,
    *,
    as_json: bool,
    quiet: bool,
) -> int:
    from autostamp.runtime import machine
    from autostamp.runtime.manifest_file import write_whole
    from autostamp.runtime.probes.results import machine_file, machine_table

    loaded = next((each.constant.value for each in results if each.name == "clock_loaded"), 0.0)
    facts = machine.facts(("autostamp", "probe"), loaded * 1000)
    table = machine_table(results, session.facts.name, built.arch)
    if out is not None:
        write_whole(out, machine_file(table, facts).encode())
    if as_json:
        click.echo(_as_json(built, results, findings, facts, table.product))
    else:
        click.echo(f"{session.facts.name}, {built.arch}, {session.facts.sms} SMs")
        _print_table(("constant", "median", "least", "most", "unit", "holds for"), map(_row, results))
    _say(findings, built.absent, quiet=quiet)
    if out is not None and not quiet:
        click.echo(f"wrote {out}: {len(table.constants)} constants", err=True)
    return ExitStatus.FINDINGS if findings else ExitStatus.OK


def _report_build(built: Built, *, as_json: bool, quiet: bool) -> int:
    if as_json:
        click.echo(_as_json(built, (), built.findings))
    else:
        wrong = {finding.message: finding for finding in built.findings}
        rows = [(probe.name, probe.file, probe.kernel, _wanted(probe)) for probe in built.good]
        _print_table(("probe", "file", "kernel", "its loops hold"), rows)
        click.echo(f"{built.arch}: {len(built.good)} probes hold what they measure, {len(wrong)} do not")
    _say(built.findings, built.absent, quiet=quiet)
    return ExitStatus.FINDINGS if built.findings else ExitStatus.OK


def _wanted(probe: Probe) -> str:
    return "; ".join(
        ", ".join(f"{number} {key}" for key, number in loop.counts.items())
        + (f" ({loop.copies} loops)" if loop.copies > 1 else "")
        for loop in probe.loops
    )


def _say(findings: Iterable[Diagnostic], absent: Sequence[Probe], *, quiet: bool) -> None:
    for finding in findings:
        click.echo(render(finding), err=True)
    if absent and not quiet:
        names = ", ".join(probe.name for probe in absent)
        click.echo(f"not on this architecture, so not known: {names}", err=True)


def _row(result: Result) -> tuple[str, ...]:
    from autostamp.runtime.probes.results import shown

    constant = result.constant
    spread = (shown(result.least), shown(result.most)) if result.repeats > 1 else ("", "")
    return result.name, shown(constant.value), *spread, constant.unit, constant.condition


def _as_json(
    built: Built,
    results: Sequence[Result],
    findings: Sequence[Diagnostic],
    facts: MachineFacts | None = None,
    product: str = "",
) -> str:
    import msgspec

    value = {
        "schema_version": SCHEMA_VERSION,
        "arch": built.arch,
        "product": product or None,
        "machine": facts,
        "probes": [probe.name for probe in built.good],
        "absent": [probe.name for probe in built.absent],
        "constants": {each.name: _as_object(each) for each in results},
        "findings": [{"code": each.code, "message": each.message, "help": each.help} for each in findings],
    }
    return msgspec.json.encode(value).decode()


def _as_object(result: Result) -> dict[str, object]:
    constant = result.constant
    numbers = {"value": constant.value, "least": result.least, "most": result.most}
    return {
        **{name: number if math.isfinite(number) else None for name, number in numbers.items()},
        "repeats": result.repeats,
        "unit": constant.unit,
        "kind": constant.kind,
        "condition": constant.condition,
        "probe": result.probe or None,
    }


def _print_table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    table = [header, *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(header))]
    for row in table:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
