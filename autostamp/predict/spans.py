# SPDX-License-Identifier: Apache-2.0
"""Spans of a warp's time between two records that follow each other: untracked ones, and work on the critical path."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

from autostamp.model.flow import CriticalPath, Flow, PathKind, Steady
from autostamp.model.reconciliation import Region
from autostamp.model.timeline import State, Timeline, WarpTimeline

Span: TypeAlias = tuple[int, int]


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
            followed[key] += inside((start, end), on_path.get(warp.warp, ()))
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
    covered = merged(((part.start, part.end) for part in warp.slices), window)
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


def path_spans(path: CriticalPath | None, kind: PathKind) -> dict[int, list[Span]]:
    """The path's parts of one kind by warp, in order of time."""
    found: dict[int, list[Span]] = defaultdict(list)
    for part in path.parts if path else ():
        if part.kind is kind:
            found[part.warp].append((part.start, part.end))
    return found


def merged(spans: Iterable[Span], window: Span) -> list[Span]:
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


def inside(span: Span, spans: Sequence[Span]) -> int:
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
