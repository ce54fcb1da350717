# SPDX-License-Identifier: Apache-2.0
"""What waits and hand-offs cost when nobody is late: figures that tell a pass from a stall, and a cause from a coincidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from autostamp.model.manifest import KernelTrace
from autostamp.model.trace import Trace

CUDA: Final = "cuda"
CUTEDSL: Final = "cutedsl"

_KINDS: Final = {"full": "mbarrier", "empty": "mbarrier"}
"""Sides that are one kind of barrier to the hardware; any other side is a kind of its own."""


@dataclass(frozen=True, slots=True)
class Latencies:
    """Cycles between stamps, by kind of barrier (`mbarrier`, `named`, `cta`, `cluster`, `async-group`, ...).

    ready: by (language, kind), the longest that a wait takes, stamps included, when its barrier was complete already.
    hand_off: by kind, from the last arrival to the exit of a wait that was there before it. late: by how much the stamp after
    an arrival may come later than the exit of the wait that it ended, which is in another warp.
    """

    ready: Mapping[tuple[str, str], int]
    hand_off: Mapping[str, int]
    late: int

    def ready_wait(self, language: str, side: str) -> int:
        """Cycles of a ready wait on `side`, -1 where no figure is known: then no wait is a pass."""
        return self.ready.get((language, _KINDS.get(side, side)), -1)

    def hand_off_on(self, side: str) -> int:
        """Cycles of a hand-off on `side`, 0 where no figure is known: then all after the arrival is unexplained."""
        return self.hand_off.get(_KINDS.get(side, side), 0)


def language_of(kernel: KernelTrace) -> str:
    """The source language of a kernel. Tracing gives every instance of CuTe-DSL a call path; CUDA C++ has none."""
    return CUTEDSL if any(instance.call_path for instance in kernel.instances) else CUDA


_PROBED: Final = (
    # warps, ready mbarrier, named and CTA barrier, wgmma.wait_group, hand-off of an mbarrier, of a named or CTA barrier
    (4, 139, 54, 33, 45, 21),
    (8, 144, 59, 39, 55, 26),
    (12, 171, 64, 61, 74, 31),
    (16, 222, 69, 74, 84, 36),
)
"""By warps of the CTA, the 99th percentile on an H200 (benchmarks/results/sync_cost_h200.json, by benchmarks/sync_cost.py), all
warps at it at once. Of the recorded FlashAttention, whose K is there a ring ahead, the waits for it took 69 to 165 cycles.
"""

_IN_CUTEDSL: Final = 6
"""Cycles that a ready hardware barrier takes longer by the stamps of CuTe-DSL: in FlashAttention, waits that the warp itself ends
as the last to come take 68 and 69, where the probe, in CUDA C++, has 64.
"""

_CLUSTER: Final = 59
"""Cycles that `barrier.cluster` takes beyond a CTA's barrier: 77 against 18 (docs/adr/0009)."""

_LATE: Final = 50
"""About 25 cycles lie between an instruction and the stamp after it (docs/adr/0007), and the two ends are in different warps."""


def _row(mbarrier: int, hardware: int, group: int, hand_mbarrier: int, hand_hardware: int) -> Latencies:
    ready = {"mbarrier": mbarrier, "named": hardware, "cta": hardware, "cluster": hardware + _CLUSTER}
    ready["async-group"] = group
    more = dict.fromkeys(("named", "cta", "cluster"), _IN_CUTEDSL)
    return Latencies(
        ready={
            **{(CUDA, kind): cycles for kind, cycles in ready.items()},
            **{(CUTEDSL, kind): cycles + more.get(kind, 0) for kind, cycles in ready.items()},
        },
        hand_off={
            "mbarrier": hand_mbarrier,
            "named": hand_hardware,
            "cta": hand_hardware,
            "cluster": hand_hardware + _CLUSTER,
        },
        late=_LATE,
    )


SM_90: Final[Mapping[int, Latencies]] = {warps: _row(*row) for warps, *row in _PROBED}
"""By warps of the CTA: more of them get in each other's way."""

UNKNOWN: Final = Latencies({}, {}, _LATE)
"""No figure: no wait is a pass, and nothing after an arrival is explained."""


def latencies_of(trace: Trace) -> Latencies:
    """What was probed for a CTA of as many warps as the trace has, or the next larger one; UNKNOWN where times are not cycles."""
    if trace.unit != "cycles":
        return UNKNOWN
    warps = next((warps for warps in sorted(SM_90) if warps >= len(trace.lanes)), max(SM_90))
    return SM_90[warps]
