# SPDX-License-Identifier: Apache-2.0
"""`autostamp instrument`: stamp source files and write their manifest."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from autostamp.cli.options import output_options
from autostamp.cli.selection import placed, placement_options, selection_options
from autostamp.diagnostics import AutostampError, Diagnostic, ExitStatus, render

if TYPE_CHECKING:
    from rich.console import Console

    from autostamp.model.manifest import Unit
    from autostamp.model.options import InstrumentOptions
    from autostamp.passes.cuda.instrument import CudaOptions
    from autostamp.passes.stamped import Stamped

STDIN = "-"
SCHEMA_VERSION = 1


@dataclass(slots=True)
class Result:
    """What was stamped: (path below the output, item) of files that hold anything, and the files that are written with them.

    `findings` stop the command, `notes` (AS1011, AS1012) are possible misses. `unit` numbers the files of CUDA C++; `outside`
    names the sync-bearing functions of headers that were only read.
    """

    stamped: list[tuple[Path, Stamped]] = field(default_factory=list)
    findings: list[Diagnostic] = field(default_factory=list)
    beside: dict[Path, bytes] = field(default_factory=dict)
    unit: Unit | None = None
    outside: dict[Path, tuple[str, ...]] = field(default_factory=dict)
    notes: list[Diagnostic] = field(default_factory=list)


@click.command()
@click.argument("names", nargs=-1, metavar="FILE|FOLDER|MODULE|-...")
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), default=Path("stamped"), show_default=True, help="Where to write."
)
@click.option("--diff", "show_diff", is_flag=True, help="Print the edits as a unified diff; write nothing.")
@click.option("--check", "check_only", is_flag=True, help="Exit 1 if anything would change; write nothing.")
@click.option("--stdin-filename", default="<stdin>", help="Name to report for text read from '-'.")
@click.option(
    "-I", "folders", multiple=True, type=click.Path(path_type=Path), metavar="DIR",
    help="CUDA C++: read headers of this folder too; they are not stamped. Repeatable.",
)  # fmt: skip
@click.option(
    "--carrier", type=click.Choice(["auto", "param", "symbol"]), default="auto", show_default=True,
    help="CUDA C++: how kernels get the buffer: a parameter, a device symbol, or what is safe.",
)  # fmt: skip
@click.option(
    "--form", type=click.Choice(["auto", "lean", "usual"]), default="auto", show_default=True,
    help="CUDA C++: stamps with fewer registers alive and more instructions (lean), or what suits each kernel.",
)  # fmt: skip
@click.option(
    "--project", type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="ROOT",
    help="CUDA C++: stamp a whole project into a shadow tree at -o.",
)  # fmt: skip
@click.option("--in-place", is_flag=True, help="Write over the files themselves; `autostamp strip` restores them.")
@click.option("--rdc", is_flag=True, help="CUDA C++: device code of several files is linked (nvcc -rdc=true).")
@selection_options
@placement_options
@output_options
def command(
    names: tuple[str, ...],
    out: Path,
    show_diff: bool,
    check_only: bool,
    stdin_filename: str,
    folders: tuple[Path, ...],
    carrier: str,
    form: str,
    project: Path | None,
    in_place: bool,
    rdc: bool,
    only: tuple[str, ...],
    skip: tuple[str, ...],
    placement: Path | None,
    set_number: int | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Stamp every wait and signal of the named sources, and write the stamped text with its manifest."""
    from autostamp.cli import config

    if bool(names) == (project is not None) or (project is not None and in_place):
        raise click.UsageError("name files or folders, or give --project ROOT with -o SHADOW")
    options = config.load(Path.cwd(), only, skip, placed(placement, set_number))
    cuda = _cuda_options(options, carrier, form, rdc)
    if project is not None:
        result = _project(project, out, cuda, folders)
    elif names == (STDIN,):
        result = _stdin(stdin_filename, options, cuda)
    else:
        out = _common(names) if in_place else out
        result = _all(names, out, options, cuda, folders, in_place=in_place)
    is_filter = names == (STDIN,)
    status = _report(result, as_json=as_json, quiet=quiet, show_table=not (show_diff or is_filter))
    if show_diff:
        _diff(result)
    elif check_only:
        return max(status, _check(result))
    elif status is ExitStatus.OK and project is not None:
        _write_shadow(result, project, out, quiet=quiet or as_json)
    elif status is ExitStatus.OK and not is_filter:
        _write(result, out, quiet=quiet or as_json)
    elif status is ExitStatus.OK and not as_json:
        sys.stdout.buffer.write(result.stamped[0][1].text)
    # A call that may be a wait and has no stamp stops nothing, and is never passed over.
    return max(status, ExitStatus.FINDINGS) if result.notes else status


def _cuda_options(options: InstrumentOptions, carrier: str, form: str, is_linked: bool) -> CudaOptions:
    from autostamp.passes.cuda.carrier import Carrier
    from autostamp.passes.cuda.instrument import CudaOptions
    from autostamp.passes.cuda.lean import LaneForm

    return CudaOptions(options, Carrier(carrier), LaneForm(form), without_calls_out_of_line=is_linked)


