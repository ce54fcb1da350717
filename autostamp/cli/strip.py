# SPDX-License-Identifier: Apache-2.0
"""`autostamp strip`: take the stamps out again, byte for byte."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from autostamp.cli.options import no_color_option, quiet_option
from autostamp.diagnostics import AutostampError, Diagnostic, ExitStatus, render


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="FILE|FOLDER|-...")
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Write there instead of over the stamped files.")
@click.option("--check", "check_only", is_flag=True, help="Exit 1 if any file holds stamps; write nothing.")
@quiet_option
@no_color_option
def command(names: tuple[str, ...], out: Path | None, check_only: bool, quiet: bool) -> int:
    """Restore the sources that `autostamp instrument` stamped."""
    from autostamp.passes import edits
    from autostamp.runtime.manifest_file import write_all

    if names == ("-",):
        sys.stdout.buffer.write(edits.strip(sys.stdin.buffer.read(), "<stdin>"))
        return ExitStatus.OK
    status = ExitStatus.OK
    stripped: list[tuple[Path, bytes]] = []
    for name in names:
        for file, relative in _files(Path(name)):
            try:
                data = file.read_bytes()
            except OSError as error:
                raise AutostampError.of("AS9002", path=f"{file}: {error.strerror}") from error
            is_named = Path(name) == file
            if not edits.is_stamped(data) and not (is_named and not check_only):
                continue
            if check_only:
                click.echo(f"{file} holds stamps")
                status = ExitStatus.FINDINGS
                continue
            try:
                stripped.append((out / relative if out is not None else file, edits.strip(data, str(file))))
            except AutostampError as error:
                click.echo(render(error.diagnostic), err=True)
                status = max(status, error.diagnostic.status)
    # Nothing is written unless every file can be restored.
    if status is ExitStatus.OK:
        write_all(dict(stripped))
        if not quiet and not check_only:
            click.echo(f"restored {len(stripped):,} file{'s' * (len(stripped) != 1)}", err=True)
    return status


def _files(path: Path) -> list[tuple[Path, Path]]:
    if path.is_file():
        return [(path, Path(path.name))]
    if path.is_dir():
        found = (file for file in sorted(path.rglob("*")) if _is_source(file) and not file.is_dir())
        return [(file, file.relative_to(path)) for file in found]
    raise AutostampError(Diagnostic.of("AS9002", path=str(path)))


def _is_source(file: Path) -> bool:
    """True for what `autostamp instrument` takes from a folder, by its ending."""
    from autostamp.passes.cuda.project import is_source

    return file.suffix == ".py" or is_source(file)
