# SPDX-License-Identifier: Apache-2.0
"""Arrows and causes of a flow, found by the record that they belong to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from autostamp.model.flow import Arrow, Cause, End, Flow

Visit: TypeAlias = tuple[int, int, int]
"""Warp, instance, visit: one record, or the two of one wait."""


@dataclass(frozen=True, slots=True)
class Causes:
    """Indices into a flow's `causes` and `arrows`: causes by the wait, arrows by both of their ends."""

    by_wait: Mapping[Visit, int]
    by_ends: Mapping[tuple[End, End], int]

    @classmethod
    def of(cls, flow: Flow) -> Causes:
        """Index a flow once; looking up is cheap then."""
        return cls(
            {(cause.warp, cause.stall.instance, cause.stall.visit): n for n, cause in enumerate(flow.causes)},
            {(arrow.signal, arrow.wait): n for n, arrow in enumerate(flow.arrows)},
        )

    def arrow_of(self, cause: Cause) -> int:
        """Index of the arrow that a cause names, -1 when it names none."""
        arrow = cause.arrow
        return self.by_ends.get((arrow.signal, arrow.wait), -1) if arrow is not None else -1


def ends_of(arrow: Arrow) -> tuple[Visit, Visit]:
    """The records at both ends of an arrow."""
    signal, wait = arrow.signal, arrow.wait
    return (signal.warp, signal.instance, signal.visit), (wait.warp, wait.instance, wait.visit)
