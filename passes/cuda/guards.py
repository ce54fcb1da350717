# SPDX-License-Identifier: Apache-2.0
"""The conditions under which a place in device code is reached, from the kernel down, across calls and files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import TypeAlias

from tree_sitter import Node

from autostamp.passes.cuda.functions import Call, Function, Index
from autostamp.passes.cuda.nodes import LOOPS, Chain, chain_to, condition_of, inner_start, is_constexpr_if, statements
from autostamp.passes.cuda.operands import one_line
from autostamp.passes.cuda.scopes import Scopes, type_names
from autostamp.passes.cuda.source import Source

_LIMIT = 160
_PATHS = 24
_NAME = re.compile(r"[\w:.]+(?:->\w+)*(?:\(\))?\Z")
_COMPARISON = re.compile(
    r"((?:(?!\b(?:and|or|not)\b)[^=!<>&|?])+?)\s*(==|!=)\s*((?:(?!\b(?:and|or|not)\b)[^=!<>&|?])+)\Z"
)
_LEAVES = frozenset({"return_statement"})
_LEAVES_LOOP = frozenset({"continue_statement", "break_statement"})


@dataclass(frozen=True, slots=True, eq=False)
class Guard:
    """A condition that holds where it guards. Bytes [start, end) of the source are what it decides over.

    `is_exit` marks a condition that holds because the other case has left: `if (warp != 0) return;`, and `is_rest` the `else`
    of an `if` that goes on with `if`, which holds over all further cases.
    """

    text: str
    source: Source
    start: int
    end: int
    is_compile_time: bool = False
    is_exit: bool = False
    is_rest: bool = False


@dataclass(frozen=True, slots=True)
class Entered:
    """A step of a path into a function."""

    name: str
    owner: str


Step: TypeAlias = Guard | Entered
Path: TypeAlias = tuple[Step, ...]


class Guards:
    """Paths from kernels to places, by name: neither types nor overloads are resolved."""

    def __init__(self, index: Index, scopes: Scopes) -> None:
        self._scopes = scopes
        self._calls: dict[str, list[tuple[Function, Call]]] = {}
        self._contexts: dict[int, tuple[Path, ...]] = {}
        self._exits: dict[tuple[int, int], list[tuple[int, Guard]]] = {}
        self._paths: dict[tuple[int, int, int], tuple[Path, ...]] = {}
        self._members = _members(index)
        self._types = index.types
        self._receivers: dict[tuple[int, str], set[tuple[str, int]]] = {}
        for function in index.functions:
            if not function.is_device:
                continue
            for call in function.calls:
                if call.name in index.by_name:
                    self._calls.setdefault(call.name, []).append((function, call))

    def callers(self, function: Function) -> Iterator[tuple[Function, Call]]:
        """The calls that can mean `function`."""
        for caller, call in self._calls.get(function.name, ()):
            if caller is not function and self._can_mean(call, caller, function):
                yield caller, call

    def _can_mean(self, call: Call, caller: Function, callee: Function) -> bool:
        if not _can_mean(call, caller, callee):
            return False
        if not call.receiver or call.receiver == "this" or not callee.owner:
            return True
        key = (id(caller), call.receiver)
        if key not in self._receivers:
            self._receivers[key] = {
                (each.name, len(each.arguments)) for each in caller.calls if each.receiver == call.receiver
            }
        if not all(self._has(callee, name, count) for name, count in self._receivers[key]):
            return False
        return self._is_of(call, caller, callee.owner)

    def _is_of(self, call: Call, caller: Function, owner: str) -> bool:
        """False when the object is declared as one of a class that is known and has no such base."""
        if not call.receiver.isidentifier():
            return True
        declared = self._scopes.find(call.receiver, caller, chain_to(caller.node, call.node))
        names = [] if declared is None else [name for name in type_names(declared.type) if name in self._types]
        return not names or any(each.name == owner for name in names for each in self._scopes.family(name))

    def _has(self, like: Function, name: str, count: int) -> bool:
        """True when the class of a method can have another one of that name with so many arguments.

        What is called on one object says which of the classes with a `load` it is. Specialisations of one template stand in
        files of their own.
        """
        methods = self._members.get((like.file, like.owner, name))
        if methods is None:
            # Inherited, or declared there and defined where it is not seen.
            types = [each for each in self._types.get(like.owner, ()) if each.file == like.file]
            word = re.compile(rb"\b" + re.escape(name.encode("utf-8", "surrogateescape")) + rb"\b")
            return any(each.bases or word.search(like.source.code, each.start, each.end) for each in types)
        return any(method.accepts(count) for method in methods)

    def paths(self, function: Function, chain: Chain) -> tuple[Path, ...]:
        """All paths to chain[-1], which lies in `function`; a few at most, outermost step first."""
        inner = self.local(function, chain)
        return _distinct(context + path for context in self.contexts(function) for path in inner)

    def contexts(self, function: Function) -> tuple[Path, ...]:
        """The paths into the body of `function`: through its callers up to kernels, itself as the last step."""
        known = self._contexts.get(id(function))
        if known is not None:
            return known
        self._contexts[id(function)] = ()  # a cycle of calls adds no path
        entered: Path = (Entered(function.name, function.owner),)
        found: tuple[Path, ...] = ()
        if not function.is_kernel:
            found = _distinct(
                path + entered
                for caller, call in self.callers(function)
                for path in self.paths(caller, chain_to(caller.node, call.node))
            )
        self._contexts[id(function)] = found or (entered,)
        return self._contexts[id(function)]

    def local(self, function: Function, chain: Chain, depth: int = 0) -> tuple[Path, ...]:
        """The paths to chain[-1] inside of `function`: one, unless it lies in a lambda that is called in several places."""
        at = inner_start(chain)
        inner = tuple(self._between(function, chain, at))
        if at == 0:
            return (inner,)
        key = (id(function), chain[at].start_byte, depth)
        outer = self._paths.get(key)
        if outer is None:
            outer = self._paths[key] = self._around_lambda(function, chain[: at + 1], depth)
        return _distinct(path + inner for path in outer)

    def _around_lambda(self, function: Function, chain: Chain, depth: int) -> tuple[Path, ...]:
        """Where a lambda with a name is called; else where it is written."""
        lambda_, parent = chain[-1], chain[-2]
        declarator = parent.child_by_field_name("declarator") if parent.type == "init_declarator" else None
        if declarator is not None and depth < 3:
            name = function.source.text(declarator).strip("& ")
            calls = [
                call
                for call in function.calls
                if call.name == name and not call.receiver and not lambda_.start_byte <= call.start < lambda_.end_byte
            ]
            if calls:
                chains = [chain_to(function.node, call.node) for call in calls[:_PATHS]]
                return _distinct(path for each in chains for path in self.local(function, each, depth + 1))
        return self.local(function, chain[:-1], depth)

    def _between(self, function: Function, chain: Chain, first: int) -> Iterator[Guard]:
        source = function.source
        for at in range(first, len(chain) - 1):
            node, child = chain[at], chain[at + 1]
            if node.type == "if_statement":
                yield from _of_if(source, node, child)
            elif node.type == "conditional_expression":
                yield from _of_ternary(source, node, child)
            elif node.type == "binary_expression" and child == node.child_by_field_name("right"):
                yield from _of_logical(source, node)
            elif node.type == "case_statement":
                yield from _of_case(source, chain, at)
            if node.type in ("compound_statement", "case_statement"):
                is_loop = at > 0 and chain[at - 1].type in LOOPS
                yield from self._exits_before(function, node, child.start_byte, is_loop=is_loop)

    def _exits_before(self, function: Function, block: Node, position: int, *, is_loop: bool) -> Iterator[Guard]:
        key = (id(function), block.start_byte)
        exits = self._exits.get(key)
        if exits is None:
            leaves = _LEAVES | _LEAVES_LOOP if is_loop else _LEAVES
            exits = self._exits[key] = list(_exits(function.source, block, leaves))
        yield from (guard for end, guard in exits if end <= position)


def common(paths: Sequence[Path]) -> tuple[Guard, ...]:
    """The guards with which all paths begin."""
    texts = [[step for step in path if isinstance(step, Guard)] for path in paths]
    found: list[Guard] = []
    for steps in zip(*texts, strict=False):
        if any(step.text != steps[0].text for step in steps):
            break
        found.append(steps[0])
    return tuple(found)


def negated(text: str) -> str:
    """The opposite of a condition, in the shortest form that is plain."""
    if text.startswith("not ") and _NAME.match(text[4:]):
        return text[4:]
    if text.startswith("!") and _NAME.match(text[1:]):
        return text[1:]
    if text.startswith("!(") and text.endswith(")") and text.count("(") == 1:
        return text[2:-1]
    if _NAME.match(text):
        return f"!{text}"
    match = _COMPARISON.match(text)
    if match is not None:
        return f"{match[1]} {'!=' if match[2] == '==' else '=='} {match[3]}"
    return f"!({text})"


def _members(index: Index) -> dict[tuple[FilePath, str, str], list[Function]]:
    members: dict[tuple[FilePath, str, str], list[Function]] = {}
    for function in index.functions:
        if function.owner:
            members.setdefault((function.file, function.owner, function.name), []).append(function)
    return members


def _can_mean(call: Call, caller: Function, callee: Function) -> bool:
    if not callee.accepts(len(call.arguments)):
        return False
    if not callee.owner or "friend" in callee.qualifiers:
        return not call.receiver
    if call.receiver:
        return call.receiver != "this" or caller.owner == callee.owner
    if call.qualifier:
        last = call.qualifier.rsplit("::", 1)[-1].split("<")[0].strip()
        # A template parameter or an alias can stand for the class: `CollectiveMainloop::load(…)`.
        return last == callee.owner or not last.islower()
    return caller.owner == callee.owner


def step_key(step: Step) -> str:
    """What two steps of one meaning have in common."""
    return step.text if isinstance(step, Guard) else f"{step.owner}::{step.name}()"


def _distinct(paths: Iterable[Path]) -> tuple[Path, ...]:
    found: dict[tuple[str, ...], Path] = {}
    for path in paths:
        found.setdefault(tuple(step_key(step) for step in path), path)
        if len(found) >= _PATHS:
            break
    return tuple(found.values())


def _text(source: Source, node: Node) -> str:
    text = one_line(source.text(node))
    while text.startswith("(") and text.endswith(")") and _is_closed_last(text):
        text = text[1:-1].strip()
    return text if len(text) <= _LIMIT else text[: _LIMIT - 1] + "…"


def _is_closed_last(text: str) -> bool:
    depth = 0
    for at, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return at == len(text) - 1
    return False


def _of_if(source: Source, node: Node, child: Node) -> Iterator[Guard]:
    condition = condition_of(node)
    if condition is None or child == node.child_by_field_name("condition"):
        return
    text = _text(source, condition)
    compile_time = is_constexpr_if(node)
    if child == node.child_by_field_name("consequence"):
        yield Guard(text, source, child.start_byte, child.end_byte, compile_time)
    elif child == node.child_by_field_name("alternative"):
        is_rest = any(each.type == "if_statement" for each in child.named_children)
        yield Guard(negated(text), source, child.start_byte, child.end_byte, compile_time, is_rest=is_rest)


def _of_ternary(source: Source, node: Node, child: Node) -> Iterator[Guard]:
    condition = node.child_by_field_name("condition")
    if condition is not None and child != condition:
        text = _text(source, condition)
        is_first = child == node.child_by_field_name("consequence")
        yield Guard(text if is_first else negated(text), source, child.start_byte, child.end_byte)


def _of_logical(source: Source, node: Node) -> Iterator[Guard]:
    left, operator = node.child_by_field_name("left"), node.child_by_field_name("operator")
    if left is None or operator is None or operator.type not in ("&&", "and", "||", "or"):
        return
    text = _text(source, left)
    yield Guard(text if operator.type in ("&&", "and") else negated(text), source, node.start_byte, node.end_byte)


def _of_case(source: Source, chain: Chain, at: int) -> Iterator[Guard]:
    case = chain[at]
    switch = next((node for node in reversed(chain[:at]) if node.type == "switch_statement"), None)
    condition = None if switch is None else condition_of(switch)
    if condition is None:
        return
    value = case.child_by_field_name("value")
    of = _text(source, condition)
    text = f"{of} == {_text(source, value)}" if value is not None else f"{of}: default"
    yield Guard(text, source, case.start_byte, case.end_byte)


def _exits(source: Source, block: Node, leaves: frozenset[str]) -> Iterator[tuple[int, Guard]]:
    """`if (a) { …; return; }` in a list guards what follows by `!(a)`."""
    for child in block.named_children:
        if child.type != "if_statement" or child.child_by_field_name("alternative") is not None:
            continue
        consequence, condition = child.child_by_field_name("consequence"), condition_of(child)
        inner = [] if consequence is None else statements(consequence)
        if condition is not None and inner and inner[-1].type in leaves:
            guard = Guard(
                negated(_text(source, condition)),
                source,
                child.end_byte,
                block.end_byte,
                is_constexpr_if(child),
                is_exit=True,
            )
            yield child.end_byte, guard
