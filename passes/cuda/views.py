# SPDX-License-Identifier: Apache-2.0
"""Views of a C++ source that keep every byte offset: without comments, and without comments and literals.

Comments and literals follow the lexical rules of C++ (ISO C++ [lex.comment], [lex.ccon], [lex.string]): line continuations,
raw strings, encoding prefixes and digit separators. What is taken out becomes blanks; newlines stay, so rows stay too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

# One set of first characters, told apart afterwards: searching for a set is fast, for alternatives it is not.
_LITERAL = re.compile(
    rb"""[/"'](?:
      (?<=/)/[^\n\\]*+(?:\\(?:\r?\n)?[^\n\\]*+)*+
    | (?<=/)\*(?s:.*?)(?:\*/|\Z)
    | (?:(?<=\bR")|(?<=\bu8R")|(?<=\b[uUL]R"))(?P<delimiter>[^\s()\\"]{0,16}+)\((?s:.*?)\)(?P=delimiter)"
    | (?<=")(?:[^"\\\n]++|\\(?:\r\n|(?s:.)))*+"
    | (?<=')(?:(?<!\w')|(?<=\b[uUL]')|(?<=\bu8')|(?<=\bcase')|(?<=\breturn'))(?:[^'\\\n]|\\.){1,12}+'
    )""",
    re.VERBOSE,
)
_PREFIX = re.compile(rb"(?<!\w)(?:u8|[uUL])?R?\Z")
_NOT_BLANK = bytes(code if code in b"\n\r" else 0x20 for code in range(256))
_CONTINUATION = re.compile(rb"\\(?=\r?\n)")
_DIRECTIVE = re.compile(rb"^[ \t]*+\#[ \t]*+(\w*+)[^\n\\]*+(?:\\(?:\r?\n)?[^\n\\]*+)*+", re.MULTILINE | re.VERBOSE)


@dataclass(frozen=True, slots=True)
class Directive:
    """A preprocessor line with its continuation lines: `keyword` is what follows the `#`, the span is in bytes."""

    keyword: bytes
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Views:
    """Equal-length views of one source.

    `uncommented` lacks comments, `code` lacks literals too (quotes and prefixes included), `search` lacks preprocessor
    lines as well. `strings` are the byte spans of the string literals.
    """

    uncommented: bytes
    code: bytes
    search: bytes
    directives: tuple[Directive, ...]
    strings: tuple[tuple[int, int], ...]


def blank(text: bytes) -> bytes:
    """`text` with everything but line ends turned into spaces; a backslash before a line end stays, it joins lines."""
    if b"\\" not in text:
        return text.translate(_NOT_BLANK)
    spaces = bytearray(text.translate(_NOT_BLANK))
    for match in _CONTINUATION.finditer(text):
        spaces[match.start()] = 0x5C
    return bytes(spaces)


def views(data: bytes) -> Views:
    """The views of `data`, any bytes at all."""
    uncommented: list[bytes] = []
    code: list[bytes] = []
    strings: list[tuple[int, int]] = []
    position = 0
    for match in _LITERAL.finditer(data):
        start, end = match.span()
        text = match[0]
        if text[0] == 0x2F:  # '/'
            plain = data[position:start]
            uncommented += (plain, blank(text))
            code += (plain, blank(text))
            position = end
            continue
        if start and data[start - 1] in b"RLuU8" and (prefix := _PREFIX.search(data, max(0, start - 3), start)):
            start = max(position, prefix.start())
        if text[0] == 0x22:  # '"'
            strings.append((start, end))
        # A raw string may hold anything, so it joins no lines.
        is_raw = match["delimiter"] is not None
        uncommented.append(data[position:end])
        code += (data[position:start], data[start:end].translate(_NOT_BLANK) if is_raw else blank(data[start:end]))
        position = end
    rest = data[position:]
    code_view = b"".join((*code, rest))
    directives = tuple(Directive(match[1], *match.span()) for match in _DIRECTIVE.finditer(code_view))
    return Views(b"".join((*uncommented, rest)), code_view, without(code_view, directives), directives, tuple(strings))


def without(view: bytes, directives: tuple[Directive, ...]) -> bytes:
    """`view` with the given preprocessor lines blanked, backslashes at line ends included."""
    parts: list[bytes] = []
    position = 0
    for directive in directives:
        parts += (view[position : directive.start], view[directive.start : directive.end].translate(_NOT_BLANK))
        position = directive.end
    return b"".join((*parts, view[position:]))


_BRACKET = {0x28: re.compile(rb"[()]"), 0x5B: re.compile(rb"[\[\]]"), 0x7B: re.compile(rb"[{}]")}


def closing(view: bytes | bytearray, opening: int) -> int:
    """The offset after the bracket that closes the one at `opening` in a view without literals, or -1, as where there is none.

    Only brackets of the same kind are counted.
    """
    depth = 0
    first = view[opening]
    pattern = _BRACKET.get(first)
    if pattern is None:
        return -1
    for match in pattern.finditer(view, opening):
        depth += 1 if view[match.start()] == first else -1
        if depth == 0:
            return match.end()
    return -1


def conditionals(directives: tuple[Directive, ...]) -> Iterator[list[Directive]]:
    """Each conditional as its lines from `#if` to `#endif`, inner ones first."""
    stack: list[list[Directive]] = []
    for directive in directives:
        if directive.keyword in {b"if", b"ifdef", b"ifndef"}:
            stack.append([directive])
        elif directive.keyword in {b"elif", b"elifdef", b"elifndef", b"else"} and stack:
            stack[-1].append(directive)
        elif directive.keyword == b"endif" and stack:
            yield [*stack.pop(), directive]
