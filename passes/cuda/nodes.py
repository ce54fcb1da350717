# SPDX-License-Identifier: Apache-2.0
"""Steps through a syntax tree that more than one pass takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tree_sitter import Node

LOOPS = frozenset({"while_statement", "do_statement", "for_statement", "for_range_loop"})
# Children of these stand one after another, so text may go between them.
_CONDITIONALS = frozenset({"preproc_if", "preproc_ifdef", "preproc_else", "preproc_elif", "preproc_elifdef"})
JUMPS = frozenset({"return_statement", "break_statement", "continue_statement", "goto_statement", "throw_statement"})
_BODIES = frozenset({"function_definition", "lambda_expression", "try_statement", "catch_clause"})

Chain = Sequence[Node]


def chain_to(top: Node, node: Node) -> tuple[Node, ...]:
    """The nodes from `top` down to `node`, both included. `node` lies in `top`."""
    path = [top]
    while path[-1] != node:
        child = path[-1].child_with_descendant(node)
        if child is None:
            break
        path.append(child)
    return tuple(path)


def is_list(chain: Chain, at: int) -> bool:
    """True when the children of chain[at] are a list of statements in braces."""
    node = chain[at]
    if node.type == "compound_statement":
        # The last statement of `({ … })` is a value, of which nothing may come after.
        return at == 0 or chain[at - 1].type != "parenthesized_expression"
    if node.type in _CONDITIONALS or node.type == "case_statement":
        return at > 0 and is_list(chain, at - 1)
    return False


def inner_start(chain: Chain) -> int:
    """Where in the chain the innermost lambda begins, else 0: what is outside of it runs at another time."""
    return max((at for at, node in enumerate(chain) if node.type == "lambda_expression"), default=0)


def descendants(node: Node, types: frozenset[str]) -> Iterator[Node]:
    """All nodes of these types below `node`, itself included, in source order; not inside a match."""
    if node.type in types:
        yield node
        return
    for child in node.named_children:
        yield from descendants(child, types)


def nodes_of(node: Node, types: frozenset[str]) -> Iterator[Node]:
    """All nodes of these types below `node`, itself included, in source order; also those inside a match."""
    stack = [node]
    while stack:
        each = stack.pop()
        if each.type in types:
            yield each
        stack += reversed(each.named_children)


def statements(node: Node) -> list[Node]:
    """The statements of a list, without comments; of anything else, the node itself."""
    if node.type not in ("compound_statement", "case_statement") and node.type not in _CONDITIONALS:
        return [node]
    return [child for child in node.named_children if child.type != "comment"]


def condition_of(node: Node) -> Node | None:
    """The condition of an if, a loop or a switch, without its parentheses and initialiser."""
    condition = node.child_by_field_name("condition")
    if condition is not None and condition.type == "condition_clause":
        return condition.child_by_field_name("value")
    if condition is not None and condition.type == "parenthesized_expression" and condition.named_children:
        return condition.named_children[0]
    return condition


def is_constexpr_if(node: Node) -> bool:
    """True for `if constexpr`."""
    return node.type == "if_statement" and any(child.type == "constexpr" for child in node.children[:3])


def loop_depth(chain: Chain) -> int:
    """Loops on the way to the last node."""
    return sum(node.type in LOOPS for node in chain)
