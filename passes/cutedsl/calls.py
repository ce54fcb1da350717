# SPDX-License-Identifier: Apache-2.0
"""Is this call a sync op, which row of the catalogue is it, and what does its stamp need to know?"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from dataclasses import dataclass, replace

import libcst as cst

from autostamp.model.sync import Kind, StageFrom, SyncOp
from autostamp.passes.catalogue import ROWS
from autostamp.passes.cutedsl.found import OperandText
from autostamp.passes.cutedsl.spans import Spans

_HOST_RECEIVERS = {
    "torch", "dist", "event", "events", "stream", "thread", "threads", "lock", "_lock", "subprocess", "proc", "process", "queue",
    "os", "np", "numpy", "cp", "cupy", "future", "futures", "pool", "executor", "asyncio", "time", "handle_nccl", "work_handle",
    "cursor", "conn", "connection", "semaphore_lock", "mutex", "logger", "signal", "threading", "multiprocessing",
}  # fmt: skip
_STATEFUL = {"index", "phase", "count", "current_handle", "barrier"}
_PURE_CALLS = {"int"}
_KEYWORDS: dict[StageFrom, tuple[tuple[str, int, tuple[str, ...]], ...]] = {
    StageFrom.STATE: (("state", 0, ("state", "pipe_state")),),
    StageFrom.INDEX: (("index", 0, ("index",)),),
    StageFrom.INDEX_PHASE: (("index", 0, ("index",)),),
    StageFrom.POINTER: (("pointer", 0, ("mbar_ptr", "mbar", "ptr", "bar", "addr", "mbarrier")),),
    StageFrom.BARRIER_ID: (("barrier_id", 0, ("barrier_id", "id", "barrier")),),
}


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Lookup tables of one run: the built-in rows and the user's own."""

    by_method: dict[str, tuple[SyncOp, ...]]
    pattern: re.Pattern[bytes]

    @classmethod
    def of(cls, extra: Iterable[SyncOp] = ()) -> Catalogue:
        """Tables over the user's rows (which win) and the built-in ones."""
        table: dict[str, list[SyncOp]] = {}
        for row in (*extra, *ROWS):
            table.setdefault(row.method, []).append(row)
        names = "|".join(sorted((re.escape(name) for name in table), key=len, reverse=True))
        return cls(
            {name: tuple(rows) for name, rows in table.items()}, re.compile(rb"\b(?:" + names.encode() + rb")\b")
        )


def dotted(node: cst.BaseExpression) -> str:
    """`a.b.c` for a chain of names, '' for anything else."""
    parts: list[str] = []
    while isinstance(node, cst.Attribute):
        parts.append(node.attr.value)
        node = node.value
    if not isinstance(node, cst.Name):
        return ""
    parts.append(node.value)
    return ".".join(reversed(parts))


def _is_function(row: SyncOp) -> bool:
    """True for rows that are functions of a module, whose receiver is no barrier."""
    return "." in row.owner


def has_function(catalogue: Catalogue, name: str) -> bool:
    """True when a row is a function of a module, so that its bare name is recognised."""
    return any(_is_function(row) for row in catalogue.by_method.get(name, ()))


def match(call: cst.Call, catalogue: Catalogue, known: Container[str] = ()) -> SyncOp | None:
    """The catalogue row that fits the call best, or None when it is no sync op.

    `known` are the functions that the file defines or imports by name.
    """
    if isinstance(call.func, cst.Attribute):
        name, receiver = call.func.attr.value, call.func.value
    elif isinstance(call.func, cst.Name):
        name, receiver = call.func.value, None
    else:
        return None
    rows = catalogue.by_method.get(name)
    if rows is None:
        return None
    if receiver is None:
        return next((row for row in rows if _is_function(row)), _own_function(name, rows, call, known))
    chain = dotted(receiver)
    if chain.split(".")[0] == "self":
        # A method of the program's own class that has a module function's name, `self.barrier(i)`, is not that function.
        rows = tuple(row for row in rows if not _is_function(row))
        if not rows:
            return None
    if set(chain.split(".")) & _HOST_RECEIVERS:
        return None
    rows = tuple(row for row in rows if row.receiver in chain)
    if not rows:
        return None
    last = chain.rsplit(".", 1)[-1]
    for row in rows:
        if _is_function(row) and row.owner.rsplit(".", 1)[-1] == last:
            return row
    named = next((row for row in rows if row.owner == "NamedBarrier"), None)
    if named is not None and any(arg.keyword is not None and arg.keyword.value == "barrier_id" for arg in call.args):
        # The method knows its barrier: this is the function of that name, `pipeline.sync(barrier_id=1)`.
        return replace(named, owner="cutlass.pipeline", stage_from=StageFrom.BARRIER_ID)
    return _by_arguments(rows, len(call.args))


