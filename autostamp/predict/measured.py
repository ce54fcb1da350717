# SPDX-License-Identifier: Apache-2.0
"""What a run's steady window says of roles, of its period and of the time that nothing brackets."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

from autostamp.diagnostics import AutostampError
from autostamp.model.budget import Prediction
from autostamp.model.flow import CriticalPath, Ending, Flow, PathKind, Steady
from autostamp.model.reconciliation import Period, Region, RoleCheck
from autostamp.model.timeline import State, Timeline, WarpTimeline

Span: TypeAlias = tuple[int, int]


def steady_of(timeline: Timeline, flow: Flow) -> Steady:
    """The steady window of a timeline in cycles. Raises AS7141 where there is none."""
    if timeline.unit != "cycles":
        raise AutostampError.of(
            "AS7141", kernel=timeline.kernel, detail=f"its times are {timeline.unit}, a budget's are cycles"
        )
    if flow.steady is None or not flow.steady.iterations:
        why = "; ".join(flow.notes) or "no iteration repeats"
        raise AutostampError.of("AS7141", kernel=timeline.kernel, detail=why)
    return flow.steady


def period_of(timeline: Timeline, steady: Steady, ratio: float | None) -> Period:
    """The steady period. `ratio` is stamped over clean time (None: not measured)."""
    mean = (steady.end - steady.start) / steady.iterations
    first = min(warp.start for warp in timeline.warps)
    last = max(warp.end for warp in timeline.warps)
    return Period(
        mean=mean,
        median=steady.period.median,
        p10=steady.period.p10,
        p90=steady.period.p90,
        clean=mean / ratio if ratio else mean,
        ratio=ratio,
        iterations=steady.iterations,
        fill=steady.fill,
        drain=steady.drain,
        fill_cycles=steady.start - first,
        drain_cycles=last - steady.end,
    )


def role_checks(prediction: Prediction, flow: Flow, steady: Steady) -> tuple[RoleCheck, ...]:
    """Every role that ran in the window, in the trace's order."""
    own = _own_group(flow, steady)
    expected = {role.role: role for role in prediction.roles}
    checks = []
    for total in steady.roles:
        if not total.span:
            continue
        known = expected.get(total.role)
        group = sum(own.get(warp, 0) for warp in total.warps)
        checks.append(
            RoleCheck(
                total.role,
                known.resource if known and known.busy else None,
                known.busy if known else None,
                known.idle if known else None,
                stall=total.stall / total.span,
                idle=max(0, total.stall - group) / total.span,
                passed=total.passed / total.span,
                active=total.active / total.span,
                untracked=total.untracked / total.span,
            )
        )
    return tuple(checks)


def _own_group(flow: Flow, steady: Steady) -> Mapping[int, int]:
    """Stall of each warp in the window that waits for its own asynchronous groups."""
    found: dict[int, int] = defaultdict(int)
    for cause in flow.causes:
        if cause.ending is Ending.GROUP:
            found[cause.warp] += clipped(cause.stall.start, cause.stall.end, (steady.start, steady.end))
    return found


def path_cycles(path: CriticalPath | None, iterations: int) -> dict[PathKind, float]:
    """Cycles an iteration of each kind of part of the critical path."""
    found = dict.fromkeys(PathKind, 0)
    for part in path.parts if path else ():
        found[part.kind] += part.end - part.start
    return {kind: cycles / iterations for kind, cycles in found.items()}


def path_work(path: CriticalPath | None, iterations: int) -> dict[tuple[str, PathKind], float]:
    """Cycles an iteration that the path lies in a role's active or untracked time."""
    found: dict[tuple[str, PathKind], int] = defaultdict(int)
    for part in path.parts if path else ():
        if part.kind in {PathKind.ACTIVE, PathKind.UNTRACKED}:
            found[part.role, part.kind] += part.end - part.start
    return {key: cycles / iterations for key, cycles in found.items()}


def path_spans(path: CriticalPath | None, kind: PathKind) -> dict[int, list[Span]]:
    """The path's parts of one kind by warp, in order of time."""
    found: dict[int, list[Span]] = defaultdict(list)
    for part in path.parts if path else ():
        if part.kind is kind:
            found[part.warp].append((part.start, part.end))
    return found


def passes_on(timeline: Timeline, spans: Mapping[int, Sequence[Span]]) -> tuple[int, int]:
    """Cycles in `spans` of ready waits, as what each costs at the least, and what they took longer.

    The least is that of the same wait in the same role: what it costs when nothing is in its way.
    """
    least: dict[tuple[str, int], int] = {}
    for warp in timeline.warps:
        for part in warp.slices:
            if part.state is State.PASS:
                key = (warp.role, part.instance)
                least[key] = min(least.get(key, part.cycles), part.cycles)
    base = longer = 0
    for warp in timeline.warps:
        for part in warp.slices:
            if part.state is State.PASS and warp.warp in spans:
                there = _inside((part.start, part.end), spans[warp.warp])
                cost = min(there, least[warp.role, part.instance])
                base += cost
                longer += there - cost
    return base, longer


