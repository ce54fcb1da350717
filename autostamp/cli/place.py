# SPDX-License-Identifier: Apache-2.0
"""`autostamp place -- python bench.py`, `-- nvcc ... kernel.cu`, or a RUN: where stamps may stand without moving the kernel."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final

import click

from autostamp.cli.options import json_option, no_color_option, quiet_option
from autostamp.cli.selection import selection_options
from autostamp.diagnostics import AutostampError, Diagnostic, ExitStatus, render

if TYPE_CHECKING:
    from autostamp.hooks.variants import Builder, Target, Variants
    from autostamp.model.placement import Placement

EVERY_S: Final = 30.0
"""Seconds between two lines of progress where there is no terminal."""
_UNITS: Final = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


def _seconds(_context: click.Context, _parameter: click.Parameter, value: str) -> float:
    """`5m`, `90s`, `90` or `1h` in seconds."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([smh]?)", value.strip())
    if match is None or float(match[1]) <= 0:
        raise click.BadParameter(f"{value!r} is not a time such as 90s, 5m or 1h")
    return float(match[1]) * _UNITS[match[2]]


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "--instrument", "targets", multiple=True, metavar="MODULE|FILE", help="What to stamp; default: the program itself."
)
@click.option("--kernel", "pattern", metavar="PATTERN", default="*", help="Which kernel, by name; * and ? allowed.")
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    default=Path("placement.json"),
    show_default=True,
    help="File for the sets, to stamp by: --placement FILE --set N.",
)
@click.option(
    "--budget", callback=_seconds, default="10m", show_default=True, metavar="TIME", help="Compile no longer than this."
)
@click.option(
    "--jobs", type=click.IntRange(min=1), default=os.cpu_count() or 1, show_default=True, help="Compilations at a time."
)
@click.option(
    "--limit", type=click.FloatRange(min=0), metavar="DISTANCE", help="Largest distance that counts as near clean."
)
@selection_options
@json_option
@quiet_option
@no_color_option
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED, metavar="RUN | FILE.cu | -- COMMAND...")
def command(
    targets: tuple[str, ...],
    pattern: str,
    out: Path,
    budget: float,
    jobs: int,
    limit: float | None,
    only: tuple[str, ...],
    skip: tuple[str, ...],
    as_json: bool,
    quiet: bool,
    program: tuple[str, ...],
) -> int:
    """Compile the kernel clean, with each site alone and with sets of sites, and say which sets leave its schedule alone.

    COMMAND is a Python program that compiles a CuTe-DSL kernel (it is run once for each variant), or an nvcc command line. A RUN
    stands for the command that made it. Needs no GPU where the program needs none to compile.
    """
    from autostamp.cli import config
    from autostamp.hooks.placement_search import Search
    from autostamp.hooks.state import StateFolder
    from autostamp.hooks.variants import Variants
    from autostamp.passes import schedule_features
    from autostamp.runtime.placement_file import encode, write_placement

    begin = time.monotonic()
    builder = _builder(program, targets, pattern, config.load(Path.cwd(), only, skip))
    with closing(builder), _progress(quiet=quiet) as say:
        say("clean and stamped", 0, 2)
        target = builder.target()
        if target.others and not quiet:
            click.echo(_others(target), err=True)
        variants = Variants(builder, target, StateFolder.of(os.environ))
        bound = schedule_features.weights().near_clean if limit is None else limit
        search = Search(variants, jobs=jobs, limit=bound, deadline=begin + budget, progress=say)
        with _until_signal(search.stop) as was_signalled:
            placement = search.run()
    write_placement(out, placement)
    if as_json:
        sys.stdout.buffer.write(encode(placement))
    else:
        from autostamp.report.placement_text import as_text

        click.echo(as_text(placement, {each.key: each.text for each in target.candidates}), nl=False)
    findings = [*_failed(variants), *(_unanchored(role) for role in search.unanchored)]
    if placement.floor:
        floor, most = f"{placement.floor:.3f}", f"{placement.floor + bound:.3f}"
        findings.append(Diagnostic.of("AS8109", floor=floor, limit=f"{bound:.3f}", most=most))
    for each in findings:
        click.echo(render(each), err=True)
    if not quiet:
        _conclude(placement, out, "a signal" if was_signalled() else f"the budget of {budget:g} s")
    return ExitStatus.FINDINGS if any(each.code == "AS8104" for each in findings) else ExitStatus.OK


