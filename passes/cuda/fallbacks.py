# SPDX-License-Identifier: Apache-2.0
"""Rewrites that are tried only where a tree has errors: they may change what a sound text means to the parser."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from autostamp.passes.cuda.draft import STATEMENT_START, Draft, Span, pattern_of
from autostamp.passes.cuda.macros import Macros
from autostamp.passes.cuda.views import Views, closing


@dataclass(frozen=True, slots=True)
class Context:
    """What a rule may look at: the views of the original, the known macros, the spans of the error nodes."""

    view: Views
    macros: Macros
    errors: tuple[Span, ...]


Rule = Callable[[Draft, Context], None]

_STATEMENT_WORD = re.compile(rb"\s*+(?:if|for|while|do|switch|return|using|constexpr|static)\b")
# The grammar reads the names of <cstdint> and <cstddef> as built-in types.
_TYPE_WORDS = re.compile(
    rb"(?<!\w)(?:(const|struct|class)|void|bool|char|short|int|long|float|double|signed|unsigned"
    rb"|u?int(?:8|16|32|64|ptr)_t|s?size_t|ptrdiff_t|char(?:8|16|32|ptr)_t|max_align_t|auto)(?!\w)"
)
_DEEPER = re.compile(rb"[(){};,]")
_ASM = re.compile(rb"(?<!\w)(?:asm|__asm__|__asm)(?!\w)(?:\s|volatile|__volatile__)*+(?=\()")
_NAME_OR_CALL = re.compile(rb"\s*+[A-Za-z_]\w*+\s*+(?:\([^()]*+\))?+\s*+")
_OPERATOR_ARGUMENT = re.compile(rb"(?<=[(,])[^\w\s(),]++(?=\s*+[,)])")
_TEMPLATE_TAG = re.compile(rb"\{[%#].*?[%#]\}|\{\{(.*?)\}\}", re.DOTALL)
_POINTER_ARGUMENT = re.compile(rb"(\*++)(?=\s*+[,)])")


def _template_tags(draft: Draft, context: Context) -> None:
    """Jinja's `{% if x %}` and `{{ x }}`, in sources from which the real ones are generated."""
    if b"{%" not in context.view.code:
        return
    for match in _TEMPLATE_TAG.finditer(bytes(draft.search)):
        draft.blank(*match.span())
        if match[1] is not None:
            draft.write(match.start(), b"_" * len(match[0].split(b"\n", 1)[0].rstrip(b"\r")))


def _code_arguments(draft: Draft, context: Context) -> None:
    """`SWITCH(type, T, f<T>(x); g(y);)`: what stands before the code is blanked, the code gets braces."""
    names = draft.words().intersection(context.macros.leading)
    if not names:
        return
    for match in pattern_of(names).finditer(bytes(draft.search)):
        opening, character = draft.after(match.end())
        end = closing(draft.search, opening) if character == b"(" else -1
        if end < 0:
            continue
        start = _start_of_code(draft.search, opening, end, context.macros.leading[match[0].decode()])
        if start > 0:
            draft.blank(match.start(), start)
            draft.write(start - 1, b"{")
            draft.write(end - 1, b"}")
            draft.erased.append((match.start(), start))
        elif b"{" not in draft.search[opening:end]:
            _types_as_names(draft, opening, end)
            if draft.before(match.start()) in STATEMENT_START and draft.after(end)[1].isalpha():
                draft.blank(opening, end)  # `CONTEXT(a, b) name;`: a type


def _start_of_code(search: bytearray, opening: int, end: int, leading: int) -> int:
    """Where the last argument of a macro call starts, if it is code; else -1. Braces don't group macro arguments."""
    depth, commas, start, is_code = 0, 0, opening + 1, False
    for match in _DEEPER.finditer(search, opening + 1, end - 1):
        character = match[0]
        if character in b"()":
            depth += 1 if character == b"(" else -1
        elif depth == 0 and character == b"," and commas < leading:
            commas, start = commas + 1, match.end()
        elif depth == 0 and commas == leading:
            is_code = is_code or (character == b";" and not _is_in_braces(search, start, match.start()))
    is_code = is_code or _STATEMENT_WORD.match(search, start) is not None
    is_code = is_code or (search[start:end].lstrip()[:1] == b"{" and b";" in search[start:end])
    return start if is_code and commas == leading else -1


