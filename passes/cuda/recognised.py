# SPDX-License-Identifier: Apache-2.0
"""What recognition says of one call or asm."""

from __future__ import annotations

from dataclasses import dataclass

from autostamp.model.sync import Side, StageFrom, SyncOp
from autostamp.passes.cuda.found import OperandKind


@dataclass(frozen=True, slots=True)
class Recognised:
    """What one call or asm is. `barrier`, `phase` and `state` are the texts of its operands, '' where it has none.

    `operand_kind` says what a stamp can take from `barrier`; `group` names what the op concerns when no operand does.
    """

    op: SyncOp
    barrier: str = ""
    phase: str = ""
    state: str = ""
    operand_kind: OperandKind = OperandKind.NONE
    group: str = ""


def recognised(op: SyncOp, barrier: str = "", phase: str = "", state: str = "") -> Recognised:
    """An op with its operands and the kind that follows from them."""
    kind = OperandKind.NONE
    if state and barrier:
        kind = OperandKind.PIPELINE
    elif barrier and op.side is Side.MBARRIER:
        kind = OperandKind.ADDRESS
    elif barrier and op.side is Side.NAMED and op.stage_from is StageFrom.BARRIER_ID:
        kind = OperandKind.BARRIER_ID
    return Recognised(op, barrier, phase, state, kind, op.group)
