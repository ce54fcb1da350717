# SPDX-License-Identifier: Apache-2.0
"""Changes of a budget that a run suggests, each tried by predicting again with it.

A term: work on the critical path that no row has, laid behind the role's predicted work, for one warp does both in turn. An
edge: arrivals that the run shows and the budget lacks. For a model error, the share of shared-memory writes that fits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
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
"""By how much a bound may exceed the clean period: half of what a stamp adds to an iteration of 500 cycles, and within the
error of the laws that are known best (docs/reconcile.md)."""
_FULL, _EMPTY = "full", "empty"


class Change(NamedTuple):
    """A budget with something added. `cycles` is the size of what was added."""

    what: str
    cycles: float
    budget: Budget
    is_measured: bool = True


def tried(changes: Iterable[Change], before: Prediction, period: Period) -> tuple[Trial, ...]:
    """What each change gains, most first. Those that exceed the measured period are left out: they are wrong."""
    found = []
    for change in changes:
        after = predict(change.budget).period
        gain = after - before.period
        if abs(gain) >= LEAST * period.mean and after <= (1 + TOLERANCE) * period.mean:
            explained = after / period.clean
            found.append(Trial(change.what, change.cycles, after, gain, explained, change.is_measured))
    return tuple(sorted(found, key=lambda one: (-abs(one.gain), one.what)))


def terms(
    budget: Budget, prediction: Prediction, flow: Flow, steady: Steady, period: Period, untracked: Sequence[Region]
) -> Iterator[Change]:
    """Untracked regions on the path, one by one, and a role's active time on it where that is longer than its rows."""
    busy = {role.role: role.busy for role in prediction.roles}
    work = path_work(flow.path, steady.iterations)
    for region in untracked:
        if region.on_path >= LEAST * period.mean:
            what = f"untracked work of {region.role} between {region.where}"
            yield Change(what, region.on_path, with_term(budget, region.role, busy.get(region.role, 0.0), what, region.on_path))
    for (role, kind), cycles in work.items():
        more = cycles - busy.get(role, 0.0)
        if kind is PathKind.ACTIVE and role in busy and more >= LEAST * period.mean:
            what = f"work of {role} between its waits and its arrivals that no row has"
            yield Change(what, more, with_term(budget, role, busy[role], what, more))


def with_term(budget: Budget, role: str, busy: float, what: str, cycles: float) -> Budget:
    """The budget with a row of `cycles`, and the chain that it makes: an iteration of the role takes both."""
    row = ResourceRow(role, Resource.FMA, what, cycles, "cycles", "", 1.0, cycles, Origin.GIVEN, "measured", "")
    steps = (Step(f"predicted work of {role}", busy), Step(what, cycles, origin=Origin.GIVEN, source="measured"))
    chain = Dependency(role, role, steps, 1)
    return replace(budget, rows=(*budget.rows, row), dependencies=(*budget.dependencies, chain))


def write_share(budget: Budget, clean: float) -> Change | None:
    """The largest share of shared-memory writes with which the bound is no longer than `clean`; None where that is no help."""
    rows = [row for row in budget.rows if row.resource is Resource.SMEM]
    writes = sum(row.cycles for row in rows if row.is_write)
    reads = sum(row.cycles for row in rows if not row.is_write)
    share = min(1.0, (clean - reads) / writes) if writes else 1.0
    if not 0 <= share < budget.smem_write_share:
        return None
    what = f"smem_write_share at most {share:.2f}: writes to shared memory take port time from reads in part"
    # The floor that does not hang on the run: no writes.
    return Change(what, share, replace(budget, smem_write_share=0.0), is_measured=False)


class _Seen(NamedTuple):
    """Arrows on one barrier within the window."""

    barrier: int
    label: str
    arrows: list[Arrow]


def edges(
    budget: Budget, timeline: Timeline, flow: Flow, steady: Steady, barriers: Mapping[int, str]
) -> Iterator[Change]:
    """Rings and turns that the arrows show and the budget does not name."""
    by_barrier: dict[int, list[Arrow]] = defaultdict(list)
    for arrow in flow.arrows:
        if steady.start < arrow.wait.cycles <= steady.end:
            by_barrier[arrow.barrier].append(arrow)
    roles = {warp.warp: warp.role for warp in timeline.warps}
    for barrier, arrows in by_barrier.items():
        seen = _Seen(barrier, barriers.get(barrier) or f"barrier {barrier}", arrows)
        if {_FULL, _EMPTY} <= {arrow.side for arrow in arrows}:
            change = _ring(budget, timeline, flow, seen, roles)
        else:
            change = _turns(budget, timeline, steady, seen, roles)
        if change is not None:
            yield change


