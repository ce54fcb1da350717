# SPDX-License-Identifier: Apache-2.0
"""A budget from what the disassembly says of each role's main loop, what a run knows of roles and rings, and the user's file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from autostamp.diagnostics import AutostampError
from autostamp.model.budget import Budget, Origin, Resource, ResourceRow, Ring, Step
from autostamp.model.loop import LoopFacts
from autostamp.model.loop_traffic import LoopTraffic
from autostamp.model.machine import MachineTable
from autostamp.predict.given import Given, GivenRing, GivenRole
from autostamp.predict.instructions import instruction_rows
from autostamp.predict.mma_rows import check_arch, dtype, shape_rows, why_not
from autostamp.predict.rings import latency
from autostamp.predict.work import row, write_share

ANNOUNCED: Final = "amounts that the loop's mbarriers are told to expect (expect_tx)"


@dataclass(frozen=True, slots=True)
class RoleLoop:
    """One role's main loop. `warps` run it, found as `warps_source` says (0: unknown); `copies` alike parts are one trip."""

    role: str
    warps: int
    warps_source: str
    facts: LoopFacts
    traffic: LoopTraffic
    copies: int = 1


@dataclass(frozen=True, slots=True)
class KnownRing:
    """A ring that a run shows: between which roles, and how deep."""

    name: str
    producer: str
    consumer: str
    stages: int


@dataclass(frozen=True, slots=True)
class Kernel:
    """What is known before the user's word. `all_roles` are the names that a budget may use; `notes` become blind spots."""

    name: str
    loops: tuple[RoleLoop, ...]
    rings: tuple[KnownRing, ...] = ()
    all_roles: tuple[str, ...] = ()
    active_sms: int = 0
    notes: tuple[str, ...] = ()


def budget_of(kernel: Kernel, table: MachineTable, given: Given) -> Budget:
    """One iteration of the main loops.

    Raises AS7122 for a role of `given` that the kernel lacks, AS7123 where nobody says how many warps a role has, AS7124 for a
    kernel of another machine or without anything to count, and AS7103 for a rate that the machine lacks.
    """
    _check_roles(kernel, given)
    rows: list[ResourceRow] = []
    blind = list(kernel.notes)
    for loop in kernel.loops:
        found, missing = _loop_rows(kernel, loop, given, table)
        rows += found
        blind += missing
    rows = _with_given(rows, given)
    rings, missing = _rings(kernel, rows, given, table)
    if not rows and not rings and not given.dependencies:
        raise AutostampError.of("AS7124", kernel=kernel.name, detail="no main loop was found, and no row was given")
    if not given.dependencies:
        blind.append("chains from one iteration to the next: none was given, so there is no recurrence bound")
    return Budget(
        kernel=kernel.name,
        machine=table.product,
        iteration=given.iteration or _iteration(kernel.loops, given),
        rows=tuple(rows),
        dependencies=given.dependencies,
        rings=rings,
        smem_write_share=write_share(table, given.smem_write_share if given.smem_write_share >= 0 else None),
        blind_spots=(*blind, *missing, *_always(table)),
    )


def _check_roles(kernel: Kernel, given: Given) -> None:
    known = kernel.all_roles
    for role, key in given.named_roles().items():
        if known and role not in known:
            raise AutostampError.of(
                "AS7122", path=given.path, key=key, role=role, kernel=kernel.name, known=", ".join(known)
            )


def _loop_rows(
    kernel: Kernel, loop: RoleLoop, given: Given, table: MachineTable
) -> tuple[list[ResourceRow], list[str]]:
    said = given.roles.get(loop.role, GivenRole())
    warps = said.warps or loop.warps
    if not warps:
        raise AutostampError.of("AS7123", kernel=kernel.name, role=loop.role)
    facts = loop.facts
    source = f"cubin, loop {facts.start:#06x}-{facts.end:#06x}"
    rows: list[ResourceRow] = []
    blind = [] if said.warps or not loop.warps_source else [f"warps of {loop.role}: {warps}, {loop.warps_source}"]
    if loop.copies > 1 and said.trips == 1:
        blind.append(
            f"a trip of {loop.role} is {loop.copies} alike parts and counts as one iteration;"
            f" roles.{loop.role}.trips says otherwise"
        )
    for shape in facts.mma:
        check_arch(shape, table, kernel.name)
        if reason := why_not(shape, table):
            blind.append(f"{loop.role}: {reason}")
        else:
            rows += shape_rows(shape, warps, said.trips, table, loop.role, source)
    counted, missing = instruction_rows(facts.counts, warps, table, loop.role, source, _made(kernel.loops))
    rows += [_times(each, said.trips) for each in counted]
    traffic_rows, more = _traffic(kernel, loop, said, given, warps, table)
    return [*rows, *traffic_rows], [*blind, *missing, *more]


