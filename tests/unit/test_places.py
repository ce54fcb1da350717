# SPDX-License-Identifier: Apache-2.0
"""Where a statement goes when it must run before or after another: each case shows the text that results."""

from __future__ import annotations

import libcst as cst
import pytest

from autostamp.passes.cutedsl.places import Block, Places, Text
from autostamp.passes.cutedsl.spans import Spans
from autostamp.passes.edits import apply


def place(source: str, index: int, *, is_before: bool, rank: int = 0, times: int = 1) -> str:
    """The source with `S()` put before or after statement `index` of the module."""
    data = source.encode()
    module = cst.parse_module(data)
    places = Places(Text(data, module.default_newline), Spans(module))
    block = Block(module.body, 0)
    put = places.before if is_before else places.after
    edits = [put(block, index, f"S{number or ''}()", rank) for number in range(times)]
    return (
        apply(data, edits).decode().split("# autostamp: stamped")[0].removesuffix("" if source.endswith("\n") else "\n")
    )


BEFORE = [
    ("simple", "a\nb\n", 1, "a\nS(); b\n"),
    ("simple, first", "a\n", 0, "S(); a\n"),
    ("simple, of several on the line", "a\nb; c\n", 1, "a\nS(); b; c\n"),
    ("simple after a comment", "a\n# c\nb\n", 1, "a\n# c\nS(); b\n"),
    ("compound after a simple one", "a\nif b: c\n", 1, "a; S()\nif b: c\n"),
    ("compound after a simple one with comment", "a  # c\n\nif b: c\n", 1, "a; S()  # c\n\nif b: c\n"),
    ("compound after several on a line", "a; b;\nif b: c\n", 1, "a; b; S();\nif b: c\n"),
    ("compound after a call of several lines", "a(\n)  # c\nif b: c\n", 1, "a(\n); S()  # c\nif b: c\n"),
    ("compound after a compound", "if a: b\nif b: c\n", 1, "if a: b\nS()\nif b: c\n"),
    ("compound after a compound and a blank line", "if a: b\n\nif b: c\n", 1, "if a: b\nS()\nif b: c\n"),
    ("the nearest of several blank lines", "if a: b\n\n\nif b: c\n", 1, "if a: b\n\nS()\nif b: c\n"),
    ("blank line above a comment", "if a: b\n\n# c\nif b: c\n", 1, "if a: b\nS()\n# c\nif b: c\n"),
    ("blank line below a comment", "if a: b\n# c\n\nif b: c\n", 1, "if a: b\n# c\nS()\nif b: c\n"),
    (
        "a blank line inside the one before is not used",
        "if a:\n\n    b\nif b: c\n",
        1,
        "if a:\n\n    b\nS()\nif b: c\n",
    ),
    ("compound first", "if b: c\n", 0, "S()\nif b: c\n"),
    ("compound first, after a comment", "# c\n\nif b: c\n", 0, "# c\nS()\nif b: c\n"),
    ("decorated function", "if a: b\n@d\ndef f(): pass\n", 1, "if a: b\nS()\n@d\ndef f(): pass\n"),
    ("loop", "if a: b\nwhile x: pass\n", 1, "if a: b\nS()\nwhile x: pass\n"),
    ("carriage returns", "if a: b\r\nif b: c\r\n", 1, "if a: b\r\nS()\r\nif b: c\r\n"),
    ("carriage returns and a blank line", "if a: b\r\n\r\nif b: c\r\n", 1, "if a: b\r\nS()\r\nif b: c\r\n"),
]

AFTER = [
    ("simple", "a\nb\n", 0, "a; S()\nb\n"),
    ("simple with comment", "a  # c\n", 0, "a; S()  # c\n"),
    ("simple at the end without newline", "a", 0, "a; S()"),
    ("simple with semicolon", "a;\n", 0, "a; S();\n"),
    ("one that leaves", "raise a\n", 0, "S(); raise a\n"),
    ("compound before a simple one", "if a: b\nc\n", 0, "if a: b\nS(); c\n"),
    ("compound before a simple one further down", "if a: b\n\n# c\nc\n", 0, "if a: b\n\n# c\nS(); c\n"),
    ("compound before a compound", "if a: b\nif c: d\n", 0, "if a: b\nS()\nif c: d\n"),
    ("compound before a compound and a blank line", "if a: b\n\nif c: d\n", 0, "if a: b\nS()\nif c: d\n"),
    ("compound at the end", "if a:\n    b\n", 0, "if a:\n    b\nS()\n"),
    ("compound at the end without newline", "if a:\n    b", 0, "if a:\n    b\nS()"),
    ("compound at the end, blank line", "if a:\n    b\n\n", 0, "if a:\n    b\nS()\n"),
    ("compound at the end, comment", "if a:\n    b  # c\n    # d\n# e\n", 0, "if a:\n    b  # c\nS()\n    # d\n# e\n"),
    ("else", "if a: b\nelif c: d\nelse:\n    e\n", 0, "if a: b\nelif c: d\nelse:\n    e\nS()\n"),
    ("try", "try: a\nexcept b: c\nelse: d\nfinally: e\n", 0, "try: a\nexcept b: c\nelse: d\nfinally: e\nS()\n"),
    ("handlers", "try: a\nexcept b: c\nexcept d: e\n", 0, "try: a\nexcept b: c\nexcept d: e\nS()\n"),
    ("loop with else", "for a in b: c\nelse: d\n", 0, "for a in b: c\nelse: d\nS()\n"),
    ("with", "with a:\n    b(\n    )\n", 0, "with a:\n    b(\n    )\nS()\n"),
    (
        "match",
        "match a:\n    case 1: b\n    case _:\n        c\n",
        0,
        "match a:\n    case 1: b\n    case _:\n        c\nS()\n",
    ),
    ("function", "@d\ndef f():\n    return\n\nx = 1\n", 0, "@d\ndef f():\n    return\n\nS(); x = 1\n"),
    ("text of several lines", "if a:\n    b = '''\n\n'''\n", 0, "if a:\n    b = '''\n\n'''\nS()\n"),
    ("carriage returns", "if a: b\r\n", 0, "if a: b\r\nS()\r\n"),
]


@pytest.mark.parametrize(
    ("source", "index", "expected"), [case[1:] for case in BEFORE], ids=[case[0] for case in BEFORE]
)
def test_before(source: str, index: int, expected: str) -> None:
    assert place(source, index, is_before=True) == expected


@pytest.mark.parametrize(("source", "index", "expected"), [case[1:] for case in AFTER], ids=[case[0] for case in AFTER])
def test_after(source: str, index: int, expected: str) -> None:
    assert place(source, index, is_before=False) == expected


def test_statements_of_one_indentation_share_a_blank_line() -> None:
    assert place("if a: b\n\nif c: d\n", 0, is_before=False, times=2) == "if a: b\nS(); S1()\nif c: d\n"


def test_a_blank_line_is_shared_in_the_order_asked_for() -> None:
    assert place("if a: b\n\nif c: d\n", 1, is_before=True, times=2) == "if a: b\nS(); S1()\nif c: d\n"


def test_lines_of_a_text() -> None:
    text = Text(b"a\n\t b\r\n\n  c", "\n")
    assert (text.line_start(0), text.line_start(4), text.line_start(10)) == (0, 2, 8)
    assert (text.line_end(0), text.line_end(4), text.line_end(10)) == (1, 6, 11)
    assert (text.indent(0), text.indent(4), text.indent(10)) == ("", "\t ", "  ")
