# SPDX-License-Identifier: Apache-2.0
"""Which functions a function can come to, following calls by name.

Types and overloads are not resolved, so what is reached here is more than what runs, never less as far as the files show it: a
call goes to every function of that name which takes as many arguments, and a call of an object (`op(params)`, `Op()(params)`)
to every call operator. Macros are followed through their replacement.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from tree_sitter import Node, Query, QueryCursor

from autostamp.passes.cuda.functions import Call, Function, Index
from autostamp.passes.cuda.macros import definitions
from autostamp.passes.cuda.source import LANGUAGE, Source

_WORD = re.compile(rb"[A-Za-z_]\w*+")
_VALUE = re.compile(rb"(?<![\w.])(?<!->)([A-Za-z_]\w*+)(?!\s*+[(\w])")
_DECLARED = re.compile(rb"(?<=[\w>])(?:\s++[*&]*+\s*+|[*&]++\s*+)([A-Za-z_]\w*+)")
_NO_TYPE = frozenset({b"return", b"case", b"goto", b"else", b"throw", b"new", b"delete", b"do", b"co_return"})
_BEFORE = re.compile(rb"([A-Za-z_]\w*+)\s*+\Z")
_ALIAS = re.compile(rb"\busing\s++([A-Za-z_]\w*+)\s*+=\s*+([^;]*+);|\btypedef\s++([^;{}]*?)\b([A-Za-z_]\w*+)\s*+;")
_LAMBDA = re.compile(rb"([A-Za-z_]\w*+)\s*+=\s*+\[[^\[\]]*\]\s*+[({]")
_DATA_MEMBERS = Query(LANGUAGE, "(field_declaration declarator: (field_identifier) @name)")
_VALUE_PARAMETERS = frozenset(
    {"parameter_declaration", "optional_parameter_declaration", "variadic_parameter_declaration"}
)
_HANDED = re.compile(rb"(?:[<,(=&]|::)\s*+([A-Za-z_]\w*+)\s*+(?=[,)>;]|<[^;(){}]*>\s*[,)>;])")
_AFTER_BRACKET = re.compile(rb"[)\]}]\s*+\(")
CALL_OPERATOR = "operator()"
_OBJECT_CALLEES = frozenset(
    {"call_expression", "compound_literal_expression", "parenthesized_expression", "subscript_expression"}
)
_TYPE_NAMES = frozenset({"identifier", "qualified_identifier", "template_function", "primitive_type"})

Candidates = Callable[[Call, Function], Sequence[Function]]


class Reach:
    """The call graph of all functions of an index; functions are numbered as `index.functions` lists them."""

    def __init__(self, index: Index, sources: Mapping[Path, Source]) -> None:
        self.index = index
        self.number = {id(function): at for at, function in enumerate(index.functions)}
        # What stands behind the name of a macro or of an alias: the words of its replacement.
        self._behind = _words_behind(sources.values())
        self._of_words: dict[bytes, frozenset[int]] = {}
        self._named: dict[bytes, list[int]] = {}
        for at, function in enumerate(index.functions):
            # A kernel is launched, not called: nothing comes to its sites but itself.
            if function.is_kernel:
                continue
            self._named.setdefault(function.name.encode("utf-8", "surrogateescape"), []).append(at)
        self._of_type = self._members_by_type()
        # What the call of an object, a function pointer or a template parameter can mean.
        self.handed_on = {
            *(at for at in self._named.get(CALL_OPERATOR.encode(), ()) if index.functions[at].is_device),
            *self._values_anywhere(sources.values()),
        }
        self._members: set[bytes] = set()
        if self.handed_on:
            self._members.update(*(_data_members(source) for source in sources.values()))
        # A node of its own for what objects can mean spares an edge to each of these from every caller.
        self._objects = len(index.functions)
        self._callers_of_objects: set[int] = set()
        self._edges = [self._called_by(function) for function in index.functions]

    def masks(self) -> list[int]:
        """For each function the set of those it reaches, itself included, as bits."""
        return self._closed(self._edges)

    def certain(self, candidates: Candidates) -> tuple[list[int], list[int]]:
        """As `masks`, but only as far as `candidates` (the definitions that a call can mean) tells; twice.

        The second follows calls of objects, function pointers and template parameters to all that they can mean.
        """
        functions = self.index.functions
        edges: list[frozenset[int]] = []
        for function in functions:
            found = {id(each): each for call in function.calls for each in candidates(call, function)}
            numbers = {self.number.get(key, -1) for key, each in found.items() if not each.is_kernel}
            edges.append(frozenset(numbers - {-1}))
        objects = frozenset({self._objects})
        callers = self._callers_of_objects
        with_objects = [each | objects if at in callers else each for at, each in enumerate(edges)]
        return self._closed(edges), self._closed(with_objects)

    def _closed(self, edges: Sequence[frozenset[int]]) -> list[int]:
        own = (1 << self._objects) - 1
        return [mask & own for mask in closure([*edges, frozenset(self.handed_on)])[: self._objects]]

    @cached_property
    def implicit(self) -> tuple[int, ...]:
        """Constructors, destructors and operators of device code: it runs them without writing their names."""
        return tuple(
            at
            for at, function in enumerate(self.index.functions)
            if function.is_device
            and function.name != CALL_OPERATOR
            and (function.name.startswith(("~", "operator")) or (function.owner and function.name == function.owner))
        )

    def of_text(self, text: bytes) -> frozenset[int]:
        """What a piece of code outside any function can call, by the words in it."""
        return self.of_words(set(_WORD.findall(text)))

    def of_words(self, words: Iterable[bytes]) -> frozenset[int]:
        """Functions and members that some words can mean."""
        found: set[int] = set()
        for word in words:
            found.update(self._named.get(word, ()))
            found.update(self._of_word(word))
        return frozenset(found)

    def behind(self, words: Iterable[bytes]) -> set[bytes]:
        """These words and all that macros and aliases of their names stand for."""
        seen = set(words)
        pending = list(seen)
        while pending:
            following = self._behind.get(pending.pop(), frozenset()) - seen
            seen |= following
            pending += following
        return seen

    def _members_by_type(self) -> dict[bytes, list[int]]:
        members: dict[bytes, list[int]] = {}
        for at, function in enumerate(self.index.functions):
            if function.owner and (function.name == function.owner or function.name.startswith(("~", "operator"))):
                members.setdefault(function.owner.encode("utf-8", "surrogateescape"), []).append(at)
        return members

    def _called_by(self, function: Function) -> frozenset[int]:
        found: set[int] = set()
        for call in function.calls:
            found.update(self._callees(call))
        code = function.source.code[function.start : function.end]
        words = set(_WORD.findall(code))
        for word in words & (self._of_type.keys() | self._behind.keys()):
            found.update(self._of_word(word))
        found.update(self._values(function, code))
        if self.handed_on and self._calls_objects(function, code):
            self._callers_of_objects.add(self.number[id(function)])
            found.add(self._objects)
        return frozenset(found)

    def _callees(self, call: Call) -> Iterable[int]:
        candidates = self._named.get(call.name.encode("utf-8", "surrogateescape"), ())
        if not candidates:
            return ()
        count = len(call.arguments)
        return [at for at in candidates if self.index.functions[at].accepts(count)]

    def _values(self, function: Function, code: bytes) -> Iterable[int]:
        """Functions that are named without being called: handed on, or given to a template."""
        words = {word for word in _VALUE.findall(code) if word in self._named}
        if not words:
            return ()
        words -= declared(code)
        words -= {each.name.encode("utf-8", "surrogateescape") for each in function.parameters}
        words.discard(function.name.encode("utf-8", "surrogateescape"))
        return [at for word in words for at in self._named[word]]

    def _values_anywhere(self, sources: Iterable[Source]) -> set[int]:
        """Device functions that some code hands on: as an argument of a template, or as a value."""
        words: set[bytes] = set()
        for source in sources:
            words.update(word for word in _HANDED.findall(source.code) if word in self._named)
        words -= self._of_type.keys()
        functions = self.index.functions
        return {at for word in words for at in self._named[word] if functions[at].is_device}

    def _calls_objects(self, function: Function, code: bytes) -> bool:
        if CALL_OPERATOR.encode() in code[code.find(b"{") + 1 :]:
            return True
        known = declared(code) - set(_LAMBDA.findall(code))
        known.update(each.name.encode("utf-8", "surrogateescape") for each in function.parameters)
        known |= _value_parameters(function)
        for call in function.calls:
            name = call.name.encode("utf-8", "surrogateescape")
            if name in self._named:
                continue
            # A lambda's body is part of the function that it stands in.
            if name in (self._members if call.receiver else known):
                return True
            if function.owner and name in self._members:
                return True
        # `Op()(params)` and `ops[i](x)`: the callee is no name, so it is among no function's calls.
        return _AFTER_BRACKET.search(code) is not None and _has_object_callee(function.node)

    def _of_word(self, word: bytes) -> frozenset[int]:
        """Functions and members that a word can mean, through aliases and macros."""
        known = self._of_words.get(word)
        if known is None:
            found: set[int] = set()
            for each in self.behind((word,)):
                found.update(self._of_type.get(each, ()))
                found.update(self._named.get(each, ()) if each != word else ())
            known = self._of_words[word] = frozenset(found)
        return known


def _value_parameters(function: Function) -> set[bytes]:
    """Names of the parameters of the templates around a function that are values: `auto F`, `int (*F)(int)`."""
    found: set[bytes] = set()
    outer = function.node.parent
    while outer is not None:
        listed = outer.child_by_field_name("parameters") if outer.type == "template_declaration" else None
        for child in () if listed is None else listed.named_children:
            if child.type in _VALUE_PARAMETERS:
                found.update(_WORD.findall(function.source.code[child.start_byte : child.end_byte]))
        outer = outer.parent
    return found


def _data_members(source: Source) -> set[bytes]:
    """Names of the data members that a file's classes declare."""
    nodes = QueryCursor(_DATA_MEMBERS).captures(source.tree.root_node).get("name", [])
    return {source.original[node.start_byte : node.end_byte] for node in nodes}


