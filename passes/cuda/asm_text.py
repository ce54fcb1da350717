# SPDX-License-Identifier: Apache-2.0
"""The parts of an inline asm expression, read from its text: templates glued with macros are beyond the grammar."""

from __future__ import annotations

import re

# Stands in the joined text for a macro that is spliced between literals.
GAP = "\N{OBJECT REPLACEMENT CHARACTER}"

_LITERAL = re.compile(
    rb'R"(?P<delimiter>[^\s()\\"]{0,16}+)\((?P<raw>(?s:.*?))\)(?P=delimiter)"|"(?P<plain>(?:[^"\\]|\\.)*+)"', re.DOTALL
)
_ESCAPE = re.compile(rb"\\(\r?\n|.)", re.DOTALL)
_ESCAPES = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"\n": b"", b"\r\n": b""}
# Conditionals between two literals: all branches are joined.
_DIRECTIVE = re.compile(rb"^[ \t]*#[^\n]*", re.MULTILINE)
_MARK = re.compile(rb"[()\[\]{}:,]")
_OPENING = (b"(", b"[", b"{")
_CLOSING = (b")", b"]", b"}")
_OPERAND = re.compile(rb'\s*+(?:\[\s*(\w+)\s*\]\s*)?+"', re.DOTALL)


def asm_parts(text: bytes, code: bytes) -> tuple[str, tuple[str, ...], int, tuple[str, ...]]:
    """Joined template, operand expressions, number of outputs, and symbolic names of an asm expression.

    `text` is the expression without comments, `code` the same without literals, of equal length.
    """
    opening = code.find(b"(")
    if opening < 0:
        return "", (), 0, ()
    sections = _split(code, opening + 1, b":")
    template = _template(text[slice(*sections[0])])
    operands: list[str] = []
    names: list[str] = []
    outputs = 0
    for number, section in enumerate(sections[1:3]):
        for start, end in _split(code, section[0], b",", section[1]):
            name, expression = _operand(text[start:end], code[start:end])
            if expression:
                operands.append(expression)
                names.append(name)
        if number == 0:
            outputs = len(operands)
    return template, tuple(operands), outputs, tuple(names)


def _split(code: bytes, start: int, separator: bytes, end: int = -1) -> list[tuple[int, int]]:
    """Spans between separators at bracket depth 0, from `start` to `end` or to the bracket that closes. `::` is two colons.

    A colon pair counts as two separators (`asm("" :: "r"(x))`) because in an asm expression a scope operator can only
    stand inside the parentheses of an operand.
    """
    spans = []
    depth = 0
    stop = len(code) if end < 0 else end
    first = start
    for match in _MARK.finditer(code, start, stop):
        byte = match[0]
        if byte in _OPENING:
            depth += 1
        elif byte in _CLOSING:
            depth -= 1
            if depth < 0:
                stop = match.start()
                break
        elif byte == separator and depth == 0:
            spans.append((first, match.start()))
            first = match.end()
    spans.append((first, stop))
    return spans


def _template(text: bytes) -> str:
    parts: list[bytes] = []
    position = 0
    for match in _LITERAL.finditer(text):
        if _DIRECTIVE.sub(b"", text[position : match.start()]).strip():
            parts.append(GAP.encode())
        raw = match["raw"]
        parts.append(raw if raw is not None else _ESCAPE.sub(_unescape, match["plain"]))
        position = match.end()
    if _DIRECTIVE.sub(b"", text[position:]).strip():
        parts.append(GAP.encode())
    return b"".join(parts).decode("utf-8", "replace")


def _unescape(match: re.Match[bytes]) -> bytes:
    return _ESCAPES.get(match[1], match[1])


def _operand(text: bytes, code: bytes) -> tuple[str, str]:
    head = _OPERAND.match(text)
    opening = code.find(b"(", head.end() if head else 0)
    closing = code.rfind(b")")
    if opening < 0 or closing < opening:
        return "", ""
    name = "" if head is None or head[1] is None else head[1].decode("ascii")
    return name, " ".join(text[opening + 1 : closing].decode("utf-8", "surrogateescape").split())
