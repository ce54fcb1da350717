# SPDX-License-Identifier: Apache-2.0
"""Raw region bytes to a Trace: unwrap the 32-bit clocks, put the lanes of a CTA on one axis, name every record."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from autostamp.diagnostics import AutostampError, Diagnostic
from autostamp.model.manifest import EventKind, KernelTrace
from autostamp.model.trace import Event, Lane, Trace
from autostamp.runtime.layout import (
    ENTERED,
    EVENT_BITS,
    EVENT_MASK,
    GRID,
    HEADER_BYTES,
    HEADER_DTYPE,
    LANES,
    RECORD_BYTES,
    RECORD_DTYPE,
    RELEASED,
    WARPS,
    lane_bytes,
    region_bytes,
)

Cycles: TypeAlias = NDArray[np.int64]
_KINDS: Final = (EventKind.ENTER, EventKind.EXIT, EventKind.SIGNAL)


@dataclass(frozen=True, slots=True)
class EventTable:
    """Event number to instance number and kind, as arrays that a whole lane of event words can index.

    `instance` is 0 where no instance has the number; `kind` indexes (enter, exit, signal).
    """

    instance: NDArray[np.int64]
    kind: NDArray[np.int64]

    @classmethod
    def of(cls, kernel: KernelTrace) -> EventTable:
        """Build the table; raises AS6002 where two stamps share an event number or a number does not fit its field."""
        instance = np.zeros(EVENT_MASK + 1, np.int64)
        kind = np.zeros(EVENT_MASK + 1, np.int64)
        for row in kernel.instances:
            for index, number in enumerate((row.enter, row.exit, row.signal)):
                if number == 0:
                    continue
                if not 0 < number <= EVENT_MASK or instance[number]:
                    detail = f"event {number} of instance {row.number} is out of range or taken"
                    raise AutostampError.of("AS6002", detail=detail)
                instance[number], kind[number] = row.number, index
        return cls(instance, kind)


@dataclass(frozen=True, slots=True)
class _Part:
    """Records of one physical lane: cycles since the warp's entry, event words, and how many did not fit."""

    name: str
    cycles: Cycles
    words: NDArray[np.uint32]
    lost: int


def headers_of(region: NDArray[np.uint8], capacity: int) -> NDArray[np.void]:
    """The LANES lane headers of a region, as one structured array of `layout.HEADER_DTYPE`.

    Raises AS6001 when the region is not `region_bytes(capacity)` long.
    """
    if region.dtype != np.uint8 or region.nbytes != region_bytes(capacity):
        detail = f"{region.nbytes} bytes, where {region_bytes(capacity)} hold {capacity} records a lane"
        raise AutostampError.of("AS6001", path="region", detail=detail)
    flat = np.ascontiguousarray(region).reshape(-1)
    return np.ndarray((LANES,), HEADER_DTYPE, flat.data, strides=(lane_bytes(capacity),)).copy()


def grid_of(region: NDArray[np.uint8], capacity: int) -> tuple[int, int, int]:
    """The launch's size in CTAs that warp 0 noted in the header of its second lane; (0, 0, 0) where it did not."""
    begin = WARPS * lane_bytes(capacity) + GRID
    x, y, z = np.ascontiguousarray(region).reshape(-1)[begin : begin + 12].view("<u4").tolist()
    return x, y, z


def is_used(headers: NDArray[np.void]) -> bool:
    """True where a warp bound its lane."""
    return bool(headers["state"][:WARPS].any())


def signature_of(region: NDArray[np.uint8], capacity: int) -> int:
    """Signature of the instance table that wrote the region last, 0 when no lane was released.

    Raises AS6002 when released lanes disagree.
    """
    headers = headers_of(region, capacity)[:WARPS]
    found = np.unique(headers["signature"][headers["state"] == RELEASED])
    if found.size > 1:
        names = ", ".join(f"{int(value):#010x}" for value in found)
        raise AutostampError.of("AS6002", detail=f"lanes of one region were written by several compilations ({names})")
    return int(found[0]) if found.size else 0


