# SPDX-License-Identifier: Apache-2.0
"""What every recorded trace must satisfy, and ways to pick records out of it."""

from __future__ import annotations

from itertools import pairwise

from autostamp.model.manifest import EventKind, Instance
from autostamp.model.trace import Event, Lane, Trace
from autostamp.runtime.decode import check


def assert_sound(trace: Trace) -> None:
    """Every enter has its exit, clocks never run backwards, nothing was lost, and every lane was released."""
    assert trace.lanes
    assert check(trace) == []
    assert trace.warnings == ()
    for lane in trace.lanes:
        assert lane.lost == 0
        assert all(before.cycles <= after.cycles for before, after in pairwise(lane.events))
        clocks = [lane.entry_cycles, *(event.cycles for event in lane.events)]
        assert 0 <= lane.entry_cycles == min(clocks)
        assert lane.exit_cycles > lane.entry_cycles
        assert lane.exit_ns >= lane.entry_ns > 0
    assert len({lane.smid for lane in trace.lanes}) == 1  # one CTA runs on one multiprocessor


def rows(trace: Trace, **wanted: object) -> list[Instance]:
    """Instances with these field values; `barrier` is a label."""
    labels = {barrier.number: barrier.label for barrier in trace.kernel.barriers}
    return [
        row
        for row in trace.kernel.instances
        if all((labels.get(row.barrier) if name == "barrier" else getattr(row, name)) == value
               for name, value in wanted.items())
    ]  # fmt: skip


def events(lane: Lane, instances: list[Instance], kind: EventKind) -> list[Event]:
    """Records of one kind of these instances, in clock order."""
    numbers = {row.number for row in instances}
    return [event for event in lane.events if event.instance in numbers and event.kind is kind]


def roles(trace: Trace) -> dict[int, set[str]]:
    """Roles that each warp's records name, by warp; the part that all warps run has none."""
    by_number = {row.number: row.role for row in trace.kernel.instances}
    return {
        lane.warp: {by_number[event.instance] for event in lane.events} - {""}
        for lane in trace.lanes
    }  # fmt: skip
