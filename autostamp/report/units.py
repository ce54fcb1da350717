# SPDX-License-Identifier: Apache-2.0
"""Texts are written in cycles. Where an input was stamped with a nanosecond timer, what they call cycles is nanoseconds."""

from __future__ import annotations

import re
from typing import Final

CYCLES: Final = "cycles"
_WORD = re.compile(r"\bcycles?\b")


def in_unit(text: str, unit: str) -> str:
    """The text with the name of the unit in the place of `cycle` and `cycles`."""
    return text if unit == CYCLES else _WORD.sub(unit, text)
