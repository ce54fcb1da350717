# SPDX-License-Identifier: Apache-2.0
"""Several recorded CTAs against one prediction: the one with the median period is shown, beside the spread of all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from statistics import median
from typing import Final

from autostamp.diagnostics import AutostampError
from autostamp.model.flow import Flow
from autostamp.model.reconciliation import CtaSpread, Reconciliation, RoleCheck, RoleSpread, Spread
from autostamp.model.timeline import Timeline

MOST: Final = 64
"""CTAs that are compared. Of more, so many that lie evenly among them."""

UNSTEADY: Final = "AS7141"


def chosen(count: int, most: int = MOST) -> list[int]:
    """Which of `count` CTAs are compared: all, or `most` from the first to the last, evenly spread."""
    if count <= most:
        return list(range(count))
    return [round(each * (count - 1) / (most - 1)) for each in range(most)]


def reconcile_ctas(
    pairs: Sequence[tuple[Timeline, Flow]],
    compare: Callable[[Timeline, Flow], Reconciliation],
    recorded: int = 0,
) -> tuple[int, Reconciliation]:
    """The comparison of the CTA with the (lower) median period, and its place in `pairs`; of several with the spread of all.

    `compare` holds one CTA against the prediction. `recorded` CTAs are in the run (0: as many as `pairs`). CTAs without a
    steady state are left out; raises AS7141 where no CTA has one, and what `compare` raises besides.
    """
    found: list[tuple[int, Reconciliation]] = []
    why: AutostampError | None = None
    for place, (timeline, flow) in enumerate(pairs):
        try:
            found.append((place, compare(timeline, flow)))
        except AutostampError as error:
            if error.diagnostic.code != UNSTEADY:
                raise
            why = error
    if not found:
        assert why is not None
        raise why
    in_order = sorted(found, key=lambda one: one[1].period.mean)
    place, shown = in_order[(len(in_order) - 1) // 2]
    total = recorded or len(pairs)
    if total == 1:
        return place, shown
    timelines = [pairs[each][0] for each, _ in found]
    spread = _spread([one for _, one in found], timelines, pairs[place][0], total, len(pairs) - len(found))
    return place, replace(shown, ctas=spread)


def _spread(
    found: Sequence[Reconciliation], timelines: Sequence[Timeline], shown: Timeline, recorded: int, unsteady: int
) -> CtaSpread:
    names = dict.fromkeys(check.role for one in found for check in one.roles)
    return CtaSpread(
        recorded=recorded,
        compared=len(found),
        unsteady=unsteady,
        launches=len({each.launch for each in timelines}),
        block=shown.block,
        launch=shown.launch,
        period=_of(one.period.mean for one in found),
        roles=tuple(
            _role(name, [check for one in found for check in one.roles if check.role == name]) for name in names
        ),
        direction_holds=sum(one.direction.holds is True for one in found),
        ranking_holds=sum(not one.ranking.swapped for one in found),
    )


def _role(name: str, checks: Sequence[RoleCheck]) -> RoleSpread:
    return RoleSpread(
        name,
        _of(check.idle for check in checks),
        _of(check.stall for check in checks),
        _of(check.active for check in checks),
    )


def _of(values: Iterable[float]) -> Spread:
    found = list(values)
    return Spread(min(found), median(found), max(found))
