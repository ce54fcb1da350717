# SPDX-License-Identifier: Apache-2.0
"""What the rounds of an A/B/B/A measurement say: medians, their spread, and how far equal builds differ."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Round:
    """Times of one round in the order they were taken, in microseconds per launch: clean, stamped, stamped, clean."""

    clean_first: float
    stamped_first: float
    stamped_last: float
    clean_last: float

    @property
    def ratio(self) -> float:
        """Stamped over clean. The order makes a steady drift of the machine cancel."""
        return (self.stamped_first + self.stamped_last) / (self.clean_first + self.clean_last)

    @property
    def control(self) -> float:
        """Clean over clean: what the machine alone does to a ratio within one round."""
        return self.clean_last / self.clean_first


@dataclass(frozen=True, slots=True)
class Spread:
    """Order statistics of one set of numbers. Percentiles interpolate linearly between ranks."""

    median: float
    p10: float
    p90: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """Times in microseconds per launch, and ratios of single rounds."""

    clean: Spread
    stamped: Spread
    ratio: Spread
    control: Spread


def percentile(ordered: Sequence[float], share: float) -> float:
    """The value below which `share` (0 to 1) of the sorted, non-empty numbers lie, interpolated between neighbours."""
    rank = share * (len(ordered) - 1)
    below = math.floor(rank)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (rank - below)


def spread_of(values: Sequence[float]) -> Spread:
    """Order statistics of at least one number."""
    ordered = sorted(values)
    p10, p90 = percentile(ordered, 0.1), percentile(ordered, 0.9)
    return Spread(statistics.median(ordered), p10, p90, ordered[0], ordered[-1])


def compare(rounds: Sequence[Round]) -> Comparison:
    """The statistics of at least one round."""
    return Comparison(
        clean=spread_of([time for item in rounds for time in (item.clean_first, item.clean_last)]),
        stamped=spread_of([time for item in rounds for time in (item.stamped_first, item.stamped_last)]),
        ratio=spread_of([item.ratio for item in rounds]),
        control=spread_of([item.control for item in rounds]),
    )


def launches_for(microseconds: float, target: float, most: int) -> int:
    """How many launches of `microseconds` each make up a measurement of about `target` microseconds: 1 to `most`."""
    if microseconds <= 0:
        return most
    return max(1, min(most, round(target / microseconds)))


def as_json(comparison: Comparison, rounds: Sequence[Round]) -> dict[str, object]:
    """Everything as plain numbers, single rounds included, so that other statistics can be made of them."""
    return {**asdict(comparison), "rounds": [list(asdict(item).values()) for item in rounds]}


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, with columns as wide as they need and figures, which is all but the first column, to the right."""
    widths = [max(len(row[column]) for row in (headings, *rows)) for column in range(len(headings))]
    dashes = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    lines = []
    for row in (headings, dashes, *rows):
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
