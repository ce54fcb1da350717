# SPDX-License-Identifier: Apache-2.0
"""Facts of the machine that made a run."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """GPU, clocks and versions. `sm_mhz` is measured (clock cycles over global-timer nanoseconds), 0 when it is unknown."""

    gpu: str = ""
    compute_capability: str = ""
    sm_count: int = 0
    driver: str = ""
    cuda_runtime: str = ""
    sm_mhz: float = 0.0
    versions: dict[str, str] = field(default_factory=dict)
    recorded_at: str = ""
    command: tuple[str, ...] = ()
