# SPDX-License-Identifier: Apache-2.0
"""A budget played out: roles that take turns at rings and resources, iteration by iteration, as a timeline.

A discrete-event simulation. A role's iteration begins when the stages that it consumes are full and those that it fills are
empty; it then asks every resource for its work and is done when the last has served it. A resource serves one request after
the other, in the order in which they came. A stage is full `fill` and a hand-off after its producer began, and empty again
`consume` and a hand-off after its consumer began. So the period in the long run is the largest of the bounds. It may be more
where two roles share rings of unlike times: an iteration waits for all of its rings at once, a kernel for one after the other.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from autostamp.diagnostics import AutostampError
from autostamp.model.budget import Budget, Dependency, Resource, Ring, Step
from autostamp.model.timeline import RoleTotals, Signal, Slice, State, Timeline, WarpTimeline
from autostamp.predict.cycles import worst_cycle

ITERATIONS: Final = 32
TRACE: Final = 1
"""Number of the kernel trace that the timeline names."""

Point = tuple[str, int]
"""A ring or a phase, and the iteration in which it is reached."""


@dataclass(frozen=True, slots=True)
class Span:
    """One iteration of one role, in cycles: it was `ready` for it, began when what it waited for had come, and was done.

    `awaited` is the ring, or phase, that came last ("": it waited for nothing). From `begin` to `served` the resource that
    was done last, `crowded`, served other requests ("" where the role had it at once).
    """

    role: str
    iteration: int
    ready: float
    begin: float
    done: float
    awaited: str
    served: float
    crowded: str


@dataclass(frozen=True, slots=True)
class Simulation:
    """`spans` in the order of begin. `period`: the mean over the later half of all iterations, of the role that began last.

    `timeline` has one warp for each role, in the order of `roles`; instance n of its slices waits for `waits`[n - 1].
    """

    roles: tuple[str, ...]
    spans: tuple[Span, ...]
    waits: tuple[str, ...]
    period: float
    timeline: Timeline


def simulate(budget: Budget, iterations: int = ITERATIONS) -> Simulation:
    """Play `iterations` of every role.

    Raises AS7106 for fewer than 2, a ring without stages or a budget without roles, AS7107 where all roles wait for each other.
    """
    if iterations < 2:
        raise AutostampError.of("AS7106", what=budget.kernel, detail=f"{iterations} iterations have no period")
    for ring in budget.rings:
        if ring.stages < 1:
            raise AutostampError.of("AS7106", what=f"ring {ring.name}", detail=f"{ring.stages} stages")
    roles = _roles(budget)
    if not roles:
        raise AutostampError.of("AS7106", what=budget.kernel, detail="the budget names no role")
    spans = _Play(budget, roles, iterations).run()
    waits = tuple(dict.fromkeys(name for each in spans for name in (each.awaited, each.crowded) if name))
    return Simulation(roles, spans, waits, _period(spans, iterations), _timeline(budget, roles, spans, waits))


def _roles(budget: Budget) -> tuple[str, ...]:
    named = [row.role for row in budget.rows]
    named += [role for ring in budget.rings for role in (ring.producer, ring.consumer)]
    return tuple(dict.fromkeys(named))


@dataclass(slots=True)
class _Play:
    """State of one simulation. `free` says when a resource has served all requests so far."""

    budget: Budget
    roles: Sequence[str]
    iterations: int
    work: dict[str, dict[Resource, float]] = field(default_factory=dict)
    phases: list[float] = field(default_factory=list)
    free: dict[Resource, float] = field(default_factory=dict)
    full: dict[Point, float] = field(default_factory=dict)
    empty: dict[Point, float] = field(default_factory=dict)
    spans: list[Span] = field(default_factory=list)

    def run(self) -> tuple[Span, ...]:
        self.work = {role: _work(self.budget, role) for role in self.roles}
        self.phases = _phase_times(self.budget.dependencies, self.iterations)
        ready = dict.fromkeys(self.roles, 0.0)
        done = dict.fromkeys(self.roles, 0)
        # The earliest begin goes first: resources then serve in the order of time.
        queue: list[tuple[float, int]] = []
        queued: set[str] = set()

        def offer() -> None:
            for order, role in enumerate(self.roles):
                if role not in queued and done[role] < self.iterations:
                    begin = self._begin(role, done[role], ready[role])
                    if begin is not None:
                        heapq.heappush(queue, (begin[0], order))
                        queued.add(role)

        offer()
        while queue:
            at, order = heapq.heappop(queue)
            role = self.roles[order]
            queued.discard(role)
            self.spans.append(self._play(role, done[role], ready[role], at))
            ready[role] = self.spans[-1].done
            done[role] += 1
            offer()
        if stuck := [role for role in self.roles if done[role] < self.iterations]:
            raise AutostampError.of("AS7107", chain=" -> ".join([*stuck, stuck[0]]))
        return tuple(self.spans)

    def _begin(self, role: str, iteration: int, ready: float) -> tuple[float, str] | None:
        """When the iteration can begin, and what came last; None while something that it needs has no time yet."""
        begin, awaited = ready, ""
        for what, at in self._needs(role, iteration):
            if at is None:
                return None
            if at > begin:
                begin, awaited = at, what
        return begin, awaited

    def _needs(self, role: str, iteration: int) -> Iterable[tuple[str, float | None]]:
        for ring in self.budget.rings:
            if ring.consumer == role:
                yield f"{ring.name} full", self.full.get((ring.name, iteration))
            if ring.producer == role and iteration >= ring.stages:
                yield f"{ring.name} empty", self.empty.get((ring.name, iteration - ring.stages))
        if self.phases:
            yield "earlier iterations", self.phases[iteration]

    def _play(self, role: str, iteration: int, ready: float, begin: float) -> Span:
        found = self._begin(role, iteration, ready)
        # Of the resources that are done last, the one that was free first.
        done, served, crowded = begin, begin, ""
        for resource, cycles in self.work[role].items():
            start = max(begin, self.free.get(resource, 0.0))
            self.free[resource] = start + cycles
            if start + cycles > done or (start + cycles == done and start < served):
                done, served, crowded = start + cycles, start, str(resource) if start > begin else ""
        for ring in self.budget.rings:
            there, back = _halves(ring)
            if ring.producer == role:
                self.full[ring.name, iteration] = begin + _sum(ring.fill) + there
            if ring.consumer == role:
                self.empty[ring.name, iteration] = begin + _sum(ring.consume) + back
        return Span(role, iteration, ready, begin, done, found[1] if found else "", served, crowded)


def _work(budget: Budget, role: str) -> dict[Resource, float]:
    found: dict[Resource, float] = {}
    for row in budget.rows:
        if row.role == role:
            cycles = row.cycles * budget.smem_write_share if row.is_write else row.cycles
            found[row.resource] = found.get(row.resource, 0.0) + cycles
    return found


def _halves(ring: Ring) -> tuple[float, float]:
    """The hand-off that fullness takes, which is the first step, and the one that emptiness takes, which is the rest."""
    return _sum(ring.hand_off[:1]), _sum(ring.hand_off[1:])


def _sum(steps: Iterable[Step]) -> float:
    return sum(step.cycles for step in steps)


def _phase_times(dependencies: Sequence[Dependency], iterations: int) -> list[float]:
    """When the earliest phase that a chain carries from one iteration to the next may begin, for each iteration."""
    found = worst_cycle(dependencies)
    if found is None:
        return []
    chain, _ = found
    on_chain = {edge.start for edge in chain}
    times: dict[Point, float] = {}
    names = list(dict.fromkeys(name for edge in dependencies for name in (edge.start, edge.end)))
    for iteration in range(iterations):
        for name in names:
            times[name, iteration] = 0.0
        # Within an iteration no chain goes round, so as many rounds as there are phases settle all of them.
        for _ in names:
            for edge in dependencies:
                before = times.get((edge.start, iteration - edge.distance))
                if before is not None:
                    key = (edge.end, iteration)
                    times[key] = max(times[key], before + _sum(edge.steps))
    return [min(times[name, iteration] for name in on_chain) for iteration in range(iterations)]


def _period(spans: Sequence[Span], iterations: int) -> float:
    last = spans[-1].role
    begins = [each.begin for each in spans if each.role == last]
    middle = iterations // 2
    return (begins[-1] - begins[middle - 1]) / (iterations - middle)


def _timeline(budget: Budget, roles: Sequence[str], spans: Sequence[Span], waits: Sequence[str]) -> Timeline:
    stages = {f"{ring.name} {side}": ring.stages for ring in budget.rings for side in ("full", "empty")}
    numbers = {name: index + 1 for index, name in enumerate(waits)}
    warps = tuple(
        _warp(index, role, [each for each in spans if each.role == role], numbers, stages)
        for index, role in enumerate(roles)
    )
    totals = tuple(
        RoleTotals(each.role, (each.warp,), each.span, each.stall, each.active, each.untracked) for each in warps
    )
    name = f"{budget.kernel} (predicted)"
    return Timeline(name, warps, totals, sites=(), never_visited=(), sm_mhz=0.0, trace=TRACE)


def _warp(
    warp: int, role: str, spans: Sequence[Span], numbers: Mapping[str, int], stages: Mapping[str, int]
) -> WarpTimeline:
    slices, signals, begun = [], [], 0
    for each in spans:
        ready, begin, served, done = (round(at) for at in (each.ready, each.begin, each.served, each.done))
        number, crowd = numbers.get(each.awaited, 0), numbers.get(each.crowded, 0)
        stage = each.iteration % stages[each.awaited] if each.awaited in stages else -1
        if begin > ready:
            slices.append(Slice(ready, begin, State.STALL, number, each.iteration, stage))
        if served > begin:
            slices.append(Slice(begin, served, State.STALL, crowd, each.iteration, -1))
        if done > served:
            slices.append(Slice(served, done, State.ACTIVE, number, each.iteration, stage))
        signals.append(Signal(done, number, each.iteration, stage))
        begun = done
    sums = {state: sum(each.cycles for each in slices if each.state is state) for state in State}
    made = WarpTimeline(
        warp, role, tuple(slices), begun, sums[State.STALL], sums[State.ACTIVE], 0, 0, 0, begun, tuple(signals)
    )
    return replace(made, untracked=made.span - made.stall - made.active)
