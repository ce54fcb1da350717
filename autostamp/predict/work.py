# SPDX-License-Identifier: Apache-2.0
"""Rows of a budget: work over the machine's rate, for one role and one iteration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from autostamp.diagnostics import AutostampError
from autostamp.model.budget import Origin, Resource, ResourceRow
from autostamp.model.machine import MachineTable
from autostamp.predict.laws import Mma, Operand, check_sizes, dtype_of, flop, operand_bytes, scale_bytes
from autostamp.predict.machines import constant

LANES: Final = 32
FLOP_LAW: Final = "2 m n k"
OPERAND_LAW: Final = "operands of every MMA instruction: FlashAttention-4, arXiv 2603.05451, section 3.1"
SCALE_LAW: Final = "one byte for each block of elements, moved by tcgen05.cp"

WORK_UNITS: Final = {
    "FLOP/clk/SM": "FLOP",
    "B/clk/SM": "B",
    "thread-instr/clk/SM": "thread-instr",
    "warp-instr/clk/SM": "warp-instr",
    "cycles": "",
}


_FORMATS: Final = {"fp8": "e4m3", "mxfp8": "e4m3", "nvfp4": "e2m1", "mxfp4": "e2m1"}
"""What F2FP calls a dtype."""


def row(
    table: MachineTable,
    role: str,
    resource: Resource,
    what: str,
    work: float,
    name: str,
    *,
    origin: Origin,
    source: str,
    is_write: bool = False,
) -> ResourceRow:
    """Work of any kind over the rate `name` of the machine, in cycles. Where `name` is a duration, `work` counts uses.

    Raises AS7103 when the machine's rate is unknown, AS7106 for work that is not above zero.
    """
    check_sizes(f"{role}, {what}", work=work)
    rate = constant(table, name)
    is_duration = rate.unit == "cycles"
    return ResourceRow(
        role,
        resource,
        what,
        work,
        WORK_UNITS.get(rate.unit, rate.unit),
        name,
        rate.value,
        work * rate.value if is_duration else work / rate.value,
        origin,
        source,
        rate.source,
        is_write,
    )


def is_hopper(table: MachineTable) -> bool:
    """Whether MMAs are wgmma."""
    return table.arch.startswith("sm_90")


def is_tcgen05(table: MachineTable) -> bool:
    """Whether MMAs are tcgen05.mma."""
    return table.arch.startswith(("sm_100", "sm_103"))


def tensor_constant(mma: Mma, table: MachineTable) -> str:
    """Name of the rate at which the machine runs this MMA.

    A tcgen05 instruction of 64 rows in one CTA has a rate of its own, and so has fp4 with K = 96 on sm_103a.
    """
    name = dtype_of(mma.dtype).rate
    if mma.atom_k == 96:
        return f"{name}_k96"
    return f"{name}_m64" if is_tcgen05(table) and mma.atom_m == 64 and mma.ctas == 1 else name


def mma_rows(mma: Mma, table: MachineTable, role: str) -> Iterator[ResourceRow]:
    """Tensor core, shared memory reads of operands and, for types with block scales, the scales.

    Raises AS7106 for a machine whose MMAs read no shared memory: what ldmatrix brings to mma.sync is the kernel's choice.
    """
    if not (is_hopper(table) or is_tcgen05(table)):
        detail = f"{table.arch} has neither wgmma nor tcgen05, and only their operands follow from the shape"
        raise AutostampError.of("AS7106", what=mma.name, detail=detail)
    check_sizes(mma.name, m=mma.m, n=mma.n, k=mma.k, atom_m=mma.atom_m, atom_n=mma.atom_n, ctas=mma.ctas)
    shape = f"{mma.name} {mma.m} x {mma.n} x {mma.k} {mma.dtype}"
    name = tensor_constant(mma, table)
    yield row(table, role, Resource.TENSOR, shape, flop(mma), name, origin=Origin.SHAPE, source=FLOP_LAW)
    read = "A and B" if mma.a is Operand.SMEM else "B"
    what = f"{mma.name} reads {read}"
    yield row(table, role, Resource.SMEM, what, operand_bytes(mma), "smem", origin=Origin.SHAPE, source=OPERAND_LAW)
    if scales := scale_bytes(mma):
        what = f"{mma.name} block scales"
        yield row(table, role, Resource.SMEM, what, scales, "smem", origin=Origin.SHAPE, source=SCALE_LAW)


def smem_row(
    table: MachineTable, role: str, what: str, size: float, source: str, *, is_write: bool = False
) -> ResourceRow:
    """`size` bytes through the shared memory port. `is_write`: by TMA, whose share of the port is the budget's to say."""
    return row(table, role, Resource.SMEM, what, size, "smem", origin=Origin.SHAPE, source=source, is_write=is_write)


def exp_row(table: MachineTable, role: str, count: float, source: str) -> ResourceRow:
    """`count` exponentials of one lane each on the MUFU."""
    return row(table, role, Resource.MUFU, "exponentials", count, "mufu_ex2", origin=Origin.SHAPE, source=source)


def convert_row(table: MachineTable, role: str, count: float, dtype: str) -> ResourceRow:
    """`count` f32 values turned into `dtype`, two an instruction."""
    what, name, source = f"f32 to {dtype}", conversion_constant(dtype), "two values an instruction"
    return row(table, role, Resource.CONVERT, what, count / 2, name, origin=Origin.SHAPE, source=source)


def warps_text(count: int) -> str:
    """A number of warps for a reader."""
    return f"{count} warp{'s' if count != 1 else ''}"


def conversion_constant(dtype: str) -> str:
    """Name of the rate at which two f32 values become a pair of `dtype`."""
    return f"cvt_{_FORMATS.get(dtype, dtype)}x2"


def write_share(table: MachineTable, given: float | None) -> float:
    """The part of bytes written to shared memory that takes port time from reads: what is given, else measured, else all."""
    if given is not None:
        return given
    measured = table.constants.get("smem_write_share")
    return 1.0 if measured is None else measured.value
