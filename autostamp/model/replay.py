# SPDX-License-Identifier: Apache-2.0
"""A run that was put together from several: replays of one kernel, each with a part of its sites stamped."""

from __future__ import annotations

from dataclasses import dataclass

from autostamp.model.placement import Form
from autostamp.model.trace import Trace

REPLAYS_SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Recording:
    """The launches of one CTA that one replay recorded. `number` is that of its set, from 1. `ratio` is what the set was
    measured to take of the clean time, 0 where that is unknown.
    """

    number: int
    launches: tuple[Trace, ...]
    ratio: float = 0.0


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a set is not part of a joined run: a code of the AS812x pages, and the reason in words."""

    number: int
    code: str
    detail: str


@dataclass(frozen=True, slots=True)
class Fit:
    """How well one set's records of one `kernel` fit onto the reference's, over all launches. Cycles.

    `anchors` are records that both have, in one launch; `events` those that only this set gives. `noise` is the median over kinds
    of gaps (from one anchor to the next) of the 95th percentile of the difference of one gap between two launches of one set;
    `shift` the largest difference of a kind's median gap between the set and the reference. `typical` and `typical_p95` are
    median and 95th percentile of how far off an event came out where launches of the set were joined to each other;
    `error_median`, `error_p90` and `error_most` are of what is stated of the positions of `events`. `shortened` waits were
    longer than the reference's gap; `moved` events stood inside a wait that another set gives, and were set beside it.
    `guided` warps have records and no site in common with the reference: the anchors of another warp placed them.
    """

    number: int
    anchors: int
    events: int
    noise: int = 0
    shift: int = 0
    typical: int = 0
    typical_p95: int = 0
    error_median: int = 0
    error_p90: int = 0
    error_most: int = 0
    shortened: int = 0
    moved: int = 0
    kernel: str = ""
    guided: int = 0


@dataclass(frozen=True, slots=True)
class Joined:
    """Traces on the reference's axis, one for each launch that all joined sets have, and how each set fits."""

    traces: tuple[Trace, ...]
    reference: int
    fits: tuple[Fit, ...]
    refusals: tuple[Refusal, ...] = ()


@dataclass(frozen=True, slots=True)
class SetTimes:
    """Time of one set against the clean kernel, from runs A/B/B/A: medians in what `method` says, ratios stamped ÷ clean.

    `rounds` is how many times of each there are, 0 where none was measured. `p10` and `p90` are of the ratio, `control` is
    p90 - p10 of clean ÷ clean.
    """

    rounds: int = 0
    clean: float = 0.0
    stamped: float = 0.0
    ratio: float = 0.0
    p10: float = 0.0
    p90: float = 0.0
    control: float = 0.0
    method: str = ""


@dataclass(frozen=True, slots=True)
class ReplayedSet:
    """One set as it was run: its sites, what it cost, and whether the program's results were the clean run's (None: unknown)."""

    number: int
    sites: tuple[tuple[str, Form], ...]
    anchors: tuple[str, ...]
    launches: int
    times: SetTimes
    results_equal: bool | None = None


@dataclass(frozen=True, slots=True)
class Uncovered:
    """A site without records. `cost` says what was measured of it, and in what company; `code` is the page why it is missing."""

    key: str
    cost: str
    code: str


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A kind of record beside a stamp that has none: the instance, and `kind`, a value of `EventKind`.

    `which` of its visits is meant: `each`, or only the `last` before it or the `first` after it, of a loop that is left or
    entered between. `trip` is 1 where it is of the loop's next trip, -1 where it is of the one before.
    """

    instance: int
    kind: str
    which: str = "each"
    trip: int = 0


@dataclass(frozen=True, slots=True)
class Bound:
    """Between which records a stamp lies that was not recorded, by the order of the source, and how far those are apart.

    `key` is that of the site. `stamp` is `wait` or `signal` where the site has no record at all, `enter` or `exit` where that is
    the one of its two that is missing. `median`, `p10` and `p90` are cycles from one neighbour to the other over `count` spans of
    `warps`, `error` the median of what the errors of the two records say of the span (0: the reference recorded both).
    """

    key: str
    stamp: str
    kernel: int
    role: str
    warps: tuple[int, ...]
    before: Neighbour
    after: Neighbour
    count: int
    median: int
    p10: int
    p90: int
    error: int


@dataclass(frozen=True, slots=True)
class Replays:
    """What a joined run says of itself beside its records.

    `bar` is the largest accepted ratio. `dropped` are sets that gave nothing to it, with their reasons; `fits` has one entry for
    each kernel and joined set (the reference has none).
    """

    schema_version: int
    reference: int
    bar: float
    sets: tuple[ReplayedSet, ...]
    fits: tuple[Fit, ...]
    dropped: tuple[Refusal, ...]
    uncovered: tuple[Uncovered, ...]
    notes: tuple[str, ...] = ()
