# SPDX-License-Identifier: Apache-2.0
"""A kernel's loops from its disassembly, and two builds of one kernel side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

from autostamp.model.cubin import CubinFacts
from autostamp.model.kernel_loops import KernelComparison, KernelReport, LoopPair, LoopReport
from autostamp.passes import loop_mix, loop_patterns, loop_waits, schedule
from autostamp.passes.loops import Loop, Loops, Trip, copies
from autostamp.passes.stamp_slices import stamp_instructions


class KernelLoops:
    """One kernel's listing with its loops and a trip of each."""

    def __init__(self, facts: CubinFacts, without_stamps: bool = False) -> None:
        self.facts = facts
        self.stamps = stamp_instructions(facts.instructions) if facts.clock_reads else frozenset[int]()
        self.is_without_stamps = without_stamps
        self.found = Loops(facts.instructions, self.stamps if without_stamps else frozenset())
        self.trips: dict[int, Trip] = {loop.header: self.found.trip(loop) for loop in self.found.work}

    def report(self) -> KernelReport:
        """The kernel's report."""
        roles = {loop.header: self._role(loop) for loop in self.found.work}
        mains = {
            _main(self.found, self.trips, roles, name)
            for name in dict.fromkeys(name for name, _ in roles.values())
            if name != loop_mix.OTHER
        }
        facts = self.facts
        return KernelReport(
            kernel=facts.kernel,
            registers=facts.registers,
            stack_bytes=facts.stack_bytes,
            spill_store_bytes=facts.spill_store_bytes,
            spill_load_bytes=facts.spill_load_bytes,
            shared_bytes=facts.shared_bytes,
            instructions=facts.instruction_count - (len(self.stamps) if self.is_without_stamps else 0),
            stamps=len(self.stamps),
            is_without_stamps=self.is_without_stamps,
            irregular=self.found.irregular,
            loops=tuple(self._loop(loop, roles[loop.header][0], loop.header in mains) for loop in self.found.work),
        )

    def trip_at(self, address: int) -> Trip:
        """One trip of the work loop whose first instruction stands there. Raises KeyError where none begins."""
        return {self._address(loop): self.trips[loop.header] for loop in self.found.work}[address]

    def _role(self, loop: Loop) -> tuple[str, int]:
        counted = loop_mix.facts(self.facts.kernel, self.found, loop, self.trips[loop.header])
        return loop_mix.role(counted.counts)

    def _loop(self, loop: Loop, role: str, is_main: bool) -> LoopReport:
        trip = self.trips[loop.header]
        counted = loop_mix.facts(self.facts.kernel, self.found, loop, trip)
        return LoopReport(
            facts=counted,
            role=role,
            is_main=is_main,
            conditional=sum(trip.is_conditional),
            copies=copies(trip),
            inside=tuple(self._address(each) for each in self.found.inside(loop)),
            units=loop_mix.units(counted.counts),
            waits=loop_waits.group_waits(trip.instructions),
            alternations=loop_waits.alternations(trip.instructions),
            patterns=loop_patterns.find(trip.instructions),
        )

    def _address(self, loop: Loop) -> int:
        return self.found.instructions[self.found.graph.starts[loop.header]].address


def _main(found: Loops, trips: dict[int, Trip], roles: dict[int, tuple[str, int]], name: str) -> int:
    """The top block of the loop in which a role does its work.

    Of the loops with that role, those in which it meets the others (a trip with a wait), if there are any; of these, the
    innermost; of these, the one with the most of the role's own instructions, and of equals the shortest: a second version
    of a body has more around the same work (masks, bounds).
    """
    of_role = [loop for loop in found.work if roles[loop.header][0] == name]
    waiting = [loop for loop in of_role if loop_mix.has_wait(trips[loop.header].instructions)]
    chosen = waiting or of_role
    innermost = [loop for loop in chosen if not any(each.blocks < loop.blocks for each in chosen)]
    best = max(innermost, key=lambda loop: (roles[loop.header][1], -len(trips[loop.header].instructions), -loop.header))
    return best.header


def compare(first: CubinFacts, second: CubinFacts, without_stamps: bool = False) -> KernelComparison:
    """Two builds of one kernel: resources, loops in pairs, and the order of the core opcodes."""
    one, other = KernelLoops(first, without_stamps), KernelLoops(second, without_stamps)
    reports = one.report(), other.report()
    pairs = tuple(_pairs(*reports, list(one.trips.values()), list(other.trips.values())))
    return KernelComparison(*reports, schedule.compare(first, second), pairs)


def _pairs(
    first: KernelReport,
    second: KernelReport,
    trips: Sequence[Trip],
    others: Sequence[Trip],
) -> Iterable[LoopPair]:
    """Loops of one role paired by how much of their order they share, the best pair first; main loops only with main loops."""
    orders = {
        (i, j): schedule.compare_sequences(trips[i].instructions, others[j].instructions)
        for i, j in product(range(len(trips)), range(len(others)))
        if _kin(first.loops[i], second.loops[j])
    }
    partners: dict[int, int] = {}
    for (i, j), _ in sorted(orders.items(), key=lambda item: (item[1].distance, abs(item[0][0] - item[0][1]))):
        if i not in partners and j not in partners.values():
            partners[i] = j
    for i, loop in enumerate(first.loops):
        if i in partners:
            yield LoopPair(loop, second.loops[partners[i]], orders[i, partners[i]])
        else:
            yield LoopPair(loop, None, None)
    for j, loop in enumerate(second.loops):
        if j not in partners.values():
            yield LoopPair(None, loop, None)


def _kin(first: LoopReport, second: LoopReport) -> bool:
    return first.role == second.role and first.is_main == second.is_main
