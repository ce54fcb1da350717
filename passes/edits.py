# SPDX-License-Identifier: Apache-2.0
"""Apply byte-span edits, undo them from the stamped text alone, map lines, show a diff.

Every edit of the front ends is an insertion, so what must be remembered to undo them is where text went in and how long it
was. That list, with the hash of the original, is one comment in the stamped file's last line: the seal.
"""

from __future__ import annotations

import base64
import difflib
import hashlib
import io
import json
import re
import zlib
from collections.abc import Sequence
from itertools import accumulate

from autostamp.diagnostics import AutostampError
from autostamp.model.edit import Edit

_SEAL_LINE = re.compile(rb"^(?:#|//) autostamp: stamped [0-9a-f]{64} [A-Za-z0-9+/=]+\r?$", re.MULTILINE)
_SEAL = re.compile(
    rb"(?P<lead>\r?\n?)(?P<mark>#|//) autostamp: stamped (?P<sha>[0-9a-f]{64}) (?P<gaps>[A-Za-z0-9+/=]+)\r?\n?\Z"
)


def ordered(edits: Sequence[Edit]) -> list[Edit]:
    """Edits in the order of application: by offset, then rank, then as given."""
    return sorted(edits, key=lambda edit: (edit.start, edit.rank))


def apply(original: bytes, edits: Sequence[Edit], comment: str = "#") -> bytes:
    """The original with `edits` made and the seal added; the original itself when there are none."""
    if not edits:
        return original
    pieces: list[bytes] = []
    gaps: list[int] = []
    at = 0
    for edit in ordered(edits):
        if edit.start != edit.end:
            message = "only insertions can be undone from the seal"
            raise ValueError(message)
        inserted = edit.text.encode()
        pieces += [original[at : edit.start], inserted]
        gaps += [edit.start - at, len(inserted)]
        at = edit.start
    pieces.append(original[at:])
    newline = "\r\n" if b"\r\n" in original else "\n"
    lead = "" if original.endswith((b"\n", b"\r")) or not original else newline
    packed = base64.b64encode(zlib.compress(json.dumps(gaps).encode(), 9)).decode()
    seal = f"{lead}{comment} autostamp: stamped {hashlib.sha256(original).hexdigest()} {packed}{newline}"
    return b"".join([*pieces, seal.encode()])


def is_stamped(text: bytes) -> bool:
    """True when the text holds a seal, if only above what someone added after it."""
    return _SEAL_LINE.search(text) is not None


def strip(stamped: bytes, path: str) -> bytes:
    """The original, byte for byte. Raises AS3005 without a seal and AS3002 when the text was edited since."""
    seal = _SEAL.search(stamped)
    if seal is None:
        raise AutostampError.of("AS3002" if is_stamped(stamped) else "AS3005", path=path)
    pieces: list[bytes] = []
    at = 0
    try:
        gaps: list[int] = json.loads(zlib.decompress(base64.b64decode(seal["gaps"], validate=True)))
        for kept, dropped in zip(gaps[::2], gaps[1::2], strict=True):
            pieces.append(stamped[at : at + kept])
            at += kept + dropped
    except (LookupError, TypeError, ValueError, zlib.error) as error:
        raise AutostampError.of("AS3002", path=path) from error
    lead = seal["lead"]
    for tail in (stamped[at : seal.start()] + lead, stamped[at : seal.start()]):
        original = b"".join([*pieces, tail])
        if hashlib.sha256(original).hexdigest().encode() == seal["sha"]:
            return original
    raise AutostampError.of("AS3002", path=path)


class LineMap:
    """Lines of the stamped text to lines of the original. Both count from 1."""

    def __init__(self, original: bytes, edits: Sequence[Edit]) -> None:
        starts = [0, *accumulate(len(line) for line in original.splitlines(keepends=True))]
        self._last = max(1, len(starts) - 1)
        self._shifts: list[tuple[int, int]] = []
        line = added = 0
        for edit in ordered(edits):
            lines = edit.text.count("\n")
            if not lines:
                continue
            while line + 1 < len(starts) and starts[line + 1] <= edit.start:
                line += 1
            self._shifts.append((line + 1 + added, lines))
            added += lines

    @property
    def is_identity(self) -> bool:
        """True when no stamp needed a line of its own."""
        return not self._shifts

    def to_original(self, line: int) -> int:
        """The original's line for `line` of the stamped text.

        An inserted line maps to the line it was put before, and to the last line at the end of the text.
        """
        shift = 0
        for at, lines in self._shifts:
            if line >= at + lines:
                shift += lines
            elif line >= at:
                return min(at - shift, self._last)
        return min(line - shift, self._last)


def diff(original: bytes, stamped: bytes, path: str) -> str:
    """Unified diff from the original to the stamped text, without the seal's payload."""
    shown = _SEAL.sub(rb"\g<lead>\g<mark> autostamp: stamped \g<sha>\n", stamped)
    lines = difflib.unified_diff(_lines(original), _lines(shown), f"a/{path}", f"b/{path}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _lines(text: bytes) -> list[str]:
    """Lines with their newlines; only a newline ends one, as in Python sources."""
    return io.StringIO(text.decode(errors="replace"), newline="\n").readlines()
