# SPDX-License-Identifier: Apache-2.0
"""What a trip through a loop moves, as far as its disassembly shows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LoopTraffic:
    """Bytes of one trip. `shared_read` and `shared_written`: of one warp, by its own loads and stores, all lanes active.

    `tensor_loaded` and `tensor_stored`: of one warp, from and to tensor memory. `announced`: what the trip's mbarriers are told
    to expect of TMA, in whole, by `announcements` instructions; -1 where one of them takes an amount that is not constant.
    `releases` counts the other arrivals on mbarriers.
    """

    shared_read: int = 0
    shared_written: int = 0
    tensor_loaded: int = 0
    tensor_stored: int = 0
    announced: int = 0
    announcements: int = 0
    releases: int = 0
