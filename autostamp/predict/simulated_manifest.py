# SPDX-License-Identifier: Apache-2.0
"""A manifest that names the waits of a simulation, so that whatever draws a recorded timeline draws a predicted one."""

from __future__ import annotations

from autostamp.model.budget import Budget
from autostamp.model.manifest import MANIFEST_VERSION, Barrier, Instance, KernelTrace, Manifest, Payload
from autostamp.predict.simulate import TRACE, Simulation

TYPE = "predicted"


def manifest_of(budget: Budget, played: Simulation) -> Manifest:
    """Rings as barriers and their waits as instances, numbered as `played.timeline` has them. It has no source file."""
    barriers = {
        ring.name: Barrier(number, ring.name, TYPE, ring.stages, True) for number, ring in enumerate(budget.rings, 1)
    }
    sides = {
        f"{ring.name} {side}": (barriers[ring.name].number, side) for ring in budget.rings for side in ("full", "empty")
    }
    roles: dict[str, str] = {}
    for span in played.spans:
        roles.setdefault(span.awaited, span.role)
        roles.setdefault(span.crowded, span.role)
    # A resource that others hold, and what earlier iterations make, are waited for as if they were barriers.
    for name in played.waits:
        if name not in sides:
            barriers[name] = Barrier(len(barriers) + 1, name, TYPE, 0, True)
            sides[name] = barriers[name].number, ""
    instances = tuple(
        Instance(number, "", 0, roles[name], (), "wait", side, barrier, Payload.STAGE)
        for number, name in enumerate(played.waits, 1)
        for barrier, side in [sides[name]]
    )
    kernel = KernelTrace(TRACE, played.timeline.kernel, "", 0, (0, 0, 0), 0, 0, tuple(barriers.values()), instances)
    return Manifest(MANIFEST_VERSION, TYPE, (), (kernel,))
