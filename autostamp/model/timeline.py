# SPDX-License-Identifier: Apache-2.0
"""What the analysis makes of a trace: states of a warp over time, and their sums."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """What a span of a warp's time was. Untracked time has no span: nothing brackets it.

    PASS: a wait whose barrier was complete already, so that it took no longer than a ready wait costs. It is no stall.
    """

    ACTIVE = "active"
    STALL = "stall"
    PASS = "pass"


@dataclass(frozen=True, slots=True)
class Slice:
    """A half-open span of one warp in cycles.

    For a stall or a pass, `instance` is the wait; for a hold, the wait that opened it, and `signal` the instance that ended it
    (0 for a stall or a pass). `visit` is the wait's; `stage` the ring index, -1 when it is unknown. A work region is active,
    `instance` and `visit` are its own, and `signal` is 0.

    In a joined trace `replay` is the set that recorded its end, `error` by how many cycles its place may be wrong, and
    `length_error` its length: 0 where one replay recorded both ends, but for what a `Fit` counts as shortened.
    """

    start: int
    end: int
    state: State
    instance: int
    visit: int
    stage: int
    signal: int = 0
    replay: int = 0
    error: int = 0
    length_error: int = 0

    @property
    def cycles(self) -> int:
        """Length of the span."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Signal:
    """An arrival of one warp on a barrier: when, by which instance, and which stage (-1: unknown)."""

    cycles: int
    instance: int
    visit: int
    stage: int


@dataclass(frozen=True, slots=True)
class WarpTimeline:
    """One warp: its slices in start order and the union lengths. span = stall + passed + active + untracked, in cycles.

    `start` and `end` bound the span on the axis of the slices. `open_waits` are the instances of waits that were
    entered and whose exit was not recorded: of a lossy lane it may be among the lost records, of another the warp
    never came out.
    """

    warp: int
    role: str
    slices: tuple[Slice, ...]
    span: int
    stall: int
    active: int
    untracked: int
    lost: int
    start: int = 0
    end: int = 0
    signals: tuple[Signal, ...] = ()
    open_waits: tuple[int, ...] = ()
    is_released: bool = True
    passed: int = 0


@dataclass(frozen=True, slots=True)
class Spread:
    """Order statistics of one set of durations, in cycles. Percentiles interpolate linearly between ranks."""

    count: int
    total: int
    p10: float
    median: float
    p90: float
    longest: int


@dataclass(frozen=True, slots=True)
class SiteStall:
    """Durations of the waits of one site on one barrier, over all warps of one role.

    `instances` are the call paths that reached it (an unrolled loop makes one for every copy), `instance` the first of them.
    """

    instance: int
    role: str
    warps: tuple[int, ...]
    spread: Spread
    instances: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class LongStall:
    """One stall among the longest of a CTA."""

    warp: int
    role: str
    stall: Slice


@dataclass(frozen=True, slots=True)
class RoleGroup:
    """Warps that visited the same set of instances, and the role that this set belongs to; or the warps of a role that the
    trace names, and all instances that they visited.
    """

    role: str
    warps: tuple[int, ...]
    instances: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RoleTotals:
    """Sums over the warps of one role, in warp-cycles."""

    role: str
    warps: tuple[int, ...]
    span: int
    stall: int
    active: int
    untracked: int
    passed: int = 0


@dataclass(frozen=True, slots=True)
class Timeline:
    """One CTA of one kernel, analysed.

    `trace` is the number of the kernel trace in the manifest, `block` the block index of the recorded CTA, `smid` the
    SM it ran on (-1: unknown). `never_visited` are instances with stamps that no lane visited. `longest` are the
    longest stalls, longest first. `launch` counts the recorded launches of the kernel from 0.

    Timelines of several CTAs of one launch share an axis when `offset`, in cycles, is added to all of this one's; it is right
    to within `alignment_error` cycles (-1: not aligned). `wave` counts the CTAs that this CTA's SM had run before (-1: unknown).
    `unit` is the trace's: where it is `ns`, all that is called cycles here is nanoseconds.
    """

    kernel: str
    warps: tuple[WarpTimeline, ...]
    roles: tuple[RoleTotals, ...]
    sites: tuple[SiteStall, ...]
    never_visited: tuple[int, ...]
    sm_mhz: float
    trace: int = 0
    block: tuple[int, int, int] = (0, 0, 0)
    smid: int = -1
    groups: tuple[RoleGroup, ...] = ()
    longest: tuple[LongStall, ...] = ()
    warnings: tuple[str, ...] = ()
    launch: int = 0
    offset: int = 0
    alignment_error: int = -1
    wave: int = -1
    unit: str = "cycles"

    @property
    def cycles(self) -> int:
        """From the first warp's start to the last warp's end."""
        return max((warp.end for warp in self.warps), default=0) - min((warp.start for warp in self.warps), default=0)

    @property
    def lost(self) -> int:
        """Records that found their lane full, over all warps."""
        return sum(warp.lost for warp in self.warps)
