# SPDX-License-Identifier: Apache-2.0
"""What can be known of a file's preprocessor directives without a preprocessor: plain macros, dead branches, includes.

Everything here keeps offsets: what is taken out is replaced by as many spaces, and line ends stay.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

_OPAQUE: Final = re.compile(
    r"""
      //(?:\\\r?\n|[^\n])*                                          # comment to the end of the line
    | /\*.*?(?:\*/|\Z)                                              # comment
    | (?<!\w)(?:u8|[uUL])?R"(?P<mark>[^()\\\s]*)\(.*?\)(?P=mark)"   # raw string
    | (?<!\w)(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"                       # string
    | (?<!\w)(?:u8|[uUL])?'(?:\\.|[^'\\\n])+'                       # character
    | (?<!\w)\d(?:'?[\w.])*                                         # number: its ' is no quote
    """,
    re.DOTALL | re.VERBOSE,
)
_DIRECTIVE: Final = re.compile(r"^[ \t]*#[ \t]*(?P<word>\w*)(?P<rest>(?:\\\r?\n|[^\n])*)", re.MULTILINE)
_DEFINE: Final = re.compile(r"\s*(?P<name>\w+)(?P<call>\([^)]*\))?(?P<body>.*)", re.DOTALL)
_DEFINED: Final = re.compile(r"\s*(?P<no>!)?\s*defined\s*\(?\s*(?P<name>\w+)\s*\)?\s*")
_INCLUDE: Final = re.compile(r"""\s*(?:"(?P<quoted>[^"\n]+)"|<(?P<angled>[^>\n]+)>)""")
_LINKAGE: Final = ('"C"', '"C++"')
_NVCC_DEFINES: Final = frozenset({"__CUDACC__", "__NVCC__", "__cplusplus"})


@dataclass(frozen=True, slots=True)
class Include:
    """One #include: the name as written, and whether in quotes (looked for beside the file first)."""

    name: str
    is_quoted: bool


@dataclass(slots=True)
class Plain:
    """A text without comments, string contents, directives and branches known to be dead; offsets as in the original.

    `macros` holds macros without parameters, with what they stand for; None where the file defines one in several ways.
    """

    text: str
    macros: dict[str, str | None] = field(default_factory=dict)
    includes: list[Include] = field(default_factory=list)


def spaces(text: str) -> str:
    """As many spaces, with the line ends of `text`."""
    return re.sub(r"[^\r\n]", " ", text)


def plain(original: str, defines: Mapping[str, str], macros: Mapping[str, str | None] | None = None) -> Plain:
    """Take out what is not C++ code. `defines` are the macros of the command line, `macros` those of files included before."""
    found = Plain(_without_opaque(original), {**(macros or {}), **defines})
    pieces: list[str] = []
    branches: list[_Branch] = []
    at = 0
    for match in _DIRECTIVE.finditer(found.text):
        code = found.text[at : match.start()]
        is_dead = any(branch.is_dead for branch in branches)
        pieces += [spaces(code) if is_dead else code, spaces(match[0])]
        at = match.end()
        _follow(match["word"], match["rest"], branches, found, defines)
        if match["word"] == "include" and not is_dead and (name := _INCLUDE.match(original, match.start("rest"))):
            found.includes.append(Include(name["quoted"] or name["angled"], name["quoted"] is not None))
    found.text = "".join([*pieces, found.text[at:]])
    return found


def expand(text: str, macros: Mapping[str, str | None]) -> str:
    """Replace plain macros by what they stand for, again and again, but none inside its own replacement."""

    def replace(text: str, banned: frozenset[str]) -> str:
        def one(match: re.Match[str]) -> str:
            value = None if match[0] in banned else macros.get(match[0])
            return match[0] if value is None else replace(value, banned | {match[0]})

        return re.sub(r"[A-Za-z_]\w*", one, text)

    return replace(text, frozenset())


@dataclass(slots=True)
class _Branch:
    """One #if that is open. `is_taken`: a branch of it is known to be compiled, so the ones that follow are dead."""

    is_dead: bool
    is_taken: bool


def _without_opaque(text: str) -> str:
    def one(match: re.Match[str]) -> str:
        found = match[0]
        if found[0].isdigit() or found in _LINKAGE:
            return found
        if found[0] == "/":
            return spaces(found)
        quote = found[-1]
        opened = found.index(quote)
        return found[: opened + 1] + spaces(found[opened + 1 : -1]) + quote

    return _OPAQUE.sub(one, text)


def _follow(word: str, rest: str, branches: list[_Branch], found: Plain, defines: Mapping[str, str]) -> None:
    """Keep track of one directive."""
    rest = rest.replace("\\\r\n", " ").replace("\\\n", " ")
    if word in ("if", "ifdef", "ifndef"):
        truth = _truth(word, rest, found.macros)
        branches.append(_Branch(truth is False, truth is True))
    elif word in ("else", "elif") and branches:
        truth = True if word == "else" else _truth("if", rest, found.macros)
        top = branches[-1]
        branches[-1] = _Branch(top.is_taken or truth is False, top.is_taken or truth is True)
    elif word == "endif" and branches:
        branches.pop()
    elif word in ("define", "undef") and not any(branch.is_dead for branch in branches):
        _define(word, rest, found.macros, defines)


def _define(word: str, rest: str, macros: dict[str, str | None], defines: Mapping[str, str]) -> None:
    match = _DEFINE.match(rest)
    if match is None or match["name"] in defines:
        return
    name = match["name"]
    if word == "undef":
        macros.pop(name, None)
    elif match["call"] is None:
        body = match["body"].strip()
        macros[name] = body if macros.get(name, body) == body else None


def _truth(word: str, condition: str, macros: Mapping[str, str | None]) -> bool | None:
    """Whether a condition holds; None where that depends on what is not known here."""
    match = _DEFINED.fullmatch(f"defined {condition}" if word != "if" else condition)
    if match is None:
        number = re.fullmatch(r"\s*(\d+)\s*", expand(condition, macros))
        return bool(int(number[1])) if number else None
    if match["name"] not in macros and match["name"] not in _NVCC_DEFINES:
        return None  # it may come from a header
    return word != "ifndef" and not match["no"]
