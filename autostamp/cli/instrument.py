# SPDX-License-Identifier: Apache-2.0
"""`autostamp instrument`: stamp source files and write their manifest."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from autostamp.cli.options import output_options
from autostamp.cli.selection import selection_options
from autostamp.diagnostics import AutostampError, Diagnostic, ExitStatus, render

if TYPE_CHECKING:
    from rich.console import Console

    from autostamp.model.options import InstrumentOptions
    from autostamp.passes.cutedsl import Stamped

STDIN = "-"
SCHEMA_VERSION = 1


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="FILE|FOLDER|MODULE|-...")
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), default=Path("stamped"), show_default=True, help="Where to write."
)
@click.option("--diff", "show_diff", is_flag=True, help="Print the edits as a unified diff; write nothing.")
@click.option("--check", "check_only", is_flag=True, help="Exit 1 if anything would change; write nothing.")
@click.option("--stdin-filename", default="<stdin>", help="Name to report for text read from '-'.")
@selection_options
@output_options
def command(
    names: tuple[str, ...],
    out: Path,
    show_diff: bool,
    check_only: bool,
    stdin_filename: str,
    only: tuple[str, ...],
    skip: tuple[str, ...],
    as_json: bool,
    quiet: bool,
) -> int:
    """Stamp every wait and signal of the named sources, and write the stamped text with its manifest."""
    from autostamp.cli import config
    from autostamp.passes import edits

    options = config.load(Path.cwd(), only, skip)
    if names == (STDIN,):
        return _stdin(stdin_filename, options, show_diff=show_diff, check_only=check_only)
    stamped, findings = _all(names, options)
    status = _report(stamped, findings, as_json=as_json, quiet=quiet, show_table=not show_diff)
    if show_diff:
        for relative, item in stamped:
            click.echo(edits.diff(item.original, item.text, str(relative)), nl=False)
    elif check_only:
        return ExitStatus.FINDINGS if any(item.is_changed for _, item in stamped) else status
    elif status is ExitStatus.OK:
        _write(stamped, out, quiet=quiet or as_json)
    return status


def _stdin(name: str, options: InstrumentOptions, *, show_diff: bool, check_only: bool) -> int:
    from autostamp.hooks.instrument import instrument_source
    from autostamp.passes import edits

    item = instrument_source(sys.stdin.buffer.read(), name, options)
    if check_only:
        return ExitStatus.FINDINGS if item.is_changed else ExitStatus.OK
    if show_diff:
        click.echo(edits.diff(item.original, item.text, name), nl=False)
    else:
        sys.stdout.buffer.write(item.text)
    return ExitStatus.OK


def _all(names: tuple[str, ...], options: InstrumentOptions) -> tuple[list[tuple[Path, Stamped]], list[Diagnostic]]:
    """Every file of every name: those that hold a kernel or a sync call, and what went wrong with the others."""
    from rich.progress import track

    from autostamp.hooks.instrument import instrument_source, sources

    found = [(name, file, relative) for name in names for file, relative in sources(name)]
    stamped: list[tuple[Path, Stamped]] = []
    findings: list[Diagnostic] = []
    files = track(found, "stamping", transient=True, disable=not sys.stderr.isatty(), console=_console())
    for name, file, relative in files:
        try:
            item = instrument_source(file.read_bytes(), str(file), options)
        except OSError as error:
            findings.append(Diagnostic.of("AS9002", path=f"{file}: {error.strerror}"))
            continue
        except AutostampError as error:
            findings.append(error.diagnostic)
            continue
        if item.file.sites or item.file.kernels or item.file.skips:
            stamped.append((relative, item))
        if Path(name) == file:
            findings += _lacks(item, str(file))
    if not stamped and not findings:
        findings.append(Diagnostic.of("AS1004", path=", ".join(names)))
    return stamped, findings


def _console() -> Console:
    from rich.console import Console

    return Console(stderr=True)


def _lacks(item: Stamped, path: str) -> list[Diagnostic]:
    """A file named by itself is expected to hold something to stamp."""
    if item.file.sites:
        return []
    return [Diagnostic.of("AS1004" if item.file.kernels else "AS1003", path=path)]


def _report(
    stamped: list[tuple[Path, Stamped]], findings: list[Diagnostic], *, as_json: bool, quiet: bool, show_table: bool
) -> ExitStatus:
    from autostamp.report import instrumented

    files = tuple(item.file for _, item in stamped)
    if as_json:
        problems = [{"code": finding.code, "message": finding.message} for finding in findings]
        value = {"schema_version": SCHEMA_VERSION, "files": instrumented.as_object(files), "findings": problems}
        click.echo(json.dumps(value, indent=2))
    elif show_table and not quiet and files:
        click.echo(instrumented.as_text(files))
    for finding in findings:
        click.echo(render(finding), err=True)
    return max((finding.status for finding in findings), default=ExitStatus.OK)


def _write(stamped: list[tuple[Path, Stamped]], out: Path, *, quiet: bool) -> None:
    """Stamped files under `out` with their relative paths, and one manifest named for the only file or for the folder."""
    from autostamp.hooks.instrument import manifest_of
    from autostamp.runtime.manifest_file import write_manifest, write_whole

    changed = [(relative, item) for relative, item in stamped if item.is_changed]
    for relative, item in changed:
        write_whole(out / relative, item.text)
    stem = changed[0][0].stem if len(changed) == 1 else "autostamp"
    manifest = manifest_of(tuple(replace(item.file, path=str(Path(item.file.path).resolve())) for _, item in changed))
    write_manifest(out / f"{stem}.manifest.json", manifest)
    if not quiet:
        click.echo(f"wrote {len(changed)} stamped files and {out / f'{stem}.manifest.json'}", err=True)
