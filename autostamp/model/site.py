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
    BRANCH = "branch"
    CASE = "case"
    TERNARY = "ternary"
    COMMA = "comma"
    ASM = "asm"


@dataclass(frozen=True, slots=True)
class Span:
    """Half-open byte range in the original file, with the position of its first byte (line from 1, column from 1)."""

    start: int
    end: int
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Site:
    """One sync call in one file. `number` counts from 1 in source order and is what a stamp names.

    The fields from `root` on are CUDA C++'s, which has no trace to learn from. `root` names the declaration that the barrier
    operand goes back to (`file:line:name`), `conditions` the guards from the kernel down to the call, outermost first,
    `iteration` and `stage` the expressions that say which use it is, where the source shows them, and `payload` (a value of
    `Payload`) what its records carry. `is_async`: a signal that lands later than its issue.
    """

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
    root: str = ""
    conditions: tuple[str, ...] = ()
    iteration: str = ""
    stage: str = ""
    payload: str = "none"
    is_async: bool = False


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
    """A device entry found in the source: its qualified name, position, and whether its launch could be threaded.

    CUDA C++ numbers the kernels of a file from 1 and says by which `carrier` (param or symbol) a kernel gets its buffer, the
    `reason` for that choice, and which sites it `reaches` (file key, site number) as far as calls can be followed by name.
    With `is_lean` its stamps have the form for kernels with few registers.
    """

    name: str
    line: int
    is_threaded: bool
    host: str
    number: int = 0
    carrier: str = ""
    reason: str = ""
    reaches: tuple[tuple[str, int], ...] = ()
    is_lean: bool = False
