# SPDX-License-Identifier: Apache-2.0
"""A Trace back to region bytes: the inverse of `decode`, for traces that were put together from several recordings."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from autostamp.model.manifest import EventKind, KernelTrace
from autostamp.model.trace import Lane, Trace
from autostamp.runtime.layout import (
    ENTERED,
    EVENT_BITS,
    GRID,
    HEADER_BYTES,
    OFFSET,
    RECORD_BYTES,
    RECORD_DTYPE,
    RELEASED,
    WARPS,
    lane_bytes,
    region_bytes,
)

_MODULUS = 1 << 32


def encode_region(trace: Trace) -> NDArray[np.uint8]:
    """The region, `uint8[region_bytes(capacity)]`, from which `decode_region` makes `trace` again.

    Every record is in its warp's main lane. The trace's lanes hold no more records than its kernel's capacity, in clock order;
    what they lost beyond that is kept as a count.
    """
    kernel = trace.kernel
    region = np.zeros(region_bytes(kernel.capacity), np.uint8)
    base = max(trace.clock, 0)
    events = _events(kernel)
    for lane in trace.lanes:
        _lane(region, lane, kernel, events, base)
    at = WARPS * lane_bytes(kernel.capacity) + GRID
    region[at : at + 12] = np.array(trace.grid, "<u4").view(np.uint8)
    return region


def _events(kernel: KernelTrace) -> dict[tuple[int, EventKind], int]:
    found = {}
    for row in kernel.instances:
        found[row.number, EventKind.ENTER] = row.enter
        found[row.number, EventKind.EXIT] = row.exit
        found[row.number, EventKind.SIGNAL] = row.signal
    return found


def _lane(
    region: NDArray[np.uint8], lane: Lane, kernel: KernelTrace, events: dict[tuple[int, EventKind], int], base: int
) -> None:
    begin = lane.warp * lane_bytes(kernel.capacity)
    records = np.zeros(len(lane.events), RECORD_DTYPE)
    records["clock"] = [(base + event.cycles) % _MODULUS for event in lane.events]
    records["event"] = [events[event.instance, event.kind] | event.payload << EVENT_BITS for event in lane.events]
    at = begin + HEADER_BYTES
    region[at : at + records.nbytes] = records.view(np.uint8)
    is_released = lane.exit_cycles >= 0
    fields = {
        "entry_clock": (base + lane.entry_cycles) % _MODULUS,
        "smid": lane.smid,
        "entry_ns": lane.entry_ns,
        "remaining": (kernel.capacity - len(lane.events) - lane.lost) * RECORD_BYTES,
        "state": RELEASED if is_released else ENTERED,
    }
    if is_released:
        fields |= {"exit_clock": (base + lane.exit_cycles) % _MODULUS, "exit_ns": lane.exit_ns}
        fields["signature"] = kernel.signature
    for name, value in fields.items():
        kind = "<u8" if name.endswith("_ns") else "<i4" if name == "remaining" else "<u4"
        data = np.array([value], kind).view(np.uint8)
        region[begin + OFFSET[name] : begin + OFFSET[name] + data.size] = data
