# SPDX-License-Identifier: Apache-2.0
"""Figures of several launches with their spread, and what became of them from one run to another."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure over the launches of a run: how many there were, and their median, least and most."""

    count: int
    median: float
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class RoleFigures:
    """Where the time of one role went, in warp-cycles a CTA."""

    role: str
    span: Figure
    stall: Figure
    passed: Figure
    active: Figure
    untracked: Figure


@dataclass(frozen=True, slots=True)
class LaunchFigure:
    """One figure of the report over several launches: what it is, of which role (or pair of roles), and of which wait.

    `instance` is the wait's (0: the figure is of none). A share is from 0 to 1; all else is cycles, of a role warp-cycles a CTA.
    """

    what: str
    role: str
    instance: int
    figure: Figure
    is_share: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """One figure in two runs. `delta` is the difference of the medians, second minus first.

    `noise` is the most that chance would make it, by the spread of the launches in both runs; None where a run has one launch
    only, which shows no spread.
    """

    name: str
    first: Figure
    second: Figure
    delta: float
    noise: float | None

    @property
    def is_change(self) -> bool:
        """True where the difference is more than noise; never where the noise is unknown."""
        return self.noise is not None and abs(self.delta) > self.noise


@dataclass(frozen=True, slots=True)
class RoleChange:
    """One role in both runs: changes of span, stall, passed, active and untracked, in warp-cycles a CTA."""

    role: str
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class SitePlace:
    """A wait as it is recognised in another run: the file's name, the call's text, its barrier and the role that waits.

    `line` is where it stands in its own run.
    """

    file: str
    text: str
    barrier: str
    role: str
    line: int


@dataclass(frozen=True, slots=True)
class SiteChange:
    """One wait in both runs: changes of its stall (cycles a CTA, all warps) and of how often it stalled."""

    first: SitePlace
    second: SitePlace
    stall: Change
    count: Change


@dataclass(frozen=True, slots=True)
class Comparison:
    """One kernel in two runs.

    `cycles` is the time of a CTA, `period` that of an iteration in the steady state (None: it was not given for both).
    `blocks` counts the CTAs that were compared. `only_first` and `only_second` are waits that the other run does not have.
    """

    kernel: str
    launches: tuple[int, int]
    blocks: int
    cycles: Change
    period: Change | None
    roles: tuple[RoleChange, ...]
    sites: tuple[SiteChange, ...]
    only_first: tuple[SitePlace, ...] = ()
    only_second: tuple[SitePlace, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Growth:
    """A figure that grew by `percent`: of itself (a CTA's cycles, the period) or of the span of the role that stalls."""

    what: str
    percent: float
    is_certain: bool
