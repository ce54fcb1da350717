# SPDX-License-Identifier: Apache-2.0
"""The declarations of a C++ text that a kernel's signature can name: kernels, structs, enumerations, aliases, constants.

Function bodies are passed over. Nothing is looked up here: a declaration keeps its text for whoever needs it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from autostamp.passes.cuda.directives import Plain

Scope = tuple[str, ...]


class Sort(StrEnum):
    """What a declaration declares."""

    KERNEL = "kernel"
    STRUCT = "struct"
    ENUM = "enum"
    ALIAS = "alias"
    CONSTANT = "constant"


@dataclass(frozen=True, slots=True)
class SourceText:
    """A file: its path as messages show it, and its text."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Declaration:
    """One declaration. `text` is what it is made of, without comments: for a kernel its parameters (which begin at `start` of
    the source), for a struct or enumeration what stands between the braces, for an alias or a constant the whole statement.

    `head` is the text before that. `template` holds the template's parameters, None for what is no template.
    """

    sort: Sort
    name: str
    scope: Scope
    source: SourceText
    start: int
    text: str
    head: str = ""
    template: str | None = None
    is_c: bool = False
    is_definition: bool = False

    @property
    def path(self) -> str:
        """The qualified name."""
        return "::".join((*self.scope, self.name))

    @property
    def line(self) -> int:
        """The line of `start`, from 1."""
        return self.source.text.count("\n", 0, self.start) + 1


ATTRIBUTE: Final = re.compile(
    r"\b(?:__launch_bounds__|__cluster_dims__|__block_size__|__maxnreg__|__attribute__|__declspec|__align__|alignas"
    r"|noexcept|decltype|requires)\s*(?=\()"
)
"""Words that take arguments in parentheses and name no function."""

_BRACKETS: Final = {"(": ")", "[": "]", "{": "}"}
_OPENED: Final = {**_BRACKETS, "<": ">"}
_STOP: Final = re.compile(r"[(){};]")
_ANY_BRACKET: Final = re.compile(r"[()\[\]{}]")
_NAMESPACE: Final = re.compile(r"\s*(?P<inline>inline\s+)?namespace\b\s*(?P<name>[\w:\s]*?)\s*")
_LINKAGE: Final = re.compile(r'\s*extern\s*"C(?:\+\+)?"\s*')
_RECORD: Final = re.compile(
    r"\s*(?P<typedef>typedef\s+)?(?:(?:static|const|constexpr|inline|volatile)\s+)*"
    r"(?P<word>struct|class|union|enum(?:\s+(?:class|struct))?)\b\s*(?P<name>\w+)?\s*(?:final\b)?\s*(?P<base>:.*)?",
    re.DOTALL,
)
_ACCESS: Final = re.compile(r"\s*(?:(?:public|private|protected)\s*:(?!:)\s*)+")
_TYPEDEF: Final = re.compile(
    r"(?:\(\s*\*\s*(?P<called>\w+)\s*\)\s*\(.*|(?P<name>\w+)\s*(?:\[[^\]]*\]\s*)*)\Z", re.DOTALL
)
_USING: Final = re.compile(r"\s*using\s+(?P<name>\w+)\s*=\s*", re.DOTALL)
_CONSTANT: Final = re.compile(r"(?P<name>\w+)\s*=(?!=)")
_CALLED: Final = re.compile(r"(?P<name>[A-Za-z_]\w*)\s*(?:<[^()<>]*>\s*)?\(")


def close_of(text: str, opened: int, end: int | None = None) -> int:
    """Offset of the bracket that closes the one at `opened`; the end of the text when none does."""
    stop = len(text) if end is None else end
    waiting: list[str] = []
    for match in _ANY_BRACKET.finditer(text, opened, stop):
        if match[0] in _BRACKETS:
            waiting.append(_BRACKETS[match[0]])
        elif waiting and match[0] == waiting[-1]:
            waiting.pop()
            if not waiting:
                return match.start()
    return stop


