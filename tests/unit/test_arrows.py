# SPDX-License-Identifier: Apache-2.0
"""Stages from addresses, and arrows by address against arrows by declaration, over schedules worked out by hand."""

from __future__ import annotations

from dataclasses import replace

from autostamp.analysis.arrows import Arrow, by_address, by_declaration
from autostamp.analysis.rings import STAGE_BIT, Rings
from autostamp.model.flow import End
from autostamp.model.manifest import Barrier, EventKind, Payload
from autostamp.model.trace import Event, Lane, Trace
from tests.simulator.tables import ACQUIRE, COMMIT, CONSUME, RELEASE, kernel_trace, signal_row, wait_row

ENTER, EXIT, SIGNAL = EventKind.ENTER, EventKind.EXIT, EventKind.SIGNAL
FULL, EMPTY = (128, 129), (160, 161)


def ring(**fields):
    """A ring of two raw mbarriers a side: full at bytes 1024 and 1032, empty at 1280 and 1288."""
    address = Payload.ADDRESS
    return kernel_trace(
        (
            wait_row(ACQUIRE, 1, 2, side="empty", payload=address),
            signal_row(COMMIT, 3, side="full", payload=address),
            wait_row(CONSUME, 4, 5, side="full", payload=address),
            signal_row(RELEASE, 6, side="empty", payload=address),
        ),
        (Barrier(1, "ring", "mbarrier", 0, True),),
        **fields,
    )


def lane(warp: int, *rows: tuple[int, EventKind, int, int]) -> Lane:
    """Events from (hundreds of cycles, kind, instance, address); exits carry no address, as on the device."""
    seen: dict[tuple[EventKind, int], int] = {}
    events = []
    for cycle, kind, instance, address in rows:
        visit = seen.get((kind, instance), 0)
        seen[kind, instance] = visit + 1
        events.append(Event(100 * cycle, kind, instance, 0 if kind is EXIT else address, visit))
    return Lane(warp, 0, tuple(events), 0, 0, 100_000, 0, 0)


def three_uses(full=FULL, empty=EMPTY) -> Trace:
    """In hundreds of cycles. Producer: acquires at 0, 10 and 20-50, commits at 5, 15, 60.
    Consumer: waits 0-5, 40-40, 50-60, releases at 40, 50, 90.

    By hand: commit 1 at 5 ends the first consumer wait, commit 2 (15) the second, commit 3 (60) the third; the third acquire
    reuses the first stage, so it is the first release, at 40, that it waits for.
    """
    producer, consumer = [], []
    for use, (enter, exit_, commit) in enumerate([(0, 0, 5), (10, 10, 15), (20, 50, 60)]):
        stage = use % 2
        producer += [(enter, ENTER, ACQUIRE, empty[stage]), (exit_, EXIT, ACQUIRE, 0)]
        producer += [(commit, SIGNAL, COMMIT, full[stage])]
    for use, (enter, exit_, release) in enumerate([(0, 5, 40), (40, 40, 50), (50, 60, 90)]):
        stage = use % 2
        consumer += [(enter, ENTER, CONSUME, full[stage]), (exit_, EXIT, CONSUME, 0)]
        consumer += [(release, SIGNAL, RELEASE, empty[stage])]
    return Trace(ring(), (lane(0, *producer), lane(1, *consumer)), 0.0)


EXPECTED = frozenset(
    {
        Arrow(End(0, COMMIT, 0, 500), End(1, CONSUME, 0, 500)),
        Arrow(End(0, COMMIT, 1, 1500), End(1, CONSUME, 1, 4000)),
        Arrow(End(0, COMMIT, 2, 6000), End(1, CONSUME, 2, 6000)),
        Arrow(End(1, RELEASE, 0, 4000), End(0, ACQUIRE, 2, 5000)),
    }
)


def test_both_ways_of_pairing_give_the_schedule_that_was_run():
    assert by_address(three_uses()) == EXPECTED
    assert by_declaration(three_uses()) == EXPECTED


def test_two_rings_taken_for_one_are_told_apart_by_address_and_not_by_declaration():
    """A second ring of one stage through the same sites: K and V through one helper."""
    trace = three_uses()
    other = lane(2, (1, ENTER, ACQUIRE, 200), (2, EXIT, ACQUIRE, 0), (3, SIGNAL, COMMIT, 201))
    mixed = replace(trace, lanes=(*trace.lanes, other))
    assert by_address(mixed) == EXPECTED
    assert by_declaration(mixed) != by_address(mixed)


def test_the_last_of_several_arrivals_ends_the_wait():
    rows = ring()
    waits = lane(0, (0, ENTER, ACQUIRE, 160), (90, EXIT, ACQUIRE, 0))
    first = lane(1, (30, SIGNAL, RELEASE, 160))
    second = lane(2, (80, SIGNAL, RELEASE, 160))
    assert by_address(Trace(rows, (waits, first, second), 0.0)) == {
        Arrow(End(2, RELEASE, 0, 8000), End(0, ACQUIRE, 0, 9000))
    }


def test_stages_are_ranks_in_an_array_with_its_own_step():
    """Full and empty barriers that alternate in memory: 16 bytes from one stage to the next."""
    trace = three_uses(full=(128, 130), empty=(129, 131))
    rings = Rings.of(trace)
    acquire, commit = trace.kernel.instances[:2]
    assert [rings.stage(commit, address) for address in (128, 130)] == [0, 1]
    assert [rings.stage(acquire, address) for address in (129, 131)] == [0, 1]
    assert rings.depth(1, "full") == 2


def test_an_index_in_place_of_an_address_is_the_stage_itself():
    row = wait_row(1, 1, 2, payload=Payload.ADDRESS)
    assert Rings().stage(row, STAGE_BIT | 5) == 5


def test_without_a_payload_the_stage_is_what_the_table_says():
    assert Rings().stage(wait_row(1, 1, 2, payload=Payload.NONE, stage=3), 0) == 3
    assert Rings().stage(wait_row(1, 1, 2, payload=Payload.ADDRESS), 0) == -1
    assert Rings().stage(wait_row(1, 1, 2, payload=Payload.STAGE), 2) == 2


def test_copies_that_complete_an_announced_use_are_no_arrivals():
    """A TMA copy is issued after each commit: its record must not shift the count of arrivals."""
    trace = three_uses()
    copy = signal_row(9, 9, side="full", payload=Payload.ADDRESS, is_async=True)
    producer = trace.lanes[0]
    copies = [
        Event(event.cycles + 10, SIGNAL, 9, event.payload, event.visit)
        for event in producer.events
        if event.kind is SIGNAL
    ]
    events = tuple(sorted((*producer.events, *copies), key=lambda event: event.cycles))
    kernel = replace(trace.kernel, instances=(*trace.kernel.instances, copy))
    with_copies = Trace(kernel, (replace(producer, events=events), trace.lanes[1]), 0.0)
    assert by_address(with_copies) == by_declaration(with_copies) == EXPECTED
