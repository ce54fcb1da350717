# SPDX-License-Identifier: Apache-2.0
"""The figures of a report over several launches, each with its median, least and most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from autostamp.model.comparison import LaunchFigure
from autostamp.report.places import Place

MOST_WAITS: Final = 8
_ROLE_FIELDS: Final = ("stall", "passed", "active", "untracked", "span")


def launch_lines(figures: Sequence[LaunchFigure], places: Mapping[int, Place]) -> Iterator[str]:
    """A line for the kernel, for each role and for the waits of most stall; nothing where there are no figures."""
    if not figures:
        return
    over = f"over {max(each.figure.count for each in figures)} launches, median [least - most]"
    whole = [each for each in figures if each.what in {"cycles", "period", "critical path", "overlap"}]
    yield f"{over}: " + "; ".join(f"{each.what} {each.role}".rstrip() + f" {_text(each)}" for each in whole)
    for role in dict.fromkeys(each.role for each in figures if each.what in _ROLE_FIELDS):
        parts = [f"{each.what} {_text(each)}" for each in figures if each.role == role and each.what in _ROLE_FIELDS]
        yield f"{role} {over}, warp-cycles a CTA: " + ", ".join(parts)
    waits = sorted((each for each in figures if each.what == "wait"), key=lambda each: -each.figure.median)
    for each in waits[:MOST_WAITS]:
        place = places.get(each.instance)
        where = f"{place.label()} at {place.where}" if place is not None else f"instance {each.instance}"
        yield f"{where} by {each.role} {over}, stalled warp-cycles: {_text(each)}"


def _text(each: LaunchFigure) -> str:
    figure = each.figure
    values = (figure.median, figure.least, figure.most)
    median, least, most = (f"{100 * value:.1f}%" if each.is_share else f"{value:,.0f}" for value in values)
    return f"{median} [{least} - {most}]"