def declared(code: bytes) -> set[bytes]:
    """Names that a piece of code seems to declare: a word, or a star, stands before them."""
    found: set[bytes] = set()
    for match in _DECLARED.finditer(code):
        before = _BEFORE.search(code, max(0, match.start() - 40), match.start())
        if before is None or before[1] not in _NO_TYPE:
            found.add(match[1])
    return found


def closure(edges: Sequence[frozenset[int]]) -> list[int]:
    """For each node the set of nodes it reaches, itself included, as bits (Tarjan's components, sinks first)."""
    count = len(edges)
    order = [0] * count
    low = [0] * count
    masks = [0] * count
    is_open = bytearray(count)
    stack: list[int] = []
    clock = 0
    for root in range(count):
        if order[root]:
            continue
        clock += 1
        order[root] = low[root] = clock
        stack.append(root)
        is_open[root] = 1
        work = [(root, iter(edges[root]))]
        while work:
            node, following = work[-1]
            for each in following:
                if not order[each]:
                    clock += 1
                    order[each] = low[each] = clock
                    stack.append(each)
                    is_open[each] = 1
                    work.append((each, iter(edges[each])))
                    break
                if is_open[each]:
                    low[node] = min(low[node], order[each])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == order[node]:
                    _close(node, stack, is_open, edges, masks)
    return masks


