# SPDX-License-Identifier: Apache-2.0
"""`autostamp run -- python bench.py`, `autostamp run -- ./app`: run a program and keep what its stamped kernels recorded."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from autostamp.cli.options import no_color_option, quiet_option
from autostamp.cli.replay_options import ReplayChoices, replay_options
from autostamp.cli.run_native import NativeChoices, native_options, refuse, run_native
from autostamp.cli.run_replay import run_replays
from autostamp.cli.selection import placed, placement_options, selection_options
from autostamp.diagnostics import AutostampError, Diagnostic, ExitStatus, render

if TYPE_CHECKING:
    from autostamp.model.options import Block, Blocks, InstrumentOptions, RecordOptions

CAPACITY: Final = 4096
CAPACITY_OF_ALL: Final = 1024
"""Records a warp may write where --capacity is not given: of one CTA or chosen ones, and of all."""

_PYTHON_FLAGS_WITH_VALUE = ("-W", "-X")


def _block(_context: click.Context, _parameter: click.Parameter, value: str) -> Block | Blocks:
    """One CTA, or several."""
    from autostamp.model.options import parse_blocks

    try:
        return parse_blocks(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def _record_options(
    capacity: int | None, block: Block | Blocks, repeat: int, *, with_payload: bool = True
) -> RecordOptions:
    """What to record, within the memory that a kernel gets. Raises AS5020."""
    from autostamp.model.options import Blocks, RecordOptions
    from autostamp.runtime.regions import resolved

    several = block if isinstance(block, Blocks) else None
    one = block if not isinstance(block, Blocks) else (0, 0, 0)
    default = CAPACITY_OF_ALL if several is not None and several.is_all else CAPACITY
    return resolved(RecordOptions(capacity or default, one, with_payload, several, repeat))


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "--instrument", "targets", multiple=True, metavar="MODULE|FILE", help="What to stamp; default: the program itself."
)
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), default=Path("RUN"), show_default=True, help="Run folder."
)
@click.option(
    "--block",
    callback=_block,
    metavar="X,Y,Z|A..B|LIST|all",
    default="0,0,0",
    show_default=True,
    help="Which CTAs record: one; linear indices A to B (x + grid.x * (y + grid.y * z)); a list '0,0,0;5,0,0'; or all.",
)
@click.option(
    "--capacity",
    type=click.IntRange(16, 1 << 20),
    help=f"Records a warp may write: {CAPACITY}, with --block all {CAPACITY_OF_ALL}. A kernel gets 512 MiB for all its CTAs.",
)
@click.option(
    "--repeat",
    type=click.IntRange(1, 1024),
    default=1,
    show_default=True,
    metavar="N",
    help="Keep the last N launches of each kernel, so that figures carry their spread.",
)
@click.option(
    "--no-stage", is_flag=True, help="Leave the ring stage out of the records (one instruction less a stamp)."
)
@click.option("--compile-only", is_flag=True, help="Compile with stamps; record nothing. Needs no GPU.")
@selection_options
@placement_options
@quiet_option
@no_color_option
@native_options
@replay_options
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND...")
def command(
    targets: tuple[str, ...],
    out: Path,
    block: Block | Blocks,
    capacity: int | None,
    repeat: int,
    no_stage: bool,
    compile_only: bool,
    only: tuple[str, ...],
    skip: tuple[str, ...],
    placement: Path | None,
    set_number: int | None,
    quiet: bool,
    native: bool,
    launch: str,
    kernel: str,
    mapped: bool,
    manifests: tuple[Path, ...],
    replay: bool,
    bar: float,
    with_untried: bool,
    time_pattern: str,
    results: tuple[Path, ...],
    build: str,
    jobs: int,
    budget: float | None,
    runs: int,
    sets: int,
    as_placed: bool,
    program: tuple[str, ...],
) -> int:
    """Run COMMAND and write RUN. The exit status is the program's.

    Of a Python program the kernels are stamped as its modules are imported. Any other program must hold stamped CUDA C++: see
    `autostamp nvcc` and `autostamp instrument`.
    """
    choices = NativeChoices(launch, kernel, mapped, manifests)
    if replay:
        unfit = {"--only": only, "--skip": skip, "--set": set_number, "--compile-only": compile_only}
        refuse([name for name, value in unfit.items() if value], "a replay's sites are those of its placement")
        record = _record_options(capacity, block, repeat, with_payload=not no_stage)
        is_python = _is_python(program) and not native
        python, arguments = _split(program) if _is_python(program) else ([], list(program))
        asked = ReplayChoices(
            bar, time_pattern, results, build, placement, with_untried, jobs, budget, runs, sets, as_placed
        )
        parts = (python, arguments) if is_python else ([], [*python, *arguments])
        chosen = targets or _default_targets(arguments)
        return run_replays(asked.program(parts, program, chosen, record, choices), asked, out, quiet=quiet)
    asked_for_replays = {
        "--time": time_pattern,
        "--results": results,
        "--build": build,
        "--try-uncovered": with_untried,
        "--as-placed": as_placed,
    }
    refuse([name for name, value in asked_for_replays.items() if value], "for --replay")
    if native or not (compile_only or _is_python(program)):
        given = {
            "--instrument": targets,
            "--only": only,
            "--skip": skip,
            "--placement": placement,
            "--no-stage": no_stage,
            "--compile-only": compile_only,
        }
        refuse([name for name, value in given.items() if value], "CUDA C++ is stamped when it is built")
        if repeat > 1 and launch != "last":
            refuse(["--repeat"], "it keeps the last launches, and --launch asks for others")
        words = [word for part in _split(program) for word in part] if _is_python(program) else list(program)
        return run_native(words, program, out, _record_options(capacity, block, repeat), choices, quiet=quiet)
    refuse(
        choices.given, "for programs that hold stamped CUDA C++; with a Python program that loads some, add --native"
    )
    from autostamp.cli import config

    return _run_python(
        program,
        targets,
        out,
        _record_options(capacity, block, repeat, with_payload=not no_stage),
        config.load(Path.cwd(), only, skip, placed(placement, set_number)),
        compile_only=compile_only,
        quiet=quiet,
    )


def _run_python(
    program: tuple[str, ...],
    targets: tuple[str, ...],
    out: Path,
    record: RecordOptions,
    instrument: InstrumentOptions,
    *,
    compile_only: bool,
    quiet: bool,
) -> int:
    """Run a Python program inside a session, in the interpreter that it names."""
    import msgspec

    from autostamp.hooks import caches
    from autostamp.hooks.program import Config, Report

    python, arguments = _split(program)
    with tempfile.TemporaryDirectory(prefix="autostamp-") as folder:
        files = Path(folder) / "config.json", Path(folder) / "report.json"
        settings = Config(
            targets=targets or _default_targets(arguments),
            out=str(out.resolve()),
            report=str(files[1]),
            record=record,
            instrument=instrument,
            compile_only=compile_only,
            command=program,
        )
        files[0].write_bytes(msgspec.json.encode(settings))
        environment = {**os.environ, **caches.switched_off()}
        child = subprocess.run(
            [*python, "-m", "autostamp.hooks.program", str(files[0]), *arguments], env=environment, check=False
        )
        if files[1].is_file():
            findings = msgspec.json.decode(files[1].read_bytes(), type=Report).findings
        else:
            findings = (_why_unreported(python),)
    return _conclude(child.returncode, findings, out, quiet=quiet)


def _default_targets(arguments: list[str]) -> tuple[str, ...]:
    """The program itself: the script, or the module after `-m`."""
    return tuple(item for item in arguments[:1] if item != "-m") or tuple(arguments[1:2])


def _why_unreported(python: list[str]) -> Diagnostic:
    """Why the child left no report: it could not import us (raises AS5007 then), or it did not come to its end."""
    probe = subprocess.run(
        [*python, "-c", "import autostamp.hooks.program"], capture_output=True, text=True, check=False
    )
    if probe.returncode:
        detail = (probe.stderr.strip().splitlines() or ["it cannot import autostamp"])[-1]
        raise AutostampError.of("AS5007", command=" ".join(python), detail=detail)
    detail = "the program ended before its records could be read"
    return Diagnostic.of("AS5003", detail=detail, hint="It was killed, or left through os._exit.")


def _conclude(code: int, findings: tuple[Diagnostic, ...], out: Path, *, quiet: bool) -> int:
    """The program's status; ours only when the program itself succeeded."""
    for finding in findings:
        click.echo(render(finding), err=True)
    if code:
        return 128 - code if code < 0 else code
    status = max((finding.status for finding in findings), default=ExitStatus.OK)
    if status is ExitStatus.OK and not quiet:
        click.echo(f"wrote {out}; read it with: autostamp summary {out}", err=True)
    return status