def decode_region(region: NDArray[np.uint8], kernel: KernelTrace) -> Trace:
    """Decode one region, `uint8[region_bytes(kernel.capacity)]`, with the table of the kernel trace that wrote it.

    Cycles count from the earliest lane entry of the CTA. A lane that was bound and never released keeps its records
    up to the first unused one, and the trace says so in `warnings`. Raises AS6001 for a region of the wrong size,
    AS6002 when another compilation wrote it, AS6005 for an event that the table does not know, AS6006 for a lane that
    contradicts itself.
    """
    headers = headers_of(region, kernel.capacity)
    signature = signature_of(region, kernel.capacity)
    if signature not in (0, kernel.signature):
        detail = f"they have signature {signature:#010x}, kernel trace {kernel.number} has {kernel.signature:#010x}"
        raise AutostampError.of("AS6002", detail=detail)
    used = np.flatnonzero(headers["state"][:WARPS])
    # A warp that left the kernel unreleased was not counted, and goes on writing where an earlier launch was kept.
    launch = headers["launch"][:WARPS]
    stale = used[launch[used] != launch[used].max(initial=0)]
    used = np.setdiff1d(used, stale)
    if used.size == 0:
        return Trace(kernel, (), 0.0, block=kernel.block)
    table = EventTable.of(kernel)
    flat = np.ascontiguousarray(region).reshape(-1)
    entry = headers["entry_clock"][used]
    starts = _signed(entry - entry[0])
    starts -= starts.min()
    lanes = tuple(
        _decode_lane(flat, headers, table, kernel.capacity, int(warp), int(start))
        for warp, start in zip(used, starts, strict=True)
    )
    return Trace(
        kernel,
        lanes,
        _sm_mhz(lanes),
        (
            *_warnings(headers, lanes),
            *(f"warp {warp} has records of another launch: they are left out" for warp in stale),
        ),
        block=kernel.block,
        grid=grid_of(region, kernel.capacity),
        clock=int(entry[starts.argmin()]),
    )


def check(trace: Trace) -> list[Diagnostic]:
    """Findings of code AS6006: an enter without its exit, an exit without its enter, a clock that goes backwards.

    An open enter of a lossy lane is no finding: its exit may be among the lost records. Nor is the one stamp of a wait that was
    placed with one alone.
    """
    findings: list[Diagnostic] = []
    marks = {row.number for row in trace.kernel.instances if bool(row.enter) != bool(row.exit)}
    for lane in trace.lanes:
        details = [*_backwards(lane), *_unpaired(lane, marks)]
        findings += [Diagnostic.of("AS6006", lane=lane.warp, detail=detail) for detail in details]
    return findings


def _backwards(lane: Lane) -> list[str]:
    return [
        f"instance {after.instance} {after.kind} at cycle {after.cycles} follows cycle {before.cycles}"
        for before, after in pairwise(lane.events)
        if after.cycles < before.cycles
    ]


def _unpaired(lane: Lane, marks: Collection[int]) -> list[str]:
    open_visits: dict[tuple[int, int], None] = {}
    details: list[str] = []
    for event in lane.events:
        key = (event.instance, event.visit)
        if event.instance in marks:
            continue
        if event.kind is EventKind.ENTER:
            open_visits[key] = None
        elif event.kind is EventKind.EXIT and open_visits.pop(key, key) is not None:
            details.append(f"instance {event.instance} exits visit {event.visit} without entering it")
    if not lane.is_lossy:
        details += [f"instance {number} enters visit {visit} and never exits it" for number, visit in open_visits]
    return details


def _signed(difference: NDArray[np.uint32]) -> Cycles:
    """Differences modulo 2^32, read as signed: right while the true one is less than 2^31 cycles (over a second)."""
    return np.ascontiguousarray(difference, dtype=np.uint32).view(np.int32).astype(np.int64)


def _decode_lane(
    flat: NDArray[np.uint8], headers: NDArray[np.void], table: EventTable, capacity: int, warp: int, start: int
) -> Lane:
    """Merge the warp's two physical lanes in clock order; at equal clocks the main lane comes first."""
    header = headers[warp]
    released = bool(header["state"] == RELEASED)
    parts = [_part(flat, headers, capacity, warp, 0)]
    if headers[WARPS + warp]["state"] != 0 or not released:
        parts.append(_part(flat, headers, capacity, warp, WARPS))
    for part in parts:
        _require_known(part, table)
    cycles = np.concatenate([part.cycles for part in parts])
    words = np.concatenate([part.words for part in parts])
    order = np.argsort(cycles, kind="stable")
    return Lane(
        warp=warp,
        smid=int(header["smid"]),
        events=_events(cycles[order] + start, words[order], table),
        lost=sum(part.lost for part in parts),
        entry_cycles=start,
        exit_cycles=start + _exit_offset(header, parts[0]) if released else -1,
        entry_ns=int(header["entry_ns"]),
        exit_ns=int(header["exit_ns"]) if released else 0,
    )