def _others(target: Target) -> str:
    """Which kernels the search is not of: instances of a template have the same sites and other schedules."""
    from autostamp.report.verdict_words import kernel_name

    names = ", ".join(map(kernel_name, target.others))
    return f"note: this is of {kernel_name(target.symbol)}; --kernel PATTERN chooses another: {names}"


@contextmanager
def _until_signal(stop: Callable[[], None]) -> Iterator[Callable[[], bool]]:
    """Let the first SIGINT or SIGTERM call `stop`; a second one does what it did before. Yields what says whether one came.

    One that is ignored stays so: that is how a shell keeps what runs in its background from another program's Ctrl-C.
    """
    came: list[int] = []
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    before = {number: handler for number, handler in handlers.items() if handler != signal.SIG_IGN}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def handle(number: int, _frame: FrameType | None) -> None:
        came.append(number)
        restore()
        stop()

    for number in before:
        signal.signal(number, handle)
    try:
        yield lambda: bool(came)
    finally:
        restore()


def _conclude(placement: Placement, out: Path, end: str) -> None:
    if not placement.complete:
        click.echo(f"note: {end} ended the search; this is the best so far", err=True)
    click.echo(f"wrote {out}; stamp a set with: autostamp run --placement {out} --set N -- ...", err=True)


def _failed(variants: Variants) -> Iterator[Diagnostic]:
    """One finding for each site that fails alone, and for each set whose sites do not."""
    alone = {next(iter(sites))[0] for sites in variants.failures if len(sites) == 1}
    for sites, error in variants.failures.items():
        if len(sites) == 1 or alone.isdisjoint(key for key, _ in sites):
            yield error.diagnostic


def _unanchored(role: str) -> Diagnostic:
    detail = "each of its sites moves the schedule, or none is in its main loop"
    return Diagnostic.of("AS8105", role=role, detail=detail)


def _builder(program: tuple[str, ...], targets: tuple[str, ...], pattern: str, options: object) -> Builder:
    """The builder of the program's language."""
    from autostamp.cli.run import _is_python, _split
    from autostamp.hooks.variants_cutedsl import CuteBuilder
    from autostamp.model.options import InstrumentOptions

    assert isinstance(options, InstrumentOptions)
    if len(program) == 1 and (Path(program[0]) / "manifest.json").is_file():
        program, targets = _of_run(Path(program[0]), targets)
    if Path(program[0]).name in ("nvcc", "autostamp-nvcc") or program[0].endswith(".cu"):
        from autostamp.hooks.variants_cuda import CudaBuilder

        words = program if not program[0].endswith(".cu") else ("nvcc", "-arch=sm_90a", "-std=c++17", *program)
        return CudaBuilder(words, pattern, options)
    if not _is_python(program):
        raise AutostampError.of("AS5007", command=program[0], detail="it is no Python program and no nvcc")
    python, arguments = _split(program)
    chosen = targets or tuple(item for item in arguments[:1] if item != "-m") or tuple(arguments[1:2])
    from autostamp.runtime import devices

    gpus, _ = devices.find_gpus()
    return CuteBuilder(python, arguments, chosen, pattern, not gpus, options)


def _of_run(run: Path, targets: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The command that made a run, and the files that were stamped in it. Raises AS8106 where the run says no command."""
    from autostamp.runtime.store import load_run

    data = load_run(run)
    if not data.facts.command:
        hint = "Give the command itself: autostamp place -- python bench.py."
        raise AutostampError.of("AS8106", detail=f"{run} does not say by which command it was made", hint=hint)
    files = tuple(dict.fromkeys(file.path for file in data.manifest.files))
    return tuple(data.facts.command), targets or files


class _Lines:
    """Progress where there is no terminal: a search takes minutes, and a log should not be silent for so long."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, what: str, done: int, every: int) -> None:
        """Say what is compiled if nothing was said for EVERY_S."""
        now = time.monotonic()
        if now - self._last >= EVERY_S:
            self._last = now
            click.echo(f"{what}: {done} of {every or '?'}", err=True)


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Callable[[str, int, int], None]]:
    """Say on stderr what is compiled: on a terminal in a line that is gone in the end, else in a line every half a minute."""
    if quiet or not sys.stderr.isatty():
        yield (lambda _what, _done, _all: None) if quiet else _Lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("clean and stamped", total=2)

        def say(what: str, done: int, every: int) -> None:
            bar.update(task, description=what, completed=done, total=every or None)

        yield say
