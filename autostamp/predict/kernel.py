# SPDX-License-Identifier: Apache-2.0
"""What is known of a kernel before the user's word: its loops by role, and its rings."""

from __future__ import annotations

from dataclasses import dataclass

from autostamp.model.loop import LoopFacts
from autostamp.model.loop_traffic import LoopTraffic
from autostamp.model.trip_code import Op


@dataclass(frozen=True, slots=True)
class RoleLoop:
    """One role's main loop. `warps` run it, found as `warps_source` says (0: unknown); `copies` alike parts are one trip.

    `trips` through it are one iteration. `code` is one trip, to be played (empty: unknown). `is_outer`: it stands around the
    loops of other roles, or beside what stands around them, and is run once for many of their trips.
    """

    role: str
    warps: int
    warps_source: str
    facts: LoopFacts
    traffic: LoopTraffic
    copies: int = 1
    is_outer: bool = False
    trips: float = 1.0
    code: tuple[Op, ...] = ()

    @property
    def times(self) -> str:
        """What is said behind an amount of one trip where an iteration is not one."""
        return "" if self.trips == 1 else f", {self.trips:g} trips"

    @property
    def source(self) -> str:
        """Where its instructions were counted."""
        return f"loop {self.facts.start:#06x}-{self.facts.end:#06x}"


@dataclass(frozen=True, slots=True)
class KnownRing:
    """A ring that a run or a cubin shows: between which roles, and how deep.

    `source` says where it was found ("": a run). `full` and `empty` are the constants in the addresses of its mbarriers (-1:
    unknown).
    """

    name: str
    producer: str
    consumer: str
    stages: int
    source: str = ""
    full: int = -1
    empty: int = -1


@dataclass(frozen=True, slots=True)
class Kernel:
    """What is known before the user's word.

    `all_roles` are the names that a budget may use; none: any. `active_sms` 0: all. `notes` become blind spots, and `without`
    says why there are no loops.
    """

    name: str
    loops: tuple[RoleLoop, ...] = ()
    rings: tuple[KnownRing, ...] = ()
    all_roles: tuple[str, ...] = ()
    active_sms: int = 0
    notes: tuple[str, ...] = ()
    without: str = ""
