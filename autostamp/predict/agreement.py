# SPDX-License-Identifier: Apache-2.0
"""Whether direction and order agree: who binds, and who idles more than whom. Checked before any figure is."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
from typing import Final

from autostamp.model.budget import BoundKind, Budget, Prediction
from autostamp.model.flow import Flow, Steady
from autostamp.model.reconciliation import Direction, Ranking, RoleCheck
from autostamp.predict.measured import path_work

TIE: Final = 0.05
"""Idle shares this close are not ranked: no rate is known much better."""


def direction(budget: Budget, prediction: Prediction, flow: Flow, steady: Steady) -> Direction:
    """Who should bind and who does: a bound is a role's where the role's rows, or its end of the ring, make it."""
    bound = prediction.bottleneck
    if bound.kind is BoundKind.RESOURCE:
        expected = tuple(dict.fromkeys(row.role for row in budget.rows if row.resource == bound.name))
    elif bound.kind is BoundKind.CREDIT:
        ring = next((ring for ring in budget.rings if ring.name == bound.name), None)
        expected = (ring.producer, ring.consumer) if ring else ()
    else:
        named = set(bound.name.split(" -> "))
        expected = tuple(role.role for role in prediction.roles if role.role in named)
    shares: dict[str, float] = defaultdict(float)
    for (role, _), cycles in path_work(flow.path, steady.iterations).items():
        shares[role] += cycles
    most = max(shares, key=lambda role: shares[role], default="")
    return Direction(expected, most, most in expected if expected and most else None)


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
