# SPDX-License-Identifier: Apache-2.0
"""Spans of a joined trace: which replay recorded each, and by how much its place and its length may be off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from autostamp.model.manifest import EventKind
from autostamp.model.timeline import Slice
from autostamp.model.trace import Lane


def with_origins(lane: Lane, slices: Sequence[Slice]) -> list[Slice]:
    """The slices of a joined lane with the origin and the errors of their ends.

    The two records of one wait that one replay made are off together, so its length is right; of any other two each is off by
    itself.
    """
    ends = {
        (event.instance, event.kind, event.cycles): (replay, error)
        for event, replay, error in zip(lane.events, lane.replays, lane.errors, strict=True)
    }
    found = []
    for part in slices:
        begin, end = (EventKind.EXIT, EventKind.SIGNAL) if part.signal else (EventKind.ENTER, EventKind.EXIT)
        first = ends.get((part.instance, begin, part.start), (0, 0))
        last = ends.get((part.signal or part.instance, end, part.end), (0, 0))
        is_one = not part.signal and first[0] == last[0]
        length = 0 if is_one else first[1] + last[1]
        found.append(replace(part, replay=last[0], error=max(first[1], last[1]), length_error=length))
    return found
