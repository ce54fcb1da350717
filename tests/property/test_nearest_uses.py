# SPDX-License-Identifier: Apache-2.0
"""Uses of a ring are numbered right though records lie off, as long as they lie off by less than the ring's rounds are apart."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from autostamp.analysis.dependencies import find_dependencies
from autostamp.model.manifest import Barrier, Payload
from autostamp.model.trace import Trace
from tests.simulator.lanes import lane, trace_of
from tests.simulator.tables import ACQUIRE, AT_ONCE, COMMIT, RELEASE, kernel_trace, signal_row, wait_row

ROUND = 1000
"""Cycles from one release of a stage to the next."""


@dataclass(frozen=True)
class Ring:
    """A producer that fills `stages` in turn, `fills` times, and warps that release every fill, each somewhat off."""

    stages: int
    consumers: int
    fills: int
    off: tuple[tuple[int, ...], ...]  # of each consumer, of each of its records

    def trace(self) -> Trace:
        kernel = kernel_trace(
            (
                wait_row(ACQUIRE, 1, 2, role="load", side="empty", payload=Payload.STAGE),
                signal_row(COMMIT, 3, role="load", side="full", payload=Payload.STAGE),
                signal_row(RELEASE, 4, role="mma", side="empty", payload=Payload.STAGE),
            ),
            (Barrier(1, "K", "PipelineAsync", self.stages, False),),
        )
        fills = range(self.fills)
        # The acquire of fill n ends when fill n - stages was released, the first ones at once.
        ends = [n if n < self.stages else self.released(n - self.stages) + 5 for n in fills]
        producer = [
            (at, event, n % self.stages) for n in fills for at, event in ((ends[n], 1), (ends[n], 2), (ends[n] + 1, 3))
        ]
        lanes = [lane(kernel, 0, *producer)]
        for warp, off in enumerate(self.off, start=1):
            places = sorted(self.released(n) + off[n] for n in fills)
            lanes.append(lane(kernel, warp, *((at, 4, n % self.stages) for n, at in zip(fills, places, strict=True))))
        return trace_of(kernel, *lanes)

    def released(self, fill: int) -> int:
        return 2 * ROUND + fill * ROUND // self.stages


@st.composite
def rings(draw: st.DrawFn) -> Ring:
    stages, consumers = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    # Of fewer rounds five arrivals a use may fit as well as four.
    fills = draw(st.integers(8 * stages, 12 * stages))
    most = ROUND // stages // 2 - 30
    # All of one replay are off together, and each by itself.
    common = draw(st.integers(-most // 2, most // 2))
    off = st.tuples(*[st.integers(-most // 2, most // 2)] * fills)
    return Ring(stages, consumers, fills, tuple(tuple(common + each for each in draw(off)) for _ in range(consumers)))


@settings(max_examples=150, deadline=None)
@given(rings())
def test_every_acquire_has_the_release_of_the_round_before(ring):
    found = find_dependencies(ring.trace(), AT_ONCE, lambda _: 3 * ROUND)
    joined = {arrow.wait.visit: arrow.signal.visit for arrow in found.arrows if arrow.side == "empty"}
    assert joined == {fill: fill - ring.stages for fill in range(ring.stages, ring.fills)}
    assert found.granted == {(0, 1, fill) for fill in range(ring.stages)}
