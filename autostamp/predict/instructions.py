# SPDX-License-Identifier: Apache-2.0
"""Rows of a budget from the instructions of a compiled main loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from autostamp.model.budget import Origin, Resource, ResourceRow
from autostamp.model.machine import MachineTable
from autostamp.predict.laws import check_sizes
from autostamp.predict.work import LANES, conversion_constant, row, warps_text

_ALU: Final = ("FMNMX", "FSEL", "FSETP", "IADD3", "ISETP", "LEA", "LOP3", "PRMT", "SEL", "SHF", "VIMNMX")
_PIPES: Final[Mapping[str, tuple[Resource, str]]] = MappingProxyType(
    {
        "MUFU.EX2": (Resource.MUFU, "mufu_ex2"),
        "MUFU": (Resource.MUFU, "mufu_other"),
        **dict.fromkeys(("FFMA2", "FMUL2", "FADD2"), (Resource.FMA, "fma_packed")),
        **dict.fromkeys(("FFMA", "FMUL", "FADD"), (Resource.FMA, "fma_fp32")),
        **dict.fromkeys(_ALU, (Resource.ALU, "alu_int32")),
        "SHFL": (Resource.SHUFFLE, "shuffle"),
    }
)
"""Opcode family to its pipe and the pipe's rate. What is not here takes an issue slot only, as far as this model knows."""

CONVERSION: Final = "F2FP"
"""Its rate depends on what it converts to, which its family does not say."""


def instruction_rows(
    counts: Mapping[str, int], warps: int, table: MachineTable, role: str, source: str, converts_to: str = ""
) -> tuple[tuple[ResourceRow, ...], tuple[str, ...]]:
    """Rows for one trip through a loop that `warps` warps run, and sentences on what was left out for want of a rate.

    `counts`: instructions by opcode family, of one warp. Each takes an issue slot, and 32 lanes of its pipe. `converts_to`: the
    dtype that its F2FP make ("": unknown). `source` says which cubin and loop were counted. Raises AS7106 for no warp.
    """
    check_sizes(role, warps=warps)
    sums: Counter[tuple[Resource, str]] = Counter()
    for opcode, count in counts.items():
        if pipe := pipe_of(opcode, converts_to):
            sums[pipe] += count
    rows = []
    missing = []
    for (resource, name), count in sums.items():
        what = f"{count} instructions of {warps_text(warps)}"
        if name in table.constants:
            rows.append(
                row(table, role, resource, what, count * warps * LANES, name, origin=Origin.CUBIN, source=source)
            )
        else:
            missing.append(f"{resource}: {table.product} has no constant {name}, so {what} ({role}) are not counted")
    if total := sum(counts.values()):
        what = f"{total} instructions of {warps_text(warps)}"
        rows.append(row(table, role, Resource.ISSUE, what, total * warps, "issue", origin=Origin.CUBIN, source=source))
    return tuple(rows), tuple(missing)


def pipe_of(opcode: str, converts_to: str) -> tuple[Resource, str] | None:
    """The pipe of an opcode family and its rate: by the family, or by its first part where the table has no more."""
    if opcode == CONVERSION:
        return Resource.CONVERT, conversion_constant(converts_to or "unknown")
    return _PIPES.get(opcode) or _PIPES.get(opcode.partition(".")[0])
