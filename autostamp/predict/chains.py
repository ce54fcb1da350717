# SPDX-License-Identifier: Apache-2.0
"""Chains that a loop carries, out of its own instructions: one warp's way through a trip, and warpgroups that take turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from autostamp.model.budget import Dependency, Origin, Step
from autostamp.model.machine import MachineTable
from autostamp.predict.in_order import Played, has_turns, play
from autostamp.predict.kernel import RoleLoop
from autostamp.predict.mma_rows import WARPGROUP, WARPGROUP_WIDE

IN_ORDER: Final = " in order"
IN_TURNS: Final = " in turns"
"""What stands behind a role in the name of its chain."""

ALIKE: Final = 0.02
"""Of the period: what less than this tells apart is not told."""


def chains(loops: Sequence[RoleLoop], table: MachineTable, made: str) -> tuple[tuple[Dependency, ...], list[str]]:
    """A chain for each loop that was read, one more where its warpgroups take turns, and what these chains do not see.

    `made` is the type that the conversions make ("": unknown).
    """
    found: list[Dependency] = []
    unknown: set[str] = set()
    notes = []
    for loop in loops:
        if not loop.code:
            continue
        alone = play(loop.code, table, 1, made)
        if alone is not None:
            found.append(_chain(loop, f"{loop.role}{IN_ORDER}", alone))
            unknown |= set(alone.unknown)
        if (groups := _groups(loop)) > 1:
            together, fair = (play(loop.code, table, groups, made, stays=stays) for stays in (True, False))
            if together is not None and fair is not None:
                found.append(_chain(loop, f"{loop.role}{IN_TURNS}", together))
                notes += _arbitration(loop, together, fair)
            else:
                notes.append(
                    f"turns of {loop.role}: its warpgroups would wait for each other for good as they were read"
                )
        if any(each.mma is not None and each.mma.opcode.startswith("UTC") for each in loop.code):
            notes.append(f"chain of {loop.role}: tcgen05.mma ends at an mbarrier, and whose that is was not read")
    if found:
        notes.append(
            "chains: memory, mbarriers and other roles are taken to be in time for them; no branch mispredicts"
        )
    if unknown:
        notes.append(f"chains: {table.product} has no {', '.join(sorted(unknown))}, which count as one cycle")
    return tuple(found), notes


def _arbitration(loop: RoleLoop, together: Played, fair: Played) -> list[str]:
    """What it makes whether a scheduler stays with a warp, where that is more than figures are worth."""
    if abs(fair.period - together.period) < ALIKE * together.period:
        return []
    stays, waited = together.period * loop.trips, fair.period * loop.trips
    said = f"{stays:,.0f} cycles if a scheduler stays with a warp that can go on, as that of an H200 does"
    return [f"{loop.role} in turns: {said}; {waited:,.0f} if it took the one that has waited longest"]


def role_of(chain: str) -> str:
    """The role of a chain that was read out of a loop, "" for another chain."""
    ends = [chain.removesuffix(each) for each in (IN_ORDER, IN_TURNS) if chain.endswith(each)]
    return ends[0] if ends else ""


def _groups(loop: RoleLoop) -> int:
    """Warpgroups that take turns in this loop; 0 where none do."""
    is_wide = any(each.opcode.partition(".")[0] in WARPGROUP_WIDE for each in loop.facts.mma)
    return loop.warps // WARPGROUP if is_wide and has_turns(loop.code) else 0


def _chain(loop: RoleLoop, name: str, played: Played) -> Dependency:
    parts = sorted(played.parts.items(), key=lambda one: -one[1])
    steps = tuple(
        Step(reason.what, cycles * loop.trips, reason.constant, reason.is_latency, Origin.CUBIN, loop.source)
        for reason, cycles in parts
    )
    return Dependency(name, name, steps, 1)
