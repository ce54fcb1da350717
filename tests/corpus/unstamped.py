# SPDX-License-Identifier: Apache-2.0
"""Does a stamped source still say what the original said? Judged with Python's `ast`, not by undoing the edits.

What counts as ours, and is taken out of the stamped tree before it is compared:
- imports of `autostamp`, and an assignment of what a name bound by one of them returns (the file's stamper);
- statements that only call such a name, unless an argument makes a sync call of its own;
- `around(site, first, value)`, `see(site, value, ...)` and `wrap(site, value, ...)` on such a name, which stand for `value`;
- the parameter `mProf`, and the argument that passes it on (also as `**hand(mProf)` on such a name);
- a `finally` that is empty once stamps are out;
- an assignment to a name that starts with `_autostamp`, whose value goes back to where the name is read.
Anything else that differs is a change of the program.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import cast

from tests.corpus.count import sync_calls

PARAMETER = "mProf"
PREFIX = "_autostamp"
VALUE_OF = {"around": 2, "see": 1, "wrap": 1}
"""Stamps that return one of their arguments: which."""


def difference(original: bytes, stamped: bytes) -> str:
    """Empty when the stamped source is the original plus stamps, else where the two part."""
    before, after = ast.parse(original), _Remover().visit(ast.parse(stamped))
    if ast.dump(before) == ast.dump(after):
        return ""
    return _first_difference(before, after)


class _Remover(ast.NodeTransformer):
    """Visits in source order, so that a name is known as ours before it is used."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.values: dict[str, ast.expr] = {}

    def visit_Import(self, node: ast.Import) -> ast.stmt | None:
        ours = [alias for alias in node.names if _is_ours(alias.name)]
        self.names.update(alias.asname or alias.name.split(".")[0] for alias in ours)
        node.names = [alias for alias in node.names if alias not in ours]
        return node if node.names else None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt | None:
        if node.level or not _is_ours(node.module or ""):
            return node
        self.names.update(alias.asname or alias.name for alias in node.names)
        return None

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if self._is_stamp(node.value) else self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        target = node.targets[0]
        if len(node.targets) > 1 or not isinstance(target, ast.Name):
            return self.generic_visit(node)
        if self._is_stamp(node.value):
            self.names.add(target.id)
            return None
        self.generic_visit(node)
        if not target.id.startswith(PREFIX):
            return node
        self.values[target.id] = node.value
        return None

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.values.get(node.id, node) if isinstance(node.ctx, ast.Load) else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        at = self._value_index(node)
        if at is not None and at < len(node.args):
            return node.args[at]
        node.args = [value for value in node.args if not (isinstance(value, ast.Name) and value.id == PARAMETER)]
        node.keywords = [
            keyword
            for keyword in node.keywords
            if keyword.arg != PARAMETER and not (keyword.arg is None and self._is_stamp(keyword.value))
        ]
        return node

    def visit_arguments(self, node: ast.arguments) -> ast.AST:
        bare = len(node.args) - len(node.defaults)
        for at in range(len(node.args) - 1, -1, -1):
            if node.args[at].arg == PARAMETER:
                del node.args[at]
                if at >= bare:
                    del node.defaults[at - bare]
        for at in range(len(node.kwonlyargs) - 1, -1, -1):
            if node.kwonlyargs[at].arg == PARAMETER:
                del node.kwonlyargs[at], node.kw_defaults[at]
        return self.generic_visit(node)

    def visit_Try(self, node: ast.Try) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        is_empty = not (node.handlers or node.orelse or node.finalbody)
        return node.body if is_empty else node

    def _is_stamp(self, node: ast.expr) -> bool:
        """A call of ours that returns none of its arguments and does nothing of the program's in them."""
        if not isinstance(node, ast.Call) or not self._is_ours(node.func) or self._value_index(node) is not None:
            return False
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        return not any(True for argument in arguments for _ in sync_calls(argument))

    def _value_index(self, node: ast.Call) -> int | None:
        if isinstance(node.func, ast.Attribute) and self._is_ours(node.func):
            return VALUE_OF.get(node.func.attr)
        return None

    def _is_ours(self, node: ast.expr) -> bool:
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and node.id in self.names


def _is_ours(module: str) -> bool:
    return module == "autostamp" or module.startswith("autostamp.")


def _first_difference(before: ast.AST, after: ast.AST) -> str:
    """The innermost pair of statements that differs, by line in each source."""
    for name in ("body", "handlers", "orelse", "finalbody"):
        first_list, second_list = getattr(before, name, None), getattr(after, name, None)
        if not isinstance(first_list, list) or not isinstance(second_list, list):
            continue
        pairs = zip(cast("Sequence[ast.AST]", first_list), cast("Sequence[ast.AST]", second_list), strict=False)
        for first, second in pairs:
            if ast.dump(first) != ast.dump(second):
                return _first_difference(first, second)
    lines = " and ".join(str(getattr(node, "lineno", 1)) for node in (before, after))
    return f"{type(before).__name__} and {type(after).__name__} at lines {lines} (original, stamped) differ"
