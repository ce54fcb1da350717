# SPDX-License-Identifier: Apache-2.0
"""The masked copy that is parsed in place of a CUDA C++ source: equal length, equal newlines, less to trip over.

The grammar knows no macro of a project, so what stands for qualifiers, attributes or nothing is blanked, and statements that
are a macro alone get the `;` they lack. Nothing inside a preprocessor line is touched but comments, and `#pragma` lines, which
are blanked whole, and the names of variadic parameters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from autostamp.passes.cuda.draft import STATEMENT_START, Draft, Span, pattern_of
from autostamp.passes.cuda.macros import ATTRIBUTE_CALLS, Macros
from autostamp.passes.cuda.rewrites import rewrite
from autostamp.passes.cuda.views import Directive, Views, closing, conditionals

# Bytes beyond ASCII can stand in literals and, rarely, names: an underscore is good in both. NUL would end the parse.
_ASCII = bytes(0x20 if code == 0 else code if code < 0x80 else 0x5F for code in range(256))
_BOM = b"\xef\xbb\xbf"
_HASH = ord("#")
_MAX_ERASED = 512  # bytes: a longer macro call holds code
_WHITE = re.compile(rb"\s*+")
_ELSE = re.compile(rb"\s*+else\b")
_LAMBDA = re.compile(rb"\]\s*+(__(?:host|device|forceinline)__(?:\s++__(?:host|device|forceinline)__)*+)(?=\s*+[({])")
# GNU's `#define X(a, rest...)`, which is `#define X(a, ...)` to the parser.
_NAMED_REST = re.compile(rb"[ \t]*+#[ \t]*+define[ \t]++\w++\([\w\s,\\]*?([A-Za-z_]\w*+)\.\.\.")
# What a macro in upper case is no statement before: it is a constructor, or an operand.
_FOLLOWS_DECLARATOR = re.compile(
    rb"(?:noexcept|override|final|requires|and|or|xor|bitand|bitor)\b|const\s*+(?:[{;&]|->|noexcept|override|final|requires)"
)
_LOUD = re.compile(rb"(?<![\w.])(?<!->)(?=[A-Z_]*?[A-Z]{2})([A-Z_][A-Z0-9_x]{3,}+)(?=[ \t]*+(?:\(|\r?$))", re.MULTILINE)


def mask(data: bytes, view: Views, macros: Macros) -> Draft:
    """The masked copy of `data` by the rules that cost little and can do no harm."""
    draft = Draft(bytearray(view.uncommented.translate(_ASCII)), bytearray(view.search))
    if data.startswith(_BOM):
        draft.write(0, b"   ")
    for directive in view.directives:
        if directive.keyword == b"pragma":
            draft.blank(directive.start, directive.end)
        elif directive.keyword == b"define" and (named := _NAMED_REST.match(view.code, directive.start, directive.end)):
            draft.blank(*named.span(1))
    _branches_with_else(draft, view.directives)
    words = draft.words()
    draft.blanked = list(_outermost(_qualifiers(draft, macros, words)))
    for start, end in draft.blanked:
        draft.blank(start, end)
    _macro_statements(draft, macros, words)
    rewrite(draft)
    return draft


def _branches_with_else(draft: Draft, directives: tuple[Directive, ...]) -> None:
    """`if (a) f(); #if B else g(); #endif`: read as a declaration of type `else`, without an error."""
    for group in conditionals(directives):
        if any(_ELSE.match(draft.search, directive.end) for directive in group[:-1]):
            draft.blank_lines(group)


def _qualifiers(draft: Draft, macros: Macros, words: frozenset[str]) -> Iterator[Span]:
    """Spans of the qualifiers and attributes: object-like names, and calls up to the balanced parenthesis."""
    if plain := words & macros.qualifiers:
        yield from (match.span() for match in pattern_of(plain).finditer(draft.search))
    if empty := words & macros.empties:
        for match in pattern_of(empty).finditer(draft.search):
            if starts_name(draft.after(match.end())[1]):
                yield match.span()
    if calls := words & (macros.calls | ATTRIBUTE_CALLS):
        for match in pattern_of(calls).finditer(draft.search):
            opening, character = draft.after(match.end())
            if character == b"(" and (end := closing(draft.search, opening)) > 0:
                yield match.start(), end
    for match in _LAMBDA.finditer(draft.search):
        yield match.span(1)


def starts_name(character: bytes) -> bool:
    """Whether a character can start a name, a destructor or a qualified name."""
    return character.isalpha() or character in {b"_", b"~", b":"}


def _outermost(spans: Iterable[Span]) -> Iterator[Span]:
    last = 0
    for start, end in sorted(spans, key=lambda each: (each[0], -each[1])):
        if start >= last:
            yield start, end
            last = end


def _macro_statements(draft: Draft, macros: Macros, words: frozenset[str]) -> None:
    """End statements that are a macro alone, without a `;`: known by their `#define`, or else by their upper case."""
    if asserts := frozenset(word for word in words if "STATIC_ASSERT" in word):
        for match in pattern_of(asserts).finditer(bytes(draft.search)):
            opening, character = draft.after(match.end())
            if character == b"(" and (end := closing(draft.search, opening)) > 0:
                draft.blank(match.start(), end)
    if fragments := words & macros.fragments:
        for match in pattern_of(fragments).finditer(bytes(draft.search)):
            erase_macro(draft, match.start(), match.end())
    if known := words & macros.statements:
        for match in pattern_of(known).finditer(bytes(draft.search)):
            end_statement(draft, match.start(), match.end(), is_known=True)
    for match in _LOUD.finditer(bytes(draft.search)):
        if match[1].decode() not in known and draft.search[match.start(1)] != 0x20:
            end_statement(draft, match.start(1), match.end(1), is_known=False)


def _end_of_call(draft: Draft, name_end: int) -> int:
    opening, character = draft.after(name_end)
    return closing(draft.search, opening) if character == b"(" else name_end


def erase_macro(draft: Draft, start: int, name_end: int) -> None:
    """Blank a macro name with its arguments, if it has any."""
    if (end := _end_of_call(draft, name_end)) > 0:
        draft.blank(start, end)
        draft.erased.append((start, end))


def end_statement(draft: Draft, start: int, name_end: int, *, is_known: bool) -> None:
    """Put a `;` after a macro that stands as a statement of its own and lacks one; for want of room, blank the macro.

    A blank before the next token takes the `;`, newlines stay. Of a macro that is not known, the next token must stand
    on a line of its own.
    """
    end = _end_of_call(draft, name_end)
    if end < 0 or draft.before(start) not in STATEMENT_START:
        return
    following, character = draft.after(end)
    if not (starts_name(character) or character in {b"}", b""}) or (character == b":" and not is_known):
        return
    if not is_known and (b"\n" not in draft.search[end:following] or (end == name_end and character == b"}")):
        return
    if _FOLLOWS_DECLARATOR.match(draft.search, following):
        return
    room = _WHITE.match(draft.masked, end, following)
    stop = end if room is None else room.end()
    if stop < following:
        if draft.masked[stop] != _HASH:
            return  # a literal
        stop = draft.masked.rfind(b"\n", end, stop) + 1
    for position in range(end, stop):
        if draft.masked[position] in b" \t":
            draft.write(position, b";")
            return
    # Before a closing brace the parser itself makes up for the `;`. Before anything else it would take what follows for
    # a part of the macro's statement.
    if (end == name_end or character not in {b"}", b""}) and end - start <= _MAX_ERASED:
        draft.blank(start, end)
        draft.erased.append((start, end))
