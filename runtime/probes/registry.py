# SPDX-License-Identifier: Apache-2.0
"""The table of all probes, and of what follows from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from autostamp.diagnostics import AutostampError
from autostamp.runtime.probes import clocks, handoffs, pipes, smem_port, tensor_map, tma, wgmma
from autostamp.runtime.probes.probe import Derived, Probe

PROBES: Final[tuple[Probe, ...]] = (
    *clocks.PROBES,
    *pipes.PROBES,
    *wgmma.PROBES,
    *handoffs.PROBES,
    *tma.PROBES,
    *tensor_map.PROBES,
    *smem_port.PROBES,
)
"""In the order in which they run: what heats the GPU does not come first."""

DERIVED: Final[tuple[Derived, ...]] = (*pipes.DERIVED, *wgmma.DERIVED, *smem_port.DERIVED)


def families() -> dict[str, tuple[Probe, ...]]:
    """Probes by family: the stem of the family's file, so `clock_loaded` counts as wgmma's."""
    stems = dict.fromkeys(probe.file.removesuffix(".cu") for probe in PROBES)
    return {stem: tuple(probe for probe in PROBES if probe.file == f"{stem}.cu") for stem in stems}


def select(names: Sequence[str]) -> tuple[Probe, ...]:
    """The probes that `names` name, all without any: a probe, a constant that it yields, or a family. Raises AS9001."""
    if not names:
        return PROBES
    groups = families()
    chosen: set[str] = set()
    for name in names:
        found = [
            probe.name
            for probe in (groups.get(name) or PROBES)
            if name in groups or name == probe.name or any(row.name == name for row in probe.yields)
        ]
        if not found:
            known = ", ".join((*groups, *(probe.name for probe in PROBES)))
            raise AutostampError.of("AS9001", detail=f"--only: there is no probe {name}; there are {known}")
        chosen.update(found)
    return tuple(probe for probe in PROBES if probe.name in chosen)
