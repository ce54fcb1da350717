# SPDX-License-Identifier: Apache-2.0
"""A second count of sync calls, on the text and without the tree: what only one of the two has may have been missed."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass

from tree_sitter import Node

from autostamp.passes.cuda.functions import Asm, Call
from autostamp.passes.cuda.source import Source

_OPCODE = re.compile(
    rb"\b(?:mbarrier\.(?:try_wait|test_wait|arrive|expect_tx|complete_tx)|bar(?:rier)?(?:\.cta)?\.(?:sync|arrive|red)"
    rb"|barrier\.cluster\.(?:arrive|wait)|cp\.async\.(?:bulk\.)?(?:wait_group|commit_group|wait_all)|cp\.async\.mbarrier"
    rb"|wgmma\.(?:wait_group|commit_group)|tcgen05\.(?:wait|commit)|griddepcontrol\.(?:wait|launch_dependents))\b"
)
# Template arguments may stand between a name and its parenthesis.
_CALLED = re.compile(rb"([A-Za-z_]\w*+)(?:\s*+<[^;{}()]*+(?:\([^()]*+\)[^;{}()]*+)*+>)?+\s*+\(")
_ASM_BEFORE = re.compile(rb"\b(?:asm|__asm__|__asm)\b[^;{}]*\Z")
_NAME_PARTS = frozenset(
    {"qualified_identifier", "template_function", "template_method", "dependent_name", "field_expression"}
)
_CAPITALS = re.compile(r"[A-Z][A-Z0-9_]+")
_DECLARE = frozenset(
    (
        *("init_declarator", "field_initializer", "destructor_name", "parenthesized_declarator"),
        *("friend_declaration", "new_expression", "using_declaration"),
    )
)
# Words that stand on a line before a name that is declared, not called.
_HEAD = re.compile(rb"[^;{}(]*\b(?:void|inline|static|__device__|__global__|bool|constexpr|template)\b[^;{}(=]*\Z")


@dataclass(frozen=True, slots=True)
class Miss:
    """A place that reads like a sync call and is in no tree."""

    start: int
    end: int


def name_at(call: Call) -> int:
    """The offset of a call's name in the original."""
    leaf = call.node.child_by_field_name("function")
    while leaf is not None:
        following = leaf.child_by_field_name("field") or leaf.child_by_field_name("name")
        if following is None and leaf.type == "dependent_name" and leaf.named_children:
            following = leaf.named_children[-1]
        if following is None:
            break
        leaf = following
    return call.start if leaf is None else leaf.start_byte + call.start - call.node.start_byte


def misses(
    source: Source, names: Container[str], calls: Iterable[Call], asms: Iterable[Asm], macros: list[tuple[int, int]]
) -> Iterator[Miss]:
    """Places of sync names before a parenthesis, and of sync opcodes in asm, that no call or asm of the trees holds.

    `macros` are spans of `#define` bodies that were searched by themselves.
    """
    known = {name_at(call) for call in calls}
    for match in _CALLED.finditer(source.code):
        if match[1].decode("ascii") not in names:
            continue
        start, end = match.span(1)
        if start in known or _in(macros, start) or _is_directive(source, start):
            continue
        if not _is_declared(source, start, end):
            yield Miss(start, end)
    spans = [(asm.start, asm.end) for asm in asms]
    for match in _OPCODE.finditer(source.uncommented):
        start, end = match.span()
        if _in(spans, start) or _in(macros, start) or source.code[start:end].strip():
            continue
        if _ASM_BEFORE.search(source.code, max(0, start - 4000), start):
            yield Miss(start, end)


def _in(spans: Iterable[tuple[int, int]], position: int) -> bool:
    return any(start <= position < end for start, end in spans)


def _is_directive(source: Source, position: int) -> bool:
    """True on a preprocessor line, or one that continues it."""
    start = source.code.rfind(b"\n", 0, position) + 1
    while start > 1 and source.code[:start].rstrip(b"\r\n").endswith(b"\\"):
        start = source.code.rfind(b"\n", 0, start - 1) + 1
    return source.code[start:position].lstrip().startswith(b"#")


def _is_declared(source: Source, start: int, end: int) -> bool:
    """True when the tree has a declaration, a definition or a call of the name there."""
    if _HEAD.match(source.code, source.code.rfind(b"\n", 0, start) + 1, start):
        return True
    node = source.tree.root_node.descendant_for_byte_range(start, end)
    if node is None or node.start_byte != start:
        return False
    parent = node.parent
    while parent is not None and parent.type in _NAME_PARTS:
        node, parent = parent, parent.parent
    if parent is None:
        return False
    if parent.type == "call_expression":
        return True
    if parent.type == "function_declarator":
        return not _is_in_body(source, parent)
    return parent.type in _DECLARE


def _is_in_body(source: Source, declarator: Node) -> bool:
    """True for what reads like a declaration among statements, of a type in capitals: far more likely a macro and a call."""
    above = declarator.parent
    while above is not None and above.type.endswith("_declarator"):
        above = above.parent
    if above is None or above.type == "function_definition":
        return False
    type_ = above.child_by_field_name("type")
    holder = above.parent
    if type_ is None or not _CAPITALS.fullmatch(source.text(type_)):
        return False
    return holder is not None and holder.type in ("compound_statement", "case_statement", "if_statement", "else_clause")
