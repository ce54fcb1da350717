# SPDX-License-Identifier: Apache-2.0
"""How a call stands in its function, hence where its stamps go, or why none can."""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass

from tree_sitter import Node

from autostamp.model.site import Shape
from autostamp.model.sync import Kind
from autostamp.passes.cuda.found import Form
from autostamp.passes.cuda.neighbours import Neighbours
from autostamp.passes.cuda.nodes import JUMPS, LOOPS, Chain, is_constexpr_if, is_list
from autostamp.passes.cuda.source import Source


@dataclass(frozen=True, slots=True)
class Place:
    """Bytes [start, end) that the stamps bracket, and how. `statement` is the statement that holds them."""

    form: Form
    shape: Shape
    start: int
    end: int
    statement: Node


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a call is not stamped."""

    code: str
    reason: str


_POSITION = "AS2105"
NO_STATEMENT = Refusal(_POSITION, "outside of any statement")
_UNEVALUATED = {
    "decltype": "in decltype",
    "sizeof_expression": "in sizeof",
    "alignof_expression": "in alignof",
    "noexcept": "in noexcept",
    "static_assert_declaration": "in static_assert",
    "template_argument_list": "in a template argument",
    "template_parameter_list": "in a template parameter",
    "requires_clause": "in a requires clause",
    "requires_expression": "in a requires expression",
    "concept_definition": "in a concept",
    "enumerator": "in an enumerator",
    "array_declarator": "in an array's extent",
}
_HEADERS = {
    "field_initializer_list": "in a constructor's initialiser list",
    "field_declaration": "in a member's initialiser",
    "parameter_list": "in a default argument",
    "co_await_expression": "in a coroutine",
    "co_yield_statement": "in a coroutine",
    "co_return_statement": "in a coroutine",
    "gnu_asm_expression": "in an operand of inline asm",
    "attribute_declaration": "in an attribute",
    "kernel_call_syntax": "in a launch",
}
# The shape that an expression gives to the calls in it, the outermost one winning.
_EXPRESSIONS = {
    "conditional_expression": Shape.TERNARY,
    "comma_expression": Shape.COMMA,
    "return_statement": Shape.RETURNED,
    "condition_clause": Shape.CONDITION,
    "argument_list": Shape.ARGUMENT,
    "initializer_list": Shape.ARGUMENT,
    "field_expression": Shape.CHAINED,
}
UNBRACED = frozenset({"if_statement", "else_clause", "attributed_statement", *LOOPS})
_MACRO_NAME = re.compile(r"[A-Z][A-Z0-9_]{2,}\Z|(?:assert|static_assert)\Z")
_UNSURE = frozenset({"conditional_expression", "lambda_expression"})
_VALUE_CASTS = frozenset({"parenthesized_expression", "cast_expression"})


@dataclass(frozen=True, slots=True)
class Shapes:
    """Decides places in one source. `macros` are the names of function-like macros, `functions` those of functions."""

    source: Source
    neighbours: Neighbours
    macros: Container[str]
    functions: Container[str]

    def place(self, chain: Chain, kind: Kind) -> Place | Refusal:
        """Where the stamps of chain[-1], a call or inline asm, go; chain[0] is the function definition."""
        node = chain[-1]
        shape: Shape | None = None
        is_whole = True
        if any(each.type == "ERROR" for each in chain[1:]):
            return Refusal("AS1011", "in text that cannot be parsed")
        for at in range(len(chain) - 2, -1, -1):
            parent, child = chain[at], chain[at + 1]
            if (refusal := self._refused(parent, child)) is not None:
                return refusal
            if parent.type == "expression_statement":
                return self._in_statement(chain, at, shape, kind, is_whole=is_whole)
            if parent.type == "declaration" and is_list(chain, at - 1):
                declarators = sum(each.type == "init_declarator" for each in parent.named_children)
                return self._in_statement(chain, at, shape, kind, is_whole=is_whole and declarators == 1)
            if parent.type in ("function_definition", "compound_statement", "translation_unit"):
                break
            if parent.type == "lambda_expression" and child.type == "compound_statement":
                break
            if parent.type in _VALUE_CASTS:
                continue
            if parent.type in ("init_declarator", "assignment_expression", "declaration"):
                is_value = child in (parent.child_by_field_name("value"), parent.child_by_field_name("right"))
                shape = Shape.ASSIGNED if is_value and shape is None else shape or Shape.EXPRESSION
                is_whole = is_whole and is_value
            elif parent.type in LOOPS:
                return self._around(node, Shape.CONDITION, parent)
            else:
                shape = _EXPRESSIONS.get(parent.type, Shape.EXPRESSION if shape is None else shape)
                is_whole = False
                if parent.type == "condition_clause" and at > 0 and is_constexpr_if(chain[at - 1]):
                    return Refusal("AS2114", "in the condition of an if constexpr")
                if parent.type in ("return_statement", "condition_clause"):
                    return self._around(node, shape, parent)
        return NO_STATEMENT

    def _refused(self, parent: Node, child: Node) -> Refusal | None:
        if parent.type in _UNEVALUATED:
            return Refusal("AS2114", _UNEVALUATED[parent.type])
        if parent.type in _HEADERS:
            return Refusal(_POSITION, _HEADERS[parent.type])
        if parent.type == "declaration" and any(
            each.type == "type_qualifier" and self.source.text(each) in ("constexpr", "consteval", "constinit")
            for each in parent.named_children
        ):
            return Refusal("AS2114", "in a constant")
        if parent.type == "call_expression" and child.type == "argument_list":
            return self._in_macro(parent)
        return None

    def _in_macro(self, call: Node) -> Refusal | None:
        callee = call.child_by_field_name("function")
        if callee is None or callee.type != "identifier":
            return None
        name = self.source.text(callee)
        if name in self.macros or (_MACRO_NAME.match(name) and name not in self.functions):
            return Refusal("AS2112", f"in an argument of the macro {name}")
        return None

    def _in_statement(
        self, chain: Chain, at: int, shape: Shape | None, kind: Kind, *, is_whole: bool
    ) -> Place | Refusal:
        statement, node = chain[at], chain[-1]
        if statement.has_error:
            return Refusal("AS1011", "in a statement that cannot be parsed")
        is_asm = node.type == "gnu_asm_expression"
        if not is_whole or (shape is Shape.ASSIGNED and kind is not Kind.SIGNAL):
            return self._around(node, shape or Shape.EXPRESSION, statement)
        in_list = is_list(chain, at - 1)
        if in_list and self._is_unreachable(chain, at):
            return Refusal(_POSITION, "never reached: it follows a jump")
        span = (statement.start_byte, statement.end_byte)
        is_labeled = at > 1 and chain[at - 1].type == "labeled_statement" and is_list(chain, at - 2)
        if in_list or is_labeled:
            if self.neighbours.follows_statement(statement.start_byte):
                return Place(Form.STATEMENT, shape or _plain(chain, at, is_asm=is_asm), *span, statement)
            if statement.type == "declaration":
                return self._around(node, Shape.ASSIGNED, statement)
            # A macro without semicolon or the other side of an `#if` stands before it: braces are right in any case.
            return self._in_braces(statement)
        if chain[at - 1].type in UNBRACED:
            if statement in (chain[at - 1].child_by_field_name(name) for name in ("initializer", "condition")):
                return self._around(node, Shape.CONDITION, statement)
            return self._in_braces(statement)
        if chain[at - 1].type in ("compound_statement", "init_statement"):
            return self._around(node, Shape.EXPRESSION, statement)
        return Refusal(_POSITION, "in a statement of a kind that is not known")

    def _in_braces(self, statement: Node) -> Place | Refusal:
        if not self.neighbours.may_take_braces(statement.start_byte):
            return Refusal(_POSITION, "after something that an #if leaves open")
        return Place(Form.BRANCH, Shape.BRANCH, statement.start_byte, statement.end_byte, statement)

    def before_waits(self, chain: Chain, place: Place) -> Place | Refusal:
        """Where a signal inside an expression is stamped that a wait of the same statement follows.

        At the end of the expression the wait is over, so the stamp goes before the statement, as long as the signal surely
        comes: a stamp that is early by an instruction tells the truth, one that is late by a wait does not.
        """
        at = next((at for at, node in enumerate(chain) if node == place.statement), 0)
        inner = chain[at + 1 : -1]
        is_sure = not any(node.type in _UNSURE or _is_logical(node) for node in inner)
        start = place.statement.start_byte
        if at > 0 and is_sure and is_list(chain, at - 1) and self.neighbours.follows_statement(start):
            return Place(Form.STATEMENT, place.shape, start, start, place.statement)
        return Refusal(_POSITION, "before a wait inside one expression")

    def _is_unreachable(self, chain: Chain, at: int) -> bool:
        statement = chain[at]
        previous = statement.prev_named_sibling
        while previous is not None and previous.type == "comment":
            previous = previous.prev_named_sibling
        return previous is not None and previous.type in JUMPS and previous.parent == chain[at - 1]

    def _around(self, node: Node, shape: Shape, statement: Node) -> Place | Refusal:
        if node.type == "gnu_asm_expression":
            return Refusal(_POSITION, "inline asm inside an expression")
        if node.has_error:
            return Refusal("AS1011", "in a call that cannot be parsed")
        return Place(Form.AROUND, shape, node.start_byte, node.end_byte, statement)


def _is_logical(node: Node) -> bool:
    operator = node.child_by_field_name("operator") if node.type == "binary_expression" else None
    return operator is not None and operator.type in ("&&", "||", "and", "or")


def _plain(chain: Chain, at: int, *, is_asm: bool) -> Shape:
    parent = chain[at - 1]
    if parent.type == "case_statement" and _first_statement(parent) == chain[at]:
        return Shape.CASE
    return Shape.ASM if is_asm else Shape.STATEMENT


def _first_statement(case: Node) -> Node | None:
    value = case.child_by_field_name("value")
    return next((child for child in case.named_children if child != value and child.type != "comment"), None)