def _is_in_braces(search: bytearray, start: int, position: int) -> bool:
    return search.count(b"{", start, position) > search.count(b"}", start, position)


def _types_as_names(draft: Draft, start: int, end: int) -> None:
    """Types and operators as macro arguments: each made a single name."""
    for match in _OPERATOR_ARGUMENT.finditer(bytes(draft.search[start:end])):
        draft.write(start + match.start(), b"_".ljust(len(match[0])))
    for match in _POINTER_ARGUMENT.finditer(bytes(draft.search[start:end])):
        draft.blank(start + match.start(1), start + match.end(1))
    previous = -1
    for match in _TYPE_WORDS.finditer(bytes(draft.search[start:end])):
        if previous >= 0 and not draft.search[start + previous : start + match.start()].strip():
            draft.blank(start + match.start(), start + match.end())
        elif match[1] is not None:
            draft.blank(start + match.start(), start + match.end())
            continue
        else:
            draft.write(start + match.start(), b"_")
        previous = match.end()


def _lines_before_else(draft: Draft, context: Context) -> None:
    """Preprocessor lines between a branch and its `else`, conditionals excepted."""
    for directive in context.view.directives:
        start, _ = draft.after(directive.end)
        if directive.keyword in {b"define", b"undef"} and draft.search.startswith(b"else", start):
            draft.blank(directive.start, directive.end)


def _glued_strings(draft: Draft, context: Context) -> None:
    """`"a" NAME "b"` anywhere, and names before or after the strings of an asm statement's text; missing commas there."""
    for (_, first_end), (second, _) in pairwise(context.view.strings):
        gap = bytes(draft.search[first_end:second])
        if len(gap) < 256 and _NAME_OR_CALL.fullmatch(gap):
            draft.blank(first_end, second)
    for match in _ASM.finditer(bytes(draft.search)):
        end = closing(draft.search, match.end())
        colon = draft.search.find(b":", match.end(), end)
        text_end = colon if colon > 0 else end - 1
        if end > 0 and b'"' in draft.masked[match.end() : text_end]:
            for start, stop in _gaps(context.view.strings, match.end() + 1, text_end):
                draft.blank(start, stop)
        if end > 0:
            _operand_commas(draft, match.end() + 1, end)


def _gaps(strings: tuple[Span, ...], start: int, end: int) -> Iterator[Span]:
    for string_start, string_end in strings:
        if start <= string_start < end:
            yield start, string_start
            start = string_end
    yield start, end


_OPERANDS = re.compile(rb'\)(\s++)(?="[=+&%]*+\w{1,4}"\s*+\()')


def _operand_commas(draft: Draft, start: int, end: int) -> None:
    """A comma where one is missing between two operands of an asm statement, which nvcc lets pass."""
    for match in _OPERANDS.finditer(bytes(draft.masked[start:end])):
        if draft.search[start + match.start()] == ord(")"):
            for position in range(start + match.start(1), start + match.end(1)):
                if draft.masked[position] in b" \t":
                    draft.write(position, b",")
                    break


def _comparisons(draft: Draft, context: Context) -> None:
    """`X<a >= 80, T>`: a comparison among template arguments reads as their end. `==` is as long and does not."""
    for first, last in context.errors:
        start = draft.masked.rfind(b"\n", 0, max(0, draft.masked.rfind(b"\n", 0, first))) + 1
        end = draft.masked.find(b"\n", last)
        for match in re.finditer(rb">=", bytes(draft.search[start : end if end > 0 else None])):
            draft.write(start + match.start(), b"==")


FALLBACKS: tuple[Rule, ...] = (
    _template_tags,
    _code_arguments,
    _lines_before_else,
    _glued_strings,
    _comparisons,
)
