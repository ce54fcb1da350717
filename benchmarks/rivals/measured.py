# SPDX-License-Identifier: Apache-2.0
"""What is measured of one tool, and how a script hands it to `python -m benchmarks.rivals`: as one line of JSON."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

MARK: Final = "measured: "
"""What the line begins with; whatever else a script prints is talk."""


@dataclass
class Measured:
    """One tool on one kernel.

    `rounds` are times in microseconds of clean, stamped, stamped and clean. `events` is how many one launch leaves and
    `bytes_per_event` what each takes up. `step_ns` is the smallest difference of two time stamps, in nanoseconds. `loop` are the
    same four times for a loop that does little but stamp, with `loop_stamps` stamps on its one path; `sm_mhz` is the clock.
    """

    tool: str
    version: str = ""
    kernel: str = ""
    kept: str = ""
    rounds: list[list[float]] = field(default_factory=list)
    events: int = 0
    bytes_per_event: float = 0.0
    step_ns: float = 0.0
    loop: list[list[float]] = field(default_factory=list)
    loop_stamps: int = 0
    sm_mhz: float = 0.0
    error: str = ""

    def as_json(self) -> dict[str, Any]:
        """For `read`, and for the file."""
        return asdict(self)

    def print(self) -> None:
        """Hand it over."""
        print(MARK + json.dumps(self.as_json()), flush=True)


def read(text: str) -> dict[str, Any] | None:
    """The last object that a script printed."""
    lines = [line for line in text.splitlines() if line.startswith(MARK)]
    return json.loads(lines[-1].removeprefix(MARK)) if lines else None


def rounds_of(clean: Callable[[], float], stamped: Callable[[], float], rounds: int) -> list[list[float]]:
    """A/B/B/A: each callable measures one time of its build in microseconds."""
    return [[clean(), stamped(), stamped(), clean()] for _ in range(rounds)]


def sm_mhz() -> float:
    """The highest SM clock, at which one warp alone runs, as nvidia-smi says it; 0 where it cannot.

    The clock of the moment is no measure: after the program has ended the GPU is idle, and says 345 MHz.
    """
    command: Sequence[str] = ("nvidia-smi", "--query-gpu=clocks.max.sm", "--format=csv,noheader,nounits")
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
        return float(done.stdout.split()[0])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return 0.0