def _made(loops: Sequence[RoleLoop]) -> str:
    """What the kernel's F2FP make: the type of the operands that its MMAs do not read from shared memory; "" if unknown."""
    made = {dtype(shape) for loop in loops for shape in loop.facts.mma if shape.operand_a != "smem"}
    return made.pop() if len(made) == 1 else ""


def _times(one: ResourceRow, trips: float) -> ResourceRow:
    return one if trips == 1 else replace(one, work=one.work * trips, cycles=one.cycles * trips)


def _traffic(
    kernel: Kernel, loop: RoleLoop, said: GivenRole, given: Given, warps: int, table: MachineTable
) -> tuple[list[ResourceRow], list[str]]:
    """Shared memory by the role's own instructions, tensor memory, and what TMA brings."""
    moved, role = loop.traffic, loop.role
    source = f"cubin, loop {loop.facts.start:#06x}-{loop.facts.end:#06x}"
    rows, blind = [], []
    for what, size, resource, name in (
        ("LDS and LDSM", moved.shared_read, Resource.SMEM, "smem"),
        ("STS and STSM", moved.shared_written, Resource.SMEM, "smem"),
        ("LDTM", moved.tensor_loaded, Resource.TMEM, "tmem_load"),
        ("STTM", moved.tensor_stored, Resource.TMEM, "tmem_store"),
    ):
        if size and name in table.constants:
            work, text = size * warps * said.trips, f"{what} of {warps} warps"
            rows.append(row(table, role, resource, text, work, name, origin=Origin.CUBIN, source=source))
        elif size:
            blind.append(f"{what} of {role} are left out: {table.product} has no constant {name}")
    tma, missing = _tma(kernel, loop, said, given, table)
    return [*rows, *tma], [*blind, *missing]


def _tma(
    kernel: Kernel, loop: RoleLoop, said: GivenRole, given: Given, table: MachineTable
) -> tuple[list[ResourceRow], list[str]]:
    """What TMA brings in an iteration: issue, the engine, writes to shared memory, L2 and device memory."""
    counts, role = loop.facts.counts, loop.role
    issued = counts.get("UTMALDG", 0) + counts.get("UBLKCP", 0)
    rows, blind = [], []
    if issued and "tma_issue" in table.constants:
        what, source = f"{issued} loads", f"cubin, loop {loop.facts.start:#06x}-{loop.facts.end:#06x}"
        rows.append(
            row(
                table,
                role,
                Resource.TMA_ISSUE,
                what,
                issued * said.trips,
                "tma_issue",
                origin=Origin.CUBIN,
                source=source,
            )
        )
    elif issued:
        blind.append(f"issue of {issued} TMA loads of {role}: {table.product} has no constant tma_issue")
    size, origin, source, note = _tma_bytes(kernel, loop, said, given)
    if not size:
        return rows, blind + ([f"bytes of {role}'s TMA loads: {note}; roles.{role}.tma_bytes gives them"] if issued else [])
    made = _Made(table, role, origin, source)
    rows.append(made.row(Resource.SMEM, "TMA writes", size, "smem", is_write=True))
    if "tma_bytes" in table.constants:
        rows.append(made.row(Resource.TMA_BYTES, "TMA loads", size, "tma_bytes"))
    memory, missing = _memory(kernel, made, size, said, given, table)
    return [*rows, *memory], [*blind, *filter(None, [note]), *missing]


@dataclass(frozen=True, slots=True)
class _Made:
    """Rows of one role whose work has one origin."""

    table: MachineTable
    role: str
    origin: Origin
    source: str

    def row(
        self, resource: Resource, what: str, work: float, name: str, *, is_write: bool = False, is_given: bool = False
    ) -> ResourceRow:
        origin = Origin.GIVEN if is_given else self.origin
        return row(
            self.table, self.role, resource, what, work, name, origin=origin, source=self.source, is_write=is_write
        )


def _tma_bytes(kernel: Kernel, loop: RoleLoop, said: GivenRole, given: Given) -> tuple[float, Origin, str, str]:
    """Bytes an iteration into this CTA's shared memory, where they were found, and what is doubtful about them."""
    if said.tma_bytes:
        return said.tma_bytes, Origin.GIVEN, given.path, ""
    moved = loop.traffic
    if not moved.announcements:
        return 0.0, Origin.CUBIN, "", "the loop announces none"
    if moved.announced < 0:
        return 0.0, Origin.CUBIN, "", "an amount to expect is not constant"
    is_pair = any("2CTA" in shape.opcode.split(".") for each in kernel.loops for shape in each.facts.mma)
    note = f"TMA bytes of {loop.role}: half of what is announced, as a CTA pair shares its barrier" if is_pair else ""
    return moved.announced * said.trips / (2 if is_pair else 1), Origin.CUBIN, ANNOUNCED, note


