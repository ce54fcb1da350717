# SPDX-License-Identifier: Apache-2.0
"""One timeline of a report document: its rows, and the flow between them, as columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from operator import attrgetter
from typing import Any, Final

from autostamp.model.flow import Arrow, CriticalPath, Ending, Flow, PathKind
from autostamp.model.run import MachineFacts
from autostamp.model.timeline import Timeline, WarpTimeline
from autostamp.report import flow_objects
from autostamp.report.causes import Causes
from autostamp.report.clock import clock_mhz
from autostamp.report.columns import Column, Encode
from autostamp.report.cost import Cost
from autostamp.report.document_rows import row_object
from autostamp.report.document_tables import Numbers
from autostamp.report.joined_notes import site_errors
from autostamp.report.verdict import Verdict

ENDINGS: Final = {ending: number for number, ending in enumerate(Ending)}
"""signal 0, transfer 1, group 2, granted 3, unseen 4, lost 5."""
PATH_KINDS: Final = {kind: number for number, kind in enumerate(PathKind)}
"""active 0, untracked 1, transfer 2, hand-off 3, stall 4."""
ASYNC, INFERRED, BETWEEN, UNCERTAIN = 1, 2, 4, 8
"""Bits of an arrow's flags."""


@dataclass(frozen=True, slots=True)
class _Writer:
    """What all parts of one timeline's object need: how to number and how to store."""

    flow: Flow
    causes: Causes
    rows: Mapping[int, int]
    numbers: Numbers
    columns: Encode

    def instance(self, number: int) -> int:
        return number + self.numbers.instances

    def instances(self, numbers: Iterable[int]) -> Column:
        return self.columns(self.numbers.instances_of(numbers))

    def barriers(self, numbers: Iterable[int]) -> Column:
        listed = list(numbers)
        written = {number: self.numbers.barrier(number) for number in set(listed)}
        return self.columns([written[number] for number in listed])

    def clocks(self, cycles: Iterable[int]) -> Column:
        return self.columns(cycles, delta=True)


def timeline_object(
    pair: tuple[Timeline, Flow], facts: MachineFacts, said: Verdict, cost: Cost, numbers: Numbers, columns: Encode
) -> dict[str, Any]:
    """One element of the document's `timelines`, without a prediction."""
    timeline, flow = pair
    ordered = in_hardware_order(timeline)
    rows = {warp.warp: row for row, warp in enumerate(ordered)}
    writer = _Writer(flow, Causes.of(flow), rows, numbers, columns)
    errors = site_errors(timeline)
    return {
        "kernel": timeline.kernel,
        "trace": timeline.trace,
        "launch": timeline.launch,
        "block": list(timeline.block),
        "smid": _known(timeline.smid),
        "wave": _known(timeline.wave),
        "offset": timeline.offset,
        "alignment_error": _known(timeline.alignment_error),
        "start": min((warp.start for warp in ordered), default=0),
        "end": max((warp.end for warp in ordered), default=0),
        "sm_mhz": clock_mhz(timeline, facts) or None,
        "lost": timeline.lost,
        "verdict": {"headline": said.headline, "lines": list(said.sentences)},
        "cost": cost.as_object(timeline.lost),
        "roles": flow_objects.roles(timeline.roles),
        "rows": [row_object(warp, writer.causes.by_wait, numbers, columns) for warp in ordered],
        "arrows": _arrows(writer),
        "causes": _causes(writer),
        "blame": flow_objects.blame(flow, numbers.barrier),
        "steady": flow_objects.steady(flow.steady, writer.instance, writer.clocks),
        "path": _path(flow.path, writer),
        "overlaps": flow_objects.overlaps(flow),
        "depths": flow_objects.depths(flow, numbers.barrier),
        "early": flow_objects.early(flow, writer.instance),
        "sites": [
            {"instance": writer.instance(site.instance), "role": site.role, **asdict(site.spread)}
            | ({"error": errors[site.role, site.instance]} if (site.role, site.instance) in errors else {})
            for site in timeline.sites
        ],
        "prediction": None,
    }


def in_hardware_order(timeline: Timeline) -> list[WarpTimeline]:
    """Warps of a role together, roles in the order of their first warps."""
    first = {role.role: min(role.warps, default=0) for role in timeline.roles}
    return sorted(timeline.warps, key=lambda warp: (first.get(warp.role, warp.warp), warp.role, warp.warp))


def _arrows(writer: _Writer) -> dict[str, Any]:
    arrows, columns, rows = writer.flow.arrows, writer.columns, writer.rows
    signals, waits = [arrow.signal for arrow in arrows], [arrow.wait for arrow in arrows]
    return {
        "from_row": columns([rows[end.warp] for end in signals]),
        "from": writer.clocks(map(attrgetter("cycles"), signals)),
        "from_instance": writer.instances(map(attrgetter("instance"), signals)),
        "to_row": columns([rows[end.warp] for end in waits]),
        "to": writer.clocks(map(attrgetter("cycles"), waits)),
        "to_instance": writer.instances(map(attrgetter("instance"), waits)),
        "to_visit": columns(map(attrgetter("visit"), waits)),
        "barrier": writer.barriers(map(attrgetter("barrier"), arrows)),
        "stage": columns(map(attrgetter("stage"), arrows)),
        "use": columns(map(attrgetter("use"), arrows)),
        "flags": columns([_flags(arrow) for arrow in arrows]),
        **({"error": columns(map(attrgetter("error"), arrows))} if any(arrow.error for arrow in arrows) else {}),
    }


def _flags(arrow: Arrow) -> int:
    return (
        ASYNC * arrow.is_async
        + INFERRED * arrow.is_inferred
        + BETWEEN * arrow.is_between
        + UNCERTAIN * arrow.is_uncertain
    )


def _causes(writer: _Writer) -> dict[str, Any]:
    causes, columns = writer.flow.causes, writer.columns
    parts = ("awaited", "in_flight", "handed_over", "unexplained")
    return {
        "ending": columns([ENDINGS[cause.ending] for cause in causes]),
        "arrow": columns([writer.causes.arrow_of(cause) for cause in causes]),
        **{part: columns(map(attrgetter(part), causes)) for part in parts},
        "binding": columns([int(cause.is_binding) for cause in causes]),
    }


def _path(path: CriticalPath | None, writer: _Writer) -> dict[str, Any] | None:
    if path is None:
        return None
    parts = path.parts
    return {
        "parts": {
            "row": writer.columns([writer.rows[part.warp] for part in parts]),
            "kind": writer.columns([PATH_KINDS[part.kind] for part in parts]),
            "barrier": writer.barriers(part.barrier for part in parts),
            "start": writer.clocks([part.start for part in parts]),
            "end": writer.clocks([part.end for part in parts]),
        },
        **flow_objects.path_shares(path, writer.numbers.barrier),
    }


def _known(value: int) -> int | None:
    """-1 stands for unknown in the model."""
    return value if value >= 0 else None
