# SPDX-License-Identifier: Apache-2.0
"""Which files one compilation reads, remembered while nothing that decides it changes."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from autostamp.hooks.nvcc_command import NvccCommand
from autostamp.hooks.state import read_json, write_json

SEARCH_VARIABLES: Final = ("CPATH", "CPLUS_INCLUDE_PATH")
"""Folders that GCC and Clang search besides those of the command line (GCC manual, "Environment Variables")."""
_ABSENT: Final = -1
_VERSION: Final = 1


class Reading(StrEnum):
    """How a file is known.

    OPENED: the compiler opened it. NAMED: a make rule names it, as for -include. PERHAPS: an include line means it, and the
    device passes could not be asked. UNREAD: an include line means it, and no pass opens it.
    """

    OPENED = "opened"
    NAMED = "named"
    PERHAPS = "perhaps"
    UNREAD = "unread"


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A file of the project that a compilation reads.

    `listed` is its name in make rules, `spelled` the one that `__FILE__` and messages show, `path` the absolute path with
    `.` and `..` folded as text, `real` the file behind symbolic links, `digest` the SHA-256 of its content, `mtime` in
    nanoseconds and `size` in bytes.
    """

    listed: str
    spelled: str
    path: str
    real: str
    digest: str
    mtime: int
    size: int
    reading: Reading


@dataclass(frozen=True, slots=True)
class Closure:
    """The project's files that a compilation reads, and the `libraries` whose files it reads besides.

    `named` are the names in the make rules, libraries included, and `passes` the words that were added to each query.
    `watched` says for each folder where a new file could take an include over its modification time, and which of `names`, the
    names that includes end in, it holds.
    """

    files: tuple[ReadFile, ...]
    libraries: tuple[str, ...]
    named: tuple[str, ...]
    passes: tuple[tuple[str, ...], ...]
    names: frozenset[str]
    watched: dict[str, tuple[int, tuple[str, ...]]]

    def distinct(self) -> list[ReadFile]:
        """The files without those that are another one by a second name."""
        return list({file.real: file for file in reversed(self.files)}.values())[::-1]

    def is_current(self) -> bool:
        """True when every file is as it was and no file appeared or vanished that an include could mean."""
        return all(map(_is_unchanged, self.files)) and all(
            mtime_of(folder) == mtime or held_in(folder, self.names) == held
            for folder, (mtime, held) in self.watched.items()
        )


def absolute(name: str) -> str:
    """The absolute path of a name relative to the working folder, folded as text: symbolic links are not followed."""
    # pathlib does not fold `..` as text, and takes several times as long for what is done thousands of times.
    return os.path.normpath(os.path.join(os.getcwd(), name))  # noqa: PTH109, PTH118


def key_of(command: NvccCommand, environment: Mapping[str, str], patterns: Iterable[str]) -> str:
    """A name for everything but the content of files that decides which files a command reads."""
    compiler = shutil.which(command.compiler) or command.compiler
    parts = [str(_VERSION), absolute(""), *command.launcher, os.path.realpath(compiler), str(mtime_of(compiler))]
    parts += [word for item in command.everything for word in item.words]
    parts += [environment.get(name, "") for name in (*SEARCH_VARIABLES, "NVCC_CCBIN", "PATH")]
    text = "\0".join([*parts, "", *patterns])
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:24]


def load(path: Path) -> Closure | None:
    """A closure kept by `save`, if it is there and current."""
    value = read_json(path)
    if value is None or value.get("version") != _VERSION:
        return None
    closure = Closure(
        tuple(ReadFile(**{**fields, "reading": Reading(fields["reading"])}) for fields in value["files"]),
        tuple(value["libraries"]),
        tuple(value["named"]),
        tuple(map(tuple, value["passes"])),
        frozenset(value["names"]),
        {folder: (mtime, tuple(held)) for folder, (mtime, held) in value["watched"].items()},
    )
    return closure if closure.is_current() else None


def save(path: Path, closure: Closure) -> None:
    """Keep a closure; raises AS7001."""
    value: dict[str, object] = {"version": _VERSION}
    value |= {"files": [asdict(file) for file in closure.files], "libraries": closure.libraries}
    value |= {
        "named": closure.named,
        "passes": closure.passes,
        "names": sorted(closure.names),
        "watched": closure.watched,
    }
    write_json(path, value)


def mtime_of(path: str) -> int:
    """Modification time in nanoseconds; -1 for what is not there."""
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116  # a thousand of them on every compilation: half the time
    except OSError:
        return _ABSENT


def held_in(folder: str, names: Iterable[str]) -> tuple[str, ...]:
    """Which of the names a folder holds, sorted."""
    try:
        return tuple(sorted({*os.listdir(folder)}.intersection(names)))  # noqa: PTH208  # names are what is asked for
    except OSError:
        return ()


def _is_unchanged(file: ReadFile) -> bool:
    try:
        status = os.stat(file.spelled)  # noqa: PTH116  # as above
        if (status.st_mtime_ns, status.st_size) == (file.mtime, file.size):
            return True
        return hashlib.sha256(Path(file.spelled).read_bytes()).hexdigest() == file.digest
    except OSError:
        return False
