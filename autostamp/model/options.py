# SPDX-License-Identifier: Apache-2.0
"""Choices of the user that more than one stage reads."""

from __future__ import annotations

from dataclasses import dataclass, field

from autostamp.model.sync import SyncOp


@dataclass(frozen=True, slots=True)
class RecordOptions:
    """What to record: records per warp, which CTA (block index x, y, z), and whether stamps carry the stage at run time."""

    capacity: int = 4096
    block: tuple[int, int, int] = (0, 0, 0)
    with_payload: bool = True


@dataclass(frozen=True, slots=True)
class Selection:
    """Which sites to stamp. A term is `kind=wait`, `role=load`, `barrier=pipeline_k`, `file=*fwd*`, `method=...`; globs allowed.

    With `only`, a site must match one of its terms; `skip` then removes matches. Several conditions in one term are joined
    by a comma and must all hold.
    """

    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class InstrumentOptions:
    """Options of one instrumentation: selection and catalogue rows added by the user's pyproject."""

    selection: Selection = field(default_factory=Selection)
    extra_ops: tuple[SyncOp, ...] = ()
