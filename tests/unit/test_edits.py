# SPDX-License-Identifier: Apache-2.0
"""Insertions and their undoing: order, seal, lines, diff."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib

import pytest

from autostamp.diagnostics import AutostampError
from autostamp.model.edit import Edit
from autostamp.passes.edits import LineMap, apply, diff, is_stamped, ordered, strip

SOURCE = b"a = 1\nb = 2\n"


def seal_of(original: bytes, gaps: object, mark: str = "#") -> bytes:
    payload = base64.b64encode(zlib.compress(json.dumps(gaps).encode())).decode()
    return f"{mark} autostamp: stamped {hashlib.sha256(original).hexdigest()} {payload}\n".encode()


def code_of(stamped: bytes) -> str:
    with pytest.raises(AutostampError) as caught:
        strip(stamped, "dir/file.py")
    assert "dir/file.py" in caught.value.diagnostic.message
    return caught.value.diagnostic.code


def body(stamped: bytes) -> bytes:
    """The text before the seal."""
    return stamped[: stamped.rindex(b"# autostamp: stamped ")]


def test_edits_are_ordered_by_offset_then_rank_then_as_given() -> None:
    edits = [Edit(4, 4, "d"), Edit(0, 0, "c", 5), Edit(0, 0, "a", -5), Edit(0, 0, "b"), Edit(4, 4, "e")]
    assert "".join(edit.text for edit in ordered(edits)) == "abcde"


def test_apply_inserts_and_seals() -> None:
    stamped = apply(SOURCE, [Edit(12, 12, "c = 3\n"), Edit(0, 0, "x; "), Edit(5, 5, "; y")])
    assert body(stamped) == b"x; a = 1; y\nb = 2\nc = 3\n"
    assert stamped.endswith(b"\n")
    assert stamped.count(b"\n") == 4
    assert is_stamped(stamped)


def test_apply_without_edits_changes_nothing() -> None:
    assert apply(SOURCE, []) == SOURCE
    assert not is_stamped(SOURCE)


def test_only_insertions_are_applied() -> None:
    with pytest.raises(ValueError, match="only insertions"):
        apply(SOURCE, [Edit(0, 1, "x")])


@pytest.mark.parametrize(
    "original",
    [
        b"a = 1\nb = 2\n",
        b"a = 1\nb = 2",
        b"a = 1\r\nb = 2\r\n",
        b"a = 1\r\nb = 2",
        b"a = 1\rb = 2\r",
        b"a = 1\n\n\n",
        b"a = 1\r\n\r\n",
        b"\xef\xbb\xbfa = '\xc3\xa9'\n",
        b"\n",
        b"\r\n",
        b"x",
        b"",
        b"# autostamp: stamped by hand\n",
        b"a = 1\n# autostamp: stamped 00 AA==\n",
    ],
)
@pytest.mark.parametrize("at_end", [False, True])
def test_strip_is_the_inverse_of_apply(original: bytes, at_end: bool) -> None:
    where = len(original) if at_end else 0
    stamped = apply(original, [Edit(where, where, "é = '→'; ")])
    assert stamped != original
    assert strip(stamped, "file.py") == original


def test_seal_ends_with_the_newline_of_the_file() -> None:
    assert apply(b"a\r\nb", [Edit(0, 0, "x")]).endswith(b"\r\n")
    assert not apply(b"a\nb", [Edit(0, 0, "x")]).endswith(b"\r\n")


def test_another_comment_mark() -> None:
    stamped = apply(b"int a;\n", [Edit(0, 0, "x; ")], comment="//")
    assert stamped.startswith(b"x; int a;\n// autostamp: stamped ")
    assert strip(stamped, "a.cu") == b"int a;\n"


@pytest.mark.parametrize("text", [b"", SOURCE, b"# autostamp: stamped\n", b"x = '# autostamp: stamped 12 ab'\n"])
def test_strip_without_a_seal(text: bytes) -> None:
    assert not is_stamped(text)
    assert code_of(text) == "AS3005"


EDITED = {
    "text before a stamp": lambda text: b"# new\n" + text,
    "text between stamps": lambda text: text.replace(b"b = 2", b"b = 20"),
    "a stamp": lambda text: text.replace(b"x; ", b"xx; "),
    "a stamp taken out by hand": lambda text: text.replace(b"x; ", b""),
    "text after the seal": lambda text: text + b"c = 3\n",
    "blank line after the seal": lambda text: text + b"\n",
    "another kind of newline": lambda text: text.replace(b"\n", b"\r\n"),
    "seal with another payload": lambda text: text[:-6] + b"AAAA\n",
}


@pytest.mark.parametrize("name", EDITED)
def test_strip_of_a_file_edited_since(name: str) -> None:
    stamped = EDITED[name](apply(SOURCE, [Edit(0, 0, "x; "), Edit(5, 5, "; y")]))
    assert is_stamped(stamped)
    assert code_of(stamped) == "AS3002"


@pytest.mark.parametrize("gaps", [[1], [0, 1, 2], {}, {"a": 1}, 7, "ab", [None, None], [-4, 2], [0, 99], ["0", "2"]])
def test_strip_of_a_seal_that_says_nonsense(gaps: object) -> None:
    assert code_of(b"x; a\n" + seal_of(b"a\n", gaps)) == "AS3002"


def test_strip_of_a_seal_that_is_not_compressed() -> None:
    digest = hashlib.sha256(b"a\n").hexdigest()
    assert code_of(f"x; a\n# autostamp: stamped {digest} AAAA\n".encode()) == "AS3002"
    assert code_of(f"x; a\n# autostamp: stamped {digest} A\n".encode()) == "AS3002"


def test_lines_stay_where_no_edit_has_a_newline() -> None:
    lines = LineMap(SOURCE, [Edit(0, 0, "x; "), Edit(5, 5, "; y")])
    assert lines.is_identity
    assert [lines.to_original(line) for line in (1, 2)] == [1, 2]


def test_lines_after_lines_of_their_own() -> None:
    original = b"a\nb\nc\nd\n"
    edits = [Edit(2, 2, "x\n"), Edit(4, 4, "; s"), Edit(6, 6, "y\n", 1), Edit(6, 6, "z\n", 2)]
    assert body(apply(original, edits)) == b"a\nx\nb\n; sc\ny\nz\nd\n"
    lines = LineMap(original, edits)
    assert not lines.is_identity
    # x stands before b, y and z before d
    assert [lines.to_original(line) for line in range(1, 8)] == [1, 2, 2, 3, 4, 4, 4]


@pytest.mark.parametrize(
    ("original", "edit", "expected"),
    [
        (b"a\nb\n", Edit(0, 0, "x\n"), [1, 1, 2]),
        (b"a\nb\n", Edit(4, 4, "x\n"), [1, 2, 2]),
        (b"a\nb", Edit(3, 3, "\nx"), [1, 2, 2]),
        (b"a\r\nb\r\n", Edit(3, 3, "x\r\n"), [1, 2, 2]),
        (b"a\n\nb\n", Edit(2, 2, "x"), [1, 2, 3]),
    ],
)
def test_lines_at_the_ends(original: bytes, edit: Edit, expected: list[int]) -> None:
    lines = LineMap(original, [edit])
    assert [lines.to_original(line) for line in range(1, len(expected) + 1)] == expected


def test_every_line_maps_to_a_line_that_exists() -> None:
    original = b"a\nb"
    edits = [Edit(0, 0, "x\n"), Edit(3, 3, "\ny")]
    stamped = apply(original, edits)
    lines = LineMap(original, edits)
    for line in range(1, stamped.count(b"\n") + 1):
        assert 1 <= lines.to_original(line) <= 2


def test_diff_shows_the_edits_and_not_the_payload_of_the_seal() -> None:
    stamped = apply(SOURCE, [Edit(6, 6, "x; ")])
    digest = hashlib.sha256(SOURCE).hexdigest()
    assert diff(SOURCE, stamped, "dir/file.py") == (
        "--- a/dir/file.py\n"
        "+++ b/dir/file.py\n"
        "@@ -1,2 +1,3 @@\n"
        " a = 1\n"
        "-b = 2\n"
        "+x; b = 2\n"
        f"+# autostamp: stamped {digest}\n"
    )


def test_diff_of_a_file_without_a_last_newline() -> None:
    stamped = apply(b"a = 1\nb = 2", [Edit(6, 6, "x; ")])
    lines = diff(b"a = 1\nb = 2", stamped, "file.py").splitlines()
    assert lines[3:] == [
        " a = 1",
        "-b = 2",
        "\\ No newline at end of file",
        "+x; b = 2",
        f"+# autostamp: stamped {hashlib.sha256(b'a = 1' + bytes([10]) + b'b = 2').hexdigest()}",
    ]


def test_diff_counts_lines_as_python_does() -> None:
    """A form feed or a line separator within a line does not end it."""
    original = "a = '\u2028'\n\x0c\nb = 2\n".encode()
    stamped = apply(original, [Edit(len(original) - 6, len(original) - 6, "x; ")])
    assert "@@ -1,3 +1,4 @@" in diff(original, stamped, "file.py")


def test_diff_of_equal_texts_is_empty() -> None:
    assert diff(SOURCE, SOURCE, "file.py") == ""