def _ring(budget: Budget, timeline: Timeline, flow: Flow, seen: _Seen, roles: Mapping[int, str]) -> Change | None:
    full = [arrow for arrow in seen.arrows if arrow.side == _FULL]
    empty = [arrow for arrow in seen.arrows if arrow.side == _EMPTY]
    producer, consumer = roles.get(full[0].signal.warp, ""), roles.get(full[0].wait.warp, "")
    if any(ring.name == seen.label or (ring.producer, ring.consumer) == (producer, consumer) for ring in budget.rings):
        return None
    depth = next((each.stages for each in flow.depths if each.barrier == seen.barrier), 0)
    stages = depth or max(arrow.stage for arrow in seen.arrows) + 1 or 1
    causes = [each for each in flow.causes if each.arrow and each.arrow.barrier == seen.barrier and each.is_binding]
    flight = [each.in_flight for each in causes if each.in_flight]
    fill = (
        Step(f"{producer} fills", _hold(timeline, {arrow.wait.instance for arrow in empty})),
        Step("in flight", median(flight) if flight else 0.0),
    )
    consume = (Step(f"{consumer} uses", _hold(timeline, {arrow.wait.instance for arrow in full})),)
    hand_off = tuple(Step(side, _handed(each.handed_over for each in causes if each.arrow and each.arrow.side == side)) for side in (_FULL, _EMPTY))
    ring = Ring(seen.label, producer, consumer, stages, fill, consume, hand_off)
    total = sum(step.cycles for step in (*fill, *consume, *hand_off))
    what = f"ring {seen.label} from {producer} to {consumer}, {stages} stages"
    return Change(what, total, replace(budget, rings=(*budget.rings, ring)))


def _turns(budget: Budget, timeline: Timeline, steady: Steady, seen: _Seen, roles: Mapping[int, str]) -> Change | None:
    """A barrier at which one warp lets another go on. Where its turns exclude each other, they follow one another."""
    if any(seen.label in {edge.start, edge.end} for edge in budget.dependencies):
        return None
    waits = {arrow.wait.instance for arrow in seen.arrows}
    exits: dict[int, list[int]] = defaultdict(list)
    for warp in timeline.warps:
        exits[warp.warp] = [part.end for part in warp.slices if part.instance in waits and part.state is not State.ACTIVE]
    uses = {(arrow.side, arrow.stage, arrow.use): arrow for arrow in seen.arrows if arrow.signal.warp != arrow.wait.warp}
    held = handed = 0
    for arrow in uses.values():
        before = [at for at in exits[arrow.signal.warp] if steady.start <= at <= arrow.signal.cycles]
        if before:
            held += arrow.signal.cycles - before[-1]
            handed += max(0, arrow.wait.cycles - arrow.signal.cycles) if _is_prompt(arrow, timeline) else 0
    if not held:
        return None
    count = steady.iterations
    between = sorted({f"{roles.get(arrow.signal.warp, '')} to {roles.get(arrow.wait.warp, '')}" for arrow in uses.values()})
    steps = (Step(f"turns at {seen.label}", held / count), Step("hand-off", handed / count, is_latency=True))
    what = f"turns at {seen.label} ({', '.join(between)}), {len(uses) / count:.3g} an iteration"
    chain = Dependency(seen.label, seen.label, steps, 1)
    return Change(what, (held + handed) / count, replace(budget, dependencies=(*budget.dependencies, chain)))


def _is_prompt(arrow: Arrow, timeline: Timeline) -> bool:
    """Whether the wait was there before the arrival: only then is the time to its exit a hand-off."""
    warp = next(each for each in timeline.warps if each.warp == arrow.wait.warp)
    return any(
        part.instance == arrow.wait.instance and part.visit == arrow.wait.visit and part.start <= arrow.signal.cycles
        for part in warp.slices
        if part.state is State.STALL
    )


def _hold(timeline: Timeline, waits: set[int]) -> float:
    """Median of what the waits open: a stage filled, or used."""
    held = [part.cycles for warp in timeline.warps for part in warp.slices if part.state is State.ACTIVE and part.instance in waits]
    return median(held) if held else 0.0


def _handed(cycles: Iterable[int]) -> float:
    found = list(cycles)
    return median(found) if found else 0.0