def _stdin(name: str, options: InstrumentOptions, cuda: CudaOptions) -> Result:
    from autostamp.hooks.instrument import instrument_source
    from autostamp.passes.cuda.instrument import instrument
    from autostamp.passes.cuda.project import is_source

    data = sys.stdin.buffer.read()
    path = Path(name)
    if not is_source(path):
        item = instrument_source(data, name, options)
        return Result([(path, item)], _lacks(item, name))
    done = instrument({path: data}, {}, cuda)
    item = done.stamped[path]
    return Result([(path, item)], [*done.findings, *_lacks(item, name)], unit=done.unit, notes=list(done.notes))


def _all(
    names: tuple[str, ...],
    out: Path,
    options: InstrumentOptions,
    cuda: CudaOptions,
    folders: tuple[Path, ...],
    *,
    in_place: bool,
) -> Result:
    """Every file of every name: those that hold a kernel or a sync call, and what went wrong with the others."""
    from autostamp.passes.cuda.project import is_source

    result = Result()
    of_cuda = [name for name in names if Path(name).is_dir() or (is_source(Path(name)) and Path(name).is_file())]
    of_python = [name for name in names if Path(name).is_dir() or name not in of_cuda]
    _add_python(of_python, out, options, result, in_place=in_place)
    _add_cuda(of_cuda, out, cuda, folders, result, in_place=in_place)
    if not result.findings and not any(item.is_changed for _, item in result.stamped):
        result.findings.append(Diagnostic.of("AS1004", path=", ".join(names)))
    return result


def _add_python(names: Sequence[str], out: Path, options: InstrumentOptions, result: Result, *, in_place: bool) -> None:
    from rich.progress import track

    from autostamp.hooks.instrument import instrument_source

    found = _files(names, out)
    files = track(found, "stamping", transient=True, disable=not sys.stderr.isatty(), console=_console())
    for name, file, relative in files:
        try:
            item = instrument_source(file.read_bytes(), str(file), options)
        except OSError as error:
            result.findings.append(Diagnostic.of("AS9002", path=f"{file}: {error.strerror}"))
            continue
        except AutostampError as error:
            result.findings.append(error.diagnostic)
            continue
        if item.file.sites or item.file.kernels or item.file.skips:
            result.stamped.append((_below(out, file) if in_place else relative, item))
        if Path(name) == file:
            result.findings += _lacks(item, str(file))


def _add_cuda(
    names: Sequence[str], out: Path, cuda: CudaOptions, folders: Sequence[Path], result: Result, *, in_place: bool
) -> None:
    """The files of CUDA C++, as one unit."""
    from autostamp.hooks.instrument_cuda import gather, instrument_batch, unit_files

    if not names:
        return
    batch = gather(names, folders, out.resolve())
    result.findings += batch.findings
    if in_place:
        batch.relative = {path: _below(out, path) for path in batch.files}
    _require_places(batch.relative, out)
    done = instrument_batch(batch, cuda, _watch)
    result.findings += done.findings
    result.notes += done.notes
    result.outside = done.outside
    for path, item in done.stamped.items():
        if item.file.sites or item.file.kernels or item.file.skips:
            result.stamped.append((batch.relative[path], item))
        if path in batch.own and not item.is_changed:
            result.beside[batch.relative[path]] = item.text
        if path in batch.named:
            result.findings += _lacks(item, str(path))
    if done.changed:
        result.unit = done.unit
        result.beside |= {Path(name): data for name, data in unit_files(done).items()}


def _require_places(relative: dict[Path, Path], out: Path) -> None:
    """Raise AS9001 when two files would be written to one place."""
    taken: dict[Path, Path] = {}
    for path, place in relative.items():
        other = taken.setdefault(place, path)
        if other != path:
            detail = f"{path} and {other} would both be written to {out / place}"
            raise AutostampError.of("AS9001", detail=detail)


def _project(root: Path, out: Path, cuda: CudaOptions, folders: Sequence[Path]) -> Result:
    """Every source of a project, as one unit."""
    from autostamp.hooks.instrument_cuda import gather, instrument_batch, unit_files
    from autostamp.hooks.shadow import require_place

    top, target = root.resolve(), out.resolve()
    require_place(top, target)
    batch = gather([str(top)], folders, target)
    done = instrument_batch(batch, replace(cuda, with_line_names=True), _watch)
    result = Result(findings=list(done.findings), unit=done.unit, outside=done.outside, notes=list(done.notes))
    for path, item in done.stamped.items():
        if item.file.sites or item.file.kernels or item.file.skips:
            result.stamped.append((batch.relative[path], item))
    if not done.changed and not result.findings:
        result.findings.append(Diagnostic.of("AS1004", path=str(root)))
    result.beside |= {Path(name): data for name, data in unit_files(done).items()}
    return result


def _watch(paths: Sequence[Path]) -> Iterable[Path]:
    from rich.progress import track

    return track(paths, "stamping", transient=True, disable=not sys.stderr.isatty(), console=_console())


