# SPDX-License-Identifier: Apache-2.0
"""A finding, and the exception that carries one to the command line."""

from __future__ import annotations

from dataclasses import dataclass

from autostamp.diagnostics.codes import CODES, ExitStatus


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a source file: line and column count from 1; `source` is that line's text, `width` what the caret covers."""

    path: str
    line: int
    column: int
    source: str = ""
    width: int = 1


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding: a code, its message and help with the details filled in, and a position where there is one."""

    code: str
    message: str
    help: str
    position: Position | None = None

    @property
    def status(self) -> ExitStatus:
        """The exit status that this finding asks for."""
        return CODES[self.code].status

    @classmethod
    def of(cls, code: str, position: Position | None = None, **details: object) -> Diagnostic:
        """Fill the templates of `code`; raises KeyError for an unknown code or a missing detail."""
        info = CODES[code]
        return cls(code, info.message.format(**details), info.help.format(**details), position)


class AutostampError(Exception):
    """A finding that stops the command."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(f"{diagnostic.code} {diagnostic.message}")
        self.diagnostic = diagnostic

    @classmethod
    def of(cls, code: str, position: Position | None = None, **details: object) -> AutostampError:
        """Build the error from a code and its details."""
        return cls(Diagnostic.of(code, position, **details))
