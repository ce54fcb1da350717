# SPDX-License-Identifier: Apache-2.0
"""Several CTAs and launches of one kernel: when and where each ran, and how the times of its roles spread over the launches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from autostamp.model.comparison import Figure, RoleFigures
from autostamp.model.timeline import Timeline
from autostamp.report.verdict_words import kernel_name

_CTA_HEADINGS: Final = ("launch", "CTA", "SM", "wave", "starts", "±", "cycles", "lost")
_ROLE_HEADINGS: Final = ("role", "span", "stall", "passed", "active", "untracked")


def ctas_text(timelines: Sequence[Timeline], roles: Sequence[RoleFigures], top: int = 10) -> str:
    """Up to `top` CTAs in the order of launches and offsets, then the roles with the least and most of several launches.

    Offsets are cycles since the first CTA of the launch began, right to within the figure beside them.
    """
    launches = len({timeline.launch for timeline in timelines})
    ordered = sorted(timelines, key=lambda timeline: (timeline.launch, timeline.offset, timeline.block))
    count = f"{len(ordered)} CTAs" if launches == 1 else f"{len(ordered)} CTAs in {launches} launches"
    lines = [
        f"{count} of {kernel_name(timelines[0].kernel)} were recorded"
        + (f"; the first {top}:" if len(ordered) > top else ":")
    ]
    lines += _table([_CTA_HEADINGS, *(_cta_row(timeline) for timeline in ordered[:top])])
    lines += ["", f"roles (warp-cycles a CTA{', median [least - most] over launches' if launches > 1 else ''})"]
    lines += _table([_ROLE_HEADINGS, *(_role_row(role) for role in roles)])
    return "\n".join(lines) + "\n"


def _cta_row(timeline: Timeline) -> tuple[str, ...]:
    is_aligned = timeline.alignment_error >= 0
    return (
        str(timeline.launch),
        ",".join(str(part) for part in timeline.block),
        _known(timeline.smid),
        _known(timeline.wave),
        f"{timeline.offset:,}" if is_aligned else "?",
        f"{timeline.alignment_error:,}" if is_aligned else "?",
        f"{timeline.cycles:,}",
        f"{timeline.lost:,}",
    )


def _known(value: int) -> str:
    return str(value) if value >= 0 else "?"


def _role_row(role: RoleFigures) -> tuple[str, ...]:
    return (role.role, *(_figure(each) for each in (role.span, role.stall, role.passed, role.active, role.untracked)))


def _figure(figure: Figure) -> str:
    if figure.count == 1:
        return f"{figure.median:,.0f}"
    return f"{figure.median:,.0f} [{figure.least:,.0f} - {figure.most:,.0f}]"


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
