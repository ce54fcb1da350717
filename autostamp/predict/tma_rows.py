# SPDX-License-Identifier: Apache-2.0
"""Rows of what TMA brings into a CTA's shared memory, and of the memory that it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from autostamp.model.budget import Origin, Resource, ResourceRow
from autostamp.model.machine import MachineTable
from autostamp.predict.given import Given, GivenRole
from autostamp.predict.kernel import Kernel, RoleLoop
from autostamp.predict.work import row

SHARED: Final = "l2_shared"
"""L2's rate where all SMs read the same lines."""
BOXES: Final = MappingProxyType(
    {
        "tma_issue": "tma_box_issue",
        "tma_bytes": "tma_box_bytes",
        "l2": "l2_box",
        SHARED: "l2_box_shared",
        "tma_latency_l2": "tma_box_latency_l2",
    }
)
"""Constants of copies without a tensor map, and the same of boxes of one, which goes first where loads have one."""
LOADS: Final = ("UTMALDG", "UBLKCP")
ANNOUNCED: Final = "amounts that the loop's mbarriers are told to expect (expect_tx)"


def constant_of(loop: RoleLoop | None, table: MachineTable, name: str) -> str:
    """`name`, or that of boxes where the loop loads with a tensor map and the machine has it."""
    box = BOXES[name]
    has_map = loop is not None and "UTMALDG" in loop.facts.counts
    return box if has_map and box in table.constants else name


def tma_rows(kernel: Kernel, loop: RoleLoop, given: Given, table: MachineTable) -> tuple[list[ResourceRow], list[str]]:
    """What TMA brings in an iteration: issue, the engine, writes to shared memory, L2 and device memory; and what is unknown."""
    said, role = given.roles.get(loop.role, GivenRole()), loop.role
    issued = sum(loop.facts.counts.get(each, 0) for each in LOADS)
    rows, blind = [], []
    cost, engine = (constant_of(loop, table, name) for name in ("tma_issue", "tma_bytes"))
    if issued and cost in table.constants:
        issue = _Loads(table, role, Origin.CUBIN, loop.source)
        rows.append(issue.row(Resource.TMA_ISSUE, f"{issued} loads", issued * loop.trips, cost))
    elif issued:
        loads = f"{issued} TMA load{'s' if issued != 1 else ''}"
        blind.append(f"issue of {loads} of {role}: {table.product} has no constant tma_issue")
    size, origin, source, note = _tma_bytes(kernel, loop, said, given)
    if not size:
        missing = f"bytes of {role}'s TMA loads: {note}; roles.{role}.tma_bytes gives them"
        return rows, [*blind, missing] if issued else blind
    made = _Loads(table, role, origin, source)
    rows.append(made.row(Resource.SMEM, "TMA writes", size, "smem", is_write=True))
    if engine in table.constants:
        rows.append(made.row(Resource.TMA_BYTES, "TMA loads", size, engine))
    memory, unknown = _memory(kernel, made, size, given, loop)
    return [*rows, *memory], [*blind, *filter(None, [note]), *unknown]


@dataclass(frozen=True, slots=True)
class _Loads:
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
    return moved.announced * loop.trips / (2 if is_pair else 1), Origin.CUBIN, ANNOUNCED, note


def _memory(
    kernel: Kernel, made: _Loads, size: float, given: Given, loop: RoleLoop
) -> tuple[list[ResourceRow], list[str]]:
    """L2 and device memory. Their rates hold for all SMs at once, so fewer SMs take their part of the time."""
    said, table = given.roles.get(made.role, GivenRole()), made.table
    own, together = (constant_of(loop, table, name) for name in ("l2", SHARED))
    active = given.active_sms or kernel.active_sms
    sms = table.constants["sms"].value if "sms" in table.constants else 0.0
    share = min(active / sms, 1.0) if active and sms else 1.0
    part = f", {active} of {sms:g} SMs at once" if share < 1 else ""
    rows, blind = [], []
    if own not in table.constants:
        blind.append(f"L2 is not counted: {table.product} has no constant l2")
    else:
        work = (said.l2_bytes or size) * share
        # How many SMs read the same lines at once is in no cubin, and a bound takes the best of it.
        rate = together if together in table.constants and not said.l2_bytes else own
        rows.append(made.row(Resource.L2, f"out of L2{part}", work, rate, is_given=bool(said.l2_bytes)))
        if share == 1 and not active:
            blind.append("L2: taken to serve all SMs at once, and to hold everything; active_sms says how many run")
        if rate == together:
            alone = f"{work / table.constants[own].value:,.0f} cycles"
            blind.append(
                f"L2: all SMs are taken to read the same lines at once; {alone} if each reads lines of its own, at whose rate"
                f" roles.{made.role}.l2_bytes counts"
            )
        if not said.l2_bytes:
            blind.append("multicast: every byte is taken to come out of L2 for this CTA alone; l2_bytes says otherwise")
    if said.hbm_bytes:
        rows.append(made.row(Resource.HBM, f"out of device memory{part}", said.hbm_bytes * share, "hbm", is_given=True))
    else:
        blind.append(f"device memory: not counted; roles.{made.role}.hbm_bytes says what of it misses L2")
    return rows, blind
