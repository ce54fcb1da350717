# SPDX-License-Identifier: Apache-2.0
"""JSON files that carry a `schema_version`: read strictly, of one version, with one code for whatever is wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from autostamp.diagnostics import AutostampError

T = TypeVar("T")


def _none(_found: object) -> Iterable[str]:
    return ()


@dataclass(frozen=True, slots=True)
class VersionedJson(Generic[T]):
    """One kind of file. `faults` says what of a parsed content the types alone do not; `code` is raised for every fault."""

    kind: type[T]
    version: int
    code: str
    faults: Callable[[T], Iterable[str]] = _none

    def encode(self, content: T) -> bytes:
        """Indented JSON, fields in the order of the types, with a newline at the end."""
        return msgspec.json.format(msgspec.json.encode(content, order="deterministic"), indent=1) + b"\n"

    def decode(self, data: bytes, path: str) -> T:
        """Parse a content; nothing is coerced. Raises the code, naming `path`, for anything but one of this version."""
        try:
            version = msgspec.json.decode(data, type=dict[str, Any]).get("schema_version")
            if version != self.version:
                raise self._error(path, f"it has schema version {version}, this autostamp reads {self.version}")
            found = msgspec.json.decode(data, type=self.kind, strict=True)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._error(path, str(error)) from error
        for detail in self.faults(found):
            raise self._error(path, detail)
        return found

    def read(self, path: Path) -> T:
        """Read a file; raises the code when it cannot be read or is not one."""
        try:
            data = path.read_bytes()
        except OSError as error:
            raise self._error(str(path), error.strerror or str(error)) from error
        return self.decode(data, str(path))

    def _error(self, path: str, detail: str) -> AutostampError:
        return AutostampError.of(self.code, path=path, detail=detail)