def _memory(
    kernel: Kernel, made: _Made, size: float, said: GivenRole, given: Given, table: MachineTable
) -> tuple[list[ResourceRow], list[str]]:
    """L2 and device memory. Their rates hold for all SMs at once, so fewer SMs take their part of the time."""
    active = given.active_sms or kernel.active_sms
    sms = table.constants["sms"].value if "sms" in table.constants else 0.0
    share = min(active / sms, 1.0) if active and sms else 1.0
    part = f", {active} of {sms:g} SMs at once" if share < 1 else ""
    rows, blind = [], []
    if "l2" not in table.constants:
        blind.append(f"L2 is not counted: {table.product} has no constant l2")
    else:
        work = (said.l2_bytes or size) * share
        rows.append(made.row(Resource.L2, f"out of L2{part}", work, "l2", is_given=bool(said.l2_bytes)))
        if share == 1 and not active:
            blind.append("L2: taken to serve all SMs at once, and to hold everything; active_sms says how many run")
        if not said.l2_bytes:
            blind.append("multicast: every byte is taken to come out of L2 for this CTA alone; l2_bytes says otherwise")
    if said.hbm_bytes:
        rows.append(made.row(Resource.HBM, f"out of device memory{part}", said.hbm_bytes * share, "hbm", is_given=True))
    else:
        blind.append(f"device memory: not counted; roles.{made.role}.hbm_bytes says what of it misses L2")
    return rows, blind


def _with_given(rows: list[ResourceRow], given: Given) -> list[ResourceRow]:
    replaced = {(each.row.role, each.row.resource) for each in given.rows if each.replaces}
    return [each for each in rows if (each.role, each.resource) not in replaced] + [each.row for each in given.rows]


def _rings(
    kernel: Kernel, rows: Sequence[ResourceRow], given: Given, table: MachineTable
) -> tuple[tuple[Ring, ...], list[str]]:
    """The rings of which every part is known. What one lacks is said, and is no error: there are other bounds."""
    known = {ring.name: ring for ring in kernel.rings}
    rings, blind = [], []
    for name in dict.fromkeys([*known, *given.rings]):
        said, found = given.rings.get(name, GivenRing()), known.get(name)
        if said.is_left_out:
            continue
        producer = said.producer or (found.producer if found else "")
        consumer = said.consumer or (found.consumer if found else "")
        stages = said.stages or (found.stages if found else 0)
        alone = sum(each.consumer == consumer for each in kernel.rings) + (found is None) == 1
        fill, consume, hand_off = _fill(said, table), _consume(said, rows, consumer, alone), _hand_off(said, table)
        lacks = [
            *(["stages"] if not stages else []),
            *(["producer"] if not producer else []),
            *(["consumer"] if not consumer else []),
            *([f"fill ({table.product} has no constant tma_latency_l2)"] if fill is None else []),
            *(["consume (how long a stage is held)"] if consume is None else []),
            *([f"hand_off ({table.product} has no constant mbarrier_round_trip)"] if hand_off is None else []),
        ]
        if fill is None or consume is None or hand_off is None or lacks:
            blind.append(f"ring {name} has no credit bound: it lacks {', '.join(lacks)}; [rings.{name}] gives it")
        else:
            rings.append(Ring(name, producer, consumer, stages, fill, consume, hand_off))
    return tuple(rings), blind


def _fill(said: GivenRing, table: MachineTable) -> tuple[Step, ...] | None:
    if said.fill is not None or "tma_latency_l2" not in table.constants:
        return said.fill
    return (latency(table, "TMA load out of L2", "tma_latency_l2"),)


def _consume(said: GivenRing, rows: Sequence[ResourceRow], consumer: str, alone: bool) -> tuple[Step, ...] | None:
    """How long the consumer holds a stage: given, or, of its only ring, as long as its MMAs of an iteration take."""
    if said.consume is not None or not alone:
        return said.consume
    steps = [
        Step(each.what, each.cycles, each.constant, False, each.origin, each.source)
        for each in rows
        if each.role == consumer and each.resource is Resource.TENSOR
    ]
    return tuple(steps) or None


def _hand_off(said: GivenRing, table: MachineTable) -> tuple[Step, ...] | None:
    if said.hand_off is not None or "mbarrier_round_trip" not in table.constants:
        return said.hand_off
    return (latency(table, "round trip", "mbarrier_round_trip"),)


def _iteration(loops: Sequence[RoleLoop], given: Given) -> str:
    trips = {loop.role: given.roles.get(loop.role, GivenRole()).trips for loop in loops}
    if all(each == 1 for each in trips.values()):
        return "one trip through each role's main loop"
    return ", ".join(f"{count:g} trips of {role}" for role, count in trips.items())


def _always(table: MachineTable) -> Iterator[str]:
    yield "every conditional part of a loop is taken to run in each trip"
    yield "bank conflicts, clock changes and other CTAs on the SM are not counted"
    derived = sorted(name for name, each in table.constants.items() if "doubtful" in each.condition.lower())
    if derived:
        yield f"doubtful constants of {table.product}: {', '.join(derived)}"
