# SPDX-License-Identifier: Apache-2.0
"""The copies that one compilation is to read: found in the state folder, or stamped, written and checked."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shlex
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

import autostamp
from autostamp.diagnostics import AutostampError
from autostamp.hooks import include_closure, include_query
from autostamp.hooks.copies import Copies
from autostamp.hooks.include_closure import Closure, Reading
from autostamp.hooks.nvcc_command import NvccCommand
from autostamp.hooks.state import StateFolder, read_json, write_json, write_whole
from autostamp.model.options import InstrumentOptions

SWITCH: Final = "AUTOSTAMP"
"""The macro that turns stamps on, and the variable that turns the launcher off."""

_OWN_CODE: Final = ("passes", "passes/cuda", "runtime/cuda", "hooks", "model")
_KEPT_S: Final = 3600


@dataclass(frozen=True, slots=True)
class LauncherOptions:
    """How to stand in front of nvcc.

    `files` are patterns (`fnmatch`) for the paths of files to stamp, by their whole path or its end; none means every file
    of the project. `carrier` is auto, param or symbol, `form` auto, lean or usual. With `is_strict` a compilation that cannot be
    stamped fails.
    """

    files: tuple[str, ...] = ()
    carrier: str = "auto"
    form: str = "auto"
    is_strict: bool = False
    is_verbose: bool = False

    def is_chosen(self, path: str) -> bool:
        """True for a path that a pattern matches."""
        return any(fnmatchcase(path, pattern) or fnmatchcase(path, f"*/{pattern}") for pattern in self.files)


Settings = Callable[[Path], InstrumentOptions]
"""The selection and the catalogue rows for sources in a folder."""


@dataclass(frozen=True, slots=True)
class PreparedUnit:
    """A unit's copies, checked. `signature` is None when nothing in it is stamped; `findings` are rendered."""

    copies: Copies
    signature: int | None
    summary: str
    findings: tuple[str, ...]


class Preparer:
    """Prepares the unit of one command."""

    def __init__(
        self, command: NvccCommand, options: LauncherOptions, settings: Settings, environment: Mapping[str, str]
    ) -> None:
        self._command = command
        self._options = options
        self._settings = settings
        self._environment = environment
        self._state = StateFolder.of(environment)
        self._key = include_closure.key_of(command, environment, options.files)
        self._name = " ".join(command.sources)

    def unit(self) -> PreparedUnit:
        """The unit, made or found. Raises AS4022 when the copies would not be read as the originals are, AS7001, and what
        stamping raises.
        """
        path = self._state.closure(self._key)
        closure = include_closure.load(path)
        if closure is None:
            closure = include_query.find(self._command, self._environment, self._options.is_chosen)
            include_closure.save(path, closure)
        options = self._settings(Path(include_closure.absolute(self._command.sources[0])).parent)
        copies = Copies(self._state.copies(self._key, self._unit_key(closure, options)), self._command, closure)
        unit = self._known_unit(copies)
        return self._new_unit(copies, options) if unit is None else unit

    def _unit_key(self, closure: Closure, options: InstrumentOptions) -> str:
        parts = [_fingerprint(), repr(options), self._options.carrier, self._options.form]
        parts += [f"{file.path}\n{file.spelled}\n{file.digest}\n{file.reading}" for file in closure.files]
        return hashlib.sha256("\0".join(parts).encode(errors="surrogateescape")).hexdigest()[:24]

    def _known_unit(self, copies: Copies) -> PreparedUnit | None:
        path = copies.folder / "unit.json"
        value = read_json(path)
        if value is None:
            return None
        signature = value["signature"]
        if signature is not None and not self._state.manifest(signature).is_file():
            return None
        if value["refused"]:
            raise AutostampError.of("AS4022", path=self._name, detail=value["refused"])
        with contextlib.suppress(OSError):
            os.utime(path)  # what was used lately is not removed
        return PreparedUnit(copies, signature, value["summary"], tuple(value["findings"]))

    def _new_unit(self, copies: Copies, options: InstrumentOptions) -> PreparedUnit:
        from autostamp.hooks.cuda_unit import UnitOptions, stamp

        files = copies.closure.distinct()
        made = stamp(
            {Path(file.path): Path(file.spelled).read_bytes() for file in files},
            {Path(file.path) for file in files if self._is_stamped(file.path, file.reading)},
            set(map(Path, map(include_closure.absolute, self._command.sources))),
            UnitOptions(
                options,
                self._options.carrier,
                self._options.form,
                self._command.is_device_only,
                self._command.is_relocatable,
            ),
        )
        refused = ""
        if made.texts:
            copies.write(made.texts, made.headers)
            try:
                copies.check(copies.compilation(defines(self._command)), copies.environment(self._environment))
            except AutostampError as error:
                refused = error.diagnostic.message.partition(": ")[2]
            command_line = shlex.join(self._command.words)
            for path, data in made.records(command_line, self._name).items():
                write_whole(self._state.root / "units" / path, data)
        signature = made.signature if made.texts else None
        value = {"signature": signature, "summary": made.summary, "findings": made.findings, "refused": refused}
        write_json(copies.folder / "unit.json", value)
        _prune(copies.folder)
        if refused:
            raise AutostampError.of("AS4022", path=self._name, detail=refused)
        return PreparedUnit(copies, signature, made.summary, made.findings)

    def _is_stamped(self, path: str, reading: Reading) -> bool:
        return reading is not Reading.UNREAD and (not self._options.files or self._options.is_chosen(path))


def defines(command: NvccCommand) -> list[str]:
    """The macros that turn the stamps on. The version is there for caches that are keyed by the command line."""
    version = re.sub(r"\W", "_", autostamp.__version__)
    return [*([] if command.defines(SWITCH) else [f"-D{SWITCH}=1"]), f"-DAUTOSTAMP_VERSION=v{version}"]


def _fingerprint() -> str:
    """This autostamp: its version, and the times of the files that decide what it writes, for those who work on them."""
    root = Path(autostamp.__file__).parent
    files = [file for folder in _OWN_CODE for file in sorted((root / folder).glob("*.*")) if file.is_file()]
    stamps = [f"{file.name} {status.st_mtime_ns} {status.st_size}" for file in files for status in [file.stat()]]
    return "\n".join([autostamp.__version__, *stamps])


def _prune(folder: Path) -> None:
    """Remove older trees of the same command that no compilation used lately."""
    limit = time.time() - _KEPT_S
    for other in folder.parent.iterdir():
        with contextlib.suppress(OSError):
            if other != folder and (other / "unit.json").stat().st_mtime < limit:
                shutil.rmtree(other, ignore_errors=True)
