# SPDX-License-Identifier: Apache-2.0
"""Who waited for whom in one timeline, put together."""

from __future__ import annotations

from autostamp.analysis.causes import blame, causes_of
from autostamp.analysis.dependencies import find_dependencies
from autostamp.analysis.latencies import SM_90, Latencies
from autostamp.model.flow import Flow
from autostamp.model.timeline import Timeline
from autostamp.model.trace import Trace


def explain(trace: Trace, timeline: Timeline, latencies: Latencies = SM_90) -> Flow:
    """The flow of one analysed CTA. `timeline` is `analyse` of the same trace with the same latencies."""
    instances = {instance.number: instance for instance in trace.kernel.instances}
    found = find_dependencies(trace, latencies)
    causes = causes_of(timeline, found, instances, latencies)
    return Flow(
        arrows=found.arrows,
        causes=causes,
        blame=blame(timeline, causes, instances),
        steady=None,
        path=None,
        overlaps=(),
        depths=(),
        early=(),
        notes=found.notes,
    )