def _split(program: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """(interpreter with its flags, script or -m module with arguments). Raises AS5007 for what is no Python program."""
    words = list(program)
    first = Path(words[0]).name
    if first.startswith("python"):
        found = shutil.which(words[0])
        if found is None:
            raise AutostampError.of("AS5007", command=words[0], detail="not found")
        at = 1
        while at < len(words) and words[at].startswith("-") and words[at] != "-m":
            at += 2 if words[at] in _PYTHON_FLAGS_WITH_VALUE else 1
        if at >= len(words) or "-c" in words[1:at]:
            raise AutostampError.of("AS5007", command=" ".join(words), detail="it names no script and no module")
        return [found, *words[1:at]], _checked(words[at:])
    if words[0] == "-m" or words[0].endswith(".py"):
        return [sys.executable], _checked(words)
    script = shutil.which(words[0])
    if script is not None and _is_python_script(Path(script)):
        return [sys.executable], [script, *words[1:]]
    raise AutostampError.of("AS5007", command=words[0], detail="it is not a Python program")


def _is_python(program: tuple[str, ...]) -> bool:
    """True for what `_split` takes for a Python program, whether it can be run or not."""
    script = shutil.which(program[0])
    is_named = Path(program[0]).name.startswith("python") or program[0] == "-m" or program[0].endswith(".py")
    return is_named or (script is not None and _is_python_script(Path(script)))


def _checked(arguments: list[str]) -> list[str]:
    """The arguments, when they begin with a script that is there or with `-m` and a name. Raises AS5007 otherwise."""
    if arguments == ["-m"]:
        raise AutostampError.of("AS5007", command="-m", detail="it names no module")
    if arguments[0] != "-m" and not Path(arguments[0]).exists():
        raise AutostampError.of("AS5007", command=arguments[0], detail="no such file")
    return arguments


def _is_python_script(path: Path) -> bool:
    with path.open("rb") as file:
        line = file.readline(256)
    return line.startswith(b"#!") and b"python" in line
