# SPDX-License-Identifier: Apache-2.0
"""Figures over the launches of a run, and how far chance alone moves them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from statistics import fmean, median, variance
from typing import Final

from autostamp.model.comparison import Change, Figure, LaunchFigure, RoleFigures
from autostamp.model.flow import Flow
from autostamp.model.timeline import RoleTotals, Timeline

# fmt: off
QUANTILES: Final = (
    63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169, 3.106, 3.055, 3.012, 2.977, 2.947,
    2.921, 2.898, 2.878, 2.861, 2.845, 2.831, 2.819, 2.807, 2.797, 2.787, 2.779, 2.771, 2.763, 2.756, 2.750,
)
# fmt: on
"""Student's t, 0.995 quantile for 1 to 30 degrees of freedom (NIST/SEMATECH e-Handbook, section 1.3.6.7.2)."""

BEYOND: Final = 2.576
"""The same for infinitely many."""

MEDIAN_OVER_MEAN: Final = math.sqrt(math.pi / 2)
"""Standard error of a median over that of a mean, for many normally distributed values; with few it is less."""

ROLE_FIELDS: Final = ("span", "stall", "passed", "active", "untracked")


def figure_of(values: Sequence[float]) -> Figure:
    """The figure over at least one launch."""
    return Figure(len(values), median(values), min(values), max(values))


def by_launch(timelines: Sequence[Timeline], value: Callable[[Timeline], float]) -> list[float]:
    """The mean over the CTAs of each launch, in the order of launches."""
    found: dict[int, list[float]] = {}
    for timeline in timelines:
        found.setdefault(timeline.launch, []).append(value(timeline))
    return [fmean(found[launch]) for launch in sorted(found)]


def by_kernel(timelines: Sequence[Timeline]) -> list[list[Timeline]]:
    """The CTAs and launches of each kernel trace together, in the order in which they come."""
    found: dict[int, list[Timeline]] = {}
    for timeline in timelines:
        found.setdefault(timeline.trace, []).append(timeline)
    return list(found.values())


def role_values(timelines: Sequence[Timeline], role: str, name: str) -> list[float]:
    """One sum of a role by launch, in warp-cycles a CTA; 0 for a CTA that does not have the role."""
    return by_launch(
        timelines, lambda timeline: sum(_sum(total, name) for total in timeline.roles if total.role == role)
    )


def _sum(total: RoleTotals, name: str) -> int:
    value: int = getattr(total, name)
    return value


def roles_of(timelines: Sequence[Timeline]) -> tuple[str, ...]:
    """The roles of all CTAs, in the order in which they are met."""
    return tuple(dict.fromkeys(total.role for timeline in timelines for total in timeline.roles))


def spreads(timelines: Sequence[Timeline]) -> tuple[RoleFigures, ...]:
    """Where the time of each role went, over the launches of one kernel."""
    return tuple(
        RoleFigures(role, *(figure_of(role_values(timelines, role, name)) for name in ROLE_FIELDS))
        for role in roles_of(timelines)
    )


def launch_figures(timelines: Sequence[Timeline], flows: Sequence[Flow]) -> tuple[LaunchFigure, ...]:
    """The figures of a report with their spread over the launches of one kernel; none where there is one launch only.

    A figure that a launch does not have (no steady state, say) is left out for that launch.
    """
    if len({timeline.launch for timeline in timelines}) < 2:
        return ()
    found: dict[tuple[str, str, int, bool], dict[int, list[float]]] = {}
    for timeline, flow in zip(timelines, flows, strict=True):
        for what, role, instance, is_share, value in _values(timeline, flow):
            launches = found.setdefault((what, role, instance, is_share), {})
            launches.setdefault(timeline.launch, []).append(value)
    return tuple(
        LaunchFigure(what, role, instance, figure_of([fmean(values) for values in launches.values()]), is_share)
        for (what, role, instance, is_share), launches in found.items()
    )


def _values(timeline: Timeline, flow: Flow) -> Iterator[tuple[str, str, int, bool, float]]:
    """What the figure is, its role and wait, whether it is a share, and its value in one CTA."""
    yield "cycles", "", 0, False, timeline.cycles
    if flow.steady is not None:
        yield "period", "", 0, False, flow.steady.period.median
    for role, share in flow.path.by_role if flow.path is not None else ():
        yield "critical path", role, 0, True, share
    for pair in flow.overlaps:
        yield "overlap", f"{pair.first} and {pair.second}", 0, True, pair.share
    for total in timeline.roles:
        for name in ROLE_FIELDS:
            yield name, total.role, 0, False, _sum(total, name)
    for site in timeline.sites:
        yield "wait", site.role, site.instance, False, site.spread.total


def noise(first: Sequence[float], second: Sequence[float]) -> float | None:
    """How far apart the medians of two sets of launches come by chance, in 99 of 100 cases; None unless each has two at least.

    Half the width of the interval for a difference of two means under the pooled variance, as for Student's test, times
    `MEDIAN_OVER_MEAN` because medians are compared.
    """
    if min(len(first), len(second)) < 2:
        return None
    degrees = len(first) + len(second) - 2
    pooled = ((len(first) - 1) * variance(first) + (len(second) - 1) * variance(second)) / degrees
    quantile = QUANTILES[degrees - 1] if degrees <= len(QUANTILES) else BEYOND
    return quantile * MEDIAN_OVER_MEAN * math.sqrt(pooled * (1 / len(first) + 1 / len(second)))


def change(name: str, first: Sequence[float], second: Sequence[float]) -> Change:
    """What became of one figure, given its value in each launch of both runs."""
    before, after = figure_of(first), figure_of(second)
    return Change(name, before, after, after.median - before.median, noise(first, second))
