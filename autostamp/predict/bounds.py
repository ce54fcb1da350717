# SPDX-License-Identifier: Apache-2.0
"""The three lower bounds of a loop's period, and the prediction that they make.

An iteration cannot be shorter than the busiest resource needs (resource), than the chain of what each iteration needs of
earlier ones (recurrence), or than a ring's stage takes to go round, over the stages (credit). The form is that of TileSight
(tile-ai/TileSight).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from autostamp.diagnostics import AutostampError
from autostamp.model.budget import (
    Bound,
    BoundKind,
    Budget,
    Dependency,
    Prediction,
    Resource,
    ResourceRow,
    Ring,
    RoleIdle,
    Sensitivity,
    Step,
)
from autostamp.predict.cycles import chain_name, worst_cycle

CLOSE: Final = 0.1
"""Bounds within a tenth of the largest bind with it: no figure here is known better."""

BETTER: Final = 1.1


def predict(budget: Budget) -> Prediction:
    """The largest bound as the period, and what follows from it.

    Raises AS7106 for a budget without any bound or a ring without stages, AS7107 for dependencies that wait for each other
    within one iteration.
    """
    bounds = all_bounds(budget)
    period = bounds[0].cycles
    close = tuple(bound for bound in bounds[1:] if bound.cycles >= (1 - CLOSE) * period)
    roles = role_idle(budget, period)
    without_writes = all_bounds(replace(budget, smem_write_share=0.0))[0].cycles
    return Prediction(
        kernel=budget.kernel,
        machine=budget.machine,
        period=period,
        bounds=bounds,
        bottleneck=bounds[0],
        co_bottlenecks=close,
        roles=roles,
        sensitivities=sensitivities(budget, period),
        period_without_writes=without_writes,
        line=_line((bounds[0], *close), roles),
        blind_spots=budget.blind_spots,
    )


def all_bounds(budget: Budget) -> tuple[Bound, ...]:
    """Every bound, largest first; of equal ones, resources in the order of `Resource` first."""
    found = [*resource_bounds(budget), *recurrence_bounds(budget.dependencies), *credit_bounds(budget.rings)]
    if not found:
        raise AutostampError.of("AS7106", what=budget.kernel, detail="the budget has no row, no chain and no ring")
    return tuple(sorted(found, key=lambda bound: -round(bound.cycles, 6)))


def resource_bounds(budget: Budget) -> tuple[Bound, ...]:
    """One bound for each resource that anything is asked of: the sum over all roles."""
    bounds = []
    for resource in Resource:
        rows = [row for row in budget.rows if row.resource is resource]
        if total := _busy(rows, budget.smem_write_share):
            parts = " + ".join(f"{row.what} {_weighted(row, budget.smem_write_share):.4g}" for row in rows)
            bounds.append(Bound(BoundKind.RESOURCE, resource, total, parts))
    return tuple(bounds)


def recurrence_bounds(dependencies: Sequence[Dependency]) -> tuple[Bound, ...]:
    """What waits for itself, each for its own; and of all other chains the one with the most cycles for each iteration that it
    spans, if the loop carries one.
    """
    alone = [(edge.start, [edge]) for edge in dependencies if edge.start == edge.end]
    others = ("", [edge for edge in dependencies if edge.start != edge.end])
    bounds = []
    for name, edges in (*alone, others):
        if found := worst_cycle(edges):
            chain, cycles = found
            distance = sum(edge.distance for edge in chain)
            detail = _over(_sum_text(_steps(chain)), distance, "iterations")
            bounds.append(Bound(BoundKind.RECURRENCE, name or chain_name(chain), cycles, detail))
    return tuple(bounds)


def credit_bounds(rings: Iterable[Ring]) -> tuple[Bound, ...]:
    """For each ring: what a stage takes to be filled, consumed and handed over both ways, over the stages."""
    bounds = []
    for ring in rings:
        if ring.stages < 1:
            raise AutostampError.of("AS7106", what=f"ring {ring.name}", detail=f"{ring.stages} stages")
        steps = [*ring.fill, *ring.consume, *ring.hand_off]
        total = sum(step.cycles for step in steps) / ring.stages
        bounds.append(Bound(BoundKind.CREDIT, ring.name, total, _over(_sum_text(steps), ring.stages, "stages")))
    return tuple(bounds)


def role_idle(budget: Budget, period: float) -> tuple[RoleIdle, ...]:
    """Each role's most loaded resource, and what is left of the period, in the order of the rows."""
    idle = []
    for role in dict.fromkeys(row.role for row in budget.rows):
        loads = {
            resource: _busy(
                [row for row in budget.rows if row.role == role and row.resource is resource], budget.smem_write_share
            )
            for resource in Resource
        }
        resource = max(loads, key=lambda one: loads[one])
        idle.append(RoleIdle(role, resource, loads[resource], 1 - loads[resource] / period))
    return tuple(idle)