def _part(flat: NDArray[np.uint8], headers: NDArray[np.void], capacity: int, warp: int, shift: int) -> _Part:
    """Read physical lane `warp + shift`, whose clocks its own thread read in program order after the warp's entry.

    Of a single-thread lane's header (shift WARPS) only `remaining` and `state` are ever written, at release.
    """
    name = f"{warp} (single thread)" if shift else str(warp)
    begin = (warp + shift) * lane_bytes(capacity) + HEADER_BYTES
    records = flat[begin : begin + capacity * RECORD_BYTES].view(RECORD_DTYPE)
    released = bool(headers[warp + shift]["state"] == RELEASED)
    stored, lost = _prefix(records), 0
    if released:
        stored, lost = _counts(int(headers[warp + shift]["remaining"]), capacity, name)
    records = records[:stored]
    steps = _signed(np.diff(records["clock"], prepend=headers[warp]["entry_clock"]))
    backwards = np.flatnonzero(steps < 0)
    if backwards.size and not released:
        # Only a release says how many records there are; from here on stand those that an earlier launch left.
        records, steps = records[: backwards[0]], steps[: backwards[0]]
    elif backwards.size:
        first = int(backwards[0])
        before = f"record {first - 1}" if first else "the lane's entry"
        raise AutostampError.of(
            "AS6006", lane=name, detail=f"the clock of record {first} is earlier than that of {before}"
        )
    return _Part(name, np.cumsum(steps), records["event"].astype(np.uint32), lost)


def _counts(remaining: int, capacity: int, name: str) -> tuple[int, int]:
    """Stored and lost records from the cursor at release."""
    attempted, odd = divmod(capacity * RECORD_BYTES - remaining, RECORD_BYTES)
    if attempted < 0 or odd:
        raise AutostampError.of("AS6006", lane=name, detail=f"its header says that {remaining} bytes are left")
    stored = min(attempted, capacity)
    return stored, attempted - stored


def _prefix(records: NDArray[np.void]) -> int:
    """How many records precede the first unused one."""
    unused = np.flatnonzero(records["event"] == 0)
    return int(unused[0]) if unused.size else len(records)


def _exit_offset(header: np.void, part: _Part) -> int:
    """Cycles from the lane's entry to its release, which follows the last record of the main lane.

    The gap after a lossy lane's last record has no bound, so there the difference is read as unsigned.
    """
    last = int(part.cycles[-1]) if part.cycles.size else 0
    gap = (int(header["exit_clock"]) - int(header["entry_clock"]) - last) % (1 << 32)
    if gap >= 1 << 31 and part.lost == 0:
        raise AutostampError.of(
            "AS6006", lane=part.name, detail="the clock at its release is earlier than its last record"
        )
    return last + gap


def _require_known(part: _Part, table: EventTable) -> None:
    numbers = part.words & EVENT_MASK
    unknown = np.flatnonzero(table.instance[numbers] == 0)
    if unknown.size:
        first = int(unknown[0])
        raise AutostampError.of("AS6005", event=int(numbers[first]), lane=part.name, record=first)


def _events(cycles: Cycles, words: NDArray[np.uint32], table: EventTable) -> tuple[Event, ...]:
    numbers = (words & EVENT_MASK).astype(np.int64)
    columns = (
        cycles.tolist(),
        [_KINDS[index] for index in table.kind[numbers].tolist()],
        table.instance[numbers].tolist(),
        (words >> EVENT_BITS).tolist(),
        visits(numbers).tolist(),
    )
    return tuple(map(Event, *columns))


def visits(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each element, how many times its value occurred before it; same shape as the one-dimensional input."""
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    begins = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1))
    lengths = np.diff(begins, append=len(numbers))
    result = np.empty(len(numbers), np.int64)
    result[order] = np.arange(len(numbers)) - np.repeat(begins, lengths)
    return result


def _sm_mhz(lanes: tuple[Lane, ...]) -> float:
    """Median over the released lanes of clock cycles per microsecond of global timer; 0 when the timer did not move."""
    rates = [
        (lane.exit_cycles - lane.entry_cycles) / (lane.exit_ns - lane.entry_ns) * 1000
        for lane in lanes
        if lane.exit_cycles >= 0 and lane.exit_ns > lane.entry_ns
    ]
    return float(np.median(rates)) if rates else 0.0


def _warnings(headers: NDArray[np.void], lanes: tuple[Lane, ...]) -> list[str]:
    found = [
        f"warp {lane.warp} never released its lane (a hang or an early exit): {len(lane.events)} records kept"
        for lane in lanes
        if headers[lane.warp]["state"] == ENTERED
    ]
    strays = np.flatnonzero((headers["state"][WARPS:] != 0) & (headers["state"][:WARPS] == 0))
    found += [
        f"warp {warp} has single-thread records but its lane was never bound: they are left out" for warp in strays
    ]
    return found
