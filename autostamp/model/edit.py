# SPDX-License-Identifier: Apache-2.0
"""Byte-span edits on an original text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace bytes [start, end) of the original by `text`; an insertion has start == end.

    Edits at one offset are applied in the order of `rank`, then in the order given.
    """

    start: int
    end: int
    text: str
    rank: int = 0
