# SPDX-License-Identifier: Apache-2.0
"""The record layout, written once: the device-side stamps and the decoder both read these tables.

A region belongs to one kernel trace. It holds LANES lanes of equal size; lane w is warp w's, lane WARPS + w holds what
single-thread regions of warp w recorded (there the executing thread need not be lane 0, so it keeps a cursor of its own).
A lane is a header followed by `capacity` records of 8 bytes `{clock32, event word}`; unused records are zero.
"""

from __future__ import annotations

from typing import Final

import numpy as np

WARPS: Final = 32
"""Warps a CTA can have: 1024 threads (CUDA C++ Programming Guide, compute capabilities table)."""

LANES: Final = 2 * WARPS
DEFAULT_CAPACITY: Final = 4096

HEADER: Final[tuple[tuple[str, str, int], ...]] = (
    ("entry_clock", "<u4", 0),
    ("smid", "<u4", 4),
    ("exit_clock", "<u4", 8),
    ("signature", "<u4", 12),
    ("entry_ns", "<u8", 16),
    ("exit_ns", "<u8", 24),
    ("remaining", "<i4", 32),
    ("state", "<u4", 36),
    ("launch", "<u4", 52),
)
"""Lane header fields: name, little-endian type, byte offset. Neighbours are stored in pairs.

`*_clock` is %clock and `*_ns` %globaltimer, read together at bind and at release. `signature` is written at release: the low
32 bits of a hash of the instance table that numbered the events, because several compilations of one kernel may share a
region. `remaining` is the cursor at release: bytes left in the lane, negative once records were dropped. `state` is ENTERED
from bind and RELEASED from release. `launch` counts the launches before, where the last several are kept (else 0). Of these
the header of a single-thread lane holds `remaining` and `state` only.
"""

GRID: Final = 8
"""Byte offset, in the header of warp 0's single-thread lane, of the launch's size in CTAs: 3 x u32, zero where it is unknown."""

HEADER_BYTES: Final = 64
RECORD_BYTES: Final = 8
ENTERED: Final = 1
RELEASED: Final = 2

EVENT_BITS: Final = 16
EVENT_MASK: Final = (1 << EVENT_BITS) - 1
"""Low half of the event word: event number, from 1. The high half is the payload."""

HEADER_DTYPE: Final = np.dtype(
    {
        "names": [name for name, _, _ in HEADER],
        "formats": [kind for _, kind, _ in HEADER],
        "offsets": [offset for _, _, offset in HEADER],
        "itemsize": HEADER_BYTES,
    }
)
RECORD_DTYPE: Final = np.dtype([("clock", "<u4"), ("event", "<u4")])
OFFSET: Final[dict[str, int]] = {name: offset for name, _, offset in HEADER}


def lane_bytes(capacity: int) -> int:
    """Size of one lane of `capacity` records, in bytes."""
    return HEADER_BYTES + capacity * RECORD_BYTES


def region_bytes(capacity: int) -> int:
    """Size of one kernel trace's region, in bytes."""
    return LANES * lane_bytes(capacity)
