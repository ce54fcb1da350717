# SPDX-License-Identifier: Apache-2.0
"""One trace, analysed: where every warp's time went, per warp, per role and per site."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from autostamp.analysis.holds import holds_of
from autostamp.analysis.latencies import Latencies, language_of, latencies_of
from autostamp.analysis.rings import Rings
from autostamp.analysis.roles import group_warps
from autostamp.analysis.slice_origins import with_origins
from autostamp.analysis.spans import length, overlap, union
from autostamp.analysis.stalls import waits_of
from autostamp.analysis.work import work_of
from autostamp.model.manifest import Barrier, EventKind, Instance
from autostamp.model.timeline import (
    LongStall,
    RoleTotals,
    Signal,
    SiteStall,
    Slice,
    Spread,
    State,
    Timeline,
    WarpTimeline,
)
from autostamp.model.trace import Lane, Trace


def analyse(trace: Trace, longest: int = 10, latencies: Latencies | None = None) -> Timeline:
    """The timeline of one decoded CTA, with the `longest` longest stalls listed one by one.

    A wait that took no longer than a ready one takes by `latencies` (None: the probed ones) is a pass and no stall.
    A trace without lanes has no warps in its timeline, and all its instances are never visited.
    """
    instances = {instance.number: instance for instance in trace.kernel.instances}
    barriers = {barrier.number: barrier for barrier in trace.kernel.barriers}
    groups = group_warps(trace, instances)
    role = {warp: group.role for group in groups for warp in group.warps}
    rings = Rings.of(trace)
    language = language_of(trace.kernel)
    latencies = latencies or latencies_of(trace)
    ready = {number: latencies.ready_wait(language, instance.side) for number, instance in instances.items()}
    warps = tuple(_warp(lane, role[lane.warp], instances, barriers, rings, ready) for lane in trace.lanes)
    return Timeline(
        kernel=trace.kernel.kernel,
        warps=warps,
        roles=_role_totals(warps),
        sites=_site_stalls(warps, instances),
        never_visited=_never_visited(trace),
        sm_mhz=trace.sm_mhz,
        unit=trace.unit,
        trace=trace.kernel.number,
        block=trace.block,
        smid=trace.lanes[0].smid if trace.lanes else -1,
        groups=groups,
        longest=_longest(warps, longest),
        warnings=trace.warnings,
        launch=trace.launch,
    )


def spread_of(durations: Sequence[int]) -> Spread:
    """Order statistics of at least one duration."""
    p10, median, p90 = (float(value) for value in np.percentile(durations, (10, 50, 90)))
    return Spread(len(durations), sum(durations), p10, median, p90, max(durations))


def _warp(
    lane: Lane,
    role: str,
    instances: Mapping[int, Instance],
    barriers: Mapping[int, Barrier],
    rings: Rings,
    ready: Mapping[int, int],
) -> WarpTimeline:
    waits, open_waits = waits_of(lane, instances, rings, ready)
    holds = [*holds_of(lane, waits, instances, barriers, rings), *work_of(lane, instances)]
    if lane.replays:
        waits, holds = with_origins(lane, waits), with_origins(lane, holds)
    start, end = _bounds(lane)
    stall = length(union((part.start, part.end) for part in waits if part.state is State.STALL))
    waited = union((part.start, part.end) for part in waits)
    held = union((part.start, part.end) for part in holds)
    passed = length(waited) - stall
    # A wait inside a hold is no work: the warp works on nothing while it waits.
    active = length(held) - overlap(held, waited)
    return WarpTimeline(
        warp=lane.warp,
        role=role,
        slices=tuple(sorted([*waits, *holds], key=lambda part: (part.start, -part.end, part.instance))),
        span=end - start,
        stall=stall,
        active=active,
        untracked=end - start - stall - passed - active,
        lost=lane.lost,
        start=start,
        end=end,
        signals=tuple(_signals(lane, instances, rings)),
        open_waits=open_waits,
        is_released=lane.exit_cycles >= 0,
        passed=passed,
    )


def _bounds(lane: Lane) -> tuple[int, int]:
    """Lane entry and exit where they were recorded, else first and last record.

    A single-thread record may come after the exit of lane 0, so neither bound ever cuts off a record.
    """
    clocks = [event.cycles for event in (*lane.events[:1], *lane.events[-1:])]
    clocks += [bound for bound in (lane.entry_cycles, lane.exit_cycles) if bound >= 0]
    return min(clocks, default=0), max(clocks, default=0)


def _signals(lane: Lane, instances: Mapping[int, Instance], rings: Rings) -> Iterable[Signal]:
    for event in lane.events:
        if event.kind is EventKind.SIGNAL:
            stage = rings.stage(instances[event.instance], event.payload)
            yield Signal(event.cycles, event.instance, event.visit, stage)


def _role_totals(warps: Sequence[WarpTimeline]) -> tuple[RoleTotals, ...]:
    by_role: dict[str, list[WarpTimeline]] = {}
    for warp in warps:
        by_role.setdefault(warp.role, []).append(warp)
    return tuple(
        RoleTotals(
            role=role,
            warps=tuple(warp.warp for warp in members),
            span=sum(warp.span for warp in members),
            stall=sum(warp.stall for warp in members),
            active=sum(warp.active for warp in members),
            untracked=sum(warp.untracked for warp in members),
            passed=sum(warp.passed for warp in members),
        )
        for role, members in by_role.items()
    )


def _stalls(warps: Iterable[WarpTimeline]) -> Iterable[tuple[WarpTimeline, Slice]]:
    return ((warp, part) for warp in warps for part in warp.slices if part.state is State.STALL)


def _site_stalls(warps: Sequence[WarpTimeline], instances: Mapping[int, Instance]) -> tuple[SiteStall, ...]:
    """Stalls by site, barrier and role: an unrolled loop reaches one site through many instances, a helper two barriers."""
    parts: dict[tuple[str, int, int, str], list[tuple[int, Slice]]] = {}
    for warp, part in _stalls(warps):
        instance = instances[part.instance]
        parts.setdefault((instance.file, instance.site, instance.barrier, warp.role), []).append((warp.warp, part))
    found = [
        SiteStall(
            instance=min(part.instance for _, part in members),
            role=role,
            warps=tuple(dict.fromkeys(warp for warp, _ in members)),
            spread=spread_of([part.cycles for _, part in members]),
            instances=tuple(sorted({part.instance for _, part in members})),
        )
        for (_, _, _, role), members in parts.items()
    ]
    return tuple(sorted(found, key=lambda site: (site.instance, site.role)))


def _longest(warps: Sequence[WarpTimeline], count: int) -> tuple[LongStall, ...]:
    chosen = heapq.nsmallest(count, _stalls(warps), key=lambda pair: (-pair[1].cycles, pair[1].start, pair[0].warp))
    return tuple(LongStall(warp.warp, warp.role, part) for warp, part in chosen)


def _never_visited(trace: Trace) -> tuple[int, ...]:
    visited = {event.instance for lane in trace.lanes for event in lane.events}
    return tuple(
        instance.number
        for instance in trace.kernel.instances
        if instance.number not in visited and (instance.enter or instance.exit or instance.signal)
    )
