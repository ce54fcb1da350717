# SPDX-License-Identifier: Apache-2.0
"""Every span as a row of comma-separated values, with its place in the source and what ended it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from autostamp.model.flow import Arrow, Cause, Flow
from autostamp.model.manifest import Manifest
from autostamp.model.timeline import Slice, State, Timeline, WarpTimeline
from autostamp.report.causes import Causes
from autostamp.report.document_timeline import in_hardware_order
from autostamp.report.places import Place, places_of

COLUMNS: Final = (
    *("kernel", "trace", "launch", "block", "role", "warp", "state", "start", "end", "cycles"),
    *("file", "line", "text", "barrier", "side", "stage", "visit", "instance"),
    *("ending", "awaited", "in_flight", "handed_over", "unexplained"),
    *("signal_role", "signal_warp", "signal_cycles", "inferred", "async"),
    *("replay", "error", "length_error", "arrow_error", "uncertain"),
)
_Cell: TypeAlias = str | int
_NO_CAUSE: Final = ("",) * 5
_NO_ARROW: Final = ("",) * 5
_NOT_JOINED: Final = ("",) * 5


def spans_csv(pairs: Sequence[tuple[Timeline, Flow]], manifest: Manifest) -> str:
    """A line of headings and one row for each span, in hardware order and then by start. What is unknown is empty.

    Times are cycles, `block` is `x y z`, `inferred`, `async` and `uncertain` are 0 or 1. What replays say is
    empty for a run that was not joined. Untracked time is no span and has no row.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for timeline, flow in pairs:
        places = places_of(manifest, timeline.trace)
        causes = Causes.of(flow)
        roles = {warp.warp: warp.role for warp in timeline.warps}
        head = (timeline.kernel, timeline.trace, timeline.launch, " ".join(map(str, timeline.block)))
        for warp in in_hardware_order(timeline):
            writer.writerows((*head, *row) for row in _rows(warp, flow, causes, places, roles))
    return text.getvalue()


def _rows(
    warp: WarpTimeline, flow: Flow, causes: Causes, places: Mapping[int, Place], roles: Mapping[int, str]
) -> Iterator[tuple[_Cell, ...]]:
    for part in warp.slices:
        place = places.get(part.instance)
        where: tuple[_Cell, ...] = ("", "", "", "", "")
        if place is not None:
            where = (place.file, place.line or "", place.text, place.barrier, place.side)
        yield (
            *(warp.role, warp.warp, str(part.state), part.start, part.end, part.cycles, *where),
            *(part.stage if part.stage >= 0 else "", part.visit, part.instance),
            *_why(part, warp, flow, causes, roles),
            *_joined(part, _cause(part, warp, flow, causes)),
        )


def _why(part: Slice, warp: WarpTimeline, flow: Flow, causes: Causes, roles: Mapping[int, str]) -> tuple[_Cell, ...]:
    cause = _cause(part, warp, flow, causes)
    if cause is None:
        return (*_NO_CAUSE, *_NO_ARROW)
    parts = (str(cause.ending), cause.awaited, cause.in_flight, cause.handed_over, cause.unexplained)
    return (*parts, *(_arrow(cause.arrow, roles) if cause.arrow else _NO_ARROW))


def _cause(part: Slice, warp: WarpTimeline, flow: Flow, causes: Causes) -> Cause | None:
    index = causes.by_wait.get((warp.warp, part.instance, part.visit)) if part.state is State.STALL else None
    return None if index is None else flow.causes[index]


def _joined(part: Slice, cause: Cause | None) -> tuple[_Cell, ...]:
    """Of a joined run: the set that recorded the end, what place and length are right to, and the arrow that ended it."""
    if not part.replay:
        return _NOT_JOINED
    arrow = cause.arrow if cause is not None else None
    of_arrow: tuple[_Cell, ...] = (arrow.error, int(arrow.is_uncertain)) if arrow is not None else ("", "")
    return (part.replay, part.error, part.length_error, *of_arrow)


def _arrow(arrow: Arrow, roles: Mapping[int, str]) -> tuple[_Cell, ...]:
    signal = arrow.signal
    return (roles.get(signal.warp, ""), signal.warp, signal.cycles, int(arrow.is_inferred), int(arrow.is_async))
