# SPDX-License-Identifier: Apache-2.0
"""What a name is declared as, by text: enough to tell a barrier's `wait` from a stream's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from autostamp.passes.cuda.functions import Function, Index, Type, bare
from autostamp.passes.cuda.source import Source

_USING = re.compile(rb"\busing\s++(\w++)\s*+=\s*+([^;{]++);")
_TYPEDEF = re.compile(rb"\btypedef\s++([^;{}]+?)\s++(\w++)\s*+;")
_BEFORE = re.compile(
    rb"((?:[A-Za-z_]\w*+(?:\s*+<[^;{}()=]*+(?:\([^()]*+\)[^;{}()=]*+)*+>)?+\s*+::\s*+(?:template\s++)?+)*+[A-Za-z_]\w*+"
    rb"(?:\s*+<[^;{}=]*>)?+)\s*+(?:const\b\s*+)?+([&*\s]*+)\Z"
)
_LIST = re.compile(
    rb"\s*+(?:(?:__shared__|static|extern|const|constexpr|volatile|mutable|(?:alignas|__align__)\s*+\([^()]*+\))\s*+)*+"
    rb"((?:[A-Za-z_]\w*+\s*+::\s*+)*+[A-Za-z_]\w*+(?:\s*+<[^;{}=()]*>)?+)\s*+[&*\s]*+[A-Za-z_]\w*+\s*+[\[,=({]"
)
# What a name follows that is a member, a part of another name, or qualified.
_NOT_BEFORE = frozenset(b".:_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_AFTER = re.compile(rb"\s*+(?:\[[^\]]*+\]\s*+)*+(;|,|=(?!=)|\)|\{|\(|:(?!:)|\Z)")
_INITIAL = re.compile(rb"\s*+=\s*+([^;]{1,300})")
_NOT_TYPES = frozenset(
    {
        b"return",
        b"else",
        b"case",
        b"goto",
        b"new",
        b"delete",
        b"throw",
        b"typename",
        b"do",
        b"const",
        b"and",
        b"or",
        b"not",
    }
)
_LAST = re.compile(r"([A-Za-z_]\w*)\s*(?:<[^<>]*>)?\s*\Z")
_DEPTH = 4


def last_name(text: str) -> str:
    """The last identifier of an object expression, without subscripts and calls: `s.full[i]` gives `full`."""
    text = text.strip()
    while text and text[-1] in ")]":
        opening = _opening(text)
        if opening < 0:
            return ""
        inner = text[opening + 1 : -1]
        text = text[:opening].rstrip()
        if not text or text[-1] in "(*&,=!":
            return last_name(inner)
    match = _LAST.search(text)
    return match[1] if match else ""


def _opening(text: str) -> int:
    depth = 0
    for position in range(len(text) - 1, -1, -1):
        if text[position] in ")]":
            depth += 1
        elif text[position] in "([":
            depth -= 1
            if depth == 0:
                return position
    return -1


class Receivers:
    """Declarations of a project, looked up by name and cached."""

    def __init__(self, index: Index, sources: Mapping[Path, Source]) -> None:
        self._index = index
        self._sources = sources
        self._aliases: dict[str, dict[Path, set[str]]] | None = None
        self._declared: dict[tuple[int, str], str] = {}
        self._members: dict[str, str] = {}
        self._in_file: dict[tuple[Path, str], str] = {}
        self._types: dict[Path, list[Type]] = {}
        for each in (each for group in index.types.values() for each in group):
            self._types.setdefault(each.file, []).append(each)

    def aliases(self, name: str, file: Path | None = None) -> set[str]:
        """What `using` and `typedef` declare `name` to be: in `file` if that does, else over the whole project."""
        if self._aliases is None:
            self._aliases = {}
            for path, source in self._sources.items():
                for match in _USING.finditer(source.code):
                    self._add_alias(match[1], match[2], path)
                for match in _TYPEDEF.finditer(source.code):
                    self._add_alias(match[2], match[1], path)
        known = self._aliases.get(name, {})
        if file in known and not all(target.endswith(f"::{name}") for target in known[file]):
            return known[file]
        return set().union(*known.values()) if known else set()

    def _add_alias(self, name: bytes, target: bytes, path: Path) -> None:
        assert self._aliases is not None
        text = " ".join(target.decode("utf-8", "replace").split())
        self._aliases.setdefault(name.decode(), {}).setdefault(path, set()).add(text)

    def describe(self, text: str, function: Function) -> str:
        """The object's text, the text of its declared type, and what that type is an alias of, for patterns to match."""
        parts = [text]
        name = last_name(text)
        for _ in range(_DEPTH):
            if not name:
                break
            declared = self.declared(name, function)
            if not declared or declared in parts:
                break
            parts.append(declared)
            head, _, initial = declared.partition(" = ")
            if head.split("&")[0].split("*")[0].strip() != "auto":
                parts += self._expanded(bare(head.strip(" &*[]")).split("::")[-1], function.file)
                break
            name = last_name(initial)
        return " ".join(parts)

    def classes(self, text: str, function: Function) -> set[str]:
        """Names of the classes that the object may be of, bases and aliases included; empty when nothing is known."""
        name = last_name(text)
        for _ in range(_DEPTH):
            declared = self.declared(name, function) if name else ""
            head, _, initial = declared.partition(" = ")
            if head.split("&")[0].split("*")[0].strip() != "auto":
                break
            name = last_name(initial)
        else:
            return set()
        if not declared:
            return set()
        found = bare(head.strip(" &*[]")).split("::")[-1]
        return self.family(found, function.file)

    def family(self, name: str, file: Path | None = None) -> set[str]:
        """A class's name with the names it is an alias of and those of its bases, as seen from `file`."""
        names: set[str] = set()
        pending = [name]
        while pending and len(names) < 64:
            each = pending.pop()
            if not each or each in names:
                continue
            names.add(each)
            pending += (bare(alias.strip(" &*[]")).split("::")[-1] for alias in self.aliases(each, file))
            pending += (base for found in self._index.types.get(each, ()) for base in found.bases)
        return names

    def declared(self, name: str, function: Function) -> str:
        """The declared type of `name` as seen from `function`, with ` = initialiser` after `auto`; empty when not found."""
        key = (id(function), name)
        if key not in self._declared:
            self._declared[key] = self._find(name, function)
        return self._declared[key]

    def _find(self, name: str, function: Function) -> str:
        for parameter in function.parameters:
            if parameter.name == name:
                return parameter.type
        code = function.source.code
        if found := declaration(code, name, function.start, function.end):
            return found
        for owner in self.family(function.owner, function.file) if function.owner else ():
            types = sorted(self._index.types.get(owner, ()), key=lambda each: each.file != function.file)
            for each in types:
                if found := self._member(each, name):
                    return found
        in_file = (function.file, name)
        if in_file not in self._in_file:
            self._in_file[in_file] = declaration(code, name, 0, len(code))
        if found := self._in_file[in_file]:
            return found
        if name not in self._members:
            self._members[name] = self._anywhere(name)
        return self._members[name]

    def _anywhere(self, name: str) -> str:
        """The type of a member of that name in any class of the project."""
        needle = name.encode("utf-8", "surrogateescape")
        for file, types in self._types.items():
            if needle in self._sources[file].code:
                for each in types:
                    if found := self._member(each, name):
                        return found
        return ""

    def _member(self, each: Type, name: str) -> str:
        source = self._sources.get(each.file)
        return "" if source is None else declaration(source.code, name, each.start, each.end)

    def _expanded(self, name: str, file: Path) -> list[str]:
        family = self.family(name, file)
        return [*sorted(family - {name}), *(alias for each in family for alias in sorted(self.aliases(each, file)))]


