# SPDX-License-Identifier: Apache-2.0
"""What is known of when an asynchronous arrival landed. No record says it: arrows start at its issue.

A use is complete for all of its waiters at once, so it had landed by the first exit of a wait for it. A wait that was entered
before that may have been held up by it, or have taken that long although it was ready.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from autostamp.model.flow import Arrow
from autostamp.model.timeline import Slice

HELD_UP: Final = 200
"""Cycles from a wait's enter to the landing past which it was surely held up. Of the waits on full stages in the recorded
kernels on an H200, those that another warp's exit proves ready at their enter take 48 to 153 cycles in all but one warp,
stamps and contention included; loads of these kernels land a ring ahead, and no wait for one seems held up past 137.
"""

Use: TypeAlias = tuple[int, str, int, int]
"""Barrier, side, stage and count of the use."""


def use_of(arrow: Arrow) -> Use:
    """The use of a barrier that an arrow is about."""
    return arrow.barrier, arrow.side, arrow.stage, arrow.use


def landed_by(arrows: Iterable[Arrow]) -> dict[Use, int]:
    """For each use that an asynchronous arrival completed, the cycle by which it had: the first exit of a wait for it."""
    exits: dict[Use, int] = {}
    for arrow in arrows:
        if arrow.is_async:
            use, cycles = use_of(arrow), arrow.wait.cycles
            if cycles <= exits.get(use, cycles):
                exits[use] = cycles
    return exits


def landing(arrow: Arrow, landed: Mapping[Use, int]) -> int:
    """The latest cycle at which an arrow's asynchronous arrival can have landed."""
    return min(arrow.wait.cycles, landed.get(use_of(arrow), arrow.wait.cycles))


def is_held_up(wait: Slice, arrow: Arrow, landed: Mapping[Use, int]) -> bool:
    """Whether a wait surely lasted for the arrow's asynchronous arrival: issued within it, or landed well after its enter."""
    return arrow.signal.cycles > wait.start or landing(arrow, landed) - wait.start > HELD_UP
