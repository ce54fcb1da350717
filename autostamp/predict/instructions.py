# SPDX-License-Identifier: Apache-2.0
"""Rows of a budget from the instructions of a compiled main loop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from autostamp.model.budget import Origin, Resource, ResourceRow
from autostamp.model.machine import MachineTable
from autostamp.predict.work import LANES, row

_PIPES: Final = (
    ("MUFU.EX2.F16", Resource.MUFU, "mufu_ex2_f16x2"),
    ("MUFU.EX2", Resource.MUFU, "mufu_ex2"),
    ("MUFU", Resource.MUFU, "mufu_other"),
    ("F2FP.BF16", Resource.CONVERT, "cvt_bf16x2"),
    ("F2FP.SATFINITE.E4M3", Resource.CONVERT, "cvt_e4m3x2"),
    ("F2FP.SATFINITE.E2M1", Resource.CONVERT, "cvt_e2m1x2"),
    ("FFMA2", Resource.FMA, "fma_packed"),
    ("FMUL2", Resource.FMA, "fma_packed"),
    ("FADD2", Resource.FMA, "fma_packed"),
    ("FFMA", Resource.FMA, "fma_fp32"),
    ("FMUL", Resource.FMA, "fma_fp32"),
    ("FADD", Resource.FMA, "fma_fp32"),
    ("FMNMX", Resource.ALU, "alu_int32"),
    ("IADD3", Resource.ALU, "alu_int32"),
    ("LOP3", Resource.ALU, "alu_int32"),
    ("SHF", Resource.ALU, "alu_int32"),
    ("IMNMX", Resource.ALU, "alu_int32"),
    ("VIMNMX", Resource.ALU, "alu_int32"),
    ("SHFL", Resource.SHUFFLE, "shuffle"),
)
"""Opcode, its modifiers matched as a prefix; the longest that fits decides. What is not here only takes an issue slot."""


def instruction_rows(
    counts: Mapping[str, int], warps: int, table: MachineTable, role: str, source: str
) -> tuple[tuple[ResourceRow, ...], tuple[str, ...]]:
    """Rows for one trip through a loop that `warps` warps run, and what had to be left out for want of a rate.

    `counts`: instructions by opcode, of one warp. Every instruction takes an issue slot; those of a known pipe also take
    `LANES` of its lanes. `source` says which cubin and loop were counted.
    """
    rows: list[ResourceRow] = []
    missing: list[str] = []
    sums: dict[tuple[Resource, str], int] = {}
    for opcode, count in counts.items():
        if pipe := _pipe(opcode):
            sums[pipe] = sums.get(pipe, 0) + count
    for (resource, name), count in sums.items():
        if count and name not in table.constants:
            missing.append(
                f"{resource} of {role}: the machine has no constant {name}, so {count} instructions are left out"
            )
        elif count:
            lanes = count * warps * LANES
            what = f"{count} instructions of {warps} warps"
            rows.append(row(table, role, resource, what, lanes, name, origin=Origin.CUBIN, source=source))
    if total := sum(counts.values()):
        what = f"{total} instructions of {warps} warps"
        rows.append(row(table, role, Resource.ISSUE, what, total * warps, "issue", origin=Origin.CUBIN, source=source))
    return tuple(rows), tuple(missing)


def _pipe(opcode: str) -> tuple[Resource, str] | None:
    fitting = [entry for entry in _PIPES if opcode == entry[0] or opcode.startswith(f"{entry[0]}.")]
    if not fitting:
        return None
    _, resource, name = max(fitting, key=lambda entry: len(entry[0]))
    return resource, name
