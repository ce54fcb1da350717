# SPDX-License-Identifier: Apache-2.0
"""Who waited for whom in one CTA: arrows from arrivals to waits, what ended each stall, and what bound the steady state.

What there is one of for every record is a named tuple: a million of them are made in a quarter of the time of dataclasses.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from autostamp.model.timeline import RoleTotals, Slice, Spread


class End(NamedTuple):
    """One end of an arrow: the record of `instance`'s `visit` in `warp`, at `cycles`."""

    warp: int
    instance: int
    visit: int
    cycles: int


class Arrow(NamedTuple):
    """From the last arrival of one use of a barrier to the exit of a wait for that use.

    `use` counts the phases of (barrier, side, stage) from 0. `others` are the earlier arrivals of the same use, in order of
    time. `is_async`: the arrival lands later than its issue, where the arrow starts. `is_inferred`: the records do not name
    the barrier or its stage, so the pair rests on the source's declaration and on order.

    `error` is by how many cycles its length may be wrong: in a joined trace, and where the arrival's stamp stands before it.
    `is_between` says that two replays recorded its ends, and `is_uncertain` that those errors are larger than what decides
    which arrival it starts at.
    """

    signal: End
    wait: End
    barrier: int
    side: str
    stage: int
    use: int
    others: tuple[End, ...] = ()
    is_async: bool = False
    is_inferred: bool = False
    error: int = 0
    is_between: bool = False
    is_uncertain: bool = False


class Ending(StrEnum):
    """What ended a stall."""

    SIGNAL = "signal"
    """An arrival that took effect when it was made."""
    TRANSFER = "transfer"
    """An asynchronous arrival: bytes of a TMA copy, a committed MMA."""
    GROUP = "group"
    """The warp's own asynchronous group: wgmma, cp.async, a bulk store."""
    GRANTED = "granted"
    """Nothing: the first round of a ring is free, and the wait was long all the same."""
    UNSEEN = "unseen"
    """No record of this CTA: another CTA, or a call that is not stamped."""
    LOST = "lost"
    """Unknown: records of a warp that may have arrived were dropped."""


class Cause(NamedTuple):
    """Why one stall lasted: `stall.cycles` = awaited + in_flight + handed_over + unexplained.

    awaited: from the enter to the arrival, which the arriving warp had not made yet. in_flight: from the issue of an
    asynchronous arrival (or the enter, if later) until it had landed for certain: the first exit of a wait for its use.
    handed_over: from there, or from another arrival, to the exit, up to the hand-off latency; where the last to arrive is
    itself a wait, up to what a ready wait takes. unexplained: the rest. `role` is the arriving warp's, empty when there is no
    arrow. `is_binding`: the exit followed the arrival within the hand-off latency, or the transfer that was awaited was issued
    within the stall.
    """

    warp: int
    stall: Slice
    ending: Ending
    arrow: Arrow | None
    role: str
    awaited: int
    in_flight: int
    handed_over: int
    unexplained: int
    is_binding: bool


@dataclass(frozen=True, slots=True)
class Blame:
    """Stall of one role by the barrier waited on and the role that arrived last, in warp-cycles.

    `by` is empty where no arrow explains the stall. `share` is of all the role's stall, 0 to 1.
    """

    role: str
    barrier: int
    side: str
    by: str
    ending: Ending
    count: int
    cycles: int
    share: float


@dataclass(frozen=True, slots=True)
class Steady:
    """The part of the run in which iterations repeat: between fill and drain.

    An iteration begins at each wait of `warp` on `instance`'s site and barrier; `marks` are the cycles where the steady
    ones begin, and the end of the last. `fill` and `drain` count the iterations before and after. `roles` are totals over
    the window, of those that ran in it.
    """

    start: int
    end: int
    warp: int
    role: str
    instance: int
    iterations: int
    period: Spread
    marks: tuple[int, ...]
    fill: int
    drain: int
    roles: tuple[RoleTotals, ...]


@dataclass(frozen=True, slots=True)
class Overlap:
    """Busy time of two roles, or spans, in the steady window: cycles that both were busy, and that either was."""

    first: str
    second: str
    common: int
    busy: int

    @property
    def share(self) -> float:
        """`common` ÷ `busy`, 0 to 1."""
        return self.common / self.busy if self.busy else 0.0


@dataclass(frozen=True, slots=True)
class Depth:
    """Stages of a ring that were in use at once in the steady window: `median` over time, and the most."""

    barrier: int
    stages: int
    median: float
    most: int


@dataclass(frozen=True, slots=True)
class EarlySignals:
    """Arrows of one signal instance that leave the middle of a work span of the signalling warp."""

    instance: int
    role: str
    early: int
    arrows: int


class PathKind(StrEnum):
    """What a part of the critical path was."""

    ACTIVE = "active"
    UNTRACKED = "untracked"
    TRANSFER = "transfer"
    HAND_OFF = "hand-off"
    STALL = "stall"
    """A stall that no arrow explains."""


@dataclass(frozen=True, slots=True)
class PathPart:
    """One step of the critical path. `barrier` is 0 for work; `role` is who did it, or who was waited for."""

    warp: int
    role: str
    kind: PathKind
    barrier: int
    side: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Slack:
    """By how much a role's arrivals came before anyone waited for them, in cycles, over the steady window.

    0 where somebody waited; of an asynchronous arrival that held nobody up, at most this, for it counts from the issue.
    `arrows` counts arrivals: one that several waits were for counts once, by its first waiter.
    """

    role: str
    least: int
    median: float
    arrows: int


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """The chain of work and waits that set the length of the steady window, in order of time and without gaps.

    `by_role` and `by_barrier` are shares of its length, 0 to 1, largest first; a part is either a role's work or time in
    between that belongs to a barrier.
    """

    parts: tuple[PathPart, ...]
    by_role: tuple[tuple[str, float], ...]
    by_barrier: tuple[tuple[int, str, float], ...]
    slack: tuple[Slack, ...]


@dataclass(frozen=True, slots=True)
class Flow:
    """All of it for one timeline. `steady` and `path` are None where no iteration repeats; `notes` say why, and what else
    a reader must know.
    """

    arrows: tuple[Arrow, ...]
    causes: tuple[Cause, ...]
    blame: tuple[Blame, ...]
    steady: Steady | None
    path: CriticalPath | None
    overlaps: tuple[Overlap, ...]
    depths: tuple[Depth, ...]
    early: tuple[EarlySignals, ...]
    notes: tuple[str, ...] = ()
