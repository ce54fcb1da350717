# SPDX-License-Identifier: Apache-2.0
"""What a fixed-slot buffer can get wrong: clocks against the order of its slots, slots that nothing names, open spans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from autostamp.diagnostics import AutostampError
from autostamp.model.manifest import EventKind
from autostamp.model.trace import Lane
from autostamp.runtime.slots import UNUSED, Column, Dense
from autostamp.runtime.spec_schema import SlotSpec

_ENDED_BY: Final[Mapping[EventKind, EventKind]] = {EventKind.ENTER: EventKind.EXIT, EventKind.BEGIN: EventKind.END}


def require_forward(view: Dense, columns: Sequence[Sequence[Column]], spec: SlotSpec, path: Path) -> None:
    """Raise AS6013 where a later iteration of an event has an earlier clock, or a span ends before it starts."""
    for row, named in enumerate(columns):
        for event in sorted({column.event for column in named}):
            its = np.flatnonzero(view.cycles[row, event] != UNUSED)
            back = np.flatnonzero(np.diff(view.cycles[row, event, its]) < 0)
            if back.size:
                before, after = (int(its[back[0] + step]) for step in (0, 1))
                steps = int(view.cycles[row, event, before] - view.cycles[row, event, after])
                detail = f"its clock is {steps:,} earlier than that of iteration {before}"
                raise _backwards(spec, path, (row, event, after), detail)
        starts = {(column.instance, column.kind): column for column in named}
        for column in named:
            end = starts.get((column.instance, _ENDED_BY.get(column.kind, EventKind.MARK)))
            if end is not None:
                _require_length(view, row, column, end, spec, path)


def _require_length(view: Dense, row: int, start: Column, end: Column, spec: SlotSpec, path: Path) -> None:
    its = np.flatnonzero(view.cycles[row, start.event] != UNUSED)
    if start.its is not None:
        its = its[np.isin(its, list(start.its))]
    ends = its + end.shift
    inside = (ends >= 0) & (ends < view.cycles.shape[2])
    its, ends = its[inside], ends[inside]
    first, last = view.cycles[row, start.event, its], view.cycles[row, end.event, ends]
    bad = np.flatnonzero((last != UNUSED) & (last < first))
    if bad.size:
        it = int(its[bad[0]])
        detail = (
            f"its clock is {int((first - last)[bad[0]]):,} earlier than that of event {start.event}, iteration {it}, "
            "where the span starts"
        )
        raise _backwards(spec, path, (row, end.event, int(ends[bad[0]])), detail)


def _backwards(spec: SlotSpec, path: Path, slot: tuple[int, int, int], detail: str) -> AutostampError:
    row, event, it = slot
    place = f"{spec.array}[{row}, {event}, {it}] ({spec.roles[row].name}, {spec.events[event].name})"
    return AutostampError.of("AS6013", path=path, place=place, detail=detail)


def unnamed(view: Dense, columns: Sequence[Sequence[Column]], spec: SlotSpec) -> Iterator[str]:
    """A note for every event of a row that has records and no span or marker."""
    used = (view.cycles != UNUSED).sum(axis=2)
    for row, named in enumerate(columns):
        events = {column.event for column in named}
        for event in np.flatnonzero(used[row]).tolist():
            if event not in events:
                yield (
                    f"the spec has no span and no marker for event {event} ({spec.events[event].name}) of row {row} "
                    f"({spec.roles[row].name}): its {int(used[row, event])} records are left out"
                )


def unpaired(lanes: Iterable[Lane], names: Mapping[int, str]) -> Iterator[str]:
    """A note for every span of a lane whose start has no end, or whose end has no start, in some iteration.

    `names` has the name of every instance.
    """
    open_ends = {EventKind.ENTER: "starts", EventKind.BEGIN: "starts", EventKind.EXIT: "ends", EventKind.END: "ends"}
    for lane in lanes:
        ends = Counter((event.instance, event.visit) for event in lane.events if event.kind in open_ends)
        alone = Counter(
            (event.instance, open_ends[event.kind])
            for event in lane.events
            if event.kind in open_ends and ends[event.instance, event.visit] == 1
        )
        for (instance, what), count in alone.items():
            other, times = "end" if what == "starts" else "start", "once" if count == 1 else f"{count} times"
            yield f"warp {lane.warp}: span {names[instance]!r} {what} {times} without its {other}; that is left out"
