# SPDX-License-Identifier: Apache-2.0
"""Lanes written down by hand, record by record."""

from __future__ import annotations

from autostamp.model.manifest import EventKind, KernelTrace
from autostamp.model.trace import Event, Lane, Trace

Row = tuple[int, int] | tuple[int, int, int]
"""Cycle, event number, and the payload where there is one."""


def lane(kernel: KernelTrace, warp: int, *rows: Row, lost: int = 0) -> Lane:
    """A lane from its rows, entered at cycle 0 and released 10 cycles after the last record."""
    stamps: dict[int, tuple[int, EventKind]] = {}
    for item in kernel.instances:
        stamps |= {item.enter: (item.number, EventKind.ENTER), item.exit: (item.number, EventKind.EXIT)}
        stamps |= {item.signal: (item.number, EventKind.SIGNAL)} if item.signal else {}
    seen: dict[int, int] = {}
    events = []
    for cycle, event, *payload in rows:
        number, kind = stamps[event]
        events.append(Event(cycle, kind, number, payload[0] if payload else 0, seen.get(event, 0)))
        seen[event] = seen.get(event, 0) + 1
    return Lane(warp, 0, tuple(events), lost, 0, max((row[0] for row in rows), default=0) + 10, 0, 0)


def trace_of(kernel: KernelTrace, *lanes: Lane) -> Trace:
    """A trace of these lanes."""
    return Trace(kernel, lanes, 0.0)
