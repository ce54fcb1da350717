# SPDX-License-Identifier: Apache-2.0
"""The value of an integer constant expression, from its syntax tree."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any, Final

from pycparser import c_ast
from pycparser.c_generator import CGenerator

from autostamp.passes.cuda.members import UnclearError


def _quotient(left: int, right: int) -> int:
    """Division as C does it, towards zero."""
    magnitude = abs(left) // abs(right)
    return magnitude if (left < 0) == (right < 0) else -magnitude


_BINARY: Final[dict[str, Callable[[int, int], int]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _quotient,
    "%": lambda left, right: left - right * _quotient(left, right),
    "<<": operator.lshift,
    ">>": operator.rshift,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "==": lambda left, right: int(left == right),
    "!=": lambda left, right: int(left != right),
    "<": lambda left, right: int(left < right),
    "<=": lambda left, right: int(left <= right),
    ">": lambda left, right: int(left > right),
    ">=": lambda left, right: int(left >= right),
    "&&": lambda left, right: int(bool(left) and bool(right)),
    "||": lambda left, right: int(bool(left) or bool(right)),
}
_UNARY: Final[dict[str, Callable[[int], int]]] = {
    "-": operator.neg,
    "+": operator.pos,
    "~": operator.invert,
    "!": lambda value: int(not value),
}
_BITS: Final = 64
_WORDS: Final = {"true": 1, "false": 0}


def evaluate(node: c_ast.Node, constant: Callable[[str], int], size_of: Callable[[Any], int]) -> int:
    """The value of an expression. `constant` looks names up, `size_of` measures types.

    Raises UnclearError (AS1027) for what is not an integer constant, and what the two functions raise.
    """

    def value(part: c_ast.Node) -> int:
        match part:
            case c_ast.Constant() if "int" in part.type:
                return _integer(part.value)
            case c_ast.ID():
                return _WORDS[part.name] if part.name in _WORDS else constant(part.name)
            case c_ast.BinaryOp() if part.op in _BINARY:
                left, right = value(part.left), value(part.right)
                if (part.op in ("/", "%") and right == 0) or (part.op in ("<<", ">>") and not 0 <= right < _BITS):
                    raise UnclearError("AS1027", name=CGenerator().visit(part))
                return _BINARY[part.op](left, right)
            case c_ast.UnaryOp(op="sizeof") if isinstance(part.expr, c_ast.Typename):
                return size_of(part.expr)
            case c_ast.UnaryOp() if part.op in _UNARY:
                return _UNARY[part.op](value(part.expr))
            case c_ast.TernaryOp():
                return value(part.iftrue if value(part.cond) else part.iffalse)
            case c_ast.Cast():
                return value(part.expr)
            case _:
                pass
        raise UnclearError("AS1027", name=CGenerator().visit(part))

    return value(node)


def _integer(text: str) -> int:
    """An integer literal of C: decimal, hexadecimal, octal or binary, with or without a suffix."""
    digits = re.sub(r"[uUlLzZ]+\Z", "", text)
    return int(digits, 8) if re.fullmatch(r"0[0-7]+", digits) else int(digits, 0)
