# SPDX-License-Identifier: Apache-2.0
"""Roles from the data: warps that visited the same instances are one group, and its instances say what it is for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from autostamp.model.manifest import Instance
from autostamp.model.timeline import RoleGroup
from autostamp.model.trace import Lane, Trace


def group_warps(trace: Trace, instances: Mapping[int, Instance]) -> tuple[RoleGroup, ...]:
    """The role groups of a CTA, in the order of their first warps. Every lane is in one, also one without records.

    Where the trace names its lanes' roles, they are the groups, whatever was visited.
    """
    if trace.roles:
        return _named(trace)
    by_visited: dict[frozenset[int], list[int]] = {}
    for lane in trace.lanes:
        by_visited.setdefault(frozenset(event.instance for event in lane.events), []).append(lane.warp)
    return tuple(
        RoleGroup(_role(visited, warps, instances), tuple(warps), tuple(sorted(visited)))
        for visited, warps in by_visited.items()
    )


def warps_text(warps: Iterable[int]) -> str:
    """Warp numbers for a reader: `warp 4`, `warps 0-3`, `warps 1, 5-7`."""
    runs: list[list[int]] = []
    for warp in sorted(warps):
        if runs and warp == runs[-1][-1] + 1:
            runs[-1].append(warp)
        else:
            runs.append([warp])
    text = ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
    return f"warp {text}" if text.isdigit() else f"warps {text}"


def _named(trace: Trace) -> tuple[RoleGroup, ...]:
    members: dict[str, list[Lane]] = {}
    for role, lane in zip(trace.roles, trace.lanes, strict=True):
        members.setdefault(role, []).append(lane)
    return tuple(
        RoleGroup(
            role,
            tuple(lane.warp for lane in lanes),
            tuple(sorted({event.instance for lane in lanes for event in lane.events})),
        )
        for role, lanes in members.items()
    )


def _role(visited: frozenset[int], warps: list[int], instances: Mapping[int, Instance]) -> str:
    """The role of most visited instances, of equals that of the first one. Shared code (role '') has no say."""
    counts = Counter(instances[number].role for number in sorted(visited) if instances[number].role)
    return counts.most_common(1)[0][0] if counts else warps_text(warps)
