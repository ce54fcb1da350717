# SPDX-License-Identifier: Apache-2.0
"""The control flow of Python source: every statement of every function with its position."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence

from autostamp.model.program_order import Enters, Function, Position, Statement, Step
from autostamp.passes.cutedsl.roles import is_compile_time

_Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def functions_of(text: str, file: str) -> tuple[Function, ...]:
    """The functions of a source; none where it cannot be parsed."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    return tuple(_functions(tree.body, "", file))


def _functions(body: Sequence[ast.stmt], prefix: str, file: str) -> Iterator[Function]:
    for node in body:
        if isinstance(node, _Scope):
            name = f"{prefix}{node.name}"
            if not isinstance(node, ast.ClassDef):
                statements = tuple(_statements(node.body, ()))
                yield Function(file, name, node.lineno, node.end_lineno or node.lineno, statements)
            yield from _functions(node.body, f"{name}.", file)
        else:
            for block in _blocks(node):
                yield from _functions(block, prefix, file)


def _blocks(node: ast.stmt) -> list[list[ast.stmt]]:
    """The statement lists in a statement, in order."""
    found: list[list[ast.stmt]] = []
    for name in ("body", "handlers", "orelse", "finalbody", "cases"):
        for part in [getattr(node, name, None)]:
            if isinstance(part, list) and part and isinstance(part[0], ast.stmt):
                found.append(part)
            elif isinstance(part, list):
                found += [inner.body for inner in part if isinstance(inner, ast.ExceptHandler | ast.match_case)]
    return found


def _statements(body: Sequence[ast.stmt], outer: Position) -> Iterator[Statement]:
    for index, node in enumerate(body):
        if isinstance(node, _Scope):
            continue  # what is in it runs where it is called
        first, here, blocks = (node.lineno, node.col_offset + 1), (*outer, Step(index)), _blocks(node)
        if not blocks:
            last = (node.end_lineno or node.lineno, node.end_col_offset or 0)
            yield Statement(first, last, here, tuple(_calls(node)))
            continue
        inside = min((block[0].lineno, block[0].col_offset) for block in blocks)
        last = inside if inside[0] == node.lineno else (inside[0] - 1, sys.maxsize)
        yield Statement(first, last, here, tuple(_head_calls(node)))
        for arm, block in enumerate(blocks):
            yield from _statements(block, (*outer, Step(index, _enters(node), arm)))


def _enters(node: ast.stmt) -> Enters:
    if isinstance(node, ast.For | ast.AsyncFor | ast.While):
        return Enters.LOOP
    if isinstance(node, ast.With | ast.AsyncWith):
        return Enters.ALWAYS
    # An arm that was decided while tracing and has records was taken every time.
    is_decided = isinstance(node, ast.If) and is_compile_time(ast.unparse(node.test))
    return Enters.ALWAYS if is_decided else Enters.CHOICE


def _head_calls(node: ast.stmt) -> Iterator[str]:
    for name in ("test", "iter", "subject"):
        part = getattr(node, name, None)
        if isinstance(part, ast.AST):
            yield from _calls(part)


def _calls(node: ast.AST) -> Iterator[str]:
    """Names called. What a conditional expression or a lambda holds may not run, and is left out."""
    pending = [node]
    while pending:
        one = pending.pop()
        if isinstance(one, ast.IfExp | ast.Lambda | ast.BoolOp):
            continue
        if isinstance(one, ast.Call):
            name = ast.unparse(one.func)
            if name.removeprefix("self.").isidentifier():
                yield name
        pending += ast.iter_child_nodes(one)
