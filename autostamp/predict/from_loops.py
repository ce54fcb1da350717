# SPDX-License-Identifier: Apache-2.0
"""A budget from what the disassembly says of each role's main loop, what a run knows of roles and rings, and the user's file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from autostamp.diagnostics import AutostampError
from autostamp.model.budget import Budget, Origin, Resource, ResourceRow
from autostamp.model.machine import MachineTable
from autostamp.predict.chains import chains
from autostamp.predict.given import Given, GivenRole
from autostamp.predict.instructions import instruction_rows
from autostamp.predict.kernel import Kernel, RoleLoop
from autostamp.predict.known_rings import budget_rings
from autostamp.predict.mma_rows import check_arch, dtype, shape_rows, why_not
from autostamp.predict.tma_rows import tma_rows
from autostamp.predict.trips import trips_of
from autostamp.predict.work import row, warps_text, write_share


def budget_of(kernel: Kernel, table: MachineTable, given: Given) -> Budget:
    """One iteration of the main loops.

    Raises AS7122 for a role of `given` that the kernel lacks, AS7123 where nobody says how many warps a role has, AS7124 for a
    kernel of another machine or without anything to count, and AS7103 for a rate that the machine lacks.
    """
    _check_roles(kernel, given)
    rows: list[ResourceRow] = []
    blind = list(kernel.notes)
    loops, notes = _counted(kernel, given)
    blind += notes
    for loop in loops:
        found, missing = _loop_rows(kernel, loop, given, table)
        rows += found
        blind += missing
    rows = _with_given(rows, given)
    rings, missing = budget_rings(kernel, loops, rows, given, table)
    carried, unseen = chains(loops, table, _made(loops)) if given.has_chains else ((), [])
    if not rows and not rings and not given.dependencies:
        detail = f"{kernel.without or 'its loops do nothing that is counted'}, and no row was given"
        raise AutostampError.of("AS7124", kernel=kernel.name, detail=detail)
    if kernel.without:
        blind.append(f"instructions: {kernel.without}, so only rows by hand are counted")
    dependencies = (*given.dependencies, *carried)
    if not dependencies:
        blind.append("chains from one iteration to the next: none was given or read, so there is no recurrence bound")
    return Budget(
        kernel=kernel.name,
        machine=table.product,
        iteration=given.iteration or _iteration(loops),
        rows=tuple(rows),
        dependencies=dependencies,
        rings=rings,
        smem_write_share=write_share(table, given.smem_write_share if given.smem_write_share >= 0 else None),
        blind_spots=(*blind, *missing, *unseen, *_always(table)),
    )


def _check_roles(kernel: Kernel, given: Given) -> None:
    known = kernel.all_roles
    for role, key in given.named_roles().items():
        if known and role not in known:
            raise AutostampError.of(
                "AS7122", path=given.path, key=key, role=role, kernel=kernel.name, known=", ".join(known)
            )


def _counted(kernel: Kernel, given: Given) -> tuple[list[RoleLoop], list[str]]:
    """The loops that are part of an iteration, with warps and trips, and what is to be said of them."""
    loops, notes = [], []
    for loop in kernel.loops:
        said = given.roles.get(loop.role, GivenRole())
        if said.is_left_out:
            continue
        if loop.is_outer and not said.trips and said.loop < 0:
            why = f"it is not as deep as the others; roles.{loop.role}.trips counts it"
            notes.append(f"{loop.source} ({loop.role}) is left out as work of a whole tile: {why}")
            continue
        if loop.warps_source and not said.warps:
            notes.append(f"warps of {loop.role}: {loop.warps}, {loop.warps_source}")
        loops.append(replace(loop, warps=said.warps or loop.warps))
    trips, more = trips_of(loops, given.roles)
    return [replace(loop, trips=trips[loop.role]) for loop in loops], [*notes, *more]


def _loop_rows(
    kernel: Kernel, loop: RoleLoop, given: Given, table: MachineTable
) -> tuple[list[ResourceRow], list[str]]:
    if not loop.warps:
        raise AutostampError.of("AS7123", kernel=kernel.name, role=loop.role)
    facts, warps = loop.facts, loop.warps
    rows: list[ResourceRow] = []
    blind: list[str] = []
    for shape in facts.mma:
        check_arch(shape, table, kernel.name)
        if reason := why_not(shape, table):
            blind.append(f"{loop.role}: {reason}")
        else:
            rows += shape_rows(shape, loop, table)
    counted, missing = instruction_rows(facts.counts, warps, table, loop.role, loop.source, _made(kernel.loops))
    rows += [_times(each, loop) for each in counted]
    moved, more = _moved(loop, table)
    loads, others = tma_rows(kernel, loop, given, table)
    return [*rows, *moved, *loads], [*blind, *missing, *more, *others]


def _made(loops: Sequence[RoleLoop]) -> str:
    """What the kernel's F2FP make: the type of the operands that its MMAs do not read from shared memory; "" if unknown."""
    made = {dtype(shape) for loop in loops for shape in loop.facts.mma if shape.operand_a != "smem"}
    return made.pop() if len(made) == 1 else ""


def _times(one: ResourceRow, loop: RoleLoop) -> ResourceRow:
    """A row of one trip as that of an iteration."""
    return replace(one, what=one.what + loop.times, work=one.work * loop.trips, cycles=one.cycles * loop.trips)


def _moved(loop: RoleLoop, table: MachineTable) -> tuple[list[ResourceRow], list[str]]:
    """Shared and tensor memory by the role's own loads and stores."""
    moved = loop.traffic
    rows, blind = [], []
    for what, size, resource, name in (
        ("LDS and LDSM", moved.shared_read, Resource.SMEM, "smem"),
        ("STS and STSM", moved.shared_written, Resource.SMEM, "smem"),
        ("LDTM", moved.tensor_loaded, Resource.TMEM, "tmem_load"),
        ("STTM", moved.tensor_stored, Resource.TMEM, "tmem_store"),
    ):
        if size and name in table.constants:
            work, text = size * loop.warps * loop.trips, f"{what} of {warps_text(loop.warps)}{loop.times}"
            rows.append(row(table, loop.role, resource, text, work, name, origin=Origin.CUBIN, source=loop.source))
        elif size:
            blind.append(f"{what} of {loop.role} are left out: {table.product} has no constant {name}")
    if moved.shared_read and "smem" in table.constants:
        blind.append(f"LDS of {loop.role}: every lane is taken to read bytes of its own; what lanes share takes less")
    return rows, blind


def _with_given(rows: list[ResourceRow], given: Given) -> list[ResourceRow]:
    replaced = {(each.row.role, each.row.resource) for each in given.rows if each.replaces}
    return [each for each in rows if (each.role, each.resource) not in replaced] + [each.row for each in given.rows]


def _iteration(loops: Sequence[RoleLoop]) -> str:
    if all(loop.trips == 1 for loop in loops):
        return "one trip through each role's main loop" if loops else "as the budget file has it"
    return ", ".join(f"{loop.trips:g} trip{'s' if loop.trips != 1 else ''} of {loop.role}" for loop in loops)


def _always(table: MachineTable) -> Iterator[str]:
    yield "every conditional part of a loop is taken to run in each trip"
    yield "bank conflicts, clock changes and other CTAs on the SM are not counted"
    derived = sorted(name for name, each in table.constants.items() if "doubtful" in each.condition.lower())
    if derived:
        yield f"doubtful constants of {table.product}: {', '.join(derived)}"
