# SPDX-License-Identifier: Apache-2.0
"""Where statements stand in the control flow of a program, as far as its source says it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Enters(StrEnum):
    """What one step of a position goes into: once whenever it is reached, any number of times, or perhaps not at all."""

    ALWAYS = "always"
    LOOP = "loop"
    CHOICE = "choice"


class Step(NamedTuple):
    """Statement `at` of a block, and where from there: into `arm` of a statement that has several, or no further."""

    at: int
    enters: Enters = Enters.ALWAYS
    arm: int = 0


Position = tuple[Step, ...]
"""From the body of the outermost function down to a statement. A call into a function's body is a step that ALWAYS enters."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A simple statement, or the head of a compound one, and the names that it calls.

    `first` and `last` are line and column of its ends, both from 1. A method called on the function's own object is `self.NAME`.
    """

    first: tuple[int, int]
    last: tuple[int, int]
    position: Position
    calls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the file with manifest key `file`. `name` is qualified by the classes and functions around it, with dots."""

    file: str
    name: str
    first: int
    last: int
    statements: tuple[Statement, ...]

    @property
    def short(self) -> str:
        """The name without what it is in."""
        return self.name.rpartition(".")[2]

    @property
    def owner(self) -> str:
        """What the function is in; empty for one of the module."""
        return self.name.rpartition(".")[0]

    def position(self, line: int, column: int = 0) -> Position | None:
        """Where the statement on `line` stands, at `column` where that is known (not 0); None where none or several are there."""
        found = [each for each in self.statements if each.first[0] <= line <= each.last[0]]
        if column and len(found) > 1:
            found = [each for each in found if each.first <= (line, column) <= each.last]
        return found[0].position if len(found) == 1 else None
