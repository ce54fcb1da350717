# SPDX-License-Identifier: Apache-2.0
"""Several CTAs of one launch on one axis.

Each warp read %clock, which counts the cycles of its SM, and %globaltimer, which all SMs share, together: once when it entered
the kernel and once when it left. These pairs place a CTA's cycles on the global timer. How well is said with it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from autostamp.model.timeline import Timeline
from autostamp.model.trace import Lane, Trace

_CLOCK_MODULUS = 1 << 32


@dataclass(frozen=True, slots=True)
class Alignment:
    """Where a CTA lies: `offset` cycles are added to its own, `error` is the most by which that can be wrong against any other
    CTA of the launch (-1: nothing to align it by), `wave` how many CTAs its SM ran one after another before it (-1: unknown).
    """

    offset: int = 0
    error: int = -1
    wave: int = -1


@dataclass(frozen=True, slots=True)
class _Pair:
    """One reading of both clocks: ns of the global timer, cycles on the CTA's own axis."""

    ns: int
    cycles: int


@dataclass(frozen=True, slots=True)
class _Rate:
    """Cycles of an SM in a nanosecond, and by which part of itself that may be wrong."""

    cycles_per_ns: float
    uncertainty: float


def align(traces: Sequence[Trace]) -> tuple[Alignment, ...]:
    """The alignment of each trace with the others of its kernel trace and launch, in the order of `traces`.

    The earliest CTA of a launch has offset 0. The error is the resolution of the global timer in cycles, or the scatter of the
    CTA's own pairs around a steady clock where that is more (the drift between entry and exit), plus what the rate's own
    uncertainty makes of the distance to the earliest CTA. A wave is known where every CTA of the grid was recorded.
    """
    pairs = [_pairs(trace) for trace in traces]
    tick = resolution(pair.ns for each in pairs for pair in each)
    launches: dict[tuple[int, int], list[int]] = {}
    for at, trace in enumerate(traces):
        launches.setdefault((trace.kernel.number, trace.launch), []).append(at)
    found = [Alignment()] * len(traces)
    for members in launches.values():
        usable = [at for at in members if pairs[at]]
        placed = _place([traces[at] for at in usable], [pairs[at] for at in usable], tick)
        for at, alignment in zip(usable, placed, strict=True):
            found[at] = alignment
        if len(usable) == len(members) and all(found[at].error >= 0 for at in members):
            for at, wave in zip(
                members, _waves([traces[at] for at in members], [found[at] for at in members]), strict=True
            ):
                found[at] = replace(found[at], wave=wave)
    return tuple(found)


def aligned(timelines: Sequence[Timeline], traces: Sequence[Trace]) -> tuple[Timeline, ...]:
    """The timelines of `traces`, each with its offset, alignment error and wave. A CTA alone in its launch stays as it is."""
    alignments = align(traces)
    counts: dict[tuple[int, int], int] = {}
    for trace in traces:
        key = trace.kernel.number, trace.launch
        counts[key] = counts.get(key, 0) + 1
    return tuple(
        timeline
        if counts[trace.kernel.number, trace.launch] == 1
        else replace(timeline, offset=found.offset, alignment_error=found.error, wave=found.wave)
        for timeline, trace, found in zip(timelines, traces, alignments, strict=True)
    )


def resolution(ns: Iterable[int]) -> int:
    """The step of the global timer in ns, as far as its readings tell: the greatest common divisor of their differences.

    0 where all are equal. An H200's timer moves by 32 ns. A timer that moves in larger, uneven steps shows in the scatter of the
    pairs of a CTA, which `align` takes into its error.
    """
    readings = sorted(set(ns))
    return math.gcd(*(after - before for before, after in pairwise(readings)))


def _pairs(trace: Trace) -> list[_Pair]:
    entries = [_Pair(lane.entry_ns, lane.entry_cycles) for lane in trace.lanes if lane.entry_cycles >= 0]
    exits = [_Pair(lane.exit_ns, lane.exit_cycles) for lane in trace.lanes if lane.exit_cycles >= 0]
    return [*entries, *exits]


