# SPDX-License-Identifier: Apache-2.0
"""One trip of a loop as a warp issues it: what the model needs to know of each instruction to play it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from autostamp.model.loop import MmaShape


class OpKind(StrEnum):
    """What an instruction does to the warp that issues it."""

    PLAIN = "plain"
    """It waits for its operands and its pipe."""
    MMA = "mma"
    """A warpgroup MMA: it is issued, and runs in a group of its own."""
    GROUP_WAIT = "group wait"
    """It waits for groups of warpgroup MMAs."""
    MBARRIER_WAIT = "mbarrier wait"
    MBARRIER_ARRIVE = "mbarrier arrive"
    NAMED_SYNC = "named sync"
    """It arrives at a named barrier and waits there."""
    NAMED_ARRIVE = "named arrive"


@dataclass(frozen=True, slots=True)
class Op:
    """One instruction of a trip.

    `reads` and `writes` are registers (predicates are not among them; of a warpgroup MMA operand A alone, as its results are
    ready when its group is). `mma` is the shape of one matrix instruction. `closes`: an MMA that closes a group. `allowed`:
    groups that a wait leaves in flight. `offset`: the constant in the address of an mbarrier (-1: none). `announces`: an
    arrival that says how many bytes to expect. `threads` meet at a named barrier.
    """

    family: str
    kind: OpKind = OpKind.PLAIN
    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    mma: MmaShape | None = None
    closes: bool = False
    allowed: int = 0
    offset: int = -1
    announces: bool = False
    threads: int = 0
