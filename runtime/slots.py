# SPDX-License-Identifier: Apache-2.0
"""The dense view of a trace, and fixed-slot buffers of clocks: `slot = (role * N_EVT + evt) * MAX_IT + it`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from autostamp.diagnostics import AutostampError
from autostamp.model.manifest import EventKind, Instance, KernelTrace
from autostamp.model.sync import Kind
from autostamp.model.trace import Event, Lane, Trace

UNUSED: Final = -1
"""What a slot of a dense view holds when nothing was recorded there."""


@dataclass(frozen=True, slots=True)
class Dense:
    """Cycles by slot: `cycles` is int64 (N_ROLE, N_EVT, MAX_IT), UNUSED where nothing was recorded.

    `roles` and `events` name the first two axes; `it` counts how often that role had visited that event before. Of a
    decoded trace every warp is a row of its own, because the warps of one role each have their own visits.

    What a buffer of clocks alone does not hold, where it is known, in arrays of the same shape: `payloads` (uint16), and
    `order` (int32), the number of the record in its row, which tells records of one cycle apart.
    """

    cycles: NDArray[np.int64]
    roles: tuple[str, ...]
    events: tuple[str, ...]
    payloads: NDArray[np.uint16] | None = None
    order: NDArray[np.int32] | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """What the slots of one event of one row are records of: slot `it` is visit `it - shift` of `instance`.

    `its` are the only slots that belong to it (None: all).
    """

    event: int
    instance: int
    kind: EventKind
    shift: int = 0
    its: frozenset[int] | None = None


def event_axis(kernel: KernelTrace) -> tuple[tuple[int, EventKind, str], ...]:
    """The event axis of a kernel trace in the order of event numbers: instance number, kind, and name `3.enter`."""
    numbered: list[tuple[int, Instance, EventKind]] = []
    for row in kernel.instances:
        enter, exit_ = (EventKind.BEGIN, EventKind.END) if row.kind == Kind.WORK else (EventKind.ENTER, EventKind.EXIT)
        stamps = ((row.enter, enter), (row.exit, exit_), (row.signal, EventKind.SIGNAL))
        numbered += [(number, row, kind) for number, kind in stamps if number]
    numbered.sort(key=lambda entry: entry[0])
    return tuple((row.number, kind, f"{row.number}.{kind}") for _, row, kind in numbered)


def dense(trace: Trace, roles: Mapping[int, str] | None = None) -> Dense:
    """The trace as one array, one row per lane. `roles` gives names by warp, which become `<role> warp <w>`."""
    axis = event_axis(trace.kernel)
    column = {(number, kind): index for index, (number, kind, _) in enumerate(axis)}
    depth = max((event.visit + 1 for lane in trace.lanes for event in lane.events), default=0)
    shape = (len(trace.lanes), len(axis), depth)
    cycles, order = np.full(shape, UNUSED, np.int64), np.full(shape, UNUSED, np.int32)
    payloads = np.zeros(shape, np.uint16)
    for row, lane in enumerate(trace.lanes):
        if lane.events:
            slots = (row, [column[event.instance, event.kind] for event in lane.events], [e.visit for e in lane.events])
            cycles[slots] = [event.cycles for event in lane.events]
            payloads[slots] = [event.payload for event in lane.events]
            order[slots] = np.arange(len(lane.events))
    names = tuple(f"{(roles or {}).get(lane.warp, '')} warp {lane.warp}".lstrip() for lane in trace.lanes)
    return Dense(cycles, names, tuple(name for _, _, name in axis), payloads, order)


def to_slots(view: Dense) -> NDArray[np.int64]:
    """The flat fixed-slot buffer, 0 where unused; one cycle later throughout, so that no record is 0."""
    return (view.cycles + 1).reshape(-1)


def from_slots(
    slots: NDArray[Any], shape: tuple[int, int, int], roles: tuple[str, ...] = (), events: tuple[str, ...] = ()
) -> Dense:
    """Read a fixed-slot buffer of clocks, 0 where unused, of `shape` (N_ROLE, N_EVT, MAX_IT).

    A 32-bit buffer holds %clock, which may wrap if all records lie within 2^31 cycles; a 64-bit one never wraps. The
    earliest record becomes cycle 0. Raises AS6001 when the buffer does not have N_ROLE * N_EVT * MAX_IT integers.
    """
    if slots.dtype.kind not in "iu" or slots.dtype.itemsize not in (4, 8) or slots.size != np.prod(shape):
        detail = (
            f"{slots.size} values of type {slots.dtype}, where 32- or 64-bit integers of shape {shape} are expected"
        )
        raise AutostampError.of("AS6001", path="fixed-slot buffer", detail=detail)
    flat = np.ascontiguousarray(slots).reshape(-1)
    used = np.flatnonzero(flat)
    cycles = np.full(flat.shape, UNUSED, np.int64)
    if used.size:
        unsigned = flat[used].view(np.uint32 if flat.dtype.itemsize == 4 else np.uint64)
        since = unsigned - unsigned[0]
        signed = since.view(np.int32 if since.dtype.itemsize == 4 else np.int64).astype(np.int64)
        cycles[used] = signed - signed.min()
    names = roles or tuple(f"role {index}" for index in range(shape[0]))
    return Dense(cycles.reshape(shape), names, events or tuple(f"event {index}" for index in range(shape[1])))


def trace_of(view: Dense, kernel: KernelTrace) -> Trace:
    """A trace with one lane per row; raises AS6002 unless the event axis is as long as that of `kernel`.

    Lanes are numbered by row. A fixed-slot buffer says nothing about lane entry, exit, SM or lost records.
    """
    axis = event_axis(kernel)
    if view.cycles.shape[1] != len(axis):
        detail = f"{view.cycles.shape[1]} events in a role, kernel trace {kernel.number} has {len(axis)}"
        raise AutostampError.of("AS6002", detail=detail)
    columns = [Column(index, number, kind) for index, (number, kind, _) in enumerate(axis)]
    lanes = (Lane(row, -1, events_of(view, row, columns), 0, -1, -1, 0, 0) for row in range(len(view.cycles)))
    return Trace(kernel, tuple(lanes), 0.0)


def events_of(view: Dense, row: int, columns: Sequence[Column]) -> tuple[Event, ...]:
    """One row's records in clock order. A slot that several columns name gives one event for each.

    Records of one cycle stand in the view's `order`, else by visit and then by column: event numbers follow program order,
    and the visits of a loop come one after another.
    """
    found: list[tuple[tuple[int, int, int, int], Event]] = []
    for place, column in enumerate(columns):
        clocks = view.cycles[row, column.event]
        for it in np.flatnonzero(clocks != UNUSED).tolist():
            if column.its is not None and it not in column.its:
                continue
            cycles, visit = int(clocks[it]), it - column.shift
            rank = 0 if view.order is None else int(view.order[row, column.event, it])
            payload = 0 if view.payloads is None else int(view.payloads[row, column.event, it])
            found.append(((cycles, rank, visit, place), Event(cycles, column.kind, column.instance, payload, visit)))
    found.sort(key=lambda pair: pair[0])
    return tuple(event for _, event in found)
