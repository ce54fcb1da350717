# SPDX-License-Identifier: Apache-2.0
"""Which device functions must be inlined so that their stamps run, and which sites cannot be stamped because that is not to be.

A stamp names registers that its kernel declares, so every function between the two has to be part of the kernel. Functions that
never are (`__noinline__`, virtual, recursive, called through a pointer) keep their text, and so does all that they call.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tree_sitter import Node

from autostamp.model.edit import Edit
from autostamp.passes.cuda import emit
from autostamp.passes.cuda.functions import Function, Index, bare
from autostamp.passes.cuda.reach import Reach, closure, declared
from autostamp.passes.cuda.source import Source

_FORCED = frozenset({"__forceinline__", "always_inline"})
_NEVER = frozenset({"__noinline__", "noinline"})
_OVERRIDES = re.compile(rb"\)[\w\s]*?\b(?:override|final)\b")
_VALUE_PARENTS = frozenset(
    {"argument_list", "init_declarator", "assignment_expression", "initializer_list", "return_statement"}
)
_NAME_PARENTS = frozenset({"qualified_identifier", "template_function", "dependent_name"})
_WORD = re.compile(rb"[A-Za-z_]\w*+")
# A call whatever the tree says: that of `decltype(f<T>(x)){}` has none.
_CALLED = re.compile(rb"\s*+<[^;(){}]*>\s*+\(")
_INLINE = frozenset({b"inline", b"__inline__", b"__inline"})
_MEMBERS = "field_declaration_list"
_ATTRIBUTE = "attribute_declaration"
_FRIEND = "friend_declaration"
"""Specifiers may stand before `friend`, where they are not the function's."""


class Places:
    """The innermost function at any offset of any file."""

    def __init__(self, index: Index) -> None:
        self._files: dict[Path, list[Function]] = {}
        for function in index.functions:
            self._files.setdefault(function.file, []).append(function)
        self._starts = {path: [each.start for each in group] for path, group in self._files.items()}

    def of(self, path: Path) -> Sequence[Function]:
        """All functions of a file, in source order."""
        return self._files.get(path, ())

    def at(self, path: Path, offset: int) -> Function | None:
        """The innermost function that holds `offset`."""
        group = self._files.get(path, [])
        for at in range(bisect_right(self._starts.get(path, []), offset) - 1, -1, -1):
            if group[at].end > offset:
                return group[at]
        return None


def blocked(
    reach: Reach,
    places: Places,
    sources: Mapping[Path, Source],
    holders: int,
    wide: Sequence[int],
    certain: Sequence[int],
    *,
    is_linked: bool,
) -> dict[int, tuple[str, int]]:
    """Functions that are never inlined and come to one of `holders` (bits): the reason, and all that they come to (bits).

    `wide` says for each function what it comes to by name, `certain` as far as types tell. The latter decides: what it misses
    does not compile, which is said aloud; what were too much would leave waits without a stamp. `is_linked`: device code of
    several files is linked (-rdc), so a plain function may be called from another file.
    """
    functions = reach.index.functions
    reasons: dict[int, str] = {}
    names: set[str] = set()
    for at, function in enumerate(functions):
        if function.is_kernel or not function.is_device or not wide[at] & holders:
            continue
        names.add(function.name)
        if reason := _own_reason(function, is_linked=is_linked):
            reasons[at] = reason
    for at in _recursive(reach, wide, holders):
        reasons.setdefault(at, "it is recursive")
    names -= reach.index.types.keys()
    for value in {each for path, source in sources.items() for each in _pointed_at(places, path, source, names)}:
        for function in reach.index.by_name.get(value.name, ()):
            at = reach.number[id(function)]
            if (
                wide[at] & holders
                and function.is_device
                and not function.is_kernel
                and value.means(function, reach.index)
            ):
                reasons.setdefault(at, "its address is taken")
    found = {}
    for at, reason in reasons.items():
        if certain[at] & holders:
            found[at] = (reason, certain[at])
    return found


def _own_reason(function: Function, *, is_linked: bool) -> str:
    if function.qualifiers & _NEVER:
        return "it is __noinline__"
    head = function.source.code[function.start : function.body[0]]
    # Virtual functions of host classes are device code only by the names of those that they call.
    if "__device__" in function.qualifiers and ("virtual" in function.qualifiers or _OVERRIDES.search(head)):
        return "it is virtual"
    is_plain = not (function.is_template or function.owner or function.qualifiers & {"inline", "static", "constexpr"})
    if is_linked and is_plain and not function.qualifiers & _FORCED and "__device__" in function.qualifiers:
        return "with -rdc another file may call it"
    return ""


