# SPDX-License-Identifier: Apache-2.0
"""One warp's IKET ranges and markers as events in the order of time."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping
from typing import Final, TypeAlias

from autostamp.model.manifest import EventKind, Instance
from autostamp.model.sync import Kind
from autostamp.model.trace import Event

Ranges: TypeAlias = list[tuple[int, int, str]]
"""Start and end in ns, and name, in the order of the file."""
Marks: TypeAlias = list[tuple[int, str]]
"""Time in ns, and name."""
Rows: TypeAlias = Mapping[tuple[str, bool], Instance]
"""Instance by name, and whether it is a marker's."""

_ENDS: Final = frozenset({EventKind.EXIT, EventKind.END})


def events_of(ranges: Ranges, marks: Marks, rows: Rows, zero: int) -> tuple[Event, ...]:
    """Events in ns since `zero`, with visits counted by name.

    The timer is coarse, so many share a time. A range's start stands before its end; at one time ranges stand in the order
    of their starts, and of the file; a marker comes after what ends there and before what starts there.
    """
    visits: Counter[int] = Counter()
    stamps: list[Event] = []
    for start, end, name in sorted(ranges, key=lambda entry: entry[0]):
        row = rows[name, False]
        kinds = (EventKind.BEGIN, EventKind.END) if row.kind == Kind.WORK else (EventKind.ENTER, EventKind.EXIT)
        for time, kind in zip((start, end), kinds, strict=True):
            stamps.append(Event(time - zero, kind, row.number, 0, visits[row.number]))
        visits[row.number] += 1
    stamps.sort(key=lambda event: event.cycles)
    times = [event.cycles for event in stamps]
    placed = [((index, 1), event) for index, event in enumerate(stamps)]
    for time, name in sorted(marks, key=lambda mark: mark[0]):
        row = rows[name, True]
        at = bisect_right(times, time - zero)
        while at and times[at - 1] == time - zero and stamps[at - 1].kind not in _ENDS:
            at -= 1
        placed.append(((at, 0), Event(time - zero, EventKind.SIGNAL, row.number, 0, visits[row.number])))
        visits[row.number] += 1
    placed.sort(key=lambda pair: pair[0])
    return tuple(event for _, event in placed)
