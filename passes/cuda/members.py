# SPDX-License-Identifier: Apache-2.0
"""The data members of a C++ struct as C declarations: methods, nested names and initialisers taken out, as they take no room."""

from __future__ import annotations

import re
from typing import Final

from autostamp.passes.cuda.declarations import close_of, split, without_attributes

_STOP: Final = re.compile(r"[({;]")
_LABEL: Final = re.compile(r"\s*(?P<word>public|private|protected)\s*:(?!:)")
_NESTED: Final = re.compile(r"\s*(?P<word>struct|class|union|enum)\b[^;(){}]*")
_NO_ROOM: Final = re.compile(r"\s*(?:static|using|typedef|friend|template|static_assert|enum|constexpr)\b")
_QUALIFIER: Final = re.compile(r"\b(?:mutable|__device__|__host__|inline)\b")
_POINTER_TO_FUNCTION: Final = re.compile(r"\(\s*\*")


class UnclearError(Exception):
    """Something that cannot be read or laid out: a code of `diagnostics.codes` and its details, not yet with a position."""

    def __init__(self, code: str, **details: object) -> None:
        super().__init__(code)
        self.code = code
        self.details = details


def data_members(struct: str, body: str, *, is_class: bool = False) -> list[str]:
    """Each data member's declaration, without its semicolon. `body` is what stands between the braces of `struct`.

    Raises UnclearError (AS1025) for what decides the layout and is not modelled: virtual functions, unions, bit-fields, and
    members that are not public.
    """
    found: list[str] = []
    is_public = not is_class
    for statement in _statements(body):
        rest = statement
        while label := _LABEL.match(rest):
            is_public, rest = label["word"] == "public", rest[label.end() :]
        rest = _QUALIFIER.sub(" ", rest).strip()
        if re.match(r"virtual\b", rest):
            raise UnclearError("AS1025", struct=struct, detail="it has virtual functions")
        member = _member(struct, rest)
        if member and not is_public:
            raise UnclearError("AS1025", struct=struct, detail=f"its member {member!r} is not public")
        if member:
            found.append(member)
    return found


def _statements(body: str) -> list[str]:
    """Member declarations and definitions, each without the semicolon at its end."""
    found: list[str] = []
    begin = at = 0
    while match := _STOP.search(body, at):
        here = match.start()
        if match[0] == ";":
            found.append(body[begin:here])
            begin = at = here + 1
            continue
        at = close_of(body, here) + 1
        head = without_attributes(body[begin:here])
        is_function = match[0] == "{" and "(" in head and not head.rstrip().endswith("=")
        if is_function:
            found.append(body[begin:at])
            begin = at
    return [*found, body[begin:]]


def _member(struct: str, text: str) -> str:
    """One statement as C, empty for what takes no room."""
    if nested := _NESTED.match(text):
        opened = nested.end()
        if text[opened : opened + 1] == "{" and nested["word"] != "enum":
            return _nested(struct, nested["word"], text, opened)
        if nested["word"] == "union":
            raise UnclearError("AS1025", struct=struct, detail="it holds a union")
        if re.fullmatch(r"\s*\w+\s*(?:final\b\s*)?\w*\s*", text):
            return ""  # `struct Other;`
    if not text or _NO_ROOM.match(text) or re.fullmatch(r"\{.*\}", text, re.DOTALL):
        return ""
    bare = re.sub(r"\[[^\]]*\]", "", without_attributes(text))
    if "(" in bare and not _POINTER_TO_FUNCTION.search(bare):
        return ""  # a method
    return ",".join(_declarator(struct, part) for _, part in split(text))


def _nested(struct: str, word: str, text: str, opened: int) -> str:
    """A struct defined inside: its own members, then what is declared with it."""
    closed = close_of(text, opened)
    declared = text[closed + 1 :].strip()
    if word == "union":
        raise UnclearError("AS1025", struct=struct, detail="it holds a union")
    if not declared:
        if re.fullmatch(r"\s*(?:struct|class)\s*", text[:opened]):
            raise UnclearError("AS1025", struct=struct, detail="it holds a struct without a name")
        return ""  # only a name, which is looked up where it is used
    inner = data_members(struct, text[opened + 1 : closed], is_class=word == "class")
    declarators = ",".join(_declarator(struct, part) for _, part in split(declared))
    return f"struct {{ {'; '.join(inner)}; }} {declarators}"


def _declarator(struct: str, text: str) -> str:
    """A declarator without its initialiser."""
    for at, character in enumerate(text):
        if character in "={":
            text = text[:at]
            break
    if re.search(r"(?<!:):(?!:)", text):
        raise UnclearError("AS1025", struct=struct, detail=f"{text.strip()!r} is a bit-field")
    return text.strip()
