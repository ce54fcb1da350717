# SPDX-License-Identifier: Apache-2.0
"""A prediction held against a run: what agrees, where the difference lies, and what follows from it.

Cycles are SM cycles of one iteration of the steady window, unless said otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from autostamp.model.budget import Resource
from autostamp.model.flow import PathKind


class Finding(StrEnum):
    """What the comparison comes to."""

    MODEL_ERROR = "model error"
    """A bound is longer than the clean period: a rate or an amount of work is wrong."""
    INCOMPLETE = "the model is incomplete"
    """More of the period is unexplained than the stated share: a term or an edge is missing."""
    KERNEL = "the kernel leaves performance"
    """The model explains all but the stated share, and what is left lies in stalls."""
    AT_BOUND = "the kernel runs at its bound"
    """Nothing is left to explain."""


class PartKind(StrEnum):
    """What a part of the residual is."""

    STAMPS = "stamp cost"
    HAND_OFF = "hand-off latency"
    UNTRACKED = "untracked work"
    CONTENTION = "contention"
    IMBALANCE = "imbalance between warps"
    UNEXPLAINED = "unexplained"


@dataclass(frozen=True, slots=True)
class ResidualPart:
    """`observed` is what the run shows (None: not measured), `cycles` what of it the residual has room for.

    Parts are filled in the order of `PartKind`; what does not fit was hidden behind what the prediction holds, or counted in a
    part before. The last is the rest, so that all `cycles` sum to the residual.
    """

    kind: PartKind
    observed: float | None
    cycles: float
    detail: str = ""

    @property
    def is_clamped(self) -> bool:
        """Whether less was taken than was observed."""
        return self.observed is not None and self.cycles < self.observed - 0.5


@dataclass(frozen=True, slots=True)
class RoleCheck:
    """One role: prediction beside the steady window's shares of its time, 0 to 1.

    `idle` is stall without the waits for the warp's own asynchronous groups, during which the unit that it feeds works.
    `resource` is the predicted one that is busiest (None: none is). What was predicted is None for a role that the budget does
    not name.
    """

    role: str
    resource: Resource | None
    predicted_busy: float | None
    predicted_idle: float | None
    stall: float
    idle: float
    passed: float
    active: float
    untracked: float


@dataclass(frozen=True, slots=True)
class Region:
    """Time of a role that nothing brackets, between two records that follow each other in a warp.

    `first` and `last` are the instances of these records (0: the lane's begin or end). `cycles` is the mean over the role's
    warps, `on_path` what of it lay on the critical path.
    """

    role: str
    first: int
    last: int
    cycles: float
    on_path: float
    where: str


@dataclass(frozen=True, slots=True)
class Trial:
    """A change of the budget, and what was predicted with it. `explained` is that period over the clean one.

    `is_measured`: the cycles are the run's own, so that the gain shows where the time lies and proves no rate.
    """

    what: str
    cycles: float
    period: float
    gain: float
    explained: float
    is_measured: bool


@dataclass(frozen=True, slots=True)
class PathStall:
    """Waiting on the critical path: by how much the period would shrink, at most, if it vanished.

    `worth` ends at the bound: a stall cannot give more than what the measured period lies above it. `role` waits at `where`,
    mostly, and `by` is whoever is waited for.
    """

    barrier: int
    side: str
    role: str
    by: str
    kind: PathKind
    cycles: float
    worth: float
    label: str
    where: str


@dataclass(frozen=True, slots=True)
class Ranking:
    """Order of the roles by idle time. `swapped` are pairs (more idle as predicted, more idle as measured) that disagree."""

    predicted: tuple[str, ...]
    measured: tuple[str, ...]
    swapped: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Direction:
    """Roles that the binding bound belongs to, and the role with the most of the critical path.

    `holds` is None where either is unknown.
    """

    predicted: tuple[str, ...]
    measured: str
    holds: bool | None


@dataclass(frozen=True, slots=True)
class Period:
    """Mean of the steady iterations, which all parts sum to; `median`, `p10` and `p90` show how far they spread.

    `clean` is the mean without stamps, by the ratio of both kernels' times; where that is unknown, the mean itself.
    """

    mean: float
    median: float
    p10: float
    p90: float
    clean: float
    ratio: float | None
    iterations: int
    fill: int
    drain: int
    fill_cycles: int
    drain_cycles: int

    @property
    def scale(self) -> float:
        """Clean over stamped time, 1 where that is not known."""
        return self.clean / self.mean


@dataclass(frozen=True, slots=True)
class Spread:
    """Of one figure over CTAs."""

    least: float
    median: float
    most: float


@dataclass(frozen=True, slots=True)
class RoleSpread:
    """Shares of a role's time over the CTAs that have it, 0 to 1, as `RoleCheck` has them for one."""

    role: str
    idle: Spread
    stall: Spread
    active: Spread


@dataclass(frozen=True, slots=True)
class CtaSpread:
    """All recorded CTAs that were compared, of all launches. The one that is shown in full has the median of their periods.

    `recorded` CTAs are in the run. Of `compared`, direction and ranking hold in so many. `unsteady` had no steady state.
    """

    recorded: int
    compared: int
    unsteady: int
    launches: int
    block: tuple[int, int, int]
    launch: int
    period: Spread
    roles: tuple[RoleSpread, ...]
    direction_holds: int
    ranking_holds: int


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """All of it for one timeline. `residual` is measured less predicted; `explained` predicted over clean.

    `over` are bounds longer than the clean period, as (name, cycles); `corrected` is the comparison without what makes them, and
    `correction` says what that is. `trials` and `stalls` are sorted, most first. `ctas`: where several were recorded.
    """

    kernel: str
    trace: int
    predicted: float
    bottleneck: str
    period: Period
    residual: float
    explained: float
    direction: Direction
    ranking: Ranking
    roles: tuple[RoleCheck, ...]
    parts: tuple[ResidualPart, ...]
    regions: tuple[Region, ...]
    trials: tuple[Trial, ...]
    stalls: tuple[PathStall, ...]
    over: tuple[tuple[str, float], ...]
    finding: Finding
    headline: str
    share: float
    is_written_after: bool | None
    notes: tuple[str, ...] = ()
    blind_spots: tuple[str, ...] = ()
    correction: str = ""
    corrected: Reconciliation | None = None
    ctas: CtaSpread | None = None

    @property
    def error(self) -> float:
        """(predicted - measured) / measured, of the clean period where that is known."""
        return (self.predicted - self.period.clean) / self.period.clean
