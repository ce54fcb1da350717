# SPDX-License-Identifier: Apache-2.0
"""One replay: run a program once with the sites of one set stamped, in a process of its own."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import msgspec

from autostamp.diagnostics import AutostampError, Diagnostic
from autostamp.hooks import caches, turns
from autostamp.hooks.native import NativeOptions
from autostamp.hooks.native import run as run_native
from autostamp.hooks.program import Config, Report
from autostamp.model.options import InstrumentOptions, RecordOptions, Selection
from autostamp.model.placement import Placement
from autostamp.runtime.placement_file import selection_of

CLEAN: Final = 0
"""The set without a site."""

SET_IN_COMMAND: Final = "{set}"


@dataclass(frozen=True, slots=True)
class Program:
    """What is run. `python` is the interpreter with its flags, empty for a native program, whose `words` may hold `{set}`.

    `build` is a shell command that builds a native program with the set that AUTOSTAMP_PLACEMENT and AUTOSTAMP_SET name, and
    with none where AUTOSTAMP is 0 (`hooks.replay_builds`); it may hold `{set}` where `words` do. `results` are files that the
    program writes, `time` finds the microseconds that it prints.
    """

    python: tuple[str, ...]
    words: tuple[str, ...]
    command: tuple[str, ...]
    targets: tuple[str, ...]
    record: RecordOptions
    instrument: InstrumentOptions
    native: NativeOptions
    build: str = ""
    results: tuple[Path, ...] = ()
    time: str = ""

    @property
    def can_be_split(self) -> bool:
        """Whether another set than those that are there can be run."""
        return bool(self.python or self.build)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one run ended: the program's status, what it printed as time, digests of its results, and where its records are.

    `fault` is the first finding that stands for missing records.
    """

    status: int
    times: tuple[float, ...]
    results: tuple[str, ...]
    run: Path | None
    findings: tuple[Diagnostic, ...] = ()
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Early:
    """A program that was started before its turn, which comes when `turn` is made. Its stdout goes to `log`.

    When its last line has run it makes `turns.over(turn)`: what it does from then on, writing its records and ending, is no work
    of the GPU, and the next program may have its turn.
    """

    process: subprocess.Popen[bytes]
    turn: Path
    log: Path

    def take_turn(self, program: Program) -> tuple[str, ...]:
        """Let it launch, until its last line has run; digests of its results."""
        for path in program.results:
            path.unlink(missing_ok=True)
        self.turn.touch()
        over = turns.over(self.turn)
        while not over.exists() and self.process.poll() is None:
            time.sleep(turns.PAUSE)
        return _digests(program)

    def outcome(self, program: Program, number: int, folder: Path, results: tuple[str, ...]) -> Outcome:
        """How it ended, once it has."""
        status = self.process.wait()
        text = self.log.read_text(errors="replace")
        sys.stderr.write(text)
        return replace(_outcome(program, number, folder, status, text), results=results)

    def stop(self) -> None:
        """End one whose turn never came."""
        self.process.kill()
        self.process.wait()


def start_early(program: Program, placement: Placement, number: int, folder: Path) -> Early | None:
    """Start a Python program ahead of its turn; None for a native one, which cannot wait. Raises AS5007 when it cannot be
    started.
    """
    if not program.python:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    turn, log = folder / "turn", folder / "stdout.txt"
    words = _python_words(program, placement, number, folder, turn)
    try:
        with log.open("wb") as out:
            process = subprocess.Popen(words, env={**os.environ, **caches.switched_off()}, stdout=out)
    except OSError as error:
        raise AutostampError.of("AS5007", command=words[0], detail=error.strerror or str(error)) from error
    return Early(process, turn, log)


def replay(program: Program, placement: Placement, number: int, folder: Path) -> Outcome:
    """Run the program with set `number` of the placement (CLEAN: none), and keep its records in `folder`.

    A native program is there: built with that set. Raises AS5007 when it cannot be started. Its own stdout goes to stderr: the
    results of several runs are not the command's.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for path in program.results:
        path.unlink(missing_ok=True)
    if not program.python:
        return _native(program, number, folder)
    words = _python_words(program, placement, number, folder, None)
    status, text = _printed(words, {**os.environ, **caches.switched_off()})
    return _outcome(program, number, folder, status, text)


def _python_words(program: Program, placement: Placement, number: int, folder: Path, turn: Path | None) -> list[str]:
    selection = selection_of(placement, number) if number else Selection(placed=(), files=placement.files)
    config = folder / "config.json"
    settings = Config(
        targets=program.targets,
        out=str((folder / "RUN").resolve()),
        report=str((folder / "report.json").resolve()),
        record=program.record,
        instrument=InstrumentOptions(selection, program.instrument.extra_ops),
        compile_only=False,
        command=program.command,
        turn=str(turn.resolve()) if turn is not None else "",
        is_clean=bool(program.time) and not number,
    )
    config.write_bytes(msgspec.json.encode(settings))
    return [*program.python, "-m", "autostamp.hooks.program", str(config.resolve()), *program.words]


def _outcome(program: Program, number: int, folder: Path, status: int, text: str) -> Outcome:
    report, out = folder / "report.json", folder / "RUN"
    findings = msgspec.json.decode(report.read_bytes(), type=Report).findings if report.is_file() else ()
    # A run without a site records entries and releases alone, of which the program says that nothing was recorded.
    kept = tuple(each for each in findings if number or each.code != "AS5003")
    fault = next((f"{each.code} {each.message}" for each in kept if each.code in _NO_RECORDS), "")
    run = out if (out / "records.npz").is_file() else None
    return Outcome(status, _times(program, text), _digests(program), run, kept, fault)


_NO_RECORDS: Final = ("AS5003", "AS5001", "AS5008", "AS5010", "AS5011", "AS6002")


def _native(program: Program, number: int, folder: Path) -> Outcome:
    words = [word.replace(SET_IN_COMMAND, str(number)) for word in program.words]
    if not number:
        status, text = _printed(words, os.environ)
        return Outcome(status, _times(program, text), _digests(program), None)
    log = folder / "stdout.txt"
    shell = ["sh", "-c", f'exec "$@" > {shlex.quote(str(log))}', "sh", *words]
    result = run_native(shell, folder / "RUN", program.native, program.command)
    text = log.read_text(errors="replace") if log.is_file() else ""
    sys.stderr.write(text)
    # Where nothing was written, whatever was found is why: AS5013 of a program whose manifest is not there, for one.
    said = [each for each in result.findings if each.code in _NO_RECORDS or not result.was_written]
    fault = f"{said[0].code} {said[0].message}" if said else ""
    run = folder / "RUN" if result.was_written else None
    return Outcome(result.status, _times(program, text), _digests(program), run, result.findings, fault)


def _printed(words: Sequence[str], environment: Mapping[str, str]) -> tuple[int, str]:
    """(exit status, stdout), which is passed on to stderr."""
    try:
        child = subprocess.run(words, env={**environment}, stdout=subprocess.PIPE, check=False)
    except OSError as error:
        raise AutostampError.of("AS5007", command=words[0], detail=error.strerror or str(error)) from error
    text = child.stdout.decode(errors="replace")
    sys.stderr.write(text)
    return child.returncode, text


def _times(program: Program, text: str) -> tuple[float, ...]:
    if not program.time:
        return ()
    found = []
    for match in re.finditer(program.time, text):
        try:
            found.append(float(match[1]))
        except (ValueError, IndexError):
            continue
    return tuple(found)


def _digests(program: Program) -> tuple[str, ...]:
    """SHA-256 of every result, empty for one that is not there."""
    return tuple(hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "" for path in program.results)
