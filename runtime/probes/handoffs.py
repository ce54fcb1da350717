# SPDX-License-Identifier: Apache-2.0
"""Hand-offs: mbarrier and named barrier, in an idle SM and beside warps that issue FFMA (kernels/probes/handoffs.cu)."""

from __future__ import annotations

from typing import Final

from autostamp.runtime.probes.probe import Launch, Loop, Probe, Yield
from autostamp.runtime.probes.readings import cycles_each

FILE: Final = "handoffs.cu"
MEASURED_THREADS: Final = 128
LOADED_THREADS: Final = 384
"""8 warps beside the first warpgroup: two for each scheduler, as two warpgroups of consumers are. Each issues FFMA in two chains,
some 0.8 a cycle and scheduler together.
"""
_TRIPS: Final = (200, 1_200)
_LOAD: Final = Loop({"FFMA": 64}, 8, alone=False)
_ROUND: Final = "128 threads arrive and wait for each other"
_HANDOFF: Final = "one warp wakes another: half of there and back"
_KINDS: Final = (
    ("mbarrier_round_trip", "mbarrier_round", Loop({"SYNCS.ARRIVE": 1, "SYNCS.PHASECHK": 1}, 10), 1, _ROUND, 90),
    (
        "mbarrier_handoff", "mbarrier_handoff", Loop({"SYNCS.ARRIVE": 1, "SYNCS.PHASECHK": 1}, 10, copies=2), 2,
        f"{_HANDOFF}; one thread arrives, the warp waits", 90,
    ),
    ("named_barrier", "named_round", Loop({"BAR.SYNC": 1}, 6, alone=False), 1, f"bar.sync: {_ROUND}", 75),
    (
        "named_handoff", "named_handoff", Loop({"BAR.ARV": 1, "BAR.SYNC": 1}, 6, copies=2), 2,
        f"bar.arrive and bar.sync of two warps; {_HANDOFF}", 75,
    ),
)  # fmt: skip


def _probes(name: str, kernel: str, loop: Loop, handoffs: int, condition: str, least: int) -> tuple[Probe, Probe]:
    load_warps = (LOADED_THREADS - MEASURED_THREADS) // 32
    rows = (
        (name, MEASURED_THREADS, f"{condition}; nothing else in the SM"),
        (f"{name}_loaded", LOADED_THREADS, f"{condition}; {load_warps} other warps, each with two chains of FFMA"),
    )
    idle, loaded = (
        Probe(
            own, FILE, kernel, Launch(threads, _TRIPS), (loop, _LOAD),
            (Yield(own, "cycles", cycles_each(handoffs), text),), least,
        )
        for own, threads, text in rows
    )  # fmt: skip
    return idle, loaded


PROBES: Final = tuple(probe for kind in _KINDS for probe in _probes(*kind))
"""The rows of this family."""
