# SPDX-License-Identifier: Apache-2.0
"""A reconciliation as text that fits on one screen; the same lines are a section of a report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from autostamp.model.lesson import Lesson
from autostamp.model.reconciliation import Finding, PartKind, Reconciliation, ResidualPart, RoleCheck
from autostamp.report.verdict import wrapped
from autostamp.report.verdict_words import kernel_name, percent

_COLUMNS: Final = ("busy", "idle", "idle", "stall", "pass", "active", "untracked")
_MOST: Final = 3
_SHOWN: Final = 0.01
"""Of the period: shorter untracked spans are not shown."""


def as_text(found: Reconciliation, lessons: Sequence[Lesson] = ()) -> str:
    """All lines, broken to the width of a screen, with a newline at the end."""
    return "".join(f"{each}\n" for line in reconcile_lines(found, lessons) for each in wrapped(line))


def reconcile_lines(found: Reconciliation, lessons: Iterable[Lesson] = ()) -> Iterator[str]:
    """The lines unbroken: verdict, period, direction and ranking, roles, the residual's parts, what was tried, stalls."""
    yield f"{kernel_name(found.kernel)}: {found.headline}"
    shown = found
    if found.corrected is not None:
        listed = ", ".join(f"{name} {cycles:,.0f}" for name, cycles in found.over)
        yield f"bounds in error: {listed}; what follows is with {found.correction}"
        yield f"predicted as it was written: {_predicted(found)}; {_ranking(found)}"
        shown = found.corrected
        yield f"without what is in error: {shown.headline}"
    yield from _ctas(found)
    yield from _body(shown)
    for lesson in list(lessons)[:_MOST]:
        yield (
            f"lesson ({lesson.resource}, {lesson.written_at:%Y-%m-%d}, {lesson.kernel}): {lesson.cause}"
            f" ({lesson.predicted:,.0f} predicted, {lesson.measured:,.0f} measured)"
        )


def _ctas(found: Reconciliation) -> Iterator[str]:
    """Which CTA is shown, and how far the others are from it."""
    ctas = found.ctas
    if ctas is None:
        return
    launches = f" of {ctas.launches} launches" if ctas.launches > 1 else ""
    some = f" of {ctas.recorded} recorded ones" if ctas.compared + ctas.unsteady < ctas.recorded else ""
    unsteady = f"; {ctas.unsteady} without a steady state are left out" if ctas.unsteady else ""
    of_several = f" of launch {ctas.launch}" if ctas.launches > 1 else ""
    yield (
        f"{ctas.compared} CTAs{some}{launches} compared{unsteady}: period median {ctas.period.median:,.0f}, least"
        f" {ctas.period.least:,.0f}, most {ctas.period.most:,.0f}; direction holds in {ctas.direction_holds}, ranking in"
        f" {ctas.ranking_holds}"
    )
    spreads = "; ".join(
        f"{role.role} {percent(role.idle.median)} ({percent(role.idle.least)}-{percent(role.idle.most)})"
        for role in ctas.roles
    )
    yield f"measured idle over them: {spreads}"
    yield f"below is CTA {','.join(map(str, ctas.block))}{of_several}, whose period is the median"