def _recursive(reach: Reach, masks: Sequence[int], holders: int) -> Iterator[int]:
    """Functions that certainly call themselves: by free calls that can mean one definition only."""
    functions = reach.index.functions
    edges: list[frozenset[int]] = []
    for at, function in enumerate(functions):
        certain: set[int] = set()
        if masks[at] & holders and not function.is_template:
            for call in function.calls:
                if call.receiver or call.qualifier or call.template:
                    continue
                named = [
                    each
                    for each in reach.index.by_name.get(call.name, ())
                    if each.owner in ("", function.owner) and each.accepts(len(call.arguments))
                ]
                if len(named) == 1 and not named[0].is_template:
                    certain.add(reach.number[id(named[0])])
        edges.append(frozenset(certain))
    reached = closure(edges)
    for at in range(len(functions)):
        if any(reached[each] >> at & 1 for each in edges[at]):
            yield at


@dataclass(frozen=True, slots=True)
class _Value:
    """A place that uses a function's name as a value: its file, the scope before the name, the class that it stands in."""

    path: Path
    name: str
    scope: str
    owner: str

    def means(self, function: Function, index: Index) -> bool:
        """True when `function` can be what is named: a method by its class or inside it, a free function from anywhere."""
        if function.owner in index.types:
            return function.owner == (self.scope or self.owner)
        if self.scope:
            return f"::{self.scope}::{function.name}" in f"::{function.qualified}"
        own = [each for each in index.by_name[self.name] if each.file == self.path and each.owner not in index.types]
        return not own or function in own


def _pointed_at(places: Places, path: Path, source: Source, names: set[str]) -> Iterator[_Value]:
    """Where `source` uses functions as values: `&f`, or `f` where a value goes and no variable has that name."""
    words = {name.encode("utf-8", "surrogateescape") for name in names} & set(_WORD.findall(source.code))
    if not words:
        return
    pattern = re.compile(rb"(?<![\w.])(?<!->)(?:" + b"|".join(map(re.escape, sorted(words))) + rb")(?!\s*+[(\w])")
    for match in pattern.finditer(source.code):
        if _CALLED.match(source.code, match.end()):
            continue
        node = source.tree.root_node.descendant_for_byte_range(*match.span())
        while node is not None and node.parent is not None and node.parent.type in _NAME_PARENTS:
            node = node.parent
        if node is None or node.parent is None:
            continue
        if source.code[node.end_byte :].lstrip()[:1] == b"(":
            continue
        parent = node.parent
        is_pointer = parent.type == "pointer_expression" and source.text(parent).startswith("&")
        is_value = parent.type in _VALUE_PARENTS and parent.child_by_field_name("declarator") != node
        if not (is_pointer or is_value) or parent.child_by_field_name("left") == node:
            continue
        function = places.at(path, match.start())
        if _is_device_value(function, parent, match[0]):
            scope = bare(source.text(node)).split("::")[:-1]
            yield _Value(path, match[0].decode(), scope[-1] if scope else "", function.owner if function else "")


def _is_device_value(function: Function | None, parent: Node, name: bytes) -> bool:
    """Host code can't point at device functions; outside functions, an initialiser can. A variable may have the name."""
    if function is None:
        return parent.type == "init_declarator" or (
            parent.parent is not None and parent.parent.type == "init_declarator"
        )
    if not function.is_device:
        return False
    code = function.source.code[function.body[0] : function.body[1]]
    return name not in declared(code) and all(each.name.encode() != name for each in function.parameters)


def edits(functions: Iterable[Function], reach: Reach) -> list[Edit]:
    """What makes these functions part of their kernels; nothing for those that are forced inline anyway."""
    made = []
    for function in functions:
        if function.qualifiers & _FORCED or function.is_kernel or function.is_macro or function.name == "main":
            continue
        if not is_safe(function) or (function.node.parent is not None and function.node.parent.type == _FRIEND):
            continue
        start = function.start
        # An attribute of the declaration comes first of all specifiers.
        for child in function.node.children:
            if child.type != _ATTRIBUTE:
                break
            start = child.end_byte
            while function.source.code[start : start + 1].isspace():
                start += 1
        made.append(emit.inline(start, is_inline=_says_inline(function, reach)))
    return made


def is_safe(function: Function) -> bool:
    """True when forcing it inline cannot change how host code is linked: it is device code, or inline as it stands."""
    if function.qualifiers & {"__device__", "constexpr", "inline", "static"} or function.is_template:
        return True
    return function.is_device and function.node.parent is not None and function.node.parent.type == _MEMBERS


def _says_inline(function: Function, reach: Reach) -> bool:
    """True when `inline`, in one of its spellings, is among the specifiers, be it behind a macro."""
    words = set(_WORD.findall(function.source.qualifiers_before(function.node).encode("utf-8", "surrogateescape")))
    return bool(_INLINE & reach.behind(words))
