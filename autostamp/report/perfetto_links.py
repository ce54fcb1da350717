# SPDX-License-Identifier: Apache-2.0
"""Arrows as numbered flows of a Perfetto trace, found by the records at their ends."""

from __future__ import annotations

from collections.abc import Sequence

from autostamp.model.flow import Arrow, Flow
from autostamp.report.causes import Causes, Visit, ends_of


class Links:
    """Flows of one timeline, numbered from `first`: a number may be used once in a trace. Without a flow there is none.

    An arrow of a warp to its own wait is none either: nobody else is at its other end.
    """

    def __init__(self, flow: Flow | None = None, first: int = 1) -> None:
        self._flow = flow
        self._causes = Causes.of(flow) if flow else None
        self._leaving: dict[Visit, list[tuple[int, Arrow]]] = {}
        self._arriving: dict[Visit, tuple[int, Arrow]] = {}
        arrows = flow.arrows if flow else ()
        for number, arrow in enumerate(arrows, start=first):
            signal, wait = ends_of(arrow)
            if arrow.signal.warp != arrow.wait.warp:
                self._leaving.setdefault(signal, []).append((number, arrow))
                self._arriving[wait] = (number, arrow)
        self.count = len(arrows)

    def leaving(self, visit: Visit) -> Sequence[tuple[int, Arrow]]:
        """Flows that begin at a record."""
        return self._leaving.get(visit, ())

    def arriving(self, visit: Visit) -> tuple[int, Arrow] | None:
        """The flow that ended a wait."""
        return self._arriving.get(visit)

    def why(self, visit: Visit) -> tuple[tuple[str, str | int], ...]:
        """Why a stall lasted, as arguments of its slice: what ended it, and its cycles in four parts."""
        index = self._causes.by_wait.get(visit) if self._causes else None
        if index is None or self._flow is None:
            return ()
        cause = self._flow.causes[index]
        parts = ("awaited", "in_flight", "handed_over", "unexplained")
        return (("ending", str(cause.ending)), *((part, getattr(cause, part)) for part in parts))