def sensitivities(budget: Budget, period: float) -> tuple[Sensitivity, ...]:
    """For each constant that the budget uses: the period if it were a tenth better, largest gain first."""
    steps = [*_steps(budget.dependencies), *(step for ring in budget.rings for step in _ring_steps(ring))]
    names = dict.fromkeys([*(row.constant for row in budget.rows), *(step.constant for step in steps)])
    found = []
    for name in filter(None, names):
        better = all_bounds(_with_better(budget, name))[0].cycles
        found.append(Sensitivity(name, better, period - better))
    return tuple(sorted(found, key=lambda one: -one.gain))


def _with_better(budget: Budget, name: str) -> Budget:
    """The budget if the rate (latency) `name` were 1.1 times as high (short): either way its cycles shrink alike."""

    def steps(old: tuple[Step, ...]) -> tuple[Step, ...]:
        return tuple(replace(step, cycles=step.cycles / BETTER) if step.constant == name else step for step in old)

    return replace(
        budget,
        rows=tuple(replace(row, cycles=row.cycles / BETTER) if row.constant == name else row for row in budget.rows),
        dependencies=tuple(replace(edge, steps=steps(edge.steps)) for edge in budget.dependencies),
        rings=tuple(
            replace(ring, fill=steps(ring.fill), consume=steps(ring.consume), hand_off=steps(ring.hand_off))
            for ring in budget.rings
        ),
    )


def _weighted(row: ResourceRow, write_share: float) -> float:
    return row.cycles * write_share if row.is_write else row.cycles


def _busy(rows: Iterable[ResourceRow], write_share: float) -> float:
    return sum(_weighted(row, write_share) for row in rows)


def _steps(dependencies: Iterable[Dependency]) -> list[Step]:
    return [step for edge in dependencies for step in edge.steps]


def _ring_steps(ring: Ring) -> tuple[Step, ...]:
    return (*ring.fill, *ring.consume, *ring.hand_off)


def _sum_text(steps: Iterable[Step]) -> str:
    return " + ".join(f"{step.what} {step.cycles:.4g}" for step in steps)


def _over(text: str, count: int, what: str) -> str:
    return f"({text}) / {count} {what if count > 1 else what.removesuffix('s')}"


_SUBJECTS: Final = {
    BoundKind.RESOURCE: "{}",
    BoundKind.RECURRENCE: "the chain {}",
    BoundKind.CREDIT: "the depth of ring {}",
}


def _line(binding: Sequence[Bound], roles: Iterable[RoleIdle]) -> str:
    """The sentence that a measurement can prove wrong."""
    names = [_SUBJECTS[bound.kind].format(bound.name) for bound in binding]
    first, *others = names
    beside = f" (within 10 %: {', '.join(others)})" if others else ""
    idle = "".join(f"; role {role.role} idles ~{100 * role.idle:.0f} %" for role in roles)
    return f"{first} is the ceiling at ~{binding[0].cycles:.0f} cycles/iteration{beside}{idle}"