def _own_function(name: str, rows: tuple[SyncOp, ...], call: cst.Call, known: Container[str]) -> SyncOp | None:
    """A plain function of the program that has a method's name, `wait(barrier, phase)`: its first argument is the barrier."""
    if name not in known:
        return None
    stage_from = StageFrom.POINTER if call.args else StageFrom.NONE
    return replace(rows[0], owner="program.function", stage_from=stage_from, signals=(), group=name)


def _by_arguments(rows: tuple[SyncOp, ...], count: int) -> SyncOp:
    """Among rows of one method name: a participant or a barrier object takes no argument, a ring its state, an array an index."""
    order: tuple[StageFrom, ...]
    if count == 0:
        order = (StageFrom.PARTICIPANT, StageFrom.OBJECT, StageFrom.NONE)
    elif count == 1:
        order = (StageFrom.STATE, StageFrom.POINTER, StageFrom.INDEX, StageFrom.BARRIER_ID)
    else:
        order = (StageFrom.INDEX_PHASE, StageFrom.INDEX, StageFrom.STATE, StageFrom.POINTER, StageFrom.BARRIER_ID)
    for wanted in order:
        for row in rows:
            if row.stage_from is wanted and not row.is_noop:
                return row
    return rows[0]


def is_pure(node: cst.BaseExpression, *, is_receiver: bool = False) -> bool:
    """True when evaluating the text again neither emits an instruction nor calls anything but `int`."""
    if isinstance(node, (cst.Name, cst.Integer, cst.SimpleString)):
        return True
    if isinstance(node, cst.Attribute):
        return node.attr.value not in _STATEFUL and is_pure(node.value, is_receiver=is_receiver)
    if isinstance(node, cst.Subscript) and is_receiver:
        return is_pure(node.value, is_receiver=True) and all(
            isinstance(item.slice, cst.Index) and isinstance(item.slice.value, cst.Integer) for item in node.slice
        )
    if isinstance(node, cst.Call):
        return dotted(node.func) in _PURE_CALLS and all(is_pure(arg.value) and not arg.star for arg in node.args)
    return False


def operands(call: cst.Call, row: SyncOp, spans: Spans, data: bytes) -> tuple[OperandText, ...]:
    """Receiver and stage operand of a call, as the stamp will be given them."""

    def text_of(keyword: str, node: cst.BaseExpression, *, is_receiver: bool = False) -> OperandText:
        start, end = spans.of(node)
        text = " ".join(data[start:end].decode().split())
        return OperandText(
            keyword, start, end, text, is_pure(node, is_receiver=is_receiver) and b"\n" not in data[start:end]
        )

    found: list[OperandText] = []
    if isinstance(call.func, cst.Attribute) and not _is_function(row):
        found.append(text_of("receiver", call.func.value, is_receiver=True))
    for keyword, position, names in _KEYWORDS.get(row.stage_from, ()):
        chosen = next((arg for arg in call.args if arg.keyword is not None and arg.keyword.value in names), None)
        if chosen is None and position < len(call.args):
            candidate = call.args[position]
            chosen = candidate if candidate.keyword is None and not candidate.star else None
        if chosen is not None:
            found.append(text_of(keyword, chosen.value))
    return tuple(found)


def is_trivial_loop(loop: cst.While) -> cst.Call | None:
    """The polling call of `while not poll(...): pass`, which is one wait; None for any other loop."""
    test = loop.test
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        call = test.expression
    elif isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        call = test.left
    else:
        return None
    if not isinstance(call, cst.Call) or loop.orelse is not None:
        return None
    for statement in loop.body.body:
        smalls = statement.body if isinstance(statement, cst.SimpleStatementLine) else (statement,)
        for small in smalls:
            idle = isinstance(small, cst.Pass) or (
                isinstance(small, cst.Expr)
                and (
                    isinstance(small.value, cst.Ellipsis)
                    or (isinstance(small.value, cst.Call) and dotted(small.value.func).endswith("nanosleep"))
                )
            )
            if not idle:
                return None
    return call


def is_poll(row: SyncOp | None) -> bool:
    """True for a row that never blocks."""
    return row is not None and row.kind is Kind.POLL
