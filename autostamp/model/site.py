# SPDX-License-Identifier: Apache-2.0
"""Where sync ops stand in the source."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from autostamp.model.sync import Kind, Side, StageFrom


class Shape(StrEnum):
    """How the call is written, which decides how it can be stamped."""

    STATEMENT = "statement"
    ASSIGNED = "assigned"
    WAIT_LOOP = "wait-loop"
    ARGUMENT = "argument"
    CHAINED = "chained"
    CONDITION = "condition"
    RETURNED = "returned"
    LAMBDA = "lambda"
    REFERENCE = "reference"
    EXPRESSION = "expression"


@dataclass(frozen=True, slots=True)
class Span:
    """Half-open byte range in the original file, with the position of its first byte (line from 1, column from 1)."""

    start: int
    end: int
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Site:
    """One sync call in one file. `number` counts from 1 in source order and is what a stamp names at trace time."""

    number: int
    span: Span
    text: str
    method: str
    owner: str
    kind: Kind
    side: Side
    stage_from: StageFrom
    shape: Shape
    function: str
    barrier: str
    role: str
    loop_depth: int
    guard: str = ""


@dataclass(frozen=True, slots=True)
class Skip:
    """A call that was recognised and deliberately not stamped: `code` is the AS#### that explains why."""

    span: Span
    text: str
    method: str
    kind: Kind
    function: str
    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class KernelDef:
    """A device entry found in the source: its qualified name, position, and whether its launch could be threaded."""

    name: str
    line: int
    is_threaded: bool
    host: str
