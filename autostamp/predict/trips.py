# SPDX-License-Identifier: Apache-2.0
"""How many trips through each role's loop are one iteration, where loops are unrolled by unlike factors.

A ring loses nothing: in the long run a consumer releases as many stages as its producer fills. So the trips of a loop of loads
that go with one trip of wgmmas follow from the stages that each fills and releases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from autostamp.predict.given import GivenRole
from autostamp.predict.kernel import RoleLoop
from autostamp.predict.mma_rows import WARPGROUP_WIDE

SOFTMAX: Final = "MUFU.EX2"


def trips_of(loops: Sequence[RoleLoop], said: Mapping[str, GivenRole]) -> tuple[dict[str, float], list[str]]:
    """Trips by role, what the user says first, and sentences on those that were worked out.

    tcgen05 releases stages by commits, which also tell other roles of results: nothing is worked out for it.
    """
    trips = {loop.role: own.trips for loop in loops if (own := said.get(loop.role)) is not None and own.trips}
    notes = []
    consumers = [loop for loop in loops if any(_head(each.opcode) in WARPGROUP_WIDE for each in loop.facts.mma)]
    producers = [loop for loop in loops if loop.traffic.announcements and loop not in consumers]
    if len(consumers) == 1:
        (consumer,) = consumers
        # Parts of a softmax loop may be Q K' and P V; those of a GEMM are k-tiles.
        if consumer.role not in trips and consumer.copies > 1 and SOFTMAX not in consumer.facts.counts:
            trips[consumer.role] = 1 / consumer.copies
            notes.append(
                f"one of the {consumer.copies} alike parts of {consumer.role}'s loop is an iteration;"
                f" roles.{consumer.role}.trips says otherwise"
            )
        if len(producers) == 1 and consumer.traffic.releases:
            notes += _balance(producers[0], consumer, trips)
    for loop in loops:
        if loop.role not in trips:
            trips[loop.role] = 1.0
            if loop.copies > 1:
                notes.append(
                    f"a trip of {loop.role} is {loop.copies} alike parts and counts as one iteration;"
                    f" roles.{loop.role}.trips says otherwise"
                )
    return trips, notes


def _balance(producer: RoleLoop, consumer: RoleLoop, trips: dict[str, float]) -> list[str]:
    """Adds the producer's trips where they are unsaid."""
    if producer.role in trips:
        return []
    filled, released = producer.traffic.announcements, consumer.traffic.releases
    trips[producer.role] = trips.get(consumer.role, 1.0) * released / filled
    if filled == released:
        return []
    stages = f"a trip of {producer.role} fills {filled} stages and one of {consumer.role} releases {released}"
    return [f"{stages}: {released / filled:g} of the first are taken for each of the second"]


def _head(opcode: str) -> str:
    return opcode.partition(".")[0]
