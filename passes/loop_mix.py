# SPDX-License-Identifier: Apache-2.0
"""What one trip through a loop is made of: instructions by family and by unit, the loop's role, its matrix instructions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from autostamp.model.cubin import Instruction, is_opcode
from autostamp.model.loop import LoopFacts
from autostamp.passes import schedule
from autostamp.passes.definitions import Definitions
from autostamp.passes.loops import Loop, Loops, Trip
from autostamp.passes.mma_shapes import MMA, shapes

WHOLE: Final = frozenset({"MUFU", "BAR", "WARPGROUP"})
"""Opcodes of which the second component is kept: MUFU.EX2, BAR.SYNC, WARPGROUP.DEPBAR."""

UNITS: Final[Mapping[str, frozenset[str]]] = {
    "tensor core": MMA,
    "MUFU": frozenset({"MUFU"}),
    "conversion": frozenset({"F2F", "F2FP", "F2I", "F2IP", "FRND", "I2F", "I2FP", "I2I", "I2IP"}),
    "FP32": frozenset(
        {"FADD", "FADD2", "FCHK", "FFMA", "FFMA2", "FFMA32I", "FMNMX", "FMNMX3", "FMUL", "FMUL2", "FSEL", "FSET", "FSETP"}
    ),
    "FP16": frozenset({"HADD2", "HFMA2", "HMNMX2", "HMUL2", "HSET2", "HSETP2"}),
    "FP64": frozenset({"DADD", "DFMA", "DMUL", "DSETP"}),
    "shared memory": frozenset({"ATOMS", "LDS", "LDSM", "REDS", "STAS", "STS", "STSM"}),
    "tensor memory": frozenset({"LDT", "LDTM", "STT", "STTM", "UTCCP", "UTCSHIFT"}),
    "asynchronous copy": frozenset({
        "LDGSTS", "UBLKCP", "UBLKPF", "UBLKRED", "UTMALDG", "UTMAPF", "UTMAREDG", "UTMASTG",
    }),
    "global memory": frozenset({"ATOM", "ATOMG", "LD", "LDG", "RED", "REDG", "ST", "STG"}),
    "local memory": frozenset({"LDL", "STL"}),
    "shuffle and vote": frozenset({"MATCH", "REDUX", "SHFL", "VOTE", "VOTEU", "CREDUX"}),
    "sync": frozenset({
        "ACQBULK", "ARRIVES", "BAR", "CCTL", "DEPBAR", "ELECT", "ERRBAR", "FENCE", "LDGDEPBAR", "MEMBAR", "NANOSLEEP",
        "SYNCS", "UCGABAR_ARV", "UCGABAR_WAIT", "UTCBAR", "UTMACMDFLUSH", "WARPGROUP", "WARPSYNC",
    }),
    "control": frozenset({
        "BMOV", "BRA", "BREAK", "BRX", "BSSY", "BSYNC", "CALL", "EXIT", "JMP", "NOP", "RET", "USETMAXREG", "YIELD",
    }),
}  # fmt: skip
"""Families by the unit that executes them. What is in none is integer, address and move work, scalar (uniform) or not."""

SCALAR, INTEGER = "uniform", "integer and moves"


def family(opcode: str) -> str:
    """The family that a trip's instructions are counted by: `MUFU.EX2`, `F2FP` for `F2FP.BF16.F32.PACK_AB`, `BAR.SYNC`."""
    head, _, rest = opcode.partition(".")
    return f"{head}.{rest.partition('.')[0]}" if head in WHOLE and rest else head


def counted_as(instruction: Instruction) -> str:
    """The family of an instruction. A half-precision FMA of zeros is how ptxas writes some constants, and counts as a move."""
    is_constant = is_opcode(instruction.opcode, "HFMA2") and instruction.operands[1:3] == ("-RZ", "RZ")
    return "MOV" if is_constant else family(instruction.opcode)


def unit(name: str) -> str:
    """The unit of a family."""
    head = name.partition(".")[0]
    named = next((unit for unit, families in UNITS.items() if head in families), None)
    if named is not None:
        return named
    return SCALAR if head in _SCALAR_MOVES or (head.startswith("U") and head[1:2].isupper()) else INTEGER


_SCALAR_MOVES: Final = frozenset({"CS2UR", "LDCU", "R2UR", "S2UR"})


def units(counts: Mapping[str, int]) -> dict[str, int]:
    """Instructions by unit, in the order of the table, without units that have none."""
    found: Counter[str] = Counter()
    for name, count in counts.items():
        found[unit(name)] += count
    return {name: found[name] for name in (*UNITS, INTEGER, SCALAR) if found[name]}


def local_bytes(instructions: Iterable[Instruction]) -> int:
    """Bytes that one thread stores to and loads from local memory."""
    return sum(each.width_bytes for each in instructions if is_opcode(each.opcode, "LDL", "STL"))


def facts(kernel: str, found: Loops, loop: Loop, trip: Trip) -> LoopFacts:
    """The loop's facts. `start` and `end` span what stands in line: blocks moved behind the kernel's end are left out."""
    header = found.instructions[found.graph.starts[loop.header]].address
    last = max(found.instructions[found.graph.starts[block + 1] - 1].address for block in loop.latches)
    counts = Counter(counted_as(each) for each in trip.instructions)
    return LoopFacts(
        kernel=kernel,
        start=header,
        end=max(header, last),
        depth=len(found.around(loop)) + 1,
        counts=dict(sorted(counts.items())),
        mma=shapes(trip.instructions, Definitions(found.instructions)),
        instructions=len(trip.instructions),
        local_bytes=local_bytes(trip.instructions),
    )


ROLES: Final[tuple[tuple[str, frozenset[str]], ...]] = (
    ("mma", MMA),
    ("load", frozenset({"UTMALDG", "LDGSTS"})),
    ("softmax", frozenset({"MUFU.EX2"})),
    ("store", frozenset({"UTMASTG", "UTMAREDG", "UBLKRED", "UTMACMDFLUSH"})),
    ("load", frozenset({"UBLKCP"})),
    ("correction", frozenset({"STTM"})),
    ("compute", frozenset({"LDTM", "MUFU", *UNITS["FP32"], *UNITS["FP16"], *UNITS["FP64"]})),
    ("copy", UNITS["global memory"]),
)
"""A loop's role by what it issues, the first that fits. SASS holds no names, so it is a guess from the instructions."""

OTHER: Final = "other"


def role(counts: Mapping[str, int]) -> tuple[str, int]:
    """The role of a loop with these counts, and how many of its instructions say so."""
    for name, families in ROLES:
        found = sum(count for each, count in counts.items() if each in families or each.partition(".")[0] in families)
        if found:
            return name, found
    return OTHER, 0


WAITS: Final = frozenset({"BAR.RED", "BAR.SYNC", "DEPBAR", "SYNCS.PHASECHK", "UCGABAR_WAIT", "WARPGROUP.DEPBAR"})


def has_wait(instructions: Iterable[Instruction]) -> bool:
    """True when a trip waits for another warp, a copy or an MMA."""
    return any(schedule.family(each.opcode) in WAITS for each in instructions)