def split(text: str, separator: str = ",") -> Iterator[tuple[int, str]]:
    """(offset, part) between separators that stand in no bracket. `<` counts as one where a `>` may close it, `<<` does not."""
    waiting: list[str] = []
    begin = 0
    for match in re.finditer(rf"<<|->|[()\[\]{{}}<>{re.escape(separator)}]", text):
        found = match[0]
        if found == separator and not waiting:
            yield begin, text[begin : match.start()]
            begin = match.end()
        elif found in _OPENED:
            waiting.append(_OPENED[found])
        elif found == ">":
            del waiting[len(waiting) - (waiting[-1:] == [">"]) :]
        elif found in waiting:
            while waiting.pop() != found:
                pass  # a `<` that was less-than
    yield begin, text[begin:]


def without_attributes(text: str) -> str:
    """The text without `[[…]]` and the attributes that take arguments; offsets stay."""
    pieces, at = [], 0
    for match in re.finditer(rf"\[\[|{ATTRIBUTE.pattern}", text):
        if match.start() < at:
            continue
        opened = match.start() if match[0] == "[[" else match.end()
        closed = close_of(text, opened) + 1
        pieces += [text[at : match.start()], re.sub(r"[^\n]", " ", text[match.start() : closed])]
        at = closed
    return "".join([*pieces, text[at:]])


def declarations(source: SourceText, code: Plain) -> list[Declaration]:
    """All of them, in source order."""
    words = [name for name, body in code.macros.items() if body and re.search(r"\b__global__\b", body)]
    scanner = _Scanner(source, code.text, re.compile(rf"\b(?:{'|'.join(['__global__', *map(re.escape, words)])})\b"))
    scanner.scan(0, len(code.text), (), is_c=False)
    return scanner.found


