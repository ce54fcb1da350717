# SPDX-License-Identifier: Apache-2.0
"""Why each stall lasted, and which role and barrier a role's stall goes back to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from autostamp.analysis.dependencies import Dependencies, is_enter
from autostamp.analysis.latencies import Latencies
from autostamp.analysis.transfers import landed_by, landing
from autostamp.model.flow import Arrow, Blame, Cause, Ending
from autostamp.model.manifest import Instance
from autostamp.model.timeline import Slice, State, Timeline


class _HandOff(NamedTuple):
    """Cycles from a signal's stamp to the exit, and from the enter of a wait that arrives: its arrival comes after the stamp."""

    by_signal: int
    by_wait: int


def causes_of(
    timeline: Timeline,
    found: Dependencies,
    instances: Mapping[int, Instance],
    latencies: Latencies,
    language: str,
) -> tuple[Cause, ...]:
    """One cause for every stall, warp by warp, in the order of its slices."""
    handing = {
        number: _HandOff(
            latencies.hand_off_on(row.side),
            max(latencies.hand_off_on(row.side), latencies.ready_wait(language, row.side)),
        )
        for number, row in instances.items()
    }
    arrows = {arrow.wait[:3]: arrow for arrow in found.arrows}
    roles = {warp.warp: warp.role for warp in timeline.warps}
    landed = landed_by(found.arrows)
    causes: list[Cause] = []
    stalled = State.STALL
    for warp in timeline.warps:
        for stall in warp.slices:
            if stall.state is not stalled:
                continue
            visit = (warp.warp, stall.instance, stall.visit)
            hand_off = handing[stall.instance]
            arrow = arrows.get(visit)
            if arrow is None:
                causes.append(
                    _without_arrow(warp.warp, stall, visit, found, instances[stall.instance], hand_off.by_wait)
                )
            elif arrow.is_async:
                at = landing(arrow, landed)
                causes.append(_by_transfer(warp.warp, stall, arrow, roles[arrow.signal.warp], at, hand_off.by_signal))
            else:
                cycles = hand_off.by_wait if is_enter(arrow, instances) else hand_off.by_signal
                causes.append(_by_signal(warp.warp, stall, arrow, roles[arrow.signal.warp], cycles))
    return tuple(causes)


def blame(timeline: Timeline, causes: Iterable[Cause], instances: Mapping[int, Instance]) -> tuple[Blame, ...]:
    """Each role's stall by barrier, side, arriving role and ending: roles in the timeline's order, most cycles first."""
    role_of = {warp.warp: warp.role for warp in timeline.warps}
    counts: dict[tuple[str, int, str, str, Ending], list[int]] = {}
    totals: dict[str, int] = {}
    for cause in causes:
        instance = instances[cause.stall.instance]
        role = role_of[cause.warp]
        row = counts.setdefault((role, instance.barrier, instance.side, cause.role, cause.ending), [0, 0])
        row[0] += 1
        row[1] += cause.stall.cycles
        totals[role] = totals.get(role, 0) + cause.stall.cycles
    order = {totals_of.role: rank for rank, totals_of in enumerate(timeline.roles)}
    rows = [
        Blame(role, barrier, side, by, ending, count, cycles, cycles / totals[role] if totals[role] else 0.0)
        for (role, barrier, side, by, ending), (count, cycles) in counts.items()
    ]
    return tuple(sorted(rows, key=lambda row: (order[row.role], -row.cycles, row.barrier, row.side, row.by)))


def _by_signal(warp: int, stall: Slice, arrow: Arrow, role: str, hand_off: int) -> Cause:
    at = arrow.signal.cycles
    awaited = max(0, min(at, stall.end) - stall.start)
    handed_over = max(0, min(stall.end, at + hand_off) - max(stall.start, at))
    return Cause(
        warp,
        stall,
        Ending.SIGNAL,
        arrow,
        role,
        awaited,
        0,
        handed_over,
        stall.end - stall.start - awaited - handed_over,
        is_binding=stall.end - at <= hand_off,
    )


def _by_transfer(warp: int, stall: Slice, arrow: Arrow, role: str, landed: int, hand_off: int) -> Cause:
    """`landed` is the cycle by which the bytes were surely there: what a wait lasts beyond, they do not explain."""
    issued = arrow.signal.cycles
    awaited = max(0, min(issued, stall.end) - stall.start)
    in_flight = max(0, min(landed, stall.end) - max(issued, stall.start))
    handed_over = max(0, min(stall.end, landed + hand_off) - max(stall.start, issued, landed))
    return Cause(
        warp,
        stall,
        Ending.TRANSFER,
        arrow,
        role,
        awaited,
        in_flight,
        handed_over,
        stall.end - stall.start - awaited - in_flight - handed_over,
        is_binding=issued > stall.start,
    )


def _without_arrow(
    warp: int, stall: Slice, visit: tuple[int, int, int], found: Dependencies, instance: Instance, hand_off: int
) -> Cause:
    handed_over = in_flight = 0
    ending = Ending.UNSEEN
    if instance.side == "async-group":
        # What the warp waits for it issued itself, before the wait.
        ending, in_flight = Ending.GROUP, stall.cycles
    elif visit in found.own or instance.side == "warp":
        # The warp itself came last: at a barrier that it completed, or at one of its own threads.
        ending, handed_over = Ending.SIGNAL, min(stall.cycles, hand_off)
    elif visit in found.lost:
        ending = Ending.LOST
    elif visit in found.granted:
        ending = Ending.GRANTED
    return Cause(
        warp=warp,
        stall=stall,
        ending=ending,
        arrow=None,
        role="",
        awaited=0,
        in_flight=in_flight,
        handed_over=handed_over,
        unexplained=stall.cycles - in_flight - handed_over,
        is_binding=False,
    )
