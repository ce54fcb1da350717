# SPDX-License-Identifier: Apache-2.0
"""Stalls in the verdict: a table of the roles, what each waits for, and what remains unexplained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from operator import attrgetter

from autostamp.model.flow import Blame, Ending, Flow
from autostamp.model.timeline import RoleTotals, Timeline
from autostamp.report.verdict_words import Words, percent, warps_of

_PARTS = {"stall": "stall", "passed": "pass", "active": "active", "untracked": "untracked"}
_MOST_ROLES = 8
_MOST_WAITS = 3
_NO_ARRIVAL = {
    Ending.GRANTED: "granted without an arrival (first round of the ring)",
    Ending.UNSEEN: "ended by an arrival that was not recorded (another CTA, or a call without a stamp)",
    Ending.LOST: "unknown: records of a warp that may have arrived were lost",
}


def role_table(timeline: Timeline, flow: Flow) -> Iterator[str]:
    """Shares of each role's time: of the steady window where there is one, else of the whole run."""
    totals = [role for role in (flow.steady.roles if flow.steady else timeline.roles) if role.span]
    where = "steady state" if flow.steady else "whole run"
    shown = totals[:_MOST_ROLES]
    if not shown:
        return
    width = max(len(role.role) for role in shown)
    warps = max(5, *(len(warps_of(role.warps)) for role in shown))
    yield f"{'role':<{width}}  {'warps':<{warps}}" + "".join(f"{name:>11}" for name in _PARTS.values()) + f"  ({where})"
    for role in shown:
        yield f"{role.role:<{width}}  {warps_of(role.warps):<{warps}}" + "".join(
            f"{percent(_share(role, part)):>11}" for part in _PARTS
        )
    if len(totals) > _MOST_ROLES:
        yield f"and {len(totals) - _MOST_ROLES} more roles"


def wait_lines(timeline: Timeline, flow: Flow, words: Words) -> Iterator[str]:
    """For each role that stalls, the largest shares of its stall by barrier and by who or what ended it."""
    by_role: dict[str, list[Blame]] = {}
    for row in flow.blame:
        by_role.setdefault(row.role, []).append(row)
    order = [role.role for role in timeline.roles if role.role in by_role]
    for role in sorted(order, key=lambda role: -sum(row.cycles for row in by_role[role]))[:_MOST_ROLES]:
        rows = sorted(by_role[role], key=lambda row: (-row.cycles, row.barrier, row.side, row.by, row.ending))
        total = sum(row.cycles for row in rows)
        if not total:
            continue
        listed = "; ".join(
            f"{percent(row.share)} {words.barrier(row.barrier, row.side)}, {ended(row)}" for row in rows[:_MOST_WAITS]
        )
        rest = sum(row.share for row in rows[_MOST_WAITS:])
        more = f"; {percent(rest)} others" if rows[_MOST_WAITS:] else ""
        yield f"{role} waits for (of its {total:,} warp-cycles of stall): {listed}{more}"


def ended(row: Blame) -> str:
    """What ended the stalls of a row. A transfer is in flight: whoever issued it is not at fault for its length."""
    if row.ending is Ending.TRANSFER:
        return f"in flight (issued by {row.by})" if row.by else "in flight"
    if row.ending is Ending.GROUP:
        return "its own asynchronous group"
    if row.ending is Ending.SIGNAL:
        return f"signalled by {row.by}" if row.by else "its own arrival, the last"
    return _NO_ARRIVAL[row.ending]


def unexplained_lines(flow: Flow) -> Iterator[str]:
    """What all stalls were made of, and the part that nothing explains, by what ended those stalls."""
    names = ("awaited", "in flight", "handed over", "unexplained")
    fields = ("awaited", "in_flight", "handed_over", "unexplained")
    parts = {name: sum(map(attrgetter(field), flow.causes)) for name, field in zip(names, fields, strict=True)}
    unknown: Counter[Ending] = Counter()
    for cause in flow.causes:
        if cause.unexplained:
            unknown[cause.ending] += cause.unexplained
    total = sum(parts.values())
    if not total:
        return
    listed = ", ".join(f"{percent(parts[part] / total)} {part}" for part in ("awaited", "in flight", "handed over"))
    yield f"all stall: {listed}, {percent(parts['unexplained'] / total)} unexplained"
    late = sum(unknown[ending] for ending in (Ending.SIGNAL, Ending.TRANSFER, Ending.GROUP))
    named = [(unknown[ending], text) for ending, text in _NO_ARRIVAL.items()]
    named.append((late, "longer after the arrival than a hand-off takes"))
    reasons = [f"{percent(cycles / total)} {text}" for cycles, text in sorted(named, reverse=True) if cycles]
    if reasons:
        yield f"  unexplained: {'; '.join(reasons)}"


def _share(role: RoleTotals, part: str) -> float:
    value: int = getattr(role, part)
    return value / role.span