class _Scanner:
    """Walks statements at namespace and struct scope."""

    def __init__(self, source: SourceText, text: str, kernel: re.Pattern[str]) -> None:
        self.found: list[Declaration] = []
        self._source = source
        self._text = text
        self._kernel = kernel

    def scan(self, start: int, end: int, scope: Scope, *, is_c: bool) -> None:
        """Collect what is declared between two offsets."""
        head = at = start
        while match := _STOP.search(self._text, at, end):
            here, character = match.start(), match[0]
            if character == "(":
                at = close_of(self._text, here, end) + 1
                continue
            if character == "{":
                at = self._braces(head, here, end, scope, is_c=is_c)
                if at < 0:
                    at = -at
                    continue
            else:
                if character == ";":
                    self._statement(head, here, scope, is_c=is_c)
                at = here + 1
            head = at

    def _braces(self, head: int, opened: int, end: int, scope: Scope, *, is_c: bool) -> int:
        """Deal with braces; the offset after them, negative when the statement goes on behind them."""
        closed = close_of(self._text, opened, end)
        text = self._head(head, opened)
        bare = without_attributes(text)
        if match := _NAMESPACE.fullmatch(bare):
            names = () if match["inline"] else tuple(name for name in re.split(r"[\s:]+", match["name"]) if name)
            self.scan(opened + 1, closed, scope + tuple(name for name in names if name != "inline"), is_c=is_c)
            return closed + 1
        if _LINKAGE.fullmatch(bare):
            self.scan(opened + 1, closed, scope, is_c='"C"' in bare)
            return closed + 1
        template, rest = _template(bare)
        if match := _RECORD.fullmatch(rest):
            return self._record(match, template, text, (opened, closed, end), scope)
        if rest.rstrip().endswith("="):
            return -(closed + 1)
        if self._kernel.search(text):
            self._add_kernel(head, opened, scope, is_c=is_c, is_definition=True)
        return closed + 1

    def _record(
        self, match: re.Match[str], template: str | None, head: str, span: tuple[int, int, int], scope: Scope
    ) -> int:
        opened, closed, end = span
        semicolon = self._text.find(";", closed, end)
        after = end if semicolon < 0 else semicolon
        names = {match["name"]} if match["name"] else set()
        if match["typedef"]:
            declarators = self._text[closed + 1 : after].split(",")
            names |= {name.strip() for name in declarators if re.fullmatch(r"\s*\w+\s*", name)}
        sort = Sort.ENUM if match["word"].startswith("enum") else Sort.STRUCT
        text = self._text[opened + 1 : closed]
        for name in sorted(names) or ([""] if sort is Sort.ENUM else []):
            self._add(sort, name, scope, opened + 1, text, head=head, template=template)
        if sort is Sort.STRUCT and match["name"]:
            self.scan(opened + 1, closed, (*scope, match["name"]), is_c=False)
        return after + 1

    def _statement(self, head: int, end: int, scope: Scope, *, is_c: bool) -> None:
        text = self._head(head, end)
        if self._kernel.search(text):
            self._add_kernel(head, end, scope, is_c=is_c, is_definition=False)
            return
        template, rest = _template(text)
        if match := _USING.match(rest):
            self._add(Sort.ALIAS, match["name"], scope, head, rest, template=template)
        elif re.match(r"\s*typedef\b", rest):
            if match := _TYPEDEF.search(rest):
                self._add(Sort.ALIAS, match["called"] or match["name"], scope, head, rest)
        elif re.search(r"\b(?:const|constexpr)\b", rest):
            for _, part in split(rest):
                if match := _CONSTANT.search(part):
                    self._add(Sort.CONSTANT, match["name"], scope, head, part[match.end() :], template=template)

    def _add_kernel(self, head: int, end: int, scope: Scope, *, is_c: bool, is_definition: bool) -> None:
        text = self._text[head:end]
        if re.match(r"\s*template\b(?!\s*<)", text):
            return  # an explicit instantiation declares nothing new
        template, rest = _template(without_attributes(text))
        offset = head + len(text) - len(rest)
        called = None
        at = 0
        while match := _CALLED.search(rest, at):
            closed = close_of(rest, match.end() - 1)
            called, at = (match, closed), closed + 1
        if called is None:
            return
        match, closed = called
        start = offset + match.end()
        is_c = is_c or _LINKAGE.match(text) is not None
        parameters = self._text[start : offset + closed]
        self.found.append(
            Declaration(
                Sort.KERNEL, match["name"], scope, self._source, start, parameters,
                head=self._text[head : offset + match.start()], template=template, is_c=is_c, is_definition=is_definition,
            )
        )  # fmt: skip

    def _head(self, start: int, end: int) -> str:
        text = self._text[start:end]
        access = _ACCESS.match(text)
        return text[access.end() :] if access else text

    def _add(
        self, sort: Sort, name: str, scope: Scope, start: int, text: str, head: str = "", template: str | None = None
    ) -> None:
        self.found.append(Declaration(sort, name, scope, self._source, start, text, head=head, template=template))


def _template(text: str) -> tuple[str | None, str]:
    """(parameters of a template, or None; what follows them)."""
    match = re.match(r"\s*template\s*<", text)
    if match is None:
        return None, text
    depth = 1
    for at in range(match.end(), len(text)):
        character = text[at]
        depth += (character in "(<{[") - (character in ")>}]" and text[at - 1] != "-")
        if depth == 0:
            return text[match.end() : at], text[at + 1 :]
    return text[match.end() :], ""


class Lines:
    """Offsets of a text as line and column, both from 1."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def at(self, offset: int) -> tuple[int, int, str]:
        """(line, column, the line's text)."""
        line = bisect_right(self._starts, offset)
        start = self._starts[line - 1]
        end = self._text.find("\n", start)
        return line, offset - start + 1, self._text[start : len(self._text) if end < 0 else end].rstrip("\r")
