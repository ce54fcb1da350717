# SPDX-License-Identifier: Apache-2.0
"""What a name is declared as where it is used: by block, lambda, parameter list, class, file."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from tree_sitter import Node

from autostamp.passes.cuda.functions import Function, Index, Type, bare
from autostamp.passes.cuda.nodes import Chain
from autostamp.passes.cuda.operands import one_line
from autostamp.passes.cuda.source import Source

_NAMES = frozenset({"identifier", "field_identifier"})
_INNER = ("preproc_if", "preproc_ifdef", "preproc_else", "preproc_elif", "linkage_specification", "declaration_list")
_OUTER = (*_INNER, "namespace_definition", "translation_unit")
_WORD = re.compile(r"[A-Za-z_]\w*")


class Sort(StrEnum):
    """Where a name is declared."""

    LOCAL = "local"
    PARAMETER = "parameter"
    LAMBDA_PARAMETER = "lambda parameter"
    MEMBER = "member"
    GLOBAL = "global"


@dataclass(frozen=True, slots=True)
class Declared:
    """One declaration. `value` is its initialiser's text, `at` the offset of the name, `group` what else stands beside it.

    `place` counts parameters; `scope` is the chain down to the block, lambda or function that holds the declaration.
    """

    sort: Sort
    name: str
    file: str
    at: int
    line: int
    type: str = ""
    value: str = ""
    place: int = -1
    group: Mapping[str, int] = field(default_factory=dict)
    scope: Chain = ()


class Scopes:
    """Declarations of a project, found when asked for and kept."""

    def __init__(self, index: Index, sources: Mapping[Path, Source]) -> None:
        self._index = index
        self._sources = sources
        self._blocks: dict[tuple[int, int, int], dict[str, Declared]] = {}
        self._types: dict[int, dict[str, Declared]] = {}
        self._globals: dict[int, dict[str, Declared]] = {}
        self._lines: dict[int, list[int]] = {}

    def find(self, name: str, function: Function, chain: Chain) -> Declared | None:
        """The declaration that `name` means at chain[-1] in `function`; None when it is not in sight."""
        position = chain[-1].start_byte
        for at in range(len(chain) - 1, -1, -1):
            if chain[at].type not in _HOLDERS:
                continue
            found = self._block(function, chain[: at + 1]).get(name)
            if found is not None and (found.at <= position or found.sort is not Sort.LOCAL):
                return found
        for type_ in self.family(function.owner):
            if (member := self.members(type_).get(name)) is not None:
                return member
        return self._of_file(function).get(name)

    def family(self, owner: str) -> Iterator[Type]:
        """The class of that name with its bases, as far as they are known."""
        pending, seen = [owner], set()
        while pending:
            name = pending.pop(0)
            if not name or name in seen:
                continue
            seen.add(name)
            for each in self._index.types.get(name, ()):
                yield each
                pending += each.bases

    def members(self, type_: Type) -> Mapping[str, Declared]:
        """The data members of a class."""
        key = id(type_)
        if key not in self._types:
            source = self._sources.get(type_.file)
            body = type_.node.child_by_field_name("body")
            nodes = [] if body is None or source is None else list(_flat(body, _INNER))
            self._types[key] = (
                {} if source is None else self._declared(nodes, source, type_.file.as_posix(), Sort.MEMBER, ())
            )
        return self._types[key]

    def line(self, source: Source, position: int) -> int:
        """The line of a byte, from 1."""
        starts = self._lines.get(id(source))
        if starts is None:
            starts = self._lines[id(source)] = [0, *(match.end() for match in re.finditer(b"\n", source.original))]
        return bisect_right(starts, position)

    def _block(self, function: Function, chain: Chain) -> Mapping[str, Declared]:
        node = chain[-1]
        key = (id(function.source), node.start_byte, node.end_byte)
        if key in self._blocks:
            return self._blocks[key]
        source, file = function.source, function.file.as_posix()
        if node.type == "function_definition":
            found = self._parameters(_parameter_list(node), source, file, Sort.PARAMETER, chain)
        elif node.type == "lambda_expression":
            declarator = node.child_by_field_name("declarator")
            parameters = None if declarator is None else declarator.child_by_field_name("parameters")
            found = self._parameters(parameters, source, file, Sort.LAMBDA_PARAMETER, chain)
        elif node.type in ("for_statement", "for_range_loop"):
            initializer = node.child_by_field_name("initializer")
            nodes = [each for each in (initializer, node) if each is not None]
            found = self._declared(nodes, source, file, Sort.LOCAL, chain)
        else:
            found = self._declared(list(_flat(node, _INNER)), source, file, Sort.LOCAL, chain)
        self._blocks[key] = found
        return found

    def _of_file(self, function: Function) -> Mapping[str, Declared]:
        key = id(function.source)
        if key not in self._globals:
            nodes = list(_flat(function.source.tree.root_node, _OUTER))
            self._globals[key] = self._declared(nodes, function.source, function.file.as_posix(), Sort.GLOBAL, ())
        return self._globals[key]

    def _declared(
        self, nodes: Iterable[Node], source: Source, file: str, sort: Sort, scope: Chain
    ) -> dict[str, Declared]:
        group: dict[str, int] = {}
        found: dict[str, Declared] = {}
        for node in nodes:
            if node.type not in ("declaration", "field_declaration", "for_range_loop"):
                continue
            type_node = node.child_by_field_name("type")
            type_text = "" if type_node is None else one_line(source.text(type_node))
            for declarator in node.children_by_field_name("declarator"):
                value = declarator.child_by_field_name("value") or node.child_by_field_name("default_value")
                if node.type == "for_range_loop":
                    value = node.child_by_field_name("right")
                for named in _named(declarator, in_block=sort is Sort.LOCAL):
                    name = source.text(named)
                    line = self.line(source, named.start_byte)
                    marks = "".join(
                        each
                        for each in one_line(source.text(declarator)[: named.start_byte - declarator.start_byte])
                        if each in "&*"
                    )
                    text = "" if value is None else one_line(source.text(value))
                    group.setdefault(name, line)
                    found.setdefault(
                        name,
                        Declared(
                            sort, name, file, named.start_byte, line, type_text + marks, text, group=group, scope=scope
                        ),
                    )
        return found

    def _parameters(
        self, node: Node | None, source: Source, file: str, sort: Sort, scope: Chain
    ) -> dict[str, Declared]:
        group: dict[str, int] = {}
        found: dict[str, Declared] = {}
        children = [] if node is None else [each for each in node.named_children if each.type.endswith("_declaration")]
        for place, child in enumerate(children):
            declarator = child.child_by_field_name("declarator")
            named = next(_named(declarator), None) if declarator is not None else None
            if named is None:
                continue
            name = source.text(named)
            line = self.line(source, named.start_byte)
            group[name] = line
            text = one_line(source.text(child)[: named.start_byte - child.start_byte])
            found[name] = Declared(sort, name, file, named.start_byte, line, text, "", place, group, scope)
        return found


_HOLDERS = frozenset(
    {
        "compound_statement",
        "case_statement",
        "for_statement",
        "for_range_loop",
        "lambda_expression",
        "function_definition",
    }
)


def _flat(node: Node, through: Sequence[str]) -> Iterator[Node]:
    """The children of a block, those of conditionals and the like among them."""
    for child in node.named_children:
        if child.type in through:
            yield from _flat(child, through)
        else:
            yield child


def _named(declarator: Node, *, in_block: bool = False) -> Iterator[Node]:
    """The identifiers that a declarator declares. In a block, what reads like a function is an object: `Pipeline full(n);`."""
    if declarator.type in _NAMES:
        yield declarator
    elif declarator.type == "structured_binding_declarator":
        yield from (child for child in declarator.named_children if child.type in _NAMES)
    elif declarator.type != "function_declarator" or in_block:
        inner = declarator.child_by_field_name("declarator")
        children = [inner] if inner is not None else declarator.named_children[:1]
        for child in children:
            yield from _named(child, in_block=in_block)


def _parameter_list(function: Node) -> Node | None:
    declarator = function.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "function_declarator":
        declarator = declarator.child_by_field_name("declarator") or (
            declarator.named_children[-1] if declarator.named_children else None
        )
    return None if declarator is None else declarator.child_by_field_name("parameters")


def type_names(text: str) -> list[str]:
    """The class names that a declared type can mean, the last component of each part."""
    return [
        name
        for name in dict.fromkeys(_WORD.findall(bare(text.replace("typename ", "").strip(" &*")).split("::")[-1]))
        if name
    ]
