# SPDX-License-Identifier: Apache-2.0
"""What the critical path says: who or what bound the steady state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from autostamp.model.flow import Blame, CriticalPath, Ending, Flow, PathKind
from autostamp.model.timeline import Timeline
from autostamp.report.verdict_words import Words, count_of, percent

_BETWEEN = {
    PathKind.TRANSFER: "in flight",
    PathKind.HAND_OFF: "handed over",
    PathKind.STALL: "in stalls that it cannot follow to another warp",
}
"""What the time of a barrier on the path was; the other kinds are a role's work."""

_OF_BARRIER = {
    PathKind.TRANSFER: "is bytes or instructions in flight",
    PathKind.HAND_OFF: "is hand-off from the arrival to the wait's exit",
    PathKind.STALL: "is stall that it cannot follow to another warp",
}


def headline(timeline: Timeline, flow: Flow, words: Words, caveat: str = "") -> str:
    """One line: the binding role or barrier with its share, who waits because of it, the period, and `caveat` in parentheses.

    A caveat says that waits were not recorded: their time is taken for work, so what binds may be one of them and not the role.
    """
    parts = [_binding(timeline, flow, words, ", or a wait in it that was not recorded," if caveat else "")]
    if flow.steady is not None:
        parts.append(f"{words.length(flow.steady.period.median)} an iteration")
    return "; ".join(part for part in parts if part) + (f" ({caveat})" if caveat else "")


def path_lines(flow: Flow, words: Words) -> Iterator[str]:
    """Shares of the critical path by role and barrier, what the time in between was, and the others' slack."""
    path = flow.path
    if path is None:
        yield "critical path: none, since no iteration repeats" if flow.steady is None else "critical path: none found"
        return
    shares = [f"{role} {percent(share)}" for role, share in path.by_role[:4]]
    shares += [f"{words.barrier(number, side)} {percent(share)}" for number, side, share in path.by_barrier[:4]]
    left = len(path.by_role[4:]) + len(path.by_barrier[4:])
    more = f"; {left} more" if left else ""
    yield f"critical path ({words.length(_length(path))}): {'; '.join(shares)}{more}"
    kinds = _kinds(path)
    total = sum(kinds.values())
    between = [f"{percent(kinds[kind] / total)} {what}" for kind, what in _BETWEEN.items() if kinds[kind]]
    work = [f"{percent(kinds[kind] / total)} {kind}" for kind in (PathKind.ACTIVE, PathKind.UNTRACKED) if kinds[kind]]
    if total:
        yield f"  of it {', '.join((*work, *between))}"
    if path.slack:
        listed = "; ".join(
            f"{item.role} median {item.median:,.0f}, least {item.least:,} ({count_of(item.arrows, 'arrow')})"
            for item in path.slack[:4]
        )
        yield f"slack, by which arrivals came before anyone waited, in cycles: {listed}"


def _length(path: CriticalPath) -> int:
    return sum(part.end - part.start for part in path.parts)


def _kinds(path: CriticalPath) -> Counter[PathKind]:
    kinds: Counter[PathKind] = Counter()
    for part in path.parts:
        kinds[part.kind] += part.end - part.start
    return kinds


def _binding(timeline: Timeline, flow: Flow, words: Words, doubt: str) -> str:
    path = flow.path
    if path is None or not (path.by_role or path.by_barrier):
        return _without_path(timeline, flow, words)
    role, share = path.by_role[0] if path.by_role else ("", 0.0)
    number, side, between = path.by_barrier[0] if path.by_barrier else (0, "", 0.0)
    if between > share:
        barrier = words.barrier(number, side)
        waiting = _most(row for row in flow.blame if (row.barrier, row.side) == (number, side))
        who = f"; {waiting.role} waits for it" if waiting else ""
        return f"{barrier} is the constraint: {_percent(between)} of the critical path {_what(path, number, side)}{who}"
    # Roles that have no part in the iterations (a helper that waits at the end) are not held up by what bounds them.
    repeating = {total.role for total in flow.steady.roles} if flow.steady is not None else set()
    held = _most(row for row in flow.blame if row.by == role and row.role != role and row.role in repeating)
    own = _most(row for row in flow.blame if row.role == role)
    who = ""
    if held is not None:
        who = f"; {held.role} waits for {words.barrier(held.barrier, held.side)}"
    elif own is not None:
        who = f"; it waits most for {words.barrier(own.barrier, own.side)}"
    return f"{role}{doubt} is the constraint: {_percent(share)} of the critical path{who}"


def _without_path(timeline: Timeline, flow: Flow, words: Words) -> str:
    """Stalls alone do not say what bound the kernel: a role that waits may be the one with time to spare."""
    row = _most(iter(flow.blame))
    if row is not None:
        by = f", {_cause(row)}" if _cause(row) else ""
        return f"no critical path; the longest wait is {row.role}'s for {words.barrier(row.barrier, row.side)}{by}"
    if timeline.sites:
        site = max(timeline.sites, key=lambda site: (site.spread.total, -site.instance))
        return f"no critical path; the longest wait is {site.role}'s: {words.wait(words.place(site.instance))}"
    return "no critical path: no wait was recorded"


def _cause(row: Blame) -> str:
    if row.ending is Ending.TRANSFER:
        return "in flight"
    return f"signalled by {row.by}" if row.by else ""


def _most(rows: Iterator[Blame]) -> Blame | None:
    return max(rows, key=lambda row: (row.cycles, row.role, row.barrier), default=None)


def _what(path: CriticalPath, number: int, side: str) -> str:
    """What most of a barrier's time on the path was."""
    kinds: Counter[PathKind] = Counter()
    for part in path.parts:
        if (part.barrier, part.side) == (number, side) and part.kind in _OF_BARRIER:
            kinds[part.kind] += part.end - part.start
    return _OF_BARRIER[max(kinds, key=lambda kind: (kinds[kind], kind))] if kinds else "is time on it"


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%"
