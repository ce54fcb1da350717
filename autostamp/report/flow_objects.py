# SPDX-License-Identifier: Apache-2.0
"""The parts of a flow that are few: objects that JSON can hold, for the document and for `autostamp summary --json`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any, TypeAlias

from autostamp.model.flow import CriticalPath, Flow, Steady
from autostamp.model.timeline import RoleTotals, WarpTimeline
from autostamp.report.columns import Column

Number: TypeAlias = Callable[[int], int]
"""From a number within the kernel trace to the one that is written."""


def times(total: RoleTotals | WarpTimeline) -> dict[str, int]:
    """Span and its four parts; for a role, in warp-cycles."""
    parts = ("span", "stall", "passed", "active", "untracked")
    return {part: getattr(total, part) for part in parts}


def roles(totals: Iterable[RoleTotals]) -> list[dict[str, Any]]:
    """One object a role."""
    return [{"role": role.role, "warps": list(role.warps), **times(role)} for role in totals]


def blame(flow: Flow, barrier: Number) -> list[dict[str, Any]]:
    """Who is to blame for each role's stall, most cycles first."""
    ordered = sorted(flow.blame, key=lambda row: (-row.cycles, row.role, row.barrier, row.side, row.by, row.ending))
    return [{**asdict(row), "barrier": barrier(row.barrier), "ending": str(row.ending)} for row in ordered]


def steady(found: Steady | None, instance: Number, marks: Callable[[Iterable[int]], Column]) -> dict[str, Any] | None:
    """The steady window, or None."""
    if found is None:
        return None
    return {
        "start": found.start,
        "end": found.end,
        "warp": found.warp,
        "role": found.role,
        "instance": instance(found.instance),
        "iterations": found.iterations,
        "marks": marks(found.marks),
        "fill": found.fill,
        "drain": found.drain,
        "period": asdict(found.period),
        "roles": roles(found.roles),
    }


def path_shares(path: CriticalPath, barrier: Number) -> dict[str, Any]:
    """Shares of the critical path, and the slack of the roles."""
    return {
        "by_role": [[role, share] for role, share in path.by_role],
        "by_barrier": [[barrier(number), side, share] for number, side, share in path.by_barrier],
        "slack": [asdict(item) for item in path.slack],
    }


def overlaps(flow: Flow) -> list[dict[str, Any]]:
    """Overlap of every pair, with its share."""
    return [{**asdict(item), "share": item.share} for item in flow.overlaps]


def depths(flow: Flow, barrier: Number) -> list[dict[str, Any]]:
    """Stages in use at once, ring by ring."""
    return [{**asdict(item), "barrier": barrier(item.barrier)} for item in flow.depths]


def early(flow: Flow, instance: Number) -> list[dict[str, Any]]:
    """Signals from the middle of work."""
    return [{**asdict(item), "instance": instance(item.instance)} for item in flow.early]
