# SPDX-License-Identifier: Apache-2.0
"""What a sync op is: the vocabulary of the catalogue and of every site."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What the call does to the warp that executes it. WORK is no call: a region of bracketed work, in hand-made input."""

    WAIT = "wait"
    SIGNAL = "signal"
    POLL = "poll"
    FENCE = "fence"
    WORK = "work"


class Side(StrEnum):
    """Which side of which barrier the call touches. NONE: the input, which was made by hand, does not say."""

    FULL = "full"
    EMPTY = "empty"
    MBARRIER = "mbarrier"
    NAMED = "named"
    CTA = "cta"
    WARP = "warp"
    CLUSTER = "cluster"
    GRID = "grid"
    ASYNC_GROUP = "async-group"
    FLAG = "flag"
    NONE = ""

    @property
    def is_deferred(self) -> bool:
        """True where the instruction only asks the warp to wait: later ones that touch no memory still execute, so a clock
        read right behind it comes before the wait (docs/adr/0009).
        """
        return self in {Side.NAMED, Side.CTA, Side.CLUSTER, Side.GRID}


class StageFrom(StrEnum):
    """Where the call says which stage (and phase or count) of the barrier it means."""

    NONE = "none"
    STATE = "state"
    INDEX_PHASE = "index-phase"
    INDEX = "index"
    PARTICIPANT = "participant"
    HANDLE = "handle"
    POINTER = "pointer"
    BARRIER_ID = "barrier-id"
    OBJECT = "object"


@dataclass(frozen=True, slots=True)
class SyncOp:
    """One row of the catalogue: a public call that blocks on or signals another warp.

            `method` is the called name; `owner` the class or module that defines it. `signals` lists the sides that the call also
            arrives on (a TMA producer's acquire arms the full barrier), `is_noop` marks a call that emits no instruction,
            `is_async` a signal that fires later than its issue. `group` names what the call waits on when no operand does
        (the thread's wgmma groups, the cluster); `receiver` is a text that the receiver must hold, for a method whose name says
    little. `since` and `until` are DSL versions (empty: no bound known).
    """

    owner: str
    method: str
    kind: Kind
    side: Side
    stage_from: StageFrom = StageFrom.NONE
    signals: tuple[Side, ...] = ()
    is_noop: bool = False
    is_async: bool = False
    group: str = ""
    receiver: str = ""
    advances: bool = False
    since: str = ""
    until: str = ""
    note: str = ""
