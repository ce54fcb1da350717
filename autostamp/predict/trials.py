# SPDX-License-Identifier: Apache-2.0
"""Changes of a budget that a run suggests, each tried by predicting again with it.

A term: work on the critical path that no row has, laid behind the role's predicted work, for one warp does both in turn. An
edge: arrivals that the run shows and the budget lacks. For a model error, the share of shared-memory writes that fits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median
from typing import Final, NamedTuple

from autostamp.model.budget import Budget, Dependency, Origin, Prediction, Resource, ResourceRow, Ring, Step
from autostamp.model.flow import Arrow, Flow, PathKind, Steady
from autostamp.model.reconciliation import Period, Region, Trial
from autostamp.model.timeline import State, Timeline
from autostamp.predict.bounds import predict
from autostamp.predict.measured import path_work

LEAST: Final = 0.01
"""Of the period: changes that gain less are not shown."""
TOLERANCE: Final = 0.01
"""By how much a bound may exceed the measured period: laws and window are not known better (docs/reconcile.md)."""
ESTIMATED: Final = 0.05
"""The same where the clean period follows from the times of both kernels: fill, drain and launch are in that ratio, and stamps
need not cost them what they cost the loop."""
LINKED: Final = 0.8
"""Of the uses of a barrier: how many must follow from the one before for them to be turns."""
_FULL, _EMPTY = "full", "empty"


class Change(NamedTuple):
    """A budget with something added. `cycles` is the size of what was added."""

    what: str
    cycles: float
    budget: Budget
    is_measured: bool = True


def longest(period: Period) -> float:
    """The longest bound that the run does not refute."""
    return period.clean * (1 + (TOLERANCE if period.ratio is None else ESTIMATED))


def tried(changes: Iterable[Change], before: Prediction, period: Period) -> tuple[Trial, ...]:
    """What each change gains, most first. Those that exceed the clean period are left out: they are wrong."""
    found = []
    for change in changes:
        after = predict(change.budget).period
        gain = after - before.period
        if gain >= LEAST * period.clean and after <= longest(period):
            explained = after / period.clean
            found.append(Trial(change.what, change.cycles, after, gain, explained, change.is_measured))
    return tuple(sorted(found, key=lambda one: (-one.gain, one.what)))


def terms(
    budget: Budget,
    prediction: Prediction,
    flow: Flow,
    steady: Steady,
    period: Period,
    untracked: Sequence[Region],
    worked: Sequence[Region],
) -> Iterator[Change]:
    """Untracked regions on the path, one by one, and a role's active time on it where that is longer than its rows.

    `worked` are the spans of active time on the path: the longest says where to look. Cycles are those of the clean kernel, as
    far as the ratio says.
    """
    busy = {role.role: role.busy for role in prediction.roles}
    work = path_work(flow.path, steady.iterations)
    for region in untracked:
        cycles = region.on_path * period.scale
        if cycles >= LEAST * period.clean:
            what = f"untracked work of {region.role} between {region.where}"
            yield Change(what, cycles, with_term(budget, region.role, busy.get(region.role, 0.0), what, cycles))
    for (role, kind), cycles in work.items():
        more = cycles * period.scale - busy.get(role, 0.0)
        if kind is PathKind.ACTIVE and role in busy and more >= LEAST * period.clean:
            span = next((each for each in worked if each.role == role), None)
            where = f"; its longest span, {span.on_path * period.scale:,.0f}, lies between {span.where}" if span else ""
            what = f"work of {role} that no row has{where}"
            yield Change(what, more, with_term(budget, role, busy[role], what, more))


def with_term(budget: Budget, role: str, busy: float, what: str, cycles: float) -> Budget:
    """The budget with a row of `cycles`, and the chain that it makes: an iteration of the role takes both."""
    row = ResourceRow(role, Resource.FMA, what, cycles, "cycles", "", 1.0, cycles, Origin.GIVEN, "measured", "")
    steps = (Step(f"predicted work of {role}", busy), Step(what, cycles, origin=Origin.GIVEN, source="measured"))
    chain = Dependency(role, role, steps, 1)
    return replace(budget, rows=(*budget.rows, row), dependencies=(*budget.dependencies, chain))


def without(budget: Budget, over: Iterable[str], clean: float) -> Change | None:
    """The budget without the resources whose bounds are longer than `clean`: of shared memory, without its writes if reads fit.

    `what` says which rates would just do. None where nothing is left, or a bound is of another kind.
    """
    rows, share, said = list(budget.rows), budget.smem_write_share, []
    for name in over:
        own = [row for row in rows if row.resource == name]
        writes = sum(row.cycles for row in own if row.is_write)
        reads = sum(row.cycles for row in own if not row.is_write)
        if not own:
            return None
        if name == Resource.SMEM and share and writes and reads <= (1 + TOLERANCE) * clean:
            most = max(0.0, min(1.0, (clean - reads) / writes))
            said.append(f"smem_write_share 0 (the run allows {most:.2f} at most)")
            share = 0.0
            continue
        rate = sum(row.cycles for row in own) / clean * own[0].rate
        said.append(f"no row of {name} (the run needs {own[0].constant} {rate:.4g} or more, not {own[0].rate:.4g})")
        rows = [row for row in rows if row.resource != name]
    left = replace(budget, rows=tuple(rows), smem_write_share=share)
    return Change(" and ".join(said), clean, left, is_measured=False) if rows else None


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
