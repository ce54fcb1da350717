# SPDX-License-Identifier: Apache-2.0
"""Which barrier an operand means: the declaration that it goes back to, and its side where two barriers make a pair."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from autostamp.model.sync import Side
from autostamp.passes.cuda.functions import Function, Index
from autostamp.passes.cuda.guards import Guards
from autostamp.passes.cuda.nodes import Chain, chain_to
from autostamp.passes.cuda.operands import label, peeled
from autostamp.passes.cuda.scopes import Declared, Scopes, Sort, type_names

_FULL_EMPTY = (
    *(("full", "empty"), ("filled", "empty"), ("filled", "consumed"), ("filled", "free"), ("full", "free")),
    *(("ready", "free"), ("ready", "empty"), ("ready", "consumed"), ("ready", "release"), ("ready", "released")),
    *(("arrived", "finished"), ("arrived", "freed"), ("arrived", "free"), ("arrived", "empty"), ("arrived", "done")),
    *(("produced", "consumed"), ("loaded", "consumed"), ("avail", "free"), ("available", "free"), ("valid", "free")),
    *(("load", "free"), ("loaded", "free"), ("full", "consumed"), ("full", "done"), ("full", "freed")),
)
"""Words in which the names of a full and of an empty barrier differ: what a producer signals, and what a consumer signals."""
# A barrier is named after who signals it by some and after who waits on it by others: what a copy completes on is the full one.
_BY_USE = (("producer", "consumer"), ("load", "compute"), ("load", "mma"), ("tma", "mma"))
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_HEAD = re.compile(
    r"(?:::\s*)?(?P<scope>(?:[A-Za-z_]\w*\s*(?:<[^<>()]*>\s*)?::\s*)*)(?:template\s+)?(?P<name>[A-Za-z_]\w*)"
)
_MEMBER = re.compile(r"\s*(?:\.|->)\s*(?:template\s+)?(?P<name>[A-Za-z_]\w*)")
_ACCESSORS = frozenset(
    {"producer_get_barrier", "data", "get", "begin", "native_handle", "ptr", "raw", "at", "elem", "value"}
)
_DEPTH = 6
_RAW = re.compile(r"\b(?:char|uint8_t|int8_t|byte|void|uint4|int4|float4)\b")


@dataclass(frozen=True, slots=True)
class Root:
    """A declaration. `key` is `file:line:name`; of a pair it names both, and `side` says which of the two this is.

    `by_use` marks a pair whose names don't tell the sides: `name` is then this barrier's own, and `key` is as without a pair.
    """

    key: str
    name: str
    side: Side | None = None
    by_use: str = ""
    is_parameter: bool = False
    is_paired: bool = False


@dataclass(frozen=True, slots=True)
class _Names:
    """An access path: `parts` from the object to the member; `has_offset` when something is added to it."""

    parts: tuple[str, ...]
    has_offset: bool = False


class Roots:
    """Resolves operands of a project."""

    def __init__(self, index: Index, guards: Guards, scopes: Scopes) -> None:
        self._index = index
        self._guards = guards
        self._scopes = scopes
        self._parameters: dict[tuple[int, int], Root | None] = {}
        self._fields: dict[str, list[tuple[str, Declared]]] | None = None

    def of(self, text: str, function: Function, chain: Chain) -> Root:
        """The root of an operand that is used at chain[-1] in `function`."""
        found = self._resolve(text, function, chain, _DEPTH)
        if found is not None:
            return found
        name = label(text)
        return Root(f"{function.file.as_posix()}:0:{name}", name)

    def _resolve(self, text: str, function: Function, chain: Chain, depth: int) -> Root | None:
        names = path_of(text)
        if names is None or depth == 0:
            return None
        first, *rest = names.parts
        if first == "this" and rest:
            first, *rest = rest
        declared = self._scopes.find(first, function, chain)
        if rest:
            return self._member(declared, first, tuple(rest), function, chain, depth)
        if declared is None:
            return Root(f"{function.file.as_posix()}:0:{first}", first)
        own = _root(declared)
        if declared.sort is Sort.PARAMETER:
            return self._better(own, self._argument(declared, function, depth))
        if declared.sort is Sort.LAMBDA_PARAMETER:
            return self._better(own, self._lambda_argument(declared, function, depth))
        if declared.sort is Sort.LOCAL and declared.value and (own.side is None and not own.by_use):
            return self._better(own, self._alias(declared, function, chain, depth))
        return own

    def _better(self, own: Root, other: Root | None) -> Root:
        """What a name stands for, unless only the name itself tells the side."""
        if other is None or (own.is_paired and not other.is_paired):
            return own
        return other

    def _alias(self, declared: Declared, function: Function, chain: Chain, depth: int) -> Root | None:
        """What a reference, a pointer or an address is initialised with, when that is one declared thing."""
        names = path_of(declared.value)
        if names is None or names.has_offset or names.parts[-1].endswith("()"):
            return None
        at = next((at for at, node in enumerate(chain) if node == declared.scope[-1]), len(chain) - 1)
        found = self._resolve(declared.value, function, _chain_before(chain, at, declared.at), depth - 1)
        if found is None or found.key.split(":")[-2:-1] == ["0"]:
            return None
        head = self._scopes.find(names.parts[0], function, chain)
        # Raw memory that barriers are cut from is not what two of them have in common.
        return None if head is not None and len(names.parts) == 1 and _RAW.search(head.type) else found

    def _argument(self, declared: Declared, function: Function, depth: int) -> Root | None:
        key = (id(function), declared.place)
        if key not in self._parameters:
            self._parameters[key] = None
            found: dict[tuple[Path, int], set[Root]] = {}
            for caller, call in self._guards.callers(function):
                if declared.place < len(call.arguments):
                    root = self._resolve(
                        call.arguments[declared.place], caller, chain_to(caller.node, call.node), depth - 1
                    )
                    if root is None:
                        return None
                    found.setdefault((caller.file, id(caller)), set()).add(root)
            self._parameters[key] = _agreed(list(found.values())) or _of_name(declared.name, found)
        return self._parameters[key]

    def _lambda_argument(self, declared: Declared, function: Function, depth: int) -> Root | None:
        """What calls of a named lambda give for its parameter, when all give the same."""
        lambda_ = declared.scope[-1]
        holder = declared.scope[-2] if len(declared.scope) > 1 else None
        declarator = holder.child_by_field_name("declarator") if holder is not None else None
        if declarator is None:
            return None
        name = function.source.text(declarator).strip("& ")
        found: set[Root] = set()
        for call in function.calls:
            if call.name != name or call.receiver or lambda_.start_byte <= call.start < lambda_.end_byte:
                continue
            if declared.place < len(call.arguments):
                root = self._resolve(
                    call.arguments[declared.place], function, chain_to(function.node, call.node), depth - 1
                )
                if root is None:
                    return None
                found.add(root)
        return _agreed([found]) if found else None

    def _member(
        self, declared: Declared | None, first: str, rest: tuple[str, ...], function: Function, chain: Chain, depth: int
    ) -> Root | None:
        """A member: by the class that declares it, so that objects of one class in several functions are one."""
        member = self._field(declared, rest[0])
        path = ".".join(rest)
        group: dict[str, int] = {}
        if member is None:
            base = self._resolve(first, function, chain, depth - 1)
            head = f"{function.file.as_posix()}:0:{first}" if base is None else base.key
            key = f"{head}.{path}"
        else:
            key = f"{member.file}:{member.line}:{path}"
            group = dict(member.group)
        if rest[-1].endswith("()"):
            group = {f"{name}()": 0 for name in self._index.by_name}
        elif len(rest) > 1 or member is None:
            group = {name: 0 for _, each in self._all_fields().get(rest[-1], ()) for name in each.group}
        root = Root(key, rest[-1])
        return _paired(root, rest[-1], group, key.rpartition(".")[0] if len(rest) > 1 or member is None else "")

    def _field(self, declared: Declared | None, name: str) -> Declared | None:
        candidates = self._all_fields().get(name, [])
        if declared is not None:
            wanted = set(type_names(declared.type)) if declared.type else set()
            wanted |= {each.name for type_ in wanted for each in self._scopes.family(type_)}
            exact = [field for owner, field in candidates if owner in wanted]
            for group in (exact, [field for _, field in candidates]):
                near = [field for field in group if field.file == declared.file] or group
                if len(near) == 1:
                    return near[0]
        return candidates[0][1] if len(candidates) == 1 else None

    def _all_fields(self) -> dict[str, list[tuple[str, Declared]]]:
        if self._fields is None:
            self._fields = {}
            for types in self._index.types.values():
                for each in types:
                    for name, member in self._scopes.members(each).items():
                        self._fields.setdefault(name, []).append((each.name, member))
        return self._fields


def path_of(text: str) -> _Names | None:
    """The names of an access path without subscripts and accessors; None for what is no such path."""
    text = peeled(text)
    match = _HEAD.match(text)
    if match is None:
        return None
    parts = [match["name"]]
    position = match.end()
    while position < len(text):
        rest = text[position:]
        if rest.lstrip().startswith("["):
            position = _closed(text, text.index("[", position))
        elif rest.lstrip().startswith("("):
            opening = text.index("(", position)
            position = _closed(text, opening)
            if len(parts) > 1 and parts[-1] in _ACCESSORS:
                parts.pop()
            else:
                parts[-1] += "()"
        elif (member := _MEMBER.match(text, position)) is not None:
            parts.append(member["name"])
            position = member.end()
        elif re.match(r"\s*[-+]", rest):
            return _Names(tuple(parts), has_offset=True)
        elif re.match(r"\s*<", rest) and (closed := _closed(text, text.index("<", position))) > 0:
            position = closed
        else:
            return None
        if position <= 0:
            return None
    return _Names(tuple(parts))


def _closed(text: str, opening: int) -> int:
    close = {"[": "]", "(": ")", "<": ">"}[text[opening]]
    depth = 0
    for at in range(opening, len(text)):
        depth += (text[at] == text[opening]) - (text[at] == close)
        if depth == 0:
            return at + 1
    return -1


def _root(declared: Declared) -> Root:
    root = Root(
        f"{declared.file}:{declared.line}:{declared.name}", declared.name, is_parameter=declared.sort is Sort.PARAMETER
    )
    return _paired(root, declared.name, declared.group, "")


def _paired(root: Root, name: str, names: Mapping[str, int], prefix: str) -> Root:
    """The root with its side, when the other barrier of a pair is declared beside it: `names` are the lines of what is."""
    for side, other, words in twins(name):
        if other not in names:
            continue
        full, empty = (name, other) if side is Side.FULL else (other, name)
        if prefix:
            key = f"{prefix}.{full}/{empty}"
        else:
            line = min(each for each in (names.get(name, 0), names[other]) if each)
            key = f"{root.key.rsplit(':', 2)[0]}:{line}:{full}/{empty}"
        if words in _BY_USE:
            return replace(root, by_use=key, is_paired=True)
        return replace(root, key=key, side=side, is_paired=True)
    return root


def twins(name: str) -> list[tuple[Side, str, tuple[str, str]]]:
    """The names that the other barrier of a pair could have, with the side that this one would be."""
    found = []
    for match in _WORD.finditer(name):
        word = match[0].lower()
        for words in (*_FULL_EMPTY, *_BY_USE):
            for own, other, side in ((words[0], words[1], Side.FULL), (words[1], words[0], Side.EMPTY)):
                if word == own:
                    found.append((side, name[: match.start()] + _cased(other, match[0]) + name[match.end() :], words))
    return found


def _cased(word: str, like: str) -> str:
    if like.isupper() and len(like) > 1:
        return word.upper()
    return word.capitalize() if like[0].isupper() else word


def _agreed(found: list[set[Root]]) -> Root | None:
    """The one root that all calls give; of different kernels' own variables of one name, the first, as one of them runs."""
    roots = {root for each in found for root in each}
    if len(roots) == 1:
        return next(iter(roots))
    if not roots or any(len(each) > 1 for each in found) or len({root.name for root in roots}) > 1:
        return None
    return None if any(root.is_parameter for root in roots) else min(roots, key=lambda root: root.key)


def _of_name(name: str, found: Mapping[tuple[Path, int], set[Root]]) -> Root | None:
    """The root that bears the parameter's own name, when callers of other files alone give others: other kernels' calls."""
    same = {root for roots in found.values() for root in roots if root.name == name and not root.is_parameter}
    files = {file for (file, _), roots in found.items() if roots & same}
    others = {file for (file, _), roots in found.items() if roots - same}
    return next(iter(same)) if len(same) == 1 and not files & others else None


def _chain_before(chain: Chain, at: int, position: int) -> Chain:
    """The chain to where a declaration in chain[at] stands, so that names are looked up as it sees them."""
    node = chain[at]
    child = next((each for each in node.named_children if each.start_byte <= position < each.end_byte), None)
    return (*chain[: at + 1], child) if child is not None else chain
