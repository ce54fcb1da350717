# SPDX-License-Identifier: Apache-2.0
"""Edges that a run shows and a budget lacks: rings, and turns at a barrier, with the cycles of the run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from statistics import median
from typing import Final, NamedTuple

from autostamp.model.budget import Budget, Dependency, Ring, Step
from autostamp.model.flow import Arrow, Flow, Steady
from autostamp.model.timeline import State, Timeline
from autostamp.predict.trials import Change

LINKED: Final = 0.8
"""Of the uses of a barrier: how many must follow from the one before for them to be turns."""
_FULL: Final = "full"
_EMPTY: Final = "empty"


class _Seen(NamedTuple):
    """Arrows on one barrier within the window."""

    barrier: int
    label: str
    arrows: list[Arrow]


def edges(
    budget: Budget, timeline: Timeline, flow: Flow, steady: Steady, barriers: Mapping[int, str], scale: float = 1.0
) -> Iterator[Change]:
    """Rings and turns that the arrows show and the budget does not name. `scale` is clean over stamped time."""
    by_barrier: dict[int, list[Arrow]] = defaultdict(list)
    for arrow in flow.arrows:
        if steady.start < arrow.wait.cycles <= steady.end:
            by_barrier[arrow.barrier].append(arrow)
    roles = {warp.warp: warp.role for warp in timeline.warps}
    for barrier, arrows in by_barrier.items():
        seen = _Seen(barrier, barriers.get(barrier) or f"barrier {barrier}", arrows)
        if {_FULL, _EMPTY} <= {arrow.side for arrow in arrows}:
            change = _ring(budget, timeline, flow, steady, seen, roles, scale)
        else:
            change = _turns(budget, steady, seen, roles, scale)
        if change is not None:
            yield change


def _ring(
    budget: Budget, timeline: Timeline, flow: Flow, steady: Steady, seen: _Seen, roles: Mapping[int, str], scale: float
) -> Change | None:
    """A ring with the cycles of the run: medians of what a stage takes to be filled, to arrive, to be used and handed over."""
    full = [arrow for arrow in seen.arrows if arrow.side == _FULL]
    empty = [arrow for arrow in seen.arrows if arrow.side == _EMPTY]
    producer, consumer = roles.get(full[0].signal.warp, ""), roles.get(full[0].wait.warp, "")
    if any(ring.name == seen.label or (ring.producer, ring.consumer) == (producer, consumer) for ring in budget.rings):
        return None
    depth = next((each.stages for each in flow.depths if each.barrier == seen.barrier), 0)
    stages = depth or max(max(arrow.stage for arrow in seen.arrows) + 1, 1)
    # A ring that turns several times an iteration takes as many times as long of it.
    scale *= len({(arrow.stage, arrow.use) for arrow in full}) / steady.iterations
    causes = [each for each in flow.causes if each.arrow and each.arrow.barrier == seen.barrier and each.is_binding]
    flight = _median(each.in_flight for each in causes if each.in_flight)
    fill = (
        Step(f"{producer} fills", scale * _hold(timeline, {arrow.wait.instance for arrow in empty})),
        Step("in flight", scale * flight),
    )
    consume = (Step(f"{consumer} uses", scale * _hold(timeline, {arrow.wait.instance for arrow in full})),)
    hand_off = tuple(
        Step(side, scale * _median(each.handed_over for each in causes if each.arrow and each.arrow.side == side))
        for side in (_FULL, _EMPTY)
    )
    ring = Ring(seen.label, producer, consumer, stages, fill, consume, hand_off)
    total = sum(step.cycles for step in (*fill, *consume, *hand_off))
    what = f"ring {seen.label} from {producer} to {consumer}, {stages} {'stage' if stages == 1 else 'stages'}"
    return Change(what, total, replace(budget, rings=(*budget.rings, ring)))


def _turns(budget: Budget, steady: Steady, seen: _Seen, roles: Mapping[int, str], scale: float) -> Change | None:
    """A barrier at which warps let each other go on: whoever one use releases makes the next one's last arrival.

    The spans from each release to the next follow one another, so that their sum cannot be shorter than the iteration.
    """
    if any(seen.label in {edge.start, edge.end} for edge in budget.dependencies):
        return None
    by_use: dict[tuple[str, int, int], list[Arrow]] = defaultdict(list)
    for arrow in seen.arrows:
        by_use[arrow.side, arrow.stage, arrow.use].append(arrow)
    uses = sorted(by_use.values(), key=lambda group: group[0].signal.cycles)
    held = handed = linked = 0
    for group, after in pairwise(uses):
        at = after[0].signal
        exits = [arrow.wait.cycles for arrow in group if arrow.wait.warp == at.warp != arrow.signal.warp]
        if exits and exits[0] <= at.cycles:
            linked += 1
            held += at.cycles - exits[0]
            handed += max(0, exits[0] - group[0].signal.cycles)
    # A chain that breaks off again and again binds nothing.
    if linked < LINKED * (len(uses) - 1) or not linked:
        return None
    count = steady.iterations * linked / len(uses) / scale
    pairs = sorted({f"{roles.get(each.signal.warp, '')} to {roles.get(each.wait.warp, '')}" for each in seen.arrows})
    steps = (Step(f"turns at {seen.label}", held / count), Step("hand-off", handed / count, is_latency=True))
    what = f"turns at {seen.label} ({', '.join(pairs)}), {len(uses) / steady.iterations:.3g} an iteration"
    chain = Dependency(seen.label, seen.label, steps, 1)
    return Change(what, (held + handed) / count, replace(budget, dependencies=(*budget.dependencies, chain)))


def _hold(timeline: Timeline, waits: set[int]) -> float:
    """Median of what the waits open: a stage filled, or used."""
    return _median(
        part.cycles
        for warp in timeline.warps
        for part in warp.slices
        if part.state is State.ACTIVE and part.instance in waits
    )


def _median(cycles: Iterable[int]) -> float:
    found = list(cycles)
    return median(found) if found else 0.0