def _place(traces: Sequence[Trace], pairs: Sequence[list[_Pair]], tick: int) -> list[Alignment]:
    rate = _rate(traces, pairs, tick) if tick else None
    if rate is None:
        return [Alignment() for _ in traces]
    origin = min(pair.ns for each in pairs for pair in each)
    middles, errors = [], []
    for each in pairs:
        # How far the global timer, in cycles, is ahead of the CTA's own axis: steady but for the timer's steps and drift.
        ahead = [(pair.ns - origin) * rate.cycles_per_ns - pair.cycles for pair in each]
        middles.append((max(ahead) + min(ahead)) / 2)
        distance = (max(pair.ns for pair in each) - origin) * rate.cycles_per_ns
        scatter = max(tick * rate.cycles_per_ns, max(ahead) - min(ahead))
        errors.append(math.ceil(scatter + distance * rate.uncertainty))
    first = min(middles)
    return [Alignment(round(middle - first), error) for middle, error in zip(middles, errors, strict=True)]


def _rate(traces: Sequence[Trace], pairs: Sequence[list[_Pair]], tick: int) -> _Rate | None:
    """Cycles per ns over the longest time that was seen of each SM; None where the timer did not move."""
    within = [(max(each, key=lambda pair: pair.ns), min(each, key=lambda pair: pair.ns)) for each in pairs]
    ns = sum(last.ns - first.ns for last, first in within)
    if ns <= 0:
        return None
    rough = sum(last.cycles - first.cycles for last, first in within) / ns
    by_sm: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for at, (trace, each) in enumerate(zip(traces, pairs, strict=True)):
        # Without the SM's own clock a CTA can be compared with itself only.
        key = (trace.lanes[0].smid, -1) if trace.clock >= 0 else (-1, at)
        by_sm.setdefault(key, []).extend((pair.ns, max(trace.clock, 0) + pair.cycles) for pair in each)
    spans = [_span(readings, rough) for readings in by_sm.values()]
    total_ns, total_cycles = sum(span[0] for span in spans), sum(span[1] for span in spans)
    return _Rate(total_cycles / total_ns, tick * len(spans) / total_ns)


def _span(readings: Sequence[tuple[int, int]], rough: float) -> tuple[int, int]:
    """(ns, cycles) from the first reading to the last. The clock is known modulo 2^32: of what fits, what the rough rate says."""
    (first_ns, first), (last_ns, last) = min(readings), max(readings)
    expected = (last_ns - first_ns) * rough
    return last_ns - first_ns, _nearest(last - first, expected)


def _nearest(cycles: int, expected: float) -> int:
    """The number that equals `cycles` modulo 2^32 and is nearest to `expected`."""
    return cycles + round((expected - cycles) / _CLOCK_MODULUS) * _CLOCK_MODULUS


def _waves(traces: Sequence[Trace], alignments: Sequence[Alignment]) -> list[int]:
    """For each CTA, the length of the longest chain of CTAs on its SM that ended one before the other began, before it began."""
    x, y, z = traces[0].grid
    if len({trace.block for trace in traces}) != x * y * z:
        return [-1] * len(traces)
    waves = [0] * len(traces)
    by_sm: dict[int, list[tuple[int, int, int]]] = {}
    for at, (trace, alignment) in enumerate(zip(traces, alignments, strict=True)):
        start = alignment.offset
        reference = next((other for other in by_sm.get(trace.lanes[0].smid, [])), None)
        if reference is not None and trace.clock >= 0:
            # On one SM its own clock tells exactly which CTA came first.
            other = traces[reference[2]]
            start = reference[0] + _nearest(trace.clock - other.clock, start - reference[0])
        by_sm.setdefault(trace.lanes[0].smid, []).append((start, start + _length(trace.lanes), at))
    for spans in by_sm.values():
        for start, _, at in sorted(spans):
            waves[at] = max((waves[other] + 1 for _, end, other in spans if end <= start and other != at), default=0)
    return waves


def _length(lanes: Sequence[Lane]) -> int:
    """Cycles from the CTA's beginning to its end, as far as it was recorded."""
    return max(
        max(lane.exit_cycles, *(event.cycles for event in lane.events[-1:]), lane.entry_cycles) for lane in lanes
    )
