# SPDX-License-Identifier: Apache-2.0
"""Who waited for whom in one timeline, put together."""

from __future__ import annotations

from autostamp.analysis.bounds import bounded
from autostamp.analysis.causes import blame, causes_of
from autostamp.analysis.critical_path import critical_path
from autostamp.analysis.dependencies import find_dependencies
from autostamp.analysis.depths import depths
from autostamp.analysis.early import early_signals
from autostamp.analysis.latencies import Latencies, language_of, latencies_of
from autostamp.analysis.origins import Origins
from autostamp.analysis.overlaps import overlaps
from autostamp.analysis.states import WindowStates
from autostamp.analysis.steady import steady_state
from autostamp.model.flow import Flow
from autostamp.model.timeline import Timeline
from autostamp.model.trace import Trace


def explain(trace: Trace, timeline: Timeline, latencies: Latencies | None = None) -> Flow:
    """The flow of one analysed CTA. `timeline` is `analyse` of the same trace with the same latencies (None: the probed ones)."""
    latencies = latencies or latencies_of(trace)
    instances = {instance.number: instance for instance in trace.kernel.instances}
    origins = Origins.of(trace)
    if origins is None:
        found = find_dependencies(trace, latencies)
    else:
        found = origins.marked(find_dependencies(trace, latencies, origins.late(latencies)), latencies.late)
    found = bounded(trace, found)
    causes = causes_of(timeline, found, instances, latencies, language_of(trace.kernel))
    states: WindowStates = {}
    steady, notes = steady_state(trace, timeline, states)
    return Flow(
        arrows=found.arrows,
        causes=causes,
        blame=blame(timeline, causes, instances),
        steady=steady,
        path=critical_path(trace, timeline, found.arrows, causes, steady, states) if steady else None,
        overlaps=overlaps(timeline, steady, states) if steady else (),
        depths=depths(trace, timeline, steady) if steady else (),
        early=early_signals(timeline, found.arrows, instances),
        notes=(*found.notes, *notes),
    )
