# SPDX-License-Identifier: Apache-2.0
"""What a compiled kernel holds, and how a stamped one differs from the clean one."""

from __future__ import annotations

from dataclasses import dataclass

WAIT_OPCODES = (
    "SYNCS.PHASECHK",
    "BAR.SYNC",
    "BAR.RED",
    "DEPBAR",
    "WARPGROUP.DEPBAR",
    "WARPSYNC",
    "UCGABAR_WAIT",
    "ACQBULK",
)
"""SASS instructions that block a warp: mbarrier phase check (try_wait and test_wait), named or CTA barrier, scoreboard wait
(cp.async and bulk groups), wgmma group wait, warp barrier, cluster barrier, wait for the grid before (griddepcontrol).
"""


def is_opcode(opcode: str, *names: str) -> bool:
    """True when `opcode` is one of `names` or one of them with further modifiers (`BAR.SYNC.DEFER_BLOCKING` is `BAR.SYNC`)."""
    return any(opcode == name or opcode.startswith(name + ".") for name in names)


@dataclass(frozen=True, slots=True)
class Instruction:
    """One SASS instruction: byte address in its function, opcode with modifiers, operands in order, guard (`@!P0` or empty).

    Operands are the disassembler's text without the register-cache hint `.reuse`; a branch target is a byte address.
    """

    address: int
    opcode: str
    operands: tuple[str, ...] = ()
    predicate: str = ""

    @property
    def is_clock_read(self) -> bool:
        """True for a read of the SM clock, 32 or 64 bits wide (CS2R, S2R or S2UR of SR_CLOCK*)."""
        return any(operand.startswith("SR_CLOCK") for operand in self.operands)

    @property
    def is_wait(self) -> bool:
        """True for an instruction that may block the warp until another warp or an asynchronous copy or MMA acts."""
        return is_opcode(self.opcode, *WAIT_OPCODES)

    @property
    def width_bytes(self) -> int:
        """Bytes per thread that a load or store of this opcode moves (4 without a width modifier)."""
        widths = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}
        return next((widths[part] for part in self.opcode.split(".")[1:] if part in widths), 4)


@dataclass(frozen=True, slots=True)
class CubinFacts:
    """One function of a cubin. Sizes are bytes; `registers`, `stack_bytes` and `local_bytes` are per thread.

    `shared_bytes` is static shared memory, with what the driver reserves (1 KiB on sm_90); dynamic shared memory is a
    launch argument and in no cubin.
    """

    kernel: str
    registers: int
    stack_bytes: int
    local_bytes: int
    shared_bytes: int
    instructions: tuple[Instruction, ...]

    @property
    def instruction_count(self) -> int:
        """SASS instructions up to the last that is not a NOP: functions are padded to a multiple of 128 bytes."""
        count = len(self.instructions)
        while count and self.instructions[count - 1].opcode == "NOP":
            count -= 1
        return count

    @property
    def opcodes(self) -> tuple[str, ...]:
        """Opcodes with modifiers, in address order."""
        return tuple(instruction.opcode for instruction in self.instructions)

    @property
    def clock_reads(self) -> int:
        """Reads of the SM clock."""
        return sum(instruction.is_clock_read for instruction in self.instructions)

    @property
    def waits(self) -> tuple[Instruction, ...]:
        """Instructions that may block the warp, in address order."""
        return tuple(instruction for instruction in self.instructions if instruction.is_wait)

    @property
    def spill_store_bytes(self) -> int:
        """Bytes per thread written to local memory (STL). Local arrays count too: SASS does not tell them from spills."""
        return sum(each.width_bytes for each in self.instructions if is_opcode(each.opcode, "STL"))

    @property
    def spill_load_bytes(self) -> int:
        """Bytes per thread read from local memory (LDL), local arrays included."""
        return sum(each.width_bytes for each in self.instructions if is_opcode(each.opcode, "LDL"))


@dataclass(frozen=True, slots=True)
class Delta:
    """One figure of both builds."""

    name: str
    clean: int
    stamped: int

    @property
    def change(self) -> int:
        """Stamped less clean."""
        return self.stamped - self.clean


@dataclass(frozen=True, slots=True)
class WaitPlace:
    """Where one DEPBAR stands among the work around it.

    `mufu` MUFU instructions lie between the DEPBAR before it (or the start) and this one, of the `mufu_window` up to the
    DEPBAR after it (or the end); likewise `mma` and `mma_window` for matrix instructions.
    """

    opcode: str
    mufu: int
    mufu_window: int
    mma: int
    mma_window: int


@dataclass(frozen=True, slots=True)
class Schedule:
    """Order of the core opcodes: lengths of both sequences, of their longest common subsequence, and the DEPBARs' places."""

    clean_length: int
    stamped_length: int
    common_length: int
    clean_waits: tuple[WaitPlace, ...]
    stamped_waits: tuple[WaitPlace, ...]

    @property
    def distance(self) -> float:
        """0 for the same order, 1 for nothing in common: 1 - common / the longer of the two."""
        longer = max(self.clean_length, self.stamped_length)
        return 1 - self.common_length / longer if longer else 0.0


@dataclass(frozen=True, slots=True)
class StampCheck:
    """Which stamps reached the compiled kernel.

    `expected` event numbers were traced; `ptx_comments` stamps are written in the PTX, copies made by unrolling and the
    lane's own included (-1: no PTX given); `clock_reads` were added to the SASS, of which `identified` could be traced to an
    expected event number. `missing` lists instances without their stamp (event numbers where there is no trace); `unnamed`
    counts further stamps for which no clock read is left. Of the wait instances, `around` have their stamps on both sides
    of their wait, `misplaced` do not, `unplaced` could not be judged.
    """

    expected: int
    ptx_comments: int
    clock_reads: int
    identified: int
    missing: tuple[int, ...]
    unnamed: int
    around: tuple[int, ...]
    misplaced: tuple[int, ...]
    unplaced: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SafetyReport:
    """Clean against stamped for one kernel.

    `syncs` counts sync instructions by family; an mbarrier wait counts once, its retries not at all. `stamps` is None where
    neither PTX nor a trace says what to expect.
    """

    kernel: str
    resources: tuple[Delta, ...]
    syncs: tuple[Delta, ...]
    schedule: Schedule
    stamps: StampCheck | None
