# SPDX-License-Identifier: Apache-2.0
"""Arrows from signals whose stamps stand before them (`Form.BEFORE`): when the signal was made is known between two records.

It comes no earlier than its own record and no later than the warp's next one, nor than the end of the wait that it ended. The
arrow starts at the record; its error is that span. Stamps that stand after their signals are as they always were.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import replace
from statistics import median

from autostamp.analysis.dependencies import Dependencies
from autostamp.model.flow import Arrow, End
from autostamp.model.placement import Form
from autostamp.model.trace import Trace


def bounded(trace: Trace, found: Dependencies) -> Dependencies:
    """The dependencies with the errors of such arrows. One whose use has another arrival within an error is uncertain."""
    before = {row.number for row in trace.kernel.instances if row.form == Form.BEFORE and row.signal}
    if not before:
        return found
    times = {lane.warp: sorted(event.cycles for event in lane.events) for lane in trace.lanes}
    ends = {lane.warp: lane.exit_cycles for lane in trace.lanes}
    arrows = tuple(_bounded(arrow, before, times, ends) for arrow in found.arrows)
    spans = [
        new.error - old.error for new, old in zip(arrows, found.arrows, strict=True) if new.signal.instance in before
    ]
    if not spans:
        return replace(found, arrows=arrows)
    note = (
        f"{len(spans):,} arrows start at stamps that stand before their signals: the signals came up to {max(spans):,} cycles "
        f"later (half of them up to {round(median(spans)):,})"
    )
    return replace(found, arrows=arrows, notes=(*found.notes, note))


def _bounded(arrow: Arrow, before: set[int], times: Mapping[int, list[int]], ends: Mapping[int, int]) -> Arrow:
    latest = [_latest(end, times, ends) for end in arrow.others if end.instance in before]
    is_close = any(each > arrow.signal.cycles for each in latest)
    if arrow.signal.instance in before:
        last = min(_latest(arrow.signal, times, ends), max(arrow.wait.cycles, arrow.signal.cycles))
        arrow = arrow._replace(error=arrow.error + last - arrow.signal.cycles)
    return arrow._replace(is_uncertain=arrow.is_uncertain or is_close)


def _latest(end: End, times: Mapping[int, list[int]], ends: Mapping[int, int]) -> int:
    """The clock of the warp's next record, or of its end."""
    own = times[end.warp]
    at = bisect_right(own, end.cycles)
    return own[at] if at < len(own) else max(ends[end.warp], end.cycles)
