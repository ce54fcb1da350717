# SPDX-License-Identifier: Apache-2.0
"""What a run's steady window says of roles, of its period and of the time that nothing brackets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from autostamp.diagnostics import AutostampError
from autostamp.model.budget import Prediction
from autostamp.model.flow import CriticalPath, Ending, Flow, PathKind, Steady
from autostamp.model.reconciliation import Period, RoleCheck
from autostamp.model.timeline import State, Timeline, WarpTimeline
from autostamp.predict.spans import Span, clipped, inside, merged


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
                there = inside((part.start, part.end), spans[warp.warp])
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
    return _total(merged(every, window)) - _total(merged(waits, window))


def _total(spans: Iterable[Span]) -> int:
    return sum(end - start for start, end in spans)
