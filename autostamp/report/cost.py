# SPDX-License-Identifier: Apache-2.0
"""What stamping cost the kernel: time, registers, spills and the order of its instructions, as far as they were measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

HOW_TIME = "`autostamp launch --repeat N`, or benchmarks/overhead.py --json FILE, then --overhead FILE"
HOW_BUILD = "autostamp safety --json, then --safety FILE"


@dataclass(frozen=True, slots=True)
class Cost:
    """Stamped against clean. `time_ratio` is stamped ÷ clean time; `registers` a thread and `spills` in bytes (stores and
    loads) are (clean, stamped); `schedule_distance` is 0 for the clean order of instructions and 1 for another altogether.
    None: not measured.
    """

    time_ratio: float | None = None
    registers: tuple[int, int] | None = None
    spills: tuple[int, int] | None = None
    schedule_distance: float | None = None

    def as_object(self, lost: int) -> dict[str, Any]:
        """The document's `cost`: pairs as lists, what is unknown as None."""
        return {
            "time_ratio": self.time_ratio,
            "registers": list(self.registers) if self.registers else None,
            "spills": list(self.spills) if self.spills else None,
            "schedule_distance": self.schedule_distance,
            "lost": lost,
        }

    def texts(self) -> Iterator[str]:
        """The cost for a reader, and how to measure what was not."""
        if self.time_ratio is not None:
            yield f"{self.time_ratio:.3f} times the clean time"
        if self.registers is not None:
            yield "registers {} to {}".format(*self.registers)
        if self.spills is not None:
            yield "spilled bytes {} to {}".format(*self.spills)
        if self.schedule_distance is not None:
            yield f"schedule distance {self.schedule_distance:.3f}"
        if self.time_ratio is None:
            yield f"time not measured ({HOW_TIME})"
        if self.registers is None and self.schedule_distance is None:
            yield f"registers, spills and schedule not measured ({HOW_BUILD})"
