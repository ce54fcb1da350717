# SPDX-License-Identifier: Apache-2.0
"""A masked copy in the making, and what rules ask about the text around a place in it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from autostamp.passes.cuda.views import Directive, blank

Span = tuple[int, int]
# What a statement can follow: the words that `Draft.before` gives.
STATEMENT_START = frozenset({b"", b";", b"{", b"}", b")", b":", b"else", b"do"})
_IDENTIFIER = re.compile(rb"[A-Za-z_]\w*+")
_LAST_WORD = re.compile(rb"(?:(?<!\w)\w++|[^\w])\Z")
_AFTER = re.compile(rb"\s*+(\S?)")


@dataclass(slots=True)
class Draft:
    """A masked copy in the making.

    `search` is the view that rules look at: no comments, literals or preprocessor lines, nor anything blanked so far.
    `blanked` are spans of qualifiers and attributes, `erased` those of macro calls and branches that the tree lacks.
    """

    masked: bytearray
    search: bytearray
    blanked: list[Span] = field(default_factory=list)
    erased: list[Span] = field(default_factory=list)

    def blank(self, start: int, end: int) -> None:
        """Turn a span into spaces, line ends excepted."""
        spaces = blank(bytes(self.search[start:end]))
        self.masked[start:end] = spaces
        self.search[start:end] = spaces

    def write(self, start: int, text: bytes) -> None:
        """Replace the bytes from `start` on."""
        self.masked[start : start + len(text)] = text
        self.search[start : start + len(text)] = text

    def after(self, position: int) -> tuple[int, bytes]:
        """Offset and byte of the next character that is no white space; at the end, its offset and `b""`."""
        match = _AFTER.match(self.search, position)
        return (position, b"") if match is None else (match.start(1), match[1])

    def before(self, position: int) -> bytes:
        """The text before `position`, as far as it matters: the last word or character, or `b""` at the start."""
        window = bytes(self.search[max(0, position - 4096) : position]).rstrip()
        word = _LAST_WORD.search(window, max(0, len(window) - 64))
        return b"" if word is None else word[0]

    def words(self) -> frozenset[str]:
        """All names in `search`."""
        return frozenset(word.decode() for word in set(_IDENTIFIER.findall(self.search)))

    def blank_lines(self, lines: Iterable[Directive]) -> None:
        """Turn preprocessor lines into spaces."""
        for line in lines:
            self.blank(line.start, line.end)

    def copy(self) -> Draft:
        """An independent copy."""
        return Draft(bytearray(self.masked), bytearray(self.search), list(self.blanked), list(self.erased))


@lru_cache(maxsize=256)
def pattern_of(names: frozenset[str]) -> re.Pattern[bytes]:
    """What finds any of the names as a word that is no member."""
    return re.compile(rb"(?<![\w.])(?<!->)(?:" + "|".join(sorted(names)).encode() + rb")(?!\w)")
