# SPDX-License-Identifier: Apache-2.0
"""Whether every stamp that was traced reached the compiled kernel."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from autostamp.model.cubin import CubinFacts, StampCheck
from autostamp.model.manifest import Instance, KernelTrace
from autostamp.model.sync import Kind
from autostamp.passes.stamp_places import Found, Verdict, find_stamps, judge

LANE_STAMPS: Final = 2
"""Clock reads that a stamped kernel has besides its stamps: one where it binds its lane, one where it releases it."""

_COMMENT: Final = re.compile(r"// autostamp (?:(\d+)|bind|release)\b")
_FUNCTION: Final = re.compile(r"^(?:\.\w+ )*\.(?:entry|func)\s+(?:\([^)]*\)\s*)?([\w$.]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PtxStamps:
    """Stamps written in one kernel's PTX: event numbers with their copies, and how many stamps of the lane itself."""

    events: tuple[int, ...]
    lane: int

    @property
    def total(self) -> int:
        """All of them; each reads the clock once."""
        return len(self.events) + self.lane


def ptx_stamps(ptx: str, kernel: str) -> PtxStamps:
    """The `// autostamp` comments of `kernel` in `ptx` (of the whole text where no function has that name)."""
    heads = [(head.start(), head[1]) for head in _FUNCTION.finditer(ptx)]
    bodies = [ptx[start:end] for (start, name), (end, _) in pairwise([*heads, (len(ptx), "")]) if name == kernel]
    comments = _COMMENT.findall("".join(bodies) or ptx)
    return PtxStamps(tuple(int(number) for number in comments if number), comments.count(""))


def check(clean: CubinFacts, stamped: CubinFacts, ptx: str | None, trace: KernelTrace | None) -> StampCheck | None:
    """Expected stamps against those found in PTX and SASS; None where neither PTX nor a trace says what to expect.

    A clock read is traced to its event number through the store that writes it. Those that cannot be traced may belong to any
    stamp not found, so a stamp is called missing by name only when there are none; otherwise missing ones are counted.
    """
    written = ptx_stamps(ptx, stamped.kernel) if ptx is not None else None
    if trace is not None:
        expected = frozenset(event for each in trace.instances for event in _events(each))
    elif written is not None:
        expected = frozenset(written.events)
    else:
        return None
    found = find_stamps(stamped.instructions)
    added = len(found) - clean.clock_reads
    identified = [each.event for each in found if each.event in expected]
    untraced = max(0, added - len(identified) - (written.lane if written is not None else LANE_STAMPS))
    unseen = expected - frozenset(identified)
    absent = expected - frozenset(written.events) if written is not None else frozenset[int]()
    if not untraced:
        absent |= unseen
    verdicts = _verdicts(stamped, found, trace)
    return StampCheck(
        expected=len(expected),
        ptx_comments=written.total if written is not None else -1,
        clock_reads=added,
        identified=len(identified),
        missing=_missing(absent, trace),
        unnamed=max(0, len(unseen - absent) - untraced),
        around=_numbers(verdicts, Verdict.AROUND),
        misplaced=_numbers(verdicts, Verdict.MISPLACED),
        unplaced=_numbers(verdicts, Verdict.UNPLACED),
    )


def _events(instance: Instance) -> tuple[int, ...]:
    return tuple(event for event in (instance.enter, instance.exit, instance.signal) if event)


def _missing(absent: frozenset[int], trace: KernelTrace | None) -> tuple[int, ...]:
    if trace is None:
        return tuple(sorted(absent))
    return tuple(each.number for each in trace.instances if not absent.isdisjoint(_events(each)))


def _verdicts(stamped: CubinFacts, found: tuple[Found, ...], trace: KernelTrace | None) -> dict[int, Verdict]:
    return {
        each.number: judge(stamped.instructions, found, each)
        for each in (trace.instances if trace is not None else ())
        if each.enter and each.exit and each.kind == Kind.WAIT
    }


def _numbers(verdicts: dict[int, Verdict], wanted: Verdict) -> tuple[int, ...]:
    return tuple(number for number, verdict in verdicts.items() if verdict is wanted)
