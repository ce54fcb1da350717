# SPDX-License-Identifier: Apache-2.0
"""Run a user's Python program inside a session: `python -m autostamp.hooks.program CONFIG script.py args`.

The command line starts this in the interpreter that the user named, so that it sees the user's packages. What went wrong
is left in the report file that CONFIG names; the exit status is the program's.
"""

from __future__ import annotations

import builtins
import os
import runpy
import sys
import traceback
from pathlib import Path
from types import ModuleType, TracebackType

import msgspec

from autostamp.diagnostics import AutostampError, Diagnostic
from autostamp.hooks import turns
from autostamp.hooks.importer import Loaded
from autostamp.hooks.session import Session
from autostamp.model.options import InstrumentOptions, RecordOptions
from autostamp.runtime import compilers


class Config(msgspec.Struct, frozen=True):
    """What the command line passes on. Where `turn` names a file, no kernel is compiled before it is there.

    With `is_clean` nothing is recorded, and kernels are byte for byte those of a run without us.
    """

    targets: tuple[str, ...]
    out: str
    report: str
    record: RecordOptions
    instrument: InstrumentOptions
    compile_only: bool
    command: tuple[str, ...]
    turn: str = ""
    is_clean: bool = False


class Report(msgspec.Struct, frozen=True):
    """What the command line reads back: findings, whether the run folder was written, and what compiled the kernels."""

    findings: tuple[Diagnostic, ...]
    traces: int = 0
    files: int = 0
    was_written: bool = False
    toolchain: str = ""


def run(config: Config, arguments: list[str]) -> int:
    """Run the program and write the run folder; the program's exit status."""
    session = Session(
        config.targets,
        options=config.record,
        instrument=config.instrument,
        compile_only=config.compile_only,
        record=not config.is_clean,
    )
    findings: list[Diagnostic] = []
    status = 0
    written = None
    was_opened = False
    try:
        session.open()
        was_opened = True
        if config.turn:
            turns.wait_for(Path(config.turn))
        try:
            execute(arguments, session.loaded, config.targets)
        except SystemExit as request:
            status = _status(request)
        except BaseException:
            _show(session.loaded)
            status = 1
        if config.turn:
            turns.over(Path(config.turn)).touch()
        written = None if config.is_clean else session.write(Path(config.out), config.command)
    except AutostampError as error:
        findings.append(error.diagnostic)
    if was_opened:  # else the program did not run, and what it did not import says nothing
        findings = [*session.findings(), *findings]
    manifest = written or session.manifest()
    report = Report(tuple(findings), len(manifest.traces), len(manifest.files), written is not None, compilers.of_dsl())
    Path(config.report).write_bytes(msgspec.json.encode(report))
    return status


def execute(arguments: list[str], loaded: Loaded, targets: tuple[str, ...]) -> None:
    """What `python script.py args` or `python -m module args` does, with the script itself stamped when it is a target."""
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        sys.path[0] = str(Path.cwd())
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    script = arguments[0]
    sys.argv = arguments
    sys.path[0] = str(Path(script).resolve().parent)
    if not any(target.endswith(".py") and Path(target).resolve() == Path(script).resolve() for target in targets):
        runpy.run_path(script, run_name="__main__")
        return
    loaded.met.update(target for target in targets if Path(target).resolve() == Path(script).resolve())
    data = Path(script).read_bytes()
    code = loaded.compile(data, script, "__main__") or compile(data, script, "exec", dont_inherit=True)
    # A fresh module, as the interpreter would make: nothing of ours is among the program's globals.
    main = ModuleType("__main__")
    main.__dict__.update(__file__=script, __builtins__=builtins, __cached__=None)
    sys.modules["__main__"] = main
    exec(code, main.__dict__)


def _status(request: SystemExit) -> int:
    """The status that the interpreter would exit with."""
    if request.code is None:
        return 0
    if isinstance(request.code, int):
        return request.code
    print(request.code, file=sys.stderr)
    return 1


def _show(loaded: Loaded) -> None:
    """Print the traceback with stamped files and lines replaced by the originals'."""
    kind, error, trace = sys.exc_info()
    assert kind is not None
    summary = traceback.TracebackException(kind, error, _user_part(trace))  # type: ignore[arg-type]
    _to_original(summary, loaded)
    print("".join(summary.format()), end="", file=sys.stderr)


def _user_part(trace: TracebackType | None) -> TracebackType | None:
    """The traceback without this module's and runpy's frames at its top."""
    ours = (__file__, runpy.__file__, "<frozen runpy>")
    while trace is not None and trace.tb_frame.f_code.co_filename in ours:
        trace = trace.tb_next
    return trace


def _to_original(summary: traceback.TracebackException, loaded: Loaded) -> None:
    frames = []
    for frame in summary.stack:
        stamped = loaded.stamped.get(frame.filename)
        if stamped is None or frame.lineno is None:
            frames.append(frame)
            continue
        line = loaded.original_line(frame.filename, frame.lineno)
        text = stamped.original.splitlines()[line - 1].decode().strip()
        frames.append(traceback.FrameSummary(stamped.file.path, line, frame.name, lookup_line=False, line=text))
    summary.stack = traceback.StackSummary.from_list(frames)
    for nested in (summary.__cause__, summary.__context__, *(summary.exceptions or ())):
        if nested is not None:
            _to_original(nested, loaded)


def main() -> None:
    """Entry point of the child process. It leaves through os._exit only when the program's threads would hang it."""
    config = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Config)
    status = run(config, sys.argv[2:])
    sys.stdout.flush()
    sys.stderr.flush()
    sys.exit(status if status >= 0 else os.EX_SOFTWARE)


if __name__ == "__main__":
    main()
