# SPDX-License-Identifier: Apache-2.0
"""Where a statement can be put before or after another without moving a line.

Simple statements take it on their own line, joined by `;`. Before or after a compound statement it goes to a simple
neighbour's line or to a blank line; only when there is neither does it get a line of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from autostamp.model.edit import Edit
from autostamp.passes.cutedsl.spans import Spans

_LEAVES = (cst.Return, cst.Raise, cst.Break, cst.Continue)

Statement = cst.BaseStatement | cst.BaseSmallStatement

# Order of insertions that meet at one offset. At the end of a line: the stamp after the call, the end of inner branches, what
# belongs before the following compound statement, the kernel's release. At the start of a line the mirror image.
RANK_AFTER_COMPOUND, RANK_ROLE_END_AT_START, RANK_BIND, RANK_ROLE, RANK_STAMP = -3000, -2000, -30, -20, 0
RANK_ROLE_END, RANK_BEFORE_COMPOUND, RANK_RELEASE, RANK_OWN_LINE_BEFORE = 1000, 2000, 3000, 4000


@dataclass(frozen=True, slots=True)
class Text:
    """The source and its line structure."""

    data: bytes
    newline: str

    def line_start(self, offset: int) -> int:
        """Offset of the first byte of the line that holds `offset`."""
        return self.data.rfind(b"\n", 0, offset) + 1

    def line_end(self, offset: int) -> int:
        """Offset of the newline that ends the line of `offset`, or the end of the text."""
        found = self.data.find(b"\n", offset)
        return len(self.data) if found < 0 else found

    def indent(self, offset: int) -> str:
        """Leading blanks of the line that holds `offset`."""
        start = self.line_start(offset)
        line = self.data[start:offset]
        return line[: len(line) - len(line.lstrip(b" \t\f"))].decode()


@dataclass(frozen=True, slots=True)
class Block:
    """Statements of one suite. `floor` is the end of what comes before it (the header), `is_suite` a one-line suite."""

    statements: Sequence[Statement]
    floor: int


class Places:
    """Turns 'before statement i of this block' into an edit."""

    def __init__(self, text: Text, spans: Spans) -> None:
        self._text = text
        self._spans = spans
        self._taken: dict[int, tuple[str, int]] = {}

    def _blank(self, line: int, indent: str, text: str, rank: int) -> Edit | None:
        """Use the blank line at `line`, or add to it when it already holds a statement of the same indentation.

        Places are asked for in the order of execution, so what comes later goes behind, whatever its own rank.
        """
        known_indent, known_rank = self._taken.get(line, (indent, None))
        if known_indent != indent:
            return None
        if known_rank is not None:
            rank = known_rank + 1
        self._taken[line] = (indent, rank)
        return Edit(line, line, f"{indent}{text}" if known_rank is None else f"; {text}", rank)

    def start(self, statement: Statement) -> int:
        """Offset of the statement's first byte, decorators included."""
        if isinstance(statement, cst.SimpleStatementLine):
            return self._spans.of(statement.body[0])[0]
        if isinstance(statement, (cst.FunctionDef, cst.ClassDef)) and statement.decorators:
            return self._spans.of(statement.decorators[0])[0]
        return self._spans.of(statement)[0]

    def last_simple(self, statement: cst.CSTNode) -> cst.BaseSmallStatement:
        """The small statement that ends last in `statement`."""
        node: cst.CSTNode = statement
        while not isinstance(node, cst.BaseSmallStatement):
            if isinstance(node, (cst.SimpleStatementLine, cst.SimpleStatementSuite, cst.IndentedBlock)):
                node = node.body[-1]
            elif isinstance(node, cst.If) and node.orelse is not None:
                node = node.orelse
            elif isinstance(node, (cst.Try, cst.TryStar)):
                node = node.finalbody or node.orelse or (node.handlers[-1] if node.handlers else node.body)
            elif isinstance(node, (cst.For, cst.While)) and node.orelse is not None:
                node = node.orelse
            elif isinstance(node, cst.Match):
                node = node.cases[-1]
            else:
                node = node.body  # type: ignore[attr-defined]
        return node

    def before(self, block: Block, index: int, text: str, rank: int) -> Edit:
        """An edit that runs `text` before statement `index` of `block`."""
        statement = block.statements[index]
        start = self.start(statement)
        if isinstance(statement, (cst.SimpleStatementLine, cst.BaseSmallStatement)):
            return Edit(start, start, f"{text}; ", rank)
        previous = block.statements[index - 1] if index else None
        if isinstance(previous, cst.SimpleStatementLine):
            end = self._spans.of(previous.body[-1])[1]
            return Edit(end, end, f"; {text}", RANK_BEFORE_COMPOUND)
        floor = self._spans.of(self.last_simple(previous))[1] if previous is not None else block.floor
        indent = self._text.indent(start)
        line = self._text.line_start(start)
        while line > self._text.line_end(floor):
            above = self._text.line_start(line - 1)
            if above <= floor:
                break
            if not self._text.data[above : line - 1].strip():
                edit = self._blank(above, indent, text, rank)
                if edit is not None:
                    return edit
                break  # what stands there must run first
            line = above
        start = self._text.line_start(start)
        return Edit(start, start, f"{indent}{text}{self._text.newline}", RANK_OWN_LINE_BEFORE + rank)

    def after(self, block: Block, index: int, text: str, rank: int) -> Edit:
        """An edit that runs `text` after statement `index` of `block`, or before it when the statement leaves the block."""
        statement = block.statements[index]
        if isinstance(statement, (cst.SimpleStatementLine, cst.BaseSmallStatement)):
            last = statement.body[-1] if isinstance(statement, cst.SimpleStatementLine) else statement
            start, end = self._spans.of(last)
            if isinstance(last, _LEAVES):
                return Edit(start, start, f"{text}; ", rank)
            return Edit(end, end, f"; {text}", rank)
        following = block.statements[index + 1] if index + 1 < len(block.statements) else None
        if isinstance(following, cst.SimpleStatementLine):
            start = self.start(following)
            return Edit(start, start, f"{text}; ", RANK_AFTER_COMPOUND + rank // 10)
        indent = self._text.indent(self.start(statement))
        end = self._text.line_end(self._spans.of(self.last_simple(statement))[1])
        line = end + 1
        while line < len(self._text.data):
            line_end = self._text.line_end(line)
            content = self._text.data[line:line_end].strip()
            if not content:
                edit = self._blank(line, indent, text, rank)
                if edit is not None:
                    return edit
                end = line_end
            elif not content.startswith(b"#"):
                break
            line = line_end + 1
        if end >= len(self._text.data):
            return Edit(end, end, f"{self._text.newline}{indent}{text}", rank)
        return Edit(end + 1, end + 1, f"{indent}{text}{self._text.newline}", rank)
