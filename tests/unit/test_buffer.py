# SPDX-License-Identifier: Apache-2.0
"""Where regions may lie: a cursor that goes on past its lane's end must not come to a 4 GiB boundary."""

from __future__ import annotations

import pytest

from autostamp.runtime.buffer import NoMemory, suits
from autostamp.runtime.layout import DEFAULT_CAPACITY, region_bytes

BOUNDARY = 0x7F01_0000_0000
MIB = 1 << 20


@pytest.mark.parametrize(
    ("address", "size", "expected"),
    [
        (0x7F00_0000_0000, 2 * MIB, True),
        (BOUNDARY - 66 * MIB, 2 * MIB, True),  # ends 64 MiB below the boundary
        (BOUNDARY - 66 * MIB + 256, 2 * MIB, False),
        (BOUNDARY - 4096, 4096, False),  # ends at the boundary: the first stamp of a full lane would pass it
        (BOUNDARY - 256, 512, False),  # crosses it
    ],
)
def test_a_region_leaves_room_for_cursors_that_go_on(address, size, expected):
    assert suits(address, size) is expected


def test_made_up_addresses_suit():
    memory = NoMemory()
    size = region_bytes(DEFAULT_CAPACITY)
    assert all(suits(memory.allocate(size), size) for _ in range(64))
