# SPDX-License-Identifier: Apache-2.0
"""Writes the bytes of a record region from stamps, by the layout's tables and nothing of the decoder."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from autostamp.runtime.layout import ENTERED, HEADER, HEADER_BYTES, RELEASED, WARPS, lane_bytes, region_bytes

_FORMAT = {"<u4": "<I", "<i4": "<i", "<u8": "<Q"}
_MODULUS = 1 << 32


@dataclass
class Stamp:
    """One record as the device makes it: the whole clock (the writer cuts it to 32 bits), event number and payload."""

    clock: int
    event: int
    payload: int = 0


@dataclass
class WarpLog:
    """What one warp did: its stamps, and those of its single-thread regions. `exit` None: the lane was never released."""

    warp: int
    entry: int
    exit: int | None
    stamps: list[Stamp] = field(default_factory=list)
    single: list[Stamp] = field(default_factory=list)
    entry_ns: int = 0
    exit_ns: int = 0
    smid: int = 0


def write_region(capacity: int, logs: Iterable[WarpLog], signature: int) -> NDArray[np.uint8]:
    """A zeroed region with the lanes of `logs` filled in as the device side fills them."""
    region = bytearray(region_bytes(capacity))
    for log in logs:
        write_lane(region, capacity, log.warp, log.stamps)
        write_lane(region, capacity, WARPS + log.warp, log.single)
        fields = {
            "smid": log.smid,
            "entry_clock": log.entry % _MODULUS,
            "entry_ns": log.entry_ns,
            "remaining": 8 * capacity,
            "state": ENTERED,
        }
        if log.exit is not None:
            fields |= {"exit_clock": log.exit % _MODULUS, "exit_ns": log.exit_ns, "signature": signature}
            fields |= {"remaining": 8 * (capacity - len(log.stamps)), "state": RELEASED}
            if log.single:
                left = 8 * (capacity - len(log.single))
                write_header(region, capacity, WARPS + log.warp, {"remaining": left, "state": RELEASED})
        write_header(region, capacity, log.warp, fields)
    return np.frombuffer(bytes(region), np.uint8)


def write_lane(region: bytearray, capacity: int, lane: int, stamps: list[Stamp]) -> None:
    """Store as many stamps as the lane has room for."""
    start = lane * lane_bytes(capacity) + HEADER_BYTES
    for index, stamp in enumerate(stamps[:capacity]):
        word = stamp.event | stamp.payload << 16
        struct.pack_into("<II", region, start + 8 * index, stamp.clock % _MODULUS, word)


def write_header(region: bytearray, capacity: int, lane: int, fields: dict[str, int]) -> None:
    """Store header fields of one lane."""
    for name, kind, offset in HEADER:
        if name in fields:
            struct.pack_into(_FORMAT[kind], region, lane * lane_bytes(capacity) + offset, fields[name])