def _close(node: int, stack: list[int], is_open: bytearray, edges: Sequence[frozenset[int]], masks: list[int]) -> None:
    """Give all nodes of a finished component their common mask."""
    members = []
    while True:
        each = stack.pop()
        is_open[each] = 0
        members.append(each)
        if each == node:
            break
    mask = 0
    for each in members:
        mask |= 1 << each
        for following in edges[each]:
            mask |= masks[following]
    for each in members:
        masks[each] = mask


def _words_behind(sources: Iterable[Source]) -> dict[bytes, frozenset[bytes]]:
    words: dict[bytes, set[bytes]] = {}
    for source in sources:
        for definition in definitions(source.uncommented):
            words.setdefault(definition.name.encode(), set()).update(_WORD.findall(definition.body))
        for match in _ALIAS.finditer(source.code):
            name, body = (match[1], match[2]) if match[1] else (match[4], match[3])
            words.setdefault(name, set()).update(_WORD.findall(body))
    return {name: frozenset(found - {name}) for name, found in words.items() if found}


def _has_object_callee(node: Node) -> bool:
    """True when some call below `node` calls no name: `Op()(params)`, `ops[i](x)`."""
    stack = [node]
    while stack:
        each = stack.pop()
        if each.type == "call_expression":
            callee = each.child_by_field_name("function")
            if callee is not None and callee.type in _OBJECT_CALLEES and not _is_type(callee):
                return True
        stack.extend(each.named_children)
    return False


def _is_type(callee: Node) -> bool:
    """True for the parentheses of `(T)(x)`, a cast that reads like a call."""
    inner = callee.named_children
    return callee.type == "parenthesized_expression" and len(inner) == 1 and inner[0].type in _TYPE_NAMES