def _body(found: Reconciliation) -> Iterator[str]:
    period = found.period
    yield (
        f"period: predicted {_predicted(found)}, measured {period.mean:,.0f}"
        f" (median {period.median:,.0f}, p10-p90 {period.p10:,.0f}-{period.p90:,.0f}, {period.iterations} iterations)"
        + (f", clean {period.clean:,.0f} by the ratio {period.ratio:.3f}" if period.ratio else "")
        + f"; error {100 * found.error:+.1f} %"
    )
    yield _direction(found)
    yield _ranking(found)
    yield from _roles(found.roles)
    yield f"residual, measured less predicted: {_number(found.residual)} cycles an iteration"
    yield from _parts(found.parts)
    yield (
        f"outside the period: fill {period.fill_cycles:,} cycles ({_iterations(period.fill)}),"
        f" drain {period.drain_cycles:,} ({_iterations(period.drain)})"
    )
    for region in [each for each in found.regions if each.cycles >= _SHOWN * period.mean][:_MOST]:
        yield (
            f"untracked: {region.role} {region.cycles:,.0f} cycles an iteration between {region.where},"
            f" {region.on_path:,.0f} on the critical path"
        )
    for trial in found.trials[:_MOST]:
        measured = "; the cycles are this run's own: check them against the cubin" if trial.is_measured else ""
        yield (
            f"tried: {trial.what}: {trial.cycles:,.0f} cycles; predicted {trial.period:,.0f} ({trial.gain:+,.0f}),"
            f" which explains {percent(trial.explained)}{measured}"
        )
    # What a stall is worth is only known where the model is trusted.
    if found.finding is Finding.KERNEL:
        for stall in found.stalls[:_MOST]:
            by = "its own" if stall.by == stall.role else f"of {stall.by}"
            yield (
                f"stall: {stall.role} at {stall.where} ({stall.kind}, {by}), {stall.cycles:,.0f} cycles an iteration on"
                f" the path; without it the period is {found.period.mean - stall.worth:,.0f} or more"
            )
    for spot in found.blind_spots[:_MOST]:
        yield f"not in the model: {spot}"
    if (more := len(found.blind_spots) - _MOST) > 0:
        yield f"not in the model: {more} more, in the prediction file (blind_spots)"
    for note in found.notes[:_MOST]:
        yield f"note: {note}"


def _predicted(found: Reconciliation) -> str:
    return f"{found.predicted:,.0f} cycles ({found.bottleneck})"


def _direction(found: Reconciliation) -> str:
    direction = found.direction
    if direction.holds is None:
        return "direction: unknown (the bound is no role's, or there is no critical path)"
    said = "holds" if direction.holds else "is wrong"
    roles = " and ".join(direction.predicted)
    return f"direction {said}: the bound is of {roles}, the critical path lies most in {direction.measured}"


def _ranking(found: Reconciliation) -> str:
    ranking = found.ranking
    order = f"predicted {', '.join(ranking.predicted)}; measured {', '.join(ranking.measured)}"
    if len(ranking.predicted) < 2:
        return "ranking by idle: fewer than two roles to rank"
    if not ranking.swapped:
        return f"ranking by idle holds, most first: {order}"
    pairs = "; ".join(f"{first} was to idle more than {second}" for first, second in ranking.swapped)
    return f"ranking by idle is wrong, most first: {order} ({pairs})"


def _roles(roles: Sequence[RoleCheck]) -> Iterator[str]:
    names = max([len(role.role) for role in roles] + [4])
    units = max([len(role.resource or "-") for role in roles] + [8])
    before = names + units + 4
    yield f"{'':<{before}}{'predicted':>16}{'measured':>9}"
    yield f"{'role':<{names}}  {'resource':<{units}}  " + "".join(
        f"{name:>{10 if name == 'untracked' else 8}}" for name in _COLUMNS
    )
    for role in roles:
        busy = "-" if role.predicted_busy is None else f"{role.predicted_busy:,.0f}"
        idle = "-" if role.predicted_idle is None else percent(role.predicted_idle)
        shares = (role.idle, role.stall, role.passed, role.active)
        yield (
            f"{role.role:<{names}}  {role.resource or '-':<{units}}  {busy:>8}{idle:>8}"
            + "".join(f"{percent(share):>8}" for share in shares)
            + f"{percent(role.untracked):>10}"
        )


def _parts(parts: Sequence[ResidualPart]) -> Iterator[str]:
    for part in parts:
        amount = "-" if part.observed is None and part.kind is not PartKind.UNEXPLAINED else _number(part.cycles)
        cut = f"of {part.observed:,.0f} observed; " if part.is_clamped and part.observed is not None else ""
        yield f"  {part.kind:<23} {amount:>7}  {cut}{part.detail}".rstrip()


def _iterations(count: int) -> str:
    return f"{count} iteration" if count == 1 else f"{count} iterations"


def _number(cycles: float) -> str:
    """Without a minus before a nought."""
    return f"{round(cycles) + 0:,}"
