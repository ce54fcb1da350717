# SPDX-License-Identifier: Apache-2.0
"""What somebody learnt when a prediction and a run differed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Lesson:
    """The accepted cause of a difference. `resource` is what it was about: a value of `Resource`, a ring, a barrier.

    `predicted` and `measured` are cycles of one iteration. `written_at` is in UTC.
    """

    resource: str
    cause: str
    kernel: str
    machine: str
    predicted: float
    measured: float
    written_at: datetime
