# SPDX-License-Identifier: Apache-2.0
"""Standing in front of nvcc: device code is compiled from stamped copies, and everything else as it was asked for.

A compilation whose copies cannot be made, or do not compile, is done without stamps, so that the build goes on; it is said on
stderr and kept in the state folder, or, where that is asked for, it fails.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NoReturn

from autostamp.diagnostics import AutostampError, Diagnostic, ExitStatus, render
from autostamp.hooks import ptxas_failure
from autostamp.hooks.include_closure import absolute
from autostamp.hooks.nvcc_command import NvccCommand, is_nvcc
from autostamp.hooks.prepared_unit import SWITCH, LauncherOptions, PreparedUnit, Preparer, Settings, defines
from autostamp.hooks.state import BuildNote, Outcome, StateFolder, write_whole

_OFF: Final = ("0", "off", "false", "no")
_ADVICE: Final = re.compile(rb"^.*\bptxas\b.*\(C75\d\d\).*$", re.MULTILINE)
_FIRST_ERROR: Final = re.compile(rb"^.*\b(?:error|fatal)\b.*$", re.MULTILINE)
_KILLED: Final = 128
_CACHES: Final = ("ccache", "sccache")


def launch(words: Sequence[str], options: LauncherOptions, settings: Settings, environment: Mapping[str, str]) -> int:
    """Run a compiler's command line and return its exit status; one that is run unchanged takes this process over.

    Raises AS4002 when there is no such compiler.
    """
    command = NvccCommand.of(words, environment)
    if environment.get(SWITCH, "").lower() in _OFF:
        become(words, environment)
    if not is_nvcc(command.compiler):
        _say(Diagnostic.of("AS4023", compiler=command.compiler))
        become(words, environment)
    reason = command.why_unchanged()
    if reason:
        if options.is_verbose:
            _tell(f"{reason}: run unchanged")
        become(words, environment)
    return _Compilation(command, options, settings, environment).run()


def become(words: Sequence[str], environment: Mapping[str, str]) -> NoReturn:
    """Replace this process by the command. Raises AS4002 when it is not found."""
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execvpe(words[0], [*words], {**environment})
    except OSError as error:
        raise AutostampError.of("AS4002", tool=words[0]) from error


def _say(finding: Diagnostic) -> None:
    sys.stderr.write(f"{render(finding)}\n")


def _tell(text: str) -> None:
    sys.stderr.write(f"autostamp: {text}\n")


class _Compilation:
    def __init__(
        self, command: NvccCommand, options: LauncherOptions, settings: Settings, environment: Mapping[str, str]
    ) -> None:
        self._command = command
        self._options = options
        self._settings = settings
        self._environment = environment
        self._state = StateFolder.of(environment)
        self._name = " ".join(command.sources) or command.compiler

    def run(self) -> int:
        try:
            reason = self._command.why_impossible() or _why_cached()
            if reason:
                raise AutostampError.of("AS4022", path=self._name, detail=reason)
            unit = Preparer(self._command, self._options, self._settings, self._environment).unit()
        except AutostampError as error:
            return self._without_stamps(self._cause(error.diagnostic))
        except Exception as error:  # a fault of ours must not break the user's build
            detail = f"a fault of autostamp: {type(error).__name__}: {error}"
            return self._without_stamps(Diagnostic.of("AS4022", path=self._name, detail=detail))
        for finding in unit.findings:
            sys.stderr.write(f"{finding}\n")
        if unit.signature is None:
            if self._options.is_verbose:
                _tell(f"{self._name}: {unit.summary}: compiled unchanged")
            self._note(BuildNote(*self._what(), Outcome.EMPTY))
            become(self._command.words, self._environment)
        return self._with_stamps(unit)

    def _cause(self, finding: Diagnostic) -> Diagnostic:
        """A finding of another stage as the reason why there are no stamps."""
        if finding.code == "AS4022":
            return finding
        where = f"{finding.position.path}:{finding.position.line}: " if finding.position else ""
        return Diagnostic.of("AS4022", path=self._name, detail=f"{where}{finding.code} {finding.message}")

    def _with_stamps(self, unit: PreparedUnit) -> int:
        words = unit.copies.compilation(defines(self._command))
        environment = unit.copies.environment(self._environment)
        status, said = _capture(words, environment)
        if status < 0:
            sys.stderr.buffer.write(said)
            return _KILLED - status
        if status and not self._command.runs_the_program:
            return self._without_stamps(self._why_failed(words, environment, said))
        sys.stderr.flush()
        sys.stderr.buffer.write(said)
        sys.stderr.flush()
        for rules in self._command.dependency_files():
            if rules.is_file():
                text = os.fsdecode(rules.read_bytes())
                write_whole(rules, os.fsencode(unit.copies.restored_rules(text)))
        advice = tuple(line.decode(errors="replace") for line in _ADVICE.findall(said))
        self._note(BuildNote(*self._what(), Outcome.STAMPED, f"{unit.signature:08x}", warnings=advice))
        if self._options.is_verbose:
            _tell(f"{self._name}: {unit.summary}, unit {unit.signature:08x}")
        return status

    def _why_failed(self, words: list[str], environment: Mapping[str, str], said: bytes) -> Diagnostic:
        if ptxas_failure.is_one(said):
            names = ptxas_failure.functions(words, environment) or ["a function"]
            return Diagnostic.of("AS4020", path=self._name, function=", ".join(names))
        error = _FIRST_ERROR.search(said)
        detail = (error[0] if error else b"no error was printed").decode(errors="replace").strip()
        return Diagnostic.of("AS4021", path=self._name, detail=detail)

    def _without_stamps(self, finding: Diagnostic) -> int:
        """Compile the original. When it fails, too, its own messages are all there is to say."""
        try:
            status, said = _capture(self._command.words, self._environment)
        except FileNotFoundError as error:
            raise AutostampError.of("AS4002", tool=self._command.launcher[0]) from error
        if status == 0:
            _say(finding)
            self._note(BuildNote(*self._what(), Outcome.PLAIN, code=finding.code, message=finding.message))
        sys.stderr.flush()
        sys.stderr.buffer.write(said)
        sys.stderr.flush()
        if status == 0 and self._options.is_strict:
            if self._command.output:
                Path(self._command.output).unlink(missing_ok=True)
            return ExitStatus.FINDINGS
        return _KILLED - status if status < 0 else status

    def _what(self) -> tuple[tuple[str, ...], str]:
        output = self._command.output
        return tuple(map(absolute, self._command.sources)), output and absolute(output)

    def _note(self, note: BuildNote) -> None:
        name = hashlib.sha256("\0".join([note.output, *note.sources]).encode(errors="surrogateescape")).hexdigest()[:24]
        try:
            self._state.note(name, note)
        except AutostampError as error:
            _say(error.diagnostic)


def _capture(words: Sequence[str], environment: Mapping[str, str]) -> tuple[int, bytes]:
    """(exit status, what it said on stderr). Its stdout and its open files are this process's."""
    sys.stdout.flush()
    child = subprocess.Popen([*words], env={**environment}, stderr=subprocess.PIPE, close_fds=False)
    _, said = child.communicate()
    return child.returncode, said


def _why_cached() -> str:
    """Why a compiler cache that runs this process must not: its keys do not know of stamps. "" when none does."""
    try:
        parent = Path(f"/proc/{os.getppid()}/comm").read_text(encoding="utf-8").strip()
    except OSError:
        return ""
    if parent not in _CACHES:
        return ""
    return f"{parent} runs it and would mix up objects with and without stamps: give `autostamp nvcc -- {parent} nvcc`"
