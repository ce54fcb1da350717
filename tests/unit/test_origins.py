# SPDX-License-Identifier: Apache-2.0
"""How far an arrival may seem to come after the wait that it ended, where replays recorded some of the records and not others."""

from __future__ import annotations

from dataclasses import replace

from autostamp.analysis.dependencies import Dependencies
from autostamp.analysis.origins import Origins
from autostamp.analysis.uses import gather
from autostamp.model.flow import Arrow, End
from autostamp.model.manifest import Barrier, Payload
from autostamp.model.trace import Trace
from tests.simulator.lanes import lane, trace_of
from tests.simulator.tables import ACQUIRE, AT_ONCE, COMMIT, CONSUME, RELEASE, kernel_trace, signal_row, wait_row

STAGE = Payload.STAGE
LATE = replace(AT_ONCE, late=50)


def joined() -> Trace:
    """A ring of one stage. The producer's wait and the release that ends it are the reference's, commit and wait of the
    consumer another replay's, off by 900 and 1,100 cycles.
    """
    kernel = kernel_trace(
        (
            wait_row(ACQUIRE, 1, 2, role="load", side="empty", payload=STAGE),
            signal_row(COMMIT, 3, role="load", side="full", payload=STAGE),
            wait_row(CONSUME, 4, 5, role="mma", side="full", payload=STAGE),
            signal_row(RELEASE, 6, role="mma", side="empty", payload=STAGE),
        ),
        (Barrier(1, "K", "PipelineAsync", 1, False),),
    )
    errors = {COMMIT: 900, CONSUME: 1100}
    load = lane(kernel, 0, (0, 1), (10, 2), (30, 3), (40, 1), (200, 2), (220, 3))
    mma = lane(kernel, 1, (20, 4), (60, 5), (180, 6), (190, 4), (250, 5), (400, 6))
    lanes = tuple(
        replace(
            one,
            replays=tuple(2 if event.instance in errors else 1 for event in one.events),
            errors=tuple(errors.get(event.instance, 0) for event in one.events),
        )
        for one in (load, mma)
    )
    return trace_of(kernel, *lanes)


def test_a_barrier_of_the_reference_alone_is_paired_as_in_any_run():
    trace = joined()
    origins = Origins.of(trace)
    assert origins is not None
    late = {uses.side: origins.late(LATE)(uses) for uses in gather(trace, 50).uses.values()}
    # Of full: the median of two commits off by 900 and two waits by 1,100, over the 50 of any run.
    assert late == {"empty": 50, "full": 1050}


def test_an_arrow_of_the_reference_does_not_start_after_its_end():
    trace = joined()
    origins = Origins.of(trace)
    assert origins is not None
    release, acquire = End(1, RELEASE, 0, 180), End(0, ACQUIRE, 1, 200)
    kept = []
    for end in (release, release._replace(cycles=250), release._replace(cycles=251)):
        arrow = Arrow(end, acquire, 1, "empty", 0, 0, (), False, False)
        found = Dependencies((arrow,), frozenset(), frozenset(), frozenset(), ())
        kept.append(len(origins.marked(found, 50).arrows))
    assert kept == [1, 1, 0]