def _common(names: tuple[str, ...]) -> Path:
    """The folder that all named files lie in or below."""
    folders = [Path(name) if Path(name).is_dir() else Path(name).parent for name in names]
    for name, folder in zip(names, folders, strict=True):
        if not folder.is_dir() or not Path(name).exists():
            raise AutostampError.of("AS9002", path=name)
    if len(folders) == 1:
        return folders[0]
    return Path(os.path.commonpath([folder.resolve() for folder in folders]))


def _below(top: Path, file: Path) -> Path:
    return Path(os.path.relpath(file.resolve(), top.resolve()))


def _files(names: Sequence[str], out: Path) -> list[tuple[str, Path, Path]]:
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
    """A file named by itself is expected to hold something to stamp; a kernel of CUDA C++ may have its waits in headers."""
    if item.file.sites or (item.file.language == "cuda" and item.is_changed):
        return []
    return [Diagnostic.of("AS1004" if item.file.kernels else "AS1003", path=path)]


def _report(result: Result, *, as_json: bool, quiet: bool, show_table: bool) -> ExitStatus:
    from autostamp.report import instrumented

    files = tuple(item.file for _, item in result.stamped)
    if as_json:
        problems = [_as_object(finding) for finding in (*result.findings, *result.notes)]
        value = {
            "schema_version": SCHEMA_VERSION,
            "files": instrumented.as_object(files),
            "outside": {str(path): list(functions) for path, functions in result.outside.items()},
            "findings": problems,
        }
        click.echo(json.dumps(value, indent=2))
    elif show_table and not quiet and files:
        click.echo(instrumented.as_text(files, result.outside))
    for finding in (*result.notes, *result.findings):
        click.echo(render(finding), err=True)
    return max((finding.status for finding in result.findings), default=ExitStatus.OK)


def _as_object(finding: Diagnostic) -> dict[str, object]:
    value: dict[str, object] = {"code": finding.code, "message": finding.message}
    if finding.position is not None:
        value |= {"path": finding.position.path, "line": finding.position.line, "column": finding.position.column}
    return value


def _diff(result: Result) -> None:
    from autostamp.passes import edits

    for relative, item in result.stamped:
        comment = edits.diff(item.original, item.text, str(relative))
        click.echo(comment, nl=False)


def _check(result: Result) -> ExitStatus:
    """Findings when anything would change, or when a wait may have been missed."""
    is_changed = any(item.would_change for _, item in result.stamped)
    return ExitStatus.FINDINGS if result.notes or is_changed else ExitStatus.OK


def _stamped_files(count: int) -> str:
    return "1 stamped file" if count == 1 else f"{count:,} stamped files"


def _encoded(items: Iterable[Stamped], unit: Unit | None) -> bytes:
    from autostamp.hooks.instrument import manifest_of
    from autostamp.runtime.manifest_file import encode

    files = tuple(replace(item.file, path=str(Path(item.file.path).resolve())) for item in items)
    return encode(manifest_of(files, unit))


def _write(result: Result, out: Path, *, quiet: bool) -> None:
    """Stamped files under `out` with their relative paths, and one manifest named for the only file or for the folder."""
    from autostamp.runtime.manifest_file import write_all

    changed = {out / relative: item for relative, item in result.stamped if item.is_changed}
    for relative, item in result.stamped:
        other = changed.get(out / relative, item)
        if other is not item:
            detail = f"{item.file.path} and {other.file.path} would both be written to {out / relative}"
            raise AutostampError.of("AS9001", detail=detail)
    stem = next(iter(changed)).stem if len(changed) == 1 else "autostamp"
    listing = out / f"{stem}.manifest.json"
    manifest = _encoded(changed.values(), result.unit)
    beside = {out / path: data for path, data in result.beside.items()}
    write_all({**beside, **{path: item.text for path, item in changed.items()}, listing: manifest})
    if quiet:
        return
    click.echo(f"wrote {_stamped_files(len(changed))} and {listing}", err=True)
    if result.unit is not None:
        click.echo(f"compile with -DAUTOSTAMP=1 to turn the stamps on; without it {out} compiles as before", err=True)


def _write_shadow(result: Result, root: Path, out: Path, *, quiet: bool) -> None:
    from autostamp.hooks.shadow import write
    from autostamp.passes.cuda.project import shadow, walk

    top, target = root.resolve(), out.resolve()
    changed = {relative: item for relative, item in result.stamped if item.is_changed}
    texts = {relative: item.text for relative, item in changed.items()}
    writes = {**texts, **result.beside, Path("autostamp.manifest.json"): _encoded(changed.values(), result.unit)}
    count = write(target, shadow(top, walk(top, target), writes, target))
    if not quiet:
        click.echo(
            f"wrote {_stamped_files(len(changed))} and {out / 'autostamp.manifest.json'} ({count} new)", err=True
        )
        click.echo(f"build in {out} as in {root}; -DAUTOSTAMP=1 turns the stamps on", err=True)
