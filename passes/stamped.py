# SPDX-License-Identifier: Apache-2.0
"""What instrumenting one file gives, in either language."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from autostamp.model.edit import Edit
from autostamp.model.manifest import SourceFile
from autostamp.passes import edits as editing


@dataclass(frozen=True, slots=True)
class Stamped:
    """A file after instrumentation. `text` equals the original when there was nothing to do.

    `given` is what was to be stamped: the original, or the text of an earlier instrumentation.
    """

    given: bytes
    original: bytes
    text: bytes
    file: SourceFile
    edits: tuple[Edit, ...]

    @property
    def is_changed(self) -> bool:
        """True when stamps are in the text."""
        return bool(self.edits)

    @property
    def would_change(self) -> bool:
        """True when the text differs from what was given."""
        return self.text != self.given

    def line_map(self) -> editing.LineMap:
        """Lines of the stamped text to lines of the original."""
        return editing.LineMap(self.original, self.edits)


def key_of(data: bytes) -> str:
    """The name of a file's content in manifests and stamped text: the first 16 hex digits of its SHA-256."""
    return hashlib.sha256(data).hexdigest()[:16]
