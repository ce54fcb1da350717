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
    is_filter = names == (STDIN,)
    stamped, findings = _stdin(stdin_filename, options) if is_filter else _all(names, out, options)
    status = _report(stamped, findings, as_json=as_json, quiet=quiet, show_table=not (show_diff or is_filter))
    if show_diff:
        for relative, item in stamped:
            click.echo(edits.diff(item.original, item.text, str(relative)), nl=False)
    elif check_only:
        return max(status, ExitStatus.FINDINGS if any(item.would_change for _, item in stamped) else ExitStatus.OK)
    elif status is ExitStatus.OK and not is_filter:
        _write(stamped, out, quiet=quiet or as_json)
    elif status is ExitStatus.OK and not as_json:
        sys.stdout.buffer.write(stamped[0][1].text)
    return status


def _stdin(name: str, options: InstrumentOptions) -> tuple[list[tuple[Path, Stamped]], list[Diagnostic]]:
    from autostamp.hooks.instrument import instrument_source

    item = instrument_source(sys.stdin.buffer.read(), name, options)
    return [(Path(name), item)], _lacks(item, name)


def _all(
    names: tuple[str, ...], out: Path, options: InstrumentOptions
) -> tuple[list[tuple[Path, Stamped]], list[Diagnostic]]:
    """Every file of every name: those that hold a kernel or a sync call, and what went wrong with the others."""
    from rich.progress import track

    from autostamp.hooks.instrument import instrument_source

    found = _files(names, out)
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
    if not findings and not any(item.is_changed for _, item in stamped):
        findings.append(Diagnostic.of("AS1004", path=", ".join(names)))
    return stamped, findings


def _files(names: tuple[str, ...], out: Path) -> list[tuple[str, Path, Path]]:
    """(name it came from, file, relative path) of every file, each once, without what an earlier run wrote below a folder."""
    from autostamp.hooks.instrument import sources

    found: dict[Path, tuple[str, Path, Path]] = {}
    written = out.resolve()
    for name in names:
        is_below = Path(name).resolve() in written.parents
        for file, relative in sources(name):
            path = file.resolve()
            if not (is_below and written in path.parents):
                found.setdefault(path, (name, file, relative))
    return list(found.values())


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
        problems = [_as_object(finding) for finding in findings]
        value = {"schema_version": SCHEMA_VERSION, "files": instrumented.as_object(files), "findings": problems}
        click.echo(json.dumps(value, indent=2))
    elif show_table and not quiet and files:
        click.echo(instrumented.as_text(files))
    for finding in findings:
        click.echo(render(finding), err=True)
    return max((finding.status for finding in findings), default=ExitStatus.OK)


def _as_object(finding: Diagnostic) -> dict[str, object]:
    value: dict[str, object] = {"code": finding.code, "message": finding.message}
    if finding.position is not None:
        value |= {"path": finding.position.path, "line": finding.position.line, "column": finding.position.column}
    return value


def _write(stamped: list[tuple[Path, Stamped]], out: Path, *, quiet: bool) -> None:
    """Stamped files under `out` with their relative paths, and one manifest named for the only file or for the folder."""
    from autostamp.hooks.instrument import manifest_of
    from autostamp.runtime.manifest_file import encode, write_all

    changed = {out / relative: item for relative, item in stamped if item.is_changed}
    for relative, item in stamped:
        other = changed.get(out / relative, item)
        if other is not item:
            detail = f"{item.file.path} and {other.file.path} would both be written to {out / relative}"
            raise AutostampError.of("AS9001", detail=detail)
    stem = next(iter(changed)).stem if len(changed) == 1 else "autostamp"
    listing = out / f"{stem}.manifest.json"
    manifest = manifest_of(
        tuple(replace(item.file, path=str(Path(item.file.path).resolve())) for item in changed.values())
    )
    write_all({**{path: item.text for path, item in changed.items()}, listing: encode(manifest)})
    if not quiet:
        click.echo(f"wrote {len(changed)} stamped files and {listing}", err=True)
