# SPDX-License-Identifier: Apache-2.0
"""Copies of the files that one compilation reads, laid out as the originals are, some of them stamped.

Every file of the project is copied, so that an include finds the copy however it is written: `"../inc/x.h"` because the
layout is the same, `<x.h>` because the copy of each -I folder is searched first. Every copy starts with a `#line` that names
the original, so messages, `__FILE__` and debug information are those of the original.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from autostamp.diagnostics import AutostampError
from autostamp.hooks import make_rules
from autostamp.hooks.include_closure import SEARCH_VARIABLES, Closure, ReadFile, Reading, absolute
from autostamp.hooks.include_query import ask
from autostamp.hooks.libraries import owner
from autostamp.hooks.nvcc_command import NvccCommand

_BOM: Final = b"\xef\xbb\xbf"
_STAMPED_HEAD: Final = re.compile(rb'(?:\xef\xbb\xbf)?#include "autostamp\.cuh"\r?\n#line 1(?=\r?\n)')
_ABSOLUTE_INCLUDE: Final = re.compile(rb'(^[ \t]*#[ \t]*include[ \t]*)["<](/[^">\n]+)[">]', re.MULTILINE)
_NVCC_SEARCH: Final = ("-I", "-isystem")


def named(text: bytes, name: str, *, is_stamped: bool) -> bytes:
    """The text with a `#line` that gives it this name from its first line on; a stamped text has the line, unnamed.

    Raises ValueError for a stamped text that does not start with the two lines that every stamped text starts with.
    """
    quoted = b' "' + os.fsencode(name.replace("\\", "\\\\").replace('"', '\\"')) + b'"'
    if is_stamped:
        head = _STAMPED_HEAD.match(text)
        if head is None:
            message = f"the stamped text of {name} does not start with its #line"
            raise ValueError(message)
        return text[: head.end()] + quoted + text[head.end() :]
    newline = b"\r\n" if b"\r\n" in text else b"\n"
    bom = _BOM if text.startswith(_BOM) else b""
    return bom + b"#line 1" + quoted + newline + text[len(bom) :]


def _stepped_through(name: str) -> Iterator[str]:
    """Absolute paths of the folders that must exist for a name to be opened: its own, and those before a `..`."""
    parts = name.split("/")
    for number, part in enumerate(parts[1:], 1):
        if part == ".." or number == len(parts) - 1:
            yield absolute("/".join(parts[:number]) or "/")
    if len(parts) == 1:
        yield absolute("")


@dataclass(frozen=True, slots=True)
class Copies:
    """The copies below `folder` for one command, whose original reads the files of `closure`."""

    folder: Path
    command: NvccCommand
    closure: Closure

    @property
    def headers(self) -> Path:
        """Where autostamp.cuh lies."""
        return self.folder / "include"

    def place(self, path: str) -> str:
        """Where the copy of the file or folder with this absolute path lies."""
        return f"{self.folder}/files{path}"

    def original(self, name: str) -> str | None:
        """The absolute path of the file that a name is the copy of; None for a name outside."""
        root = f"{self.folder}/files"
        path = absolute(name)
        return path[len(root) :] if path.startswith(f"{root}/") else None

    def write(self, stamped: Mapping[str, bytes], headers: Mapping[str, bytes]) -> None:
        """Write the folder, whole or not at all; one that another process wrote meanwhile stays. `stamped` is by path.

        Raises AS7001 when it cannot be written and AS4022 when a file changed since its content was read.
        """
        name = f".{self.folder.name}.{os.getpid()}.tmp"
        temporary = Copies(self.folder.with_name(name), self.command, self.closure)
        at = temporary.folder
        try:
            for name, data in headers.items():
                at = temporary.headers / name
                at.parent.mkdir(parents=True, exist_ok=True)
                at.write_bytes(data)
            first: dict[str, Path] = {}
            for file in self.closure.files:
                for folder in _stepped_through(file.spelled):
                    at = Path(temporary.place(folder))
                    at.mkdir(parents=True, exist_ok=True)
                at = Path(temporary.place(file.path))
                if first.setdefault(file.real, at) is not at:
                    # One file by two names must stay one file, or `#pragma once` takes it for two.
                    at.symlink_to(os.path.relpath(first[file.real], at.parent))
                    continue
                at.write_bytes(self._text(file, stamped.get(file.path)))
                # What looks at the time of a header, such as __TIMESTAMP__, sees that of the original.
                os.utime(at, ns=(file.mtime, file.mtime))
            temporary.folder.rename(self.folder)
        except OSError as error:
            if not self.folder.is_dir():
                raise AutostampError.of("AS7001", path=at, detail=error.strerror or str(error)) from error
        finally:
            shutil.rmtree(temporary.folder, ignore_errors=True)

    def _text(self, file: ReadFile, stamped: bytes | None) -> bytes:
        data = Path(file.spelled).read_bytes()
        if hashlib.sha256(data).hexdigest() != file.digest:
            self._refuse(f"{file.spelled} changed while it was read")
        text = named(data if stamped is None else stamped, file.spelled, is_stamped=stamped is not None)
        known = {other.path for other in self.closure.files} if _ABSOLUTE_INCLUDE.search(text) else set()

        def moved(match: re.Match[bytes]) -> bytes:
            path = os.path.normpath(os.fsdecode(match[2]))
            return match[1] + b'"' + os.fsencode(self.place(path)) + b'"' if path in known else match[0]

        return _ABSOLUTE_INCLUDE.sub(moved, text)

    def compilation(self, defines: Iterable[str]) -> list[str]:
        """The command on the copies. Our headers and the copies of searched folders go before what it searches itself."""
        added = [*defines, "-isystem", str(self.headers)]
        for found in self.command.search_folders():
            folder = self.place(absolute(found.folder))
            if Path(folder).is_dir():
                is_nvcc = found.option in _NVCC_SEARCH
                added += [found.option, folder] if is_nvcc else ["-Xcompiler", f"{found.option},{folder}"]
        known = {file.path for file in self.closure.files}
        names = [*self.command.sources, *self.command.listed("include")]
        return self.command.rewritten(
            added, {name: self.place(absolute(name)) for name in names if absolute(name) in known}
        )

    def environment(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The environment with copies before the folders that its variables name."""
        changed = dict(environment)
        for name in SEARCH_VARIABLES:
            if environment.get(name):
                folders = [part or "." for part in environment[name].split(os.pathsep)]
                changed[name] = os.pathsep.join([*map(self.place, map(absolute, folders)), *folders])
        return changed

    def check(self, words: list[str], environment: Mapping[str, str]) -> None:
        """Raise AS4022 unless a compilation of the copies opens the copy of every file that the original opens, and no other.

        What it may open besides are libraries, which lie outside of both.
        """
        command = NvccCommand.of(words, environment)
        known = {file.path: file.reading for file in self.closure.files}
        opened = {name: None for added in self.closure.passes for name in ask(command, added, environment).opened}
        found: set[str] = set(map(absolute, self.command.sources))
        for name in opened:
            path = absolute(name)
            original = self.original(name)
            if original is not None:
                found.add(original)
            elif path in known or not (path.startswith(f"{self.headers}/") or owner(Path(path), self._sources)):
                self._refuse(f"{name} is included past its copy")
        for path, reading in known.items():
            if reading is Reading.OPENED and path not in found:
                self._refuse(f"the copy of {path} is not included")
            if reading is Reading.UNREAD and path in found:
                self._refuse(f"the copy of {path} is included, and the original is not")

    @property
    def _sources(self) -> tuple[Path, ...]:
        return tuple(Path(absolute(source)) for source in self.command.sources)

    def _refuse(self, detail: str) -> NoReturn:
        raise AutostampError.of("AS4022", path=" ".join(self.command.sources), detail=detail)

    def restored_rules(self, rules: str) -> str:
        """Make rules of a compilation of the copies as those of the original compilation."""
        listed = {file.path: file.listed for file in self.closure.files}

        def name_of(name: str) -> str:
            path = self.original(name)
            return name if path is None else listed.get(path, path)

        return make_rules.restored(rules, name_of, self.closure.named)