def declaration(code: bytes, name: str, start: int, end: int) -> str:
    """The type of the first declaration of `name` in bytes [start, end), empty if there is none.

    `auto` has its initialiser after ` = `, an array's type ends in `[]`.
    """
    for match in _named(name).finditer(code, start, end):
        at = match.start()
        if at and code[at - 1] in _NOT_BEFORE:
            continue
        after = _AFTER.match(code, match.end(), end)
        text = "" if after is None else _type_before(code, start, at)
        if not text:
            continue
        initial = _INITIAL.match(code, match.end(), end)
        if text.rstrip("&* ") == "auto" and initial is not None:
            return f"{text} = {' '.join(initial[1].decode('utf-8', 'replace').split())}"
        return f"{text}[]" if code[match.end() : match.end() + 2].lstrip().startswith(b"[") else text
    return ""


@lru_cache(maxsize=4096)
def _named(name: str) -> re.Pattern[bytes]:
    return re.compile(re.escape(name.encode("utf-8", "surrogateescape")) + rb"\b")


def _type_before(code: bytes, start: int, at: int) -> str:
    """The type that stands before a declared name at `at`, also when other names of the same declaration are between."""
    last = at - 1
    while last >= start and code[last] in b" \t\r\n":
        last -= 1
    if last >= start and code[last] == 0x2C:
        begin = max(start, *(code.rfind(mark, start, at) + 1 for mark in (b";", b"{", b"}")))
        match = _LIST.match(code, begin, at)
        between = code[begin:at]
        if match is None or match[1] in _NOT_TYPES or between.count(b"(") != between.count(b")"):
            return ""
        return match[1].decode("utf-8", "replace")
    if last < start or (last == at - 1 and code[last] not in b"&*>"):
        return ""
    before = _BEFORE.search(code, max(start, at - 160), at)
    if before is None or before[1] in _NOT_TYPES:
        return ""
    return before[1].decode("utf-8", "replace") + before[2].strip().decode()
