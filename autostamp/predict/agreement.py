# SPDX-License-Identifier: Apache-2.0
"""Whether direction and order agree: who binds, and who idles more than whom. Checked before any figure is."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
from typing import Final

from autostamp.model.budget import Bound, BoundKind, Budget, Prediction
from autostamp.model.flow import Flow, PathKind
from autostamp.model.reconciliation import Direction, Ranking, RoleCheck
from autostamp.predict.chains import role_of

_DONE: Final = frozenset({PathKind.ACTIVE, PathKind.UNTRACKED, PathKind.TRANSFER})

TIE: Final = 0.05
"""Idle shares this close are not ranked: no rate is known much better."""


def direction(budget: Budget, prediction: Prediction, flow: Flow) -> Direction:
    """Who should bind and who does: roles of the binding bound and of those close to it; and the role that most of the critical
    path is, in work and in the transfers that it issued.
    """
    bounds = (prediction.bottleneck, *prediction.co_bottlenecks)
    expected = tuple(dict.fromkeys(role for bound in bounds for role in _roles_of(bound, budget, prediction)))
    cycles: dict[str, int] = defaultdict(int)
    for part in flow.path.parts if flow.path else ():
        if part.kind in _DONE:
            cycles[part.role] += part.end - part.start
    most = max(cycles, key=lambda role: cycles[role], default="")
    return Direction(expected, most, most in expected if expected and most else None)


def _roles_of(bound: Bound, budget: Budget, prediction: Prediction) -> tuple[str, ...]:
    """Whose rows, or ends of the ring, or phases make a bound."""
    if bound.kind is BoundKind.RESOURCE:
        return tuple(row.role for row in budget.rows if row.resource == bound.name)
    if bound.kind is BoundKind.CREDIT:
        return tuple(
            role for ring in budget.rings if ring.name == bound.name for role in (ring.producer, ring.consumer)
        )
    named = {*bound.name.split(" -> "), role_of(bound.name)}
    return tuple(role.role for role in prediction.roles if role.role in named)


def ranking(checks: tuple[RoleCheck, ...]) -> Ranking:
    """Order of the roles that both sides know. A pair is swapped where both shares differ by more than TIE, the other way."""
    known = [(check.role, check.predicted_idle, check.idle) for check in checks if check.predicted_idle is not None]
    swapped = []
    for first, second in combinations(known, 2):
        more, less = (first, second) if first[1] > second[1] else (second, first)
        if more[1] - less[1] > TIE and less[2] - more[2] > TIE:
            swapped.append((more[0], less[0]))
    return Ranking(
        tuple(role for role, _, _ in sorted(known, key=lambda one: -one[1])),
        tuple(role for role, _, _ in sorted(known, key=lambda one: -one[2])),
        tuple(swapped),
    )
