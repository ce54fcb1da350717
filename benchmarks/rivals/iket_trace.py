# SPDX-License-Identifier: Apache-2.0
"""What `run-iket profile --postprocess json` left: how many events a launch has, and the steps of its clock."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Summary:
    """Events of one launch; step in nanoseconds. What an event takes up is not published."""

    events: int
    step_ns: float


def summarise(folder: Path) -> Summary:
    """Of the largest trace in the folder. Raises ValueError when there is none."""
    paths = sorted(folder.rglob("*.json"), key=lambda path: path.stat().st_size)
    for path in reversed(paths):
        document = json.loads(path.read_text(encoding="utf-8"))
        launches = document.get("launches") if isinstance(document, dict) else None
        if launches:
            return of_launch(launches[-1])
    message = f"{folder} holds no trace of IKET's"
    raise ValueError(message)


def of_launch(launch: dict[str, Any]) -> Summary:
    """A range is two events, a marker is one; the step is the greatest common divisor of all times."""
    ranges, markers = launch.get("ranges", []), launch.get("markers", [])
    times = [time for each in ranges for time in (each["startTs"], each["endTs"])]
    times += [each["timestamp"] for each in markers]
    step = math.gcd(*(int(time) - int(times[0]) for time in times)) if times else 0
    return Summary(2 * len(ranges) + len(markers), float(step))
