# SPDX-License-Identifier: Apache-2.0
"""Rows of the matrix instructions that a main loop's disassembly shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from autostamp.diagnostics import AutostampError
from autostamp.model.budget import Origin, Resource, ResourceRow
from autostamp.model.loop import MmaShape
from autostamp.model.machine import MachineTable
from autostamp.predict.kernel import RoleLoop
from autostamp.predict.laws import Mma, Operand, dtype_of, flop, operand_bytes
from autostamp.predict.work import FLOP_LAW, OPERAND_LAW, row, tensor_constant, warps_text

WARPGROUP: Final = 4
"""Warps that run one warpgroup instruction together."""

TENSOR_MEMORY: Final = "UTC"
WARPGROUP_WIDE: Final = frozenset({"HGMMA", "QGMMA", "IGMMA", "BGMMA"})

_DTYPES: Final = {
    "bf16": "bf16",
    "f16": "fp16",
    "tf32": "tf32",
    "f64": "fp64",
    "s8": "int8",
    "u8": "int8",
    **dict.fromkeys(("e4m3", "e5m2", "e2m3", "e3m2", "e2m1"), "fp8"),
}
"""The disassembler's names. What `kind::f8f6f4` multiplies takes a byte an element and runs at the rate of fp8."""


def check_arch(shape: MmaShape, table: MachineTable, kernel: str) -> None:
    """Raises AS7124 where the machine has no such instruction: wgmma is of sm_90a, tcgen05 of sm_100 and sm_103 alone."""
    head = shape.opcode.split(".")[0]
    if head in WARPGROUP_WIDE:
        fits, arch = table.arch.startswith("sm_90"), "sm_90a"
    elif head.startswith(TENSOR_MEMORY):
        fits, arch = table.arch.startswith(("sm_100", "sm_103")), "sm_100 and sm_103"
    else:
        return
    if not fits:
        detail = f"{head} is of {arch}, and {table.product} is {table.arch}"
        raise AutostampError.of("AS7124", kernel=kernel, detail=detail)


def dtype(shape: MmaShape) -> str:
    """The model's name of the operand type, "" where it has none."""
    kinds = {_DTYPES.get(each, "") for each in shape.dtype.split(",")}
    return kinds.pop() if len(kinds) == 1 else ""


def per_cta(shape: MmaShape, warps: int) -> tuple[float, str]:
    """How many instructions of this kind a CTA issues in a trip, and how that was counted.

    A warpgroup instruction counts once in each of four warps, a tcgen05 one is issued by one thread, any other by each warp.
    """
    head = shape.opcode.split(".")[0]
    if head in WARPGROUP_WIDE:
        return shape.count * warps / WARPGROUP, f"{shape.count} of each of {warps / WARPGROUP:g} warpgroups"
    if head.startswith(TENSOR_MEMORY):
        return shape.count, f"{shape.count}, issued by one thread"
    return shape.count * warps, f"{shape.count} of each of {warps_text(warps)}"


def shape_rows(shape: MmaShape, loop: RoleLoop, table: MachineTable) -> Iterator[ResourceRow]:
    """Tensor core, and shared memory where operands come from there: by the law of one instruction, times their number."""
    head = shape.opcode.split(".")[0]
    role, source = loop.role, loop.source
    number, counted = per_cta(shape, loop.warps)
    number *= loop.trips
    pair = 2 if "2CTA" in shape.opcode.split(".") else 1
    rows = shape.m // pair
    name = dtype(shape)
    one = Mma(head, rows, shape.n, shape.k, name, Operand(shape.operand_a), rows, shape.n, pair)
    what = f"{number:g} {head} {shape.m} x {shape.n} x {shape.k} {shape.dtype} ({counted}{loop.times})"
    where = f"{FLOP_LAW} of each; {source}"
    constant = warp_wide_rate(name, table) if _is_warp_wide(head) else tensor_constant(one, table)
    yield row(table, role, Resource.TENSOR, what, number * flop(one), constant, origin=Origin.CUBIN, source=where)
    if not _is_warp_wide(head):
        read = "A and B" if one.a is Operand.SMEM else "B"
        what = f"{read} of {number:g} {head} n{shape.n}"
        size = number * operand_bytes(one)
        where = f"{OPERAND_LAW}; {source}"
        yield row(table, role, Resource.SMEM, what, size, "smem", origin=Origin.SHAPE, source=where)


def why_not(shape: MmaShape, table: MachineTable) -> str:
    """Why a matrix instruction has no row, as a sentence; "" where it has one."""
    head = shape.opcode.split(".")[0]
    if not shape.m or not shape.n or not shape.k:
        return f"{shape.count} {shape.opcode} are left out: the code does not show their shape"
    if not (name := dtype(shape)):
        return f"{shape.count} {shape.opcode} are left out: the model has no rate for {shape.dtype or 'their type'}"
    if _is_warp_wide(head) and warp_wide_rate(name, table) not in table.constants:
        return (
            f"{shape.count} {shape.opcode} are left out: {table.product} has no constant {warp_wide_rate(name, table)}"
        )
    return ""


def _is_warp_wide(head: str) -> bool:
    return head not in WARPGROUP_WIDE and not head.startswith(TENSOR_MEMORY)


def warp_wide_rate(name: str, table: MachineTable) -> str:
    """The rate of `mma.sync`: its own where the tensor core has faster instructions, which are those of sm_90 and sm_100."""
    rate = dtype_of(name).rate
    return rate.replace("tensor_", "mma_sync_") if table.arch.startswith(("sm_90", "sm_100", "sm_103")) else rate
