# SPDX-License-Identifier: Apache-2.0
"""What stands before a statement, whichever branches of preprocessor conditionals are compiled.

The tree is of one reading of the conditionals. `if (x)` may stand in one branch and the statement after the `#endif`; then text
put before that statement would become the body of the `if`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

from autostamp.passes.cuda.source import Source
from autostamp.passes.cuda.views import blank

_DIRECTIVE = re.compile(rb"[ \t]*+\#[ \t]*+(\w*+)")
_OPENS = frozenset({b"if", b"ifdef", b"ifndef"})
_BRANCHES = frozenset({b"else", b"elif", b"elifdef", b"elifndef"})
_ENDS = frozenset(b";{}:")
_BRACES = frozenset(b";{}:)]")
_LAST_WORD = re.compile(rb"[A-Za-z_]\w*\Z")
_OPERATORS = frozenset({b"return", b"co_return", b"throw", b"new", b"delete", b"case", b"goto", b"and", b"or", b"not"})


@dataclass(frozen=True)
class Neighbours:
    """Looks around places of one source."""

    source: Source

    @cached_property
    def _text(self) -> bytes:
        """The source without comments, literals, qualifiers and attributes. Unlike `masked` it still has unknown macros."""
        text = bytearray(self.source.code)
        for start, end, _ in self.source.blanked:
            text[start:end] = blank(self.source.code[start:end])
        return bytes(text)

    @cached_property
    def _lines(self) -> list[bytes]:
        return self._text.split(b"\n")

    @cached_property
    def _starts(self) -> list[int]:
        starts, position = [], 0
        for line in self._lines:
            starts.append(position)
            position += len(line) + 1
        return starts

    @cached_property
    def _keywords(self) -> list[bytes | None]:
        """Of each line the keyword of the directive that begins there, b"" if it continues one, else None."""
        found: list[bytes | None] = []
        is_continued = False
        for line in self.source.code.split(b"\n"):
            match = _DIRECTIVE.match(line)
            is_part = is_continued and bool(found) and found[-1] is not None
            found.append(b"" if is_part else None if match is None else match[1])
            is_continued = line.rstrip(b"\r").endswith(b"\\")
        return found

    def line_of(self, position: int) -> int:
        """The line that holds a byte, from 0."""
        return bisect_right(self._starts, position) - 1

    def column_of(self, position: int) -> int:
        """Bytes before this one on its line."""
        return position - self._starts[self.line_of(position)]

    def ends_before(self, position: int) -> set[int]:
        """Where the tokens that may precede a byte end, one for each way through the conditionals; -1 for none."""
        line = self.line_of(position)
        return self._before(line, position - self._starts[line])

    def follows_statement(self, position: int) -> bool:
        """True when text put before a byte stands among the statements of a list, whatever is compiled."""
        ends = self.ends_before(position)
        return bool(ends) and all(end > 0 and self._text[end - 1] in _ENDS for end in ends)

    def may_take_braces(self, position: int) -> bool:
        """True when braces may open before a byte: after a statement, a header, `else`, an attribute, or an unknown macro."""
        for end in self.ends_before(position):
            before = self._text[max(0, end - 80) : end]
            word = _LAST_WORD.search(before)
            if end <= 0 or (before[-1] not in _BRACES and (word is None or word[0] in _OPERATORS)):
                return False
        return True

    def start_with_pragmas(self, position: int) -> int:
        """Where a statement begins with the pragmas before it, which only hold for what follows at once; -1 if unclear."""
        ends = self.ends_before(position)
        end = next(iter(ends))
        if len(ends) != 1 or end < 0 or not self.source.code[end:position].strip():
            return position
        first, last = self.line_of(end), self.line_of(position)
        keywords = {keyword for keyword in self._keywords[first + 1 : last] if keyword is not None}
        is_apart = self._text[end - 1] in b";{}:)"
        return end if keywords <= {b"pragma", b""} and is_apart else -1

    def _before(self, line: int, column: int) -> set[int]:
        while line >= 0:
            keyword = self._keywords[line]
            if keyword is None:
                text = self._lines[line][:column].rstrip()
                if text:
                    return {self._starts[line] + len(text)}
            elif keyword in _BRANCHES:
                line = self._opening(line)
            elif keyword == b"endif":
                return self._before_group(line)
            line -= 1
            column = len(self._lines[line]) if line >= 0 else 0
        return {-1}

    def _opening(self, line: int) -> int:
        """The line of the `#if` of the group that a branch or its end is in."""
        depth = 0
        while line > 0:
            line -= 1
            keyword = self._keywords[line]
            if keyword == b"endif":
                depth += 1
            elif keyword in _OPENS:
                if depth == 0:
                    return line
                depth -= 1
        return 0

    def _before_group(self, end: int) -> set[int]:
        """What may precede the `#endif` on line `end`: the last token of each branch, or of what is before the group."""
        found: set[int] = set()
        opening = self._opening(end)
        has_else = False
        depth = 0
        stop = end
        for line in range(end - 1, opening - 1, -1):
            keyword = self._keywords[line]
            if keyword == b"endif":
                depth += 1
            elif depth and keyword in _OPENS:
                depth -= 1
            elif not depth and (keyword in _BRANCHES or line == opening):
                has_else = has_else or keyword == b"else"
                found |= self._before(stop - 1, len(self._lines[stop - 1]))
                stop = line
        if not has_else:
            found |= self._before(opening - 1, len(self._lines[opening - 1])) if opening else {-1}
        return found
