# SPDX-License-Identifier: Apache-2.0
"""Slack: by how much arrivals came before anyone waited for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import median

from autostamp.analysis.spans import Span
from autostamp.analysis.transfers import Use, is_held_up
from autostamp.model.flow import Arrow, End, Slack
from autostamp.model.timeline import State, Timeline


def slack_of(timeline: Timeline, arrows: Iterable[Arrow], landed: Mapping[Use, int], window: Span) -> tuple[Slack, ...]:
    """For each role, the slack of its arrivals whose waits ended in `window`, in the order of the timeline's roles.

    An arrival's slack is from it to the first enter of a wait for it, and 0 when that wait was entered before. An asynchronous
    one has none where it surely held up a wait (`landed` as `landed_by` tells); else it counts from its issue, which is the
    most that it can be. A warp's arrivals for itself are left out.
    """
    # Some of the most frequent code on a long run: nothing is looked up twice.
    active, stalled, (first, last) = State.ACTIVE, State.STALL, window
    waits = {
        (warp.warp, part.instance, part.visit): part
        for warp in timeline.warps
        for part in warp.slices
        if part.state is not active and first <= part.end <= last
    }
    least: dict[End, int] = {}
    for arrow in arrows:
        signal, end = arrow.signal, arrow.wait
        if signal.warp == end.warp or (wait := waits.get(end[:3])) is None:
            continue
        slack = wait.start - signal.cycles
        if slack > 0 and arrow.is_async and wait.state is stalled and is_held_up(wait, arrow, landed):
            slack = 0
        before = least.get(signal)
        if before is None or slack < before:
            least[signal] = max(0, slack)
    role_of = {warp.warp: warp.role for warp in timeline.warps}
    by_role: dict[str, list[int]] = {}
    for signal, slack in least.items():
        by_role.setdefault(role_of.get(signal.warp, ""), []).append(slack)
    order = dict.fromkeys([*role_of.values(), *by_role])
    return tuple(
        Slack(role, min(by_role[role]), float(median(by_role[role])), len(by_role[role]))
        for role in order
        if role in by_role
    )
