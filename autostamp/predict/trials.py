# SPDX-License-Identifier: Apache-2.0
"""Changes of a budget that a run suggests, each tried by predicting again with it.

A term: work on the critical path that no row has, laid behind the role's predicted work, for one warp does both in turn. An
edge: arrivals that the run shows and the budget lacks. For a model error, the share of shared-memory writes that fits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from autostamp.model.budget import Budget, Dependency, Origin, Prediction, Resource, ResourceRow, Step
from autostamp.model.flow import Flow, PathKind, Steady
from autostamp.model.reconciliation import Period, Region, Trial
from autostamp.predict.bounds import predict
from autostamp.predict.chains import role_of
from autostamp.predict.measured import path_work

LEAST: Final = 0.01
"""Of the period: changes that gain less are not shown."""
TOLERANCE: Final = 0.01
"""By how much a bound may exceed the measured period: laws and window are not known better (docs/reconcile.md)."""
ESTIMATED: Final = 0.05
"""The same where the clean period follows from the times of both kernels: fill, drain and launch are in that ratio, and stamps
need not cost them what they cost the loop."""


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


def without(budget: Budget, over: Sequence[str], clean: float) -> Change | None:
    """The budget without the resources whose bounds are longer than `clean`: of shared memory, without its writes if reads fit.

    A chain that was read out of a loop goes as a whole. `what` says which rates would just do. None where nothing is left, or a
    bound is of another kind.
    """
    rows, share, said = list(budget.rows), budget.smem_write_share, []
    chains = [name for name in over if role_of(name)]
    said += [f"no chain {name}" for name in chains]
    for name in [each for each in over if each not in chains]:
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
    kept = tuple(edge for edge in budget.dependencies if edge.start not in chains)
    left = replace(budget, rows=tuple(rows), smem_write_share=share, dependencies=kept)
    return Change(" and ".join(said), clean, left, is_measured=False) if rows else None
