# SPDX-License-Identifier: Apache-2.0
"""The steady state: the part of a run in which the main loop's iterations repeat, found from the iterations' periods.

The anchor is one wait of one warp. An iteration lasts from one of its visits to the next, so the last visit begins none.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from autostamp.analysis.roles import warps_text
from autostamp.analysis.spans import Span, length
from autostamp.analysis.states import WindowStates, states_of
from autostamp.analysis.timeline import spread_of
from autostamp.model.flow import Steady
from autostamp.model.manifest import Instance
from autostamp.model.timeline import RoleTotals, State, Timeline, WarpTimeline
from autostamp.model.trace import Trace

MIN_ITERATIONS: Final = 4
"""Fewer say nothing about what repeats: quartiles need four values."""

DEVIATIONS: Final = 3.0
TO_DEVIATION: Final = 1.4826
"""Median absolute deviation of a normal distribution to its standard deviation: 1 / 0.6745."""

TOLERANCE: Final = 0.1
"""An iteration within a tenth of the median is of the steady state, however little the others vary."""

_Group: TypeAlias = tuple[str, int, int, str]
"""File and site, barrier, and role: an unrolled loop reaches one site through several instances."""


@dataclass(frozen=True, slots=True)
class _Anchor:
    """A wait as one warp visited it. `marks` are the cycles of its enters, in order, and `peers` those of every warp that
    visited it as often, this one too. `stages` is the depth of its ring (0: none).
    """

    warp: WarpTimeline
    instance: int
    stages: int
    marks: list[int]
    peers: list[list[int]]


def steady_state(
    trace: Trace, timeline: Timeline, known: WindowStates | None = None
) -> tuple[Steady | None, tuple[str, ...]]:
    """The steady state of one CTA, or None, and notes: why there is none, or that it ends where records were lost.

    `fill` and `drain` of the result count the iterations before and after. An iteration is of them when its period is far
    from the median of the middle half of all, and only others of its kind, or the first (last) round of the ring, lie
    between it and the first (last) iteration, in the anchor's warp or in another that iterates with it. Outliers in the
    middle, as tile boundaries of a persistent kernel, stay. `known` takes the states of the steady window.
    """
    anchor = _anchor(trace, timeline)
    if anchor is None:
        return None, ("no steady state: no wait was recorded to its end",)
    horizon, notes = _horizon(trace, anchor.marks[-1])
    marks = [mark for mark in anchor.marks if mark <= horizon]
    periods = _periods(marks)
    fill, drain = _transients(
        [_periods([mark for mark in peer if mark <= horizon]) for peer in anchor.peers], anchor.stages
    )
    iterations = len(periods) - fill - drain
    if iterations < MIN_ITERATIONS:
        what = f"the wait that repeats most, {_wait_text(trace, anchor)}, has {len(periods)} iterations"
        cut = f", {iterations} without fill and drain" if fill or drain else ""
        return None, (*notes, f"no steady state: {what}{cut}, and it takes {MIN_ITERATIONS}")
    marks = marks[fill : len(marks) - drain]
    steady = Steady(
        start=marks[0],
        end=marks[-1],
        warp=anchor.warp.warp,
        role=anchor.warp.role,
        instance=anchor.instance,
        iterations=iterations,
        period=spread_of(periods[fill : len(periods) - drain]),
        marks=tuple(marks),
        fill=fill,
        drain=drain,
        roles=role_totals(timeline.warps, (marks[0], marks[-1]), known),
    )
    return steady, notes


def role_totals(
    warps: Iterable[WarpTimeline], window: Span, known: WindowStates | None = None
) -> tuple[RoleTotals, ...]:
    """Sums over the warps of each role that ran in `window`, in warp-cycles: span = stall + passed + active + untracked."""
    rows: dict[str, list[tuple[int, tuple[int, int, int, int, int]]]] = {}
    for warp in warps:
        states = states_of(warp, window, known)
        span = states.bounds[1] - states.bounds[0]
        if span:
            lengths = (length(states.stalled), length(states.active), states.untracked, length(states.passed))
            rows.setdefault(warp.role, []).append((warp.warp, (span, *lengths)))
    return tuple(
        RoleTotals(role, tuple(warp for warp, _ in members), *(sum(column) for column in zip(*sums, strict=True)))
        for role, members in rows.items()
        for sums in ([row for _, row in members],)
    )


def _anchor(trace: Trace, timeline: Timeline) -> _Anchor | None:
    """The busiest consumer's most visited wait on a full side, where one repeats, else the most visited wait of all.

    Consumers that wait for less than half as many uses as the most eager one are not in the main loop (an epilogue waits
    once a tile). Of equal groups the first in the program counts; of equal warps the first that lost no record.
    """
    instances = {instance.number: instance for instance in trace.kernel.instances}
    visits = _visits(timeline, instances)
    full = {
        group: marks
        for group, marks in visits.items()
        if instances[_first(group, instances)].side == "full" and _most(marks) > MIN_ITERATIONS
    }
    groups = full or visits
    if not groups:
        return None
    most = max(map(_most, groups.values()))
    work = _work_per_warp(timeline)
    role = max(
        dict.fromkeys(group[3] for group, marks in groups.items() if 2 * _most(marks) >= most),
        key=lambda name: work.get(name, 0.0),
    )
    ours = [group for group in groups if group[3] == role]
    group = min(ours, key=lambda item: (-_most(groups[item]), _first(item, instances)))
    warps = {warp.warp: warp for warp in timeline.warps}
    number = min(groups[group], key=lambda warp: (-len(groups[group][warp]), warps[warp].lost, warp))
    stages = {barrier.number: barrier.stages for barrier in trace.kernel.barriers}
    marks = {warp: sorted(cycles) for warp, cycles in groups[group].items()}
    return _Anchor(
        warp=warps[number],
        instance=_first(group, instances),
        stages=stages.get(group[2], 0),
        marks=marks[number],
        peers=[cycles for cycles in marks.values() if len(cycles) == len(marks[number])],
    )


def _visits(timeline: Timeline, instances: Mapping[int, Instance]) -> dict[_Group, dict[int, list[int]]]:
    """Cycles of the enters of all waits, by group and warp."""
    group_of = {number: (row.file, row.site, row.barrier) for number, row in instances.items()}
    visits: dict[_Group, dict[int, list[int]]] = {}
    for warp in timeline.warps:
        for part in warp.slices:
            if part.state is not State.ACTIVE:
                group = (*group_of[part.instance], warp.role)
                visits.setdefault(group, {}).setdefault(warp.warp, []).append(part.start)
    return visits


def _most(marks: Mapping[int, Sequence[int]]) -> int:
    return max(map(len, marks.values()))


def _first(group: _Group, instances: Mapping[int, Instance]) -> int:
    return min(number for number, row in instances.items() if (row.file, row.site, row.barrier) == group[:3])


def _work_per_warp(timeline: Timeline) -> dict[str, float]:
    return {total.role: total.active / len(total.warps) for total in timeline.roles}


def _horizon(trace: Trace, last: int) -> tuple[int, tuple[str, ...]]:
    """Up to which cycle all lanes recorded, if before `last`: past it the states of a warp whose lane was full are unknown."""
    ends = {lane.warp: lane.events[-1].cycles if lane.events else 0 for lane in trace.lanes if lane.is_lossy}
    horizon = min(ends.values(), default=last)
    if horizon >= last:
        return last, ()
    warps = warps_text(warp for warp, end in ends.items() if end < last)
    return horizon, (f"records were lost ({warps}): the steady state is looked for up to cycle {horizon} only",)


def _periods(marks: Sequence[int]) -> list[int]:
    return [end - start for start, end in itertools.pairwise(marks)]


def _transients(peers: Iterable[Sequence[int]], stages: int) -> tuple[int, int]:
    """How many periods at either end are not of the steady state in some warp."""
    found = [_transients_of(periods, stages) for periods in peers if periods]
    return max((fill for fill, _ in found), default=0), max((drain for _, drain in found), default=0)


def _transients_of(periods: Sequence[int], stages: int) -> tuple[int, int]:
    values = np.asarray(periods, dtype=np.float64)
    quarter = len(values) // 4
    middle = values[quarter : len(values) - quarter]
    median = float(np.median(middle))
    deviation = TO_DEVIATION * float(np.median(np.abs(middle - median)))
    is_off = np.abs(values - median) > max(DEVIATIONS * deviation, TOLERANCE * median)
    reach = min(stages, quarter)
    return _leading(is_off.tolist(), reach), _leading(is_off[::-1].tolist(), reach)


def _leading(is_off: list[bool], reach: int) -> int:
    """Length of the leading run, or up to the last that is off among the first `reach`, whichever is more."""
    run = next((index for index, off in enumerate(is_off) if not off), len(is_off))
    return max([run, *(index + 1 for index in range(reach) if is_off[index])])


def _wait_text(trace: Trace, anchor: _Anchor) -> str:
    instance = next(row for row in trace.kernel.instances if row.number == anchor.instance)
    label = next((row.label for row in trace.kernel.barriers if row.number == instance.barrier), "a barrier")
    return f"{anchor.warp.role} on {label} ({instance.side}, warp {anchor.warp.warp})"
