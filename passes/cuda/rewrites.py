# SPDX-License-Identifier: Apache-2.0
"""Forms of C++ that the grammar lacks, each written in one that it has, as long as the first.

What is lost that way is never run: the operand of a `decltype`, defaults, `= delete`, the names of types.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from autostamp.passes.cuda.draft import Draft
from autostamp.passes.cuda.views import closing

_ANGLES = rb"<(?>[^<>;{}]++|<(?>[^<>;{}]++|<(?>[^<>;{}]++|<[^<>;{}]*+>)*+>)*+>)*+>"
_BRACKETS = re.compile(rb"[][(){}]")


def rewrite(draft: Draft) -> None:
    """Apply all rules to a draft."""
    for pattern, rule in _RULES:
        for match in pattern.finditer(bytes(draft.search)):
            if draft.search.startswith(match[0], match.start()):  # not inside what the match before it changed
                rule(draft, match)


def _typename(draft: Draft, match: re.Match[bytes]) -> None:
    before = draft.before(match.start())
    if before in {b"(", b",", b"=", b"{", b"?", b":", b"&", b"|", b"!", b"+", b"*", b"-", b"/", b"%", b"return"}:
        draft.blank(*match.span(1))


def _decltype(draft: Draft, match: re.Match[bytes]) -> None:
    end = closing(draft.search, match.end())
    if end > 0 and draft.search[match.end() + 1 : end - 1].strip() != b"auto":
        # Unevaluated, so nothing in it is ever run: any name of a type will do.
        draft.blank(match.start() + 8, end)
        draft.write(match.start(), b"decltyp_")


def _default_braces(draft: Draft, match: re.Match[bytes]) -> None:
    end = closing(draft.search, match.end() - 1)
    if end > 0 and draft.after(end)[1] in {b",", b")"} and _enclosing(draft.search, match.start()) == b"(":
        draft.blank(match.start(), end)


def _enclosing(search: bytearray, position: int) -> bytes:
    """The innermost bracket that is open at `position`, looking back 8 KiB."""
    depth = 0
    for bracket in reversed(_BRACKETS.findall(search, max(0, position - 8192), position)):
        depth += 1 if bracket in b")]}" else -1
        if depth < 0:
            return bytes(bracket)
    return b""


def _blank_groups(draft: Draft, match: re.Match[bytes]) -> None:
    for group in range(1, len(match.groups()) + 1):
        draft.blank(*match.span(group))


def _call_operator(draft: Draft, match: re.Match[bytes]) -> None:
    if draft.before(match.start()) in {b";", b"{", b"}", b"return", b"=", b"(", b",", b")", b"!"}:
        draft.write(match.start(1), b"__")


def _unsigned(draft: Draft, match: re.Match[bytes]) -> None:
    if draft.before(match.start()) in {b"(", b",", b"=", b"&", b"|", b"+", b"-", b"*", b"return"}:
        draft.write(match.start(), b"_")


def _pointer_default(draft: Draft, match: re.Match[bytes]) -> None:
    if draft.before(match.start()) in {b"*", b"&"}:
        draft.blank(*match.span(1))


def _bit_field(draft: Draft, match: re.Match[bytes]) -> None:
    if _INTEGER.fullmatch(draft.before(match.start())):
        draft.blank(*match.span(1))


def _typeid(draft: Draft, match: re.Match[bytes]) -> None:
    first = match.end(1) - len(match[1].lstrip())
    draft.blank(*match.span(1))
    if first < match.end(1):
        draft.write(first, b"T")


_INTEGER = re.compile(rb"u?int\d*_t|unsigned|signed|int|char|short|long|bool")
_TYPE = rb"(?:::)?+\s*+\w++(?:\s*+" + _ANGLES + rb")?+(?:\s*+::\s*+(?:template\s++)?+\w++(?:\s*+" + _ANGLES + rb")?+)*+"
_RULES: tuple[tuple[re.Pattern[bytes], Callable[[Draft, re.Match[bytes]], None]], ...] = (
    # `f(typename T::X{})`, `= typename T::X(1)`
    (re.compile(rb"(typename)(?<!\wtypename)\s(?=\s*+" + _TYPE + rb"\s*+[({])"), _typename),
    (re.compile(rb"decltype(?<!\wdecltype)\s*+(?=\()"), _decltype),
    # `f(T x = {}, U = {1, 2})` in parameter lists
    (re.compile(rb"=\s*+\{"), _default_braces),
    (re.compile(rb"using(?<!\wusing)\s++(typename)\s"), _blank_groups),
    # `using A::x, B<T>::y;`
    (
        re.compile(
            rb"using(?<!\wusing)\s[\w\s:]++(?:<[\w\s]*+>[\w\s:]*+)?+(,[^;=(){}<>]*+(?:<[\w\s]*+>[\w\s:]*+)?+)(?=;)"
        ),
        _blank_groups,
    ),
    # `enum : int {`
    (re.compile(rb"enum(?<!\wenum)\s*+(:[\w\s:]++)(?=\{)"), _blank_groups),
    (re.compile(rb"(=\s*+delete)\s*+(?=;)"), _blank_groups),
    # `template class X<int>;`, an explicit instantiation
    (re.compile(rb"(template)(?<!\wtemplate)\s++(?=(?:class|struct)\s)"), _blank_groups),
    # `a.template f(x)`
    (re.compile(rb"(template)(?<=[.>:]template)\s++(?=\w++\s*+\()"), _blank_groups),
    # `operator()(x);`, a call
    (re.compile(rb"operator(\(\))\s*+(?=\()"), _call_operator),
    (re.compile(rb"typeid\s*+\(([\w\s]++)\)"), _typeid),
    # `T* = nullptr` in parameter lists
    (re.compile(rb"(=\s*+(?:nullptr|NULL|0))(?=\s*+[,)])"), _pointer_default),
    # `class T = void*`, `class F = int (*)(int)` in template parameter lists
    (re.compile(rb"=\s*+(?:const\s++)?+[\w:]++\s*+(\*++)(?=\s*+[,>])"), _blank_groups),
    (re.compile(rb"=\s*+[\w:]++\s*+(\(\s*+\*\s*+\)\s*+\([^()]*+\))(?=\s*+[,>])"), _blank_groups),
    # bit-fields without a name
    (re.compile(rb"(,\s*+:\s*+\w++)(?=\s*+[,;])"), _blank_groups),
    (re.compile(rb"(:\s*+\d++\s*+,?+)(?=[\s\w;])"), _bit_field),
    # `X<1> (&name) = f();`
    (re.compile(rb">\s++(\()&\s*+\w++(\))\s*+=(?!=)"), _blank_groups),
    # `(unsigned(x) << 3)`
    (re.compile(rb"unsigned(?<!\wunsigned)\s*+(?=\((?!\s*+[*&]))"), _unsigned),
)
