# SPDX-License-Identifier: Apache-2.0
"""What waits and hand-offs cost when nobody is late: figures that tell a pass from a stall, and a cause from a coincidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from autostamp.model.manifest import KernelTrace

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


# First values, replaced by figures probed on an H200.
SM_90: Final = Latencies(
    ready={
        (language, kind): 60
        for language in (CUDA, CUTEDSL)
        for kind in ("mbarrier", "named", "cta", "cluster", "async-group", "warp")
    },
    hand_off=dict.fromkeys(("mbarrier", "named", "cta", "cluster"), 100),
    late=50,
)
