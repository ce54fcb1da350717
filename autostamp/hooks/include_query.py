# SPDX-License-Identifier: Apache-2.0
"""Asking the compiler which files one compilation reads.

`nvcc -M` with the host compiler's -H lists them. nvcc 13 runs every pass for it; where it runs the host pass alone, a header
that only a device pass includes is found by reading the `#include` lines of the files that are known, and if there is one, the
device passes are asked too.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from autostamp.diagnostics import AutostampError
from autostamp.hooks import make_rules
from autostamp.hooks.include_closure import (
    SEARCH_VARIABLES,
    Closure,
    ReadFile,
    Reading,
    absolute,
    held_in,
    mtime_of,
)
from autostamp.hooks.libraries import owner
from autostamp.hooks.nvcc_command import NvccCommand

_INCLUDE: Final = re.compile(
    rb"""(?:^[ \t]*\#[ \t]*(?:include|include_next|import)|__has_include(?:_next)?[ \t]*\()[ \t]*(["<])([^">\n]+)[">]""",
    re.MULTILINE,
)
_OPENED: Final = re.compile(r"^\.+ (.+)$", re.MULTILINE)
_END_OF_PASS: Final = "Multiple include guards may be useful for:"
"""What GCC's -H prints once at the end of each pass over a source."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a query gave: the names in its rules, the names of the files that it opened, and whether it ran every pass."""

    named: tuple[str, ...]
    opened: tuple[str, ...]
    is_complete: bool


def ask(command: NvccCommand, words: Iterable[str], environment: Mapping[str, str]) -> Answer:
    """Run a query with words added. Raises AS4022 when it fails."""
    with tempfile.TemporaryDirectory(prefix="autostamp-") as folder:
        rules = Path(folder) / "rules"
        done = subprocess.run(
            command.query(rules, ["-Xcompiler", "-H", *words]),
            env={**environment, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            close_fds=False,
            check=False,
        )
        said = os.fsdecode(done.stderr)
        if done.returncode or not rules.is_file():
            detail = f"`nvcc -M` ended with status {done.returncode}: {(said.strip().splitlines() or [''])[-1]}"
            raise AutostampError.of("AS4022", path=" ".join(command.sources), detail=detail)
        named = make_rules.prerequisites(os.fsdecode(rules.read_bytes()))
    opened = tuple(dict.fromkeys(_OPENED.findall(said)))
    return Answer(tuple(named), opened, said.count(_END_OF_PASS) > len(command.sources))


def device_passes(command: NvccCommand) -> list[tuple[str, ...]]:
    """What makes a query follow the conditions of each device pass."""
    # nvcc defines __CUDA_ARCH__ itself for these passes and refuses the macro from its own -D.
    return [("-Xcompiler", f"-D__CUDA_ARCH__={architecture}") for architecture in command.architectures or ("900",)]


def find(command: NvccCommand, environment: Mapping[str, str], is_wanted: Callable[[str], bool]) -> Closure:
    """Ask the compiler. Files of libraries are left out unless `is_wanted` says yes to their absolute path.

    Raises AS4022 when the compiler cannot list them, and for two files that differ only by a symbolic link before a `..`.
    """
    return _Finder(command, environment, is_wanted).find()


class _Finder:
    def __init__(self, command: NvccCommand, environment: Mapping[str, str], is_wanted: Callable[[str], bool]) -> None:
        self._command = command
        self._environment = environment
        self._is_wanted = is_wanted
        self._sources = tuple(Path(absolute(source)) for source in command.sources)
        self._folders = [found.folder for found in command.search_folders()]
        for name in SEARCH_VARIABLES:
            self._folders += [
                part or "." for part in environment.get(name, "").split(os.pathsep) if name in environment
            ]
        self._known: dict[str, ReadFile] = {}
        self._libraries: dict[str, None] = {}
        self._named: dict[str, None] = {}
        self._includes: dict[str, list[tuple[bool, str]]] = {}

    def find(self) -> Closure:
        rest = Reading.UNREAD
        passes: list[tuple[str, ...]] = [()]
        is_complete = self._add_read(())
        for words in () if is_complete or not any(self._nearby()) else device_passes(self._command):
            try:
                self._add_read(words)
                passes.append(words)
            except AutostampError:
                rest = Reading.PERHAPS
        for spelled in list(self._nearby()):
            self._add(spelled, spelled, rest)
        names = {text.rpartition("/")[2] for found in self._includes.values() for _, text in found}
        names |= {Path(file.path).name for file in self._known.values()}
        return Closure(
            tuple(self._known.values()),
            tuple(self._libraries),
            tuple(self._named),
            tuple(passes),
            frozenset(names),
            self._watched(names),
        )

    def _add_read(self, words: tuple[str, ...]) -> bool:
        """Add what one query opens and names; True when it ran every pass."""
        answer = ask(self._command, words, self._environment)
        self._named |= dict.fromkeys(answer.named)
        listed = {absolute(name): name for name in reversed(answer.named)}
        for name in (*self._command.sources, *answer.opened):
            self._add(name if name in answer.named else listed.get(absolute(name), name), name, Reading.OPENED)
        for path, name in listed.items():
            if Path(path).is_file():  # else a `#line` of the author's names it
                self._add(name, name, Reading.NAMED)
        return answer.is_complete

    def _add(self, listed: str, spelled: str, reading: Reading) -> None:
        path = absolute(listed)
        real = os.path.realpath(spelled)
        if path in self._known:
            if self._known[path].real != real:
                detail = f"{spelled} and {self._known[path].spelled} are two files behind symbolic links"
                raise AutostampError.of("AS4022", path=" ".join(self._command.sources), detail=detail)
            return
        library = owner(Path(path), self._sources)
        if library and not self._is_wanted(path):
            self._libraries[library] = None
            return
        status = Path(spelled).stat()
        data = Path(spelled).read_bytes()
        digest = hashlib.sha256(data).hexdigest()
        self._known[path] = ReadFile(listed, spelled, path, real, digest, status.st_mtime_ns, status.st_size, reading)
        self._includes[path] = [(match[1] == b'"', os.fsdecode(match[2])) for match in _INCLUDE.finditer(data)]

    def _nearby(self) -> Iterator[str]:
        """Files of the project that an include of a known file means but no pass read."""
        found: dict[str, None] = {}
        angled: dict[str, str] = {}
        for file in tuple(self._known.values()):
            beside = os.path.dirname(file.spelled)  # noqa: PTH120  # as the compiler does it: "" for the working folder
            for is_quoted, text in self._includes[file.path]:
                first = os.path.join(beside, text)  # noqa: PTH118  # as above
                if is_quoted and Path(first).is_file():
                    found[first] = None
                    continue
                if text not in angled:
                    tried = (os.path.join(folder, text) for folder in self._folders)  # noqa: PTH118  # as above
                    angled[text] = next((name for name in tried if Path(name).is_file()), "")
                found[angled[text]] = None
        for name in found:
            path = absolute(name)
            if name and path not in self._known and (self._is_wanted(path) or not owner(Path(path), self._sources)):
                yield name

    def _watched(self, names: set[str]) -> dict[str, tuple[int, tuple[str, ...]]]:
        bases = {absolute(folder) for folder in self._folders} | {str(Path(path).parent) for path in self._known}
        inner = {text.rpartition("/")[0] for found in self._includes.values() for _, text in found}
        folders = {os.path.normpath(os.path.join(base, part)) for base in bases for part in inner}  # noqa: PTH118  # as above
        return {folder: (mtime_of(folder), held_in(folder, names)) for folder in sorted(folders)}
