# SPDX-License-Identifier: Apache-2.0
"""The state folder that compilations share: stamped copies, unit manifests, and what became of each compilation.

Several compilers write into it at once and no one locks: a file is written under a name of its own and renamed, and what it
holds depends only on its name, or on the newest compilation of one output.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from autostamp.diagnostics import AutostampError

VARIABLE = "AUTOSTAMP_STATE"
NOTE_VERSION = 1


class Outcome(StrEnum):
    """What became of one compilation: with stamps, with none because nothing was found, or without those it should have."""

    STAMPED = "stamped"
    EMPTY = "empty"
    PLAIN = "plain"


@dataclass(frozen=True, slots=True)
class BuildNote:
    """The newest compilation of one output. `unit` is the unit's signature in hex, "" unless stamped.

    `code` and `message` say why an outcome is PLAIN. `warnings` holds ptxas's C75xx lines of the stamped compilation.
    """

    sources: tuple[str, ...]
    output: str
    outcome: Outcome
    unit: str = ""
    code: str = ""
    message: str = ""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StateFolder:
    """Paths below the state folder."""

    root: Path

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> StateFolder:
        """$AUTOSTAMP_STATE, else autostamp below $XDG_CACHE_HOME or ~/.cache."""
        given = environment.get(VARIABLE)
        if given:
            return cls(Path(given).absolute())
        cache = environment.get("XDG_CACHE_HOME") or Path(environment.get("HOME", "~")).expanduser() / ".cache"
        return cls(Path(cache).absolute() / "autostamp")

    def closure(self, command: str) -> Path:
        """What one command reads."""
        return self.root / "closures" / f"{command}.json"

    def copies(self, command: str, unit: str) -> Path:
        """The copies for one command's unit."""
        return self.root / "copies" / command / unit

    def manifest(self, signature: int) -> Path:
        """The manifest of a unit."""
        return self.root / "units" / f"{signature:08x}.manifest.json"

    def texts(self, signature: int) -> Path:
        """Original and stamped texts of a unit, laid out as in a run folder: `original/KEY/NAME`, `stamped/KEY/NAME`."""
        return self.root / "units" / f"{signature:08x}"

    def notes(self) -> tuple[BuildNote, ...]:
        """What became of every compilation so far, the newest of each output; unreadable notes are left out."""
        read = (read_json(path) for path in sorted((self.root / "builds").glob("*.json")))
        return tuple(_note_of(value) for value in read if value and value.get("version") == NOTE_VERSION)

    def note(self, command: str, note: BuildNote) -> None:
        """Keep what became of a compilation; raises AS7001."""
        write_json(self.root / "builds" / f"{command}.json", {"version": NOTE_VERSION, **asdict(note)})


def _note_of(value: dict[str, Any]) -> BuildNote:
    return BuildNote(
        tuple(value["sources"]),
        value["output"],
        Outcome(value["outcome"]),
        value["unit"],
        value["code"],
        value["message"],
        tuple(value["warnings"]),
    )


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in a JSON file, or None when there is no readable one."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def write_json(path: Path, value: object) -> None:
    """Write a JSON file whole or not at all; raises AS7001."""
    write_whole(path, json.dumps(value).encode())


def write_whole(path: Path, data: bytes) -> None:
    """Write a file under a name of this process, then rename it; raises AS7001."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(data)
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise AutostampError.of("AS7001", path=path, detail=error.strerror or str(error)) from error