def imbalance(timeline: Timeline, role: str, window: Span) -> tuple[float, int]:
    """By how much the busiest warp of a role is active longer than the mean of its warps in the window, and which it is."""
    busy = {warp.warp: _active(warp, window) for warp in timeline.warps if warp.role == role}
    if len(busy) < 2:
        return 0.0, -1
    most = max(busy, key=lambda warp: busy[warp])
    return busy[most] - sum(busy.values()) / len(busy), most


def _active(warp: WarpTimeline, window: Span) -> int:
    """A warp that waits works on nothing, so waits are taken out."""
    waits = [(part.start, part.end) for part in warp.slices if part.state is not State.ACTIVE]
    every = ((part.start, part.end) for part in warp.slices)
    return _total(_merged(every, window)) - _total(_merged(waits, window))


def _total(spans: Iterable[Span]) -> int:
    return sum(end - start for start, end in spans)


def regions(
    timeline: Timeline, flow: Flow, steady: Steady, places: Mapping[int, str] | None = None
) -> tuple[Region, ...]:
    """Untracked time of the window by role and by the two records that it lies between, most on the path first."""
    window = (steady.start, steady.end)
    gaps = {warp.warp: _gaps(warp, window) for warp in timeline.warps}
    return _by_records(timeline, gaps, path_spans(flow.path, PathKind.UNTRACKED), steady, places)


def worked(
    timeline: Timeline, flow: Flow, steady: Steady, places: Mapping[int, str] | None = None
) -> tuple[Region, ...]:
    """The critical path's active time, likewise."""
    spans = path_spans(flow.path, PathKind.ACTIVE)
    return _by_records(timeline, spans, spans, steady, places)


def _by_records(
    timeline: Timeline,
    spans: Mapping[int, Sequence[Span]],
    on_path: Mapping[int, Sequence[Span]],
    steady: Steady,
    places: Mapping[int, str] | None,
) -> tuple[Region, ...]:
    """Spans of every warp, cut at its records, by role and by the records on either side."""
    total: dict[tuple[str, int, int], int] = defaultdict(int)
    followed: dict[tuple[str, int, int], int] = defaultdict(int)
    warps = {role.role: len(role.warps) for role in steady.roles}
    for warp in timeline.warps:
        if warp.role not in warps:
            continue
        for start, end, first, last in _cut(warp, spans.get(warp.warp, ())):
            key = (warp.role, first, last)
            total[key] += end - start
            followed[key] += _inside((start, end), on_path.get(warp.warp, ()))
    found = [
        Region(
            role,
            first,
            last,
            cycles / warps[role] / steady.iterations,
            followed[role, first, last] / steady.iterations,
            f"{_place(first, places)} and {_place(last, places)}",
        )
        for (role, first, last), cycles in total.items()
    ]
    return tuple(sorted(found, key=lambda one: (-one.on_path, -one.cycles, one.role, one.first, one.last)))


def _place(instance: int, places: Mapping[int, str] | None) -> str:
    if not instance:
        return "the warp's begin or end"
    return (places or {}).get(instance) or f"instance {instance}"


def _gaps(warp: WarpTimeline, window: Span) -> list[Span]:
    """Untracked spans of a warp in the window."""
    covered = _merged(((part.start, part.end) for part in warp.slices), window)
    edge, found = max(window[0], warp.start), []
    for start, end in [*covered, (min(window[1], warp.end),) * 2]:
        if start > edge:
            found.append((edge, start))
        edge = max(edge, end)
    return found


def _cut(warp: WarpTimeline, spans: Iterable[Span]) -> Iterator[tuple[int, int, int, int]]:
    """Spans cut at the warp's records, each with the instances of the records before and after (0: there is none)."""
    marks = sorted(
        [
            *((part.start, part.instance) for part in warp.slices if part.state is not State.ACTIVE or not part.signal),
            *((part.end, part.signal or part.instance) for part in warp.slices),
            *((signal.cycles, signal.instance) for signal in warp.signals),
        ]
    )
    at = [cycles for cycles, _ in marks]
    for start, end in spans:
        cuts = sorted({start, end, *at[bisect_left(at, start) : bisect_left(at, end)]})
        for first, last in pairwise(cuts):
            before = bisect_left(at, first + 1) - 1
            after = bisect_left(at, last)
            yield (
                first,
                last,
                marks[before][1] if before >= 0 else 0,
                marks[after][1] if after < len(marks) else 0,
            )


def _merged(spans: Iterable[Span], window: Span) -> list[Span]:
    """Disjoint spans in order, cut to the window."""
    merged: list[Span] = []
    for start, end in sorted((max(start, window[0]), min(end, window[1])) for start, end in spans):
        if end <= start:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def _inside(span: Span, spans: Sequence[Span]) -> int:
    """Cycles of `span` that lie in disjoint spans in order of time."""
    index = max(bisect_left(spans, (span[0], span[0])) - 1, 0)
    total = 0
    while index < len(spans) and spans[index][0] < span[1]:
        total += clipped(*span, spans[index])
        index += 1
    return total


def clipped(start: int, end: int, window: Span) -> int:
    """Cycles of a span that lie in the window."""
    return max(0, min(end, window[1]) - max(start, window[0]))
