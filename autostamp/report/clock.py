# SPDX-License-Identifier: Apache-2.0
"""The SM clock that turns cycles into time."""

from __future__ import annotations

from autostamp.model.run import MachineFacts
from autostamp.model.timeline import Timeline


def clock_mhz(timeline: Timeline, facts: MachineFacts) -> float:
    """SM clock of the run: measured in this trace, else the machine's, else 0."""
    return timeline.sm_mhz or facts.sm_mhz
