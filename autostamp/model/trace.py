# SPDX-License-Identifier: Apache-2.0
"""Decoded records."""

from __future__ import annotations

from dataclasses import dataclass, field

from autostamp.model.manifest import EventKind, KernelTrace


@dataclass(frozen=True, slots=True)
class Event:
    """One decoded record. `cycles` is the SM clock since the CTA's first stamp, unwrapped past 32 bits."""

    cycles: int
    kind: EventKind
    instance: int
    payload: int
    visit: int


@dataclass(frozen=True, slots=True)
class Lane:
    """One warp's records in clock order.

    `entry_cycles` and `exit_cycles` are the clocks read when the kernel bound and released the lane, on the same axis as the
    events (-1: not recorded); `entry_ns` and `exit_ns` the global timer at the same places. `lost` counts records that found
    the lane full.

    In a joined trace `replays` has for every event the number of the replay set that recorded it, and `errors` by how many cycles
    its place on the axis may be wrong: 0 for those of the reference. Both are empty in a trace that was recorded as it is.
    """

    warp: int
    smid: int
    events: tuple[Event, ...]
    lost: int
    entry_cycles: int
    exit_cycles: int
    entry_ns: int
    exit_ns: int
    replays: tuple[int, ...] = ()
    errors: tuple[int, ...] = ()

    @property
    def is_lossy(self) -> bool:
        """True when records were dropped, so counts past the last event are unknown."""
        return self.lost > 0


@dataclass(frozen=True, slots=True)
class Trace:
    """The lanes of one CTA in one launch of a kernel trace, in warp order, on one cycle axis (0 = earliest entry).

    `block` is the CTA's index and `grid` the launch's size in CTAs ((0, 0, 0): unknown); `launch` counts the recorded launches
    of the kernel trace from 0, in order. `clock` is what %clock, 32 bits wide and one for each SM, read at cycle 0 (-1: unknown).

    `unit` is what the axis counts: `cycles`, or `ns` where the input was stamped with a nanosecond timer (all that is called
    cycles is then nanoseconds). `roles` names the role of every lane where the input says it; empty: it comes from the data.
    """

    kernel: KernelTrace
    lanes: tuple[Lane, ...]
    sm_mhz: float
    warnings: tuple[str, ...] = field(default=())
    block: tuple[int, int, int] = (0, 0, 0)
    launch: int = 0
    grid: tuple[int, int, int] = (0, 0, 0)
    clock: int = -1
    unit: str = "cycles"
    roles: tuple[str, ...] = ()
