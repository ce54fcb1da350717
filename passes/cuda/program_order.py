# SPDX-License-Identifier: Apache-2.0
"""The control flow of CUDA C++ source: every statement of every device function with its position."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tree_sitter import Node

from autostamp.model.program_order import Enters, Function, Position, Statement, Step
from autostamp.passes.cuda import functions
from autostamp.passes.cuda.nodes import LOOPS, condition_of, nodes_of, statements
from autostamp.passes.cuda.source import parse

_LISTS: Final = frozenset({"compound_statement", "case_statement"})
_CONDITIONALS: Final = frozenset({"preproc_if", "preproc_ifdef", "preproc_else", "preproc_elif", "preproc_elifdef"})
_LAMBDA: Final = frozenset({"lambda_expression"})
_CALL: Final = frozenset({"call_expression"})
_MAYBE: Final = frozenset({"conditional_expression", "binary_expression"})


def functions_of(text: str, file: str) -> tuple[Function, ...]:
    """The functions of a source that are compiled for the device."""
    path = Path("source.cu")
    source = parse(text.encode("utf-8", "surrogateescape"))
    found = []
    for each in functions.index({path: source}).functions:
        body = each.node.child_by_field_name("body")
        if not each.is_device or body is None:
            continue
        name = f"{each.owner}.{each.name}" if each.owner else each.name
        rows = tuple(_block(body, ()))
        found.append(Function(file, name, _first(each.node)[0], _last(each.node)[0], rows))
    return tuple(found)


def _block(block: Node, outer: Position) -> Iterator[Statement]:
    """The statements of a list, or the one statement that stands for it."""
    for index, node in enumerate(statements(block)):
        yield from _statement(node, index, outer)


def _statement(node: Node, index: int, outer: Position) -> Iterator[Statement]:
    here = (*outer, Step(index))
    if node.type == "compound_statement":
        yield from _block(node, (*outer, Step(index, Enters.ALWAYS)))
    elif node.type in LOOPS or node.type in ("if_statement", "switch_statement"):
        condition = condition_of(node)
        body = node.child_by_field_name("body") or node.child_by_field_name("consequence")
        calls = tuple(_calls(condition)) if condition is not None else ()
        # The condition of `do … while` stands behind its body, and what a `for` begins with is no part of its trips.
        if node.type not in ("do_statement", "for_statement", "for_range_loop"):
            yield Statement(_first(node), _last(condition or node), here, calls)
        enters = Enters.LOOP if node.type in LOOPS else Enters.CHOICE
        if node.type == "switch_statement" and body is not None:
            for arm, case in enumerate(body.named_children):
                yield from _block(case, (*outer, Step(index, enters, arm)))
            return
        for arm, part in enumerate((body, node.child_by_field_name("alternative"))):
            if part is not None:
                yield from _block(_inner(part), (*outer, Step(index, enters, arm)))
    elif node.type in _CONDITIONALS or node.type == "try_statement":
        yield from _block(node, (*outer, Step(index, Enters.CHOICE)))
    elif node.type == "labeled_statement":
        return  # reached from elsewhere, too
    elif node.text not in (b";", b"") and not any(nodes_of(node, _LAMBDA)):
        yield Statement(_first(node), _last(node), here, tuple(_calls(node)))


def _first(node: Node) -> tuple[int, int]:
    return node.start_point.row + 1, node.start_point.column + 1


def _last(node: Node) -> tuple[int, int]:
    return node.end_point.row + 1, node.end_point.column


def _inner(part: Node) -> Node:
    """The statement of an `else`."""
    if part.type == "else_clause" and part.named_children:
        return part.named_children[-1]
    return part


def _calls(node: Node) -> Iterator[str]:
    """Names of free functions that are called whenever the node is reached."""
    if node.type in _MAYBE or node.type in _LAMBDA:
        return
    if node.type in _CALL:
        callee = node.child_by_field_name("function")
        if callee is not None and callee.type == "template_function":
            callee = callee.child_by_field_name("name")
        if callee is not None and callee.type == "identifier" and callee.text is not None:
            yield callee.text.decode("utf-8", "surrogateescape")
    for child in node.named_children:
        yield from _calls(child)
