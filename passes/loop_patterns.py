# SPDX-License-Identifier: Apache-2.0
"""Sequences of SASS that tend to stall a warp: a table of what they look like, what they mean and who says so."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from autostamp.model.cubin import Instruction, is_opcode
from autostamp.model.kernel_loops import Pattern, PatternFound
from autostamp.passes import loop_waits, schedule
from autostamp.passes.definitions import read, written
from autostamp.passes.mma_shapes import MMA

DRAINED_WITHIN: Final = 8
"""Instructions that hide little of a group: the shortest wgmma, 64x8x16, takes 18.9 cycles (H100: revollllt/flash-vla)."""

USED_WITHIN: Final = 4
"""Instructions between a load and its use that hide little: a scheduler issues one a cycle, and a load takes some thirty."""

MUFU_RUN: Final = 8
"""MUFU in a row that are worth breaking up: 64 cycles of the scheduler's unit at 8 each."""

Finder = Callable[[Sequence[Instruction]], Iterable[Instruction]]


def _opcodes(*names: str) -> Finder:
    return lambda trip: (each for each in trip if is_opcode(each.opcode, *names))


def _wide_fences(trip: Sequence[Instruction]) -> Iterable[Instruction]:
    """Fences that reach beyond the CTA."""
    return (each for each in trip if is_opcode(each.opcode, "MEMBAR") and not {"CTA"} & set(each.opcode.split(".")))


def _drained(trip: Sequence[Instruction]) -> Iterable[Instruction]:
    at = {each.address: each for each in trip}
    for wait in loop_waits.group_waits(trip):
        is_wgmma = is_opcode(wait.opcode, "WARPGROUP.DEPBAR")
        if is_wgmma and wait.allowed == 0 and wait.trips == 0 and 0 <= wait.distance <= DRAINED_WITHIN:
            yield at[wait.address]


def _serialized(trip: Sequence[Instruction]) -> Iterable[Instruction]:
    """Matrix instructions that are waited for before the next one of the trip is issued, where there are two or more."""
    marks = [each for each in trip if schedule.family(each.opcode) in MMA or is_opcode(each.opcode, "WARPGROUP.DEPBAR")]
    is_wait = [is_opcode(each.opcode, "WARPGROUP.DEPBAR") for each in marks]
    alone = [
        each
        for place, each in enumerate(marks[:-1])
        if not is_wait[place] and is_wait[place + 1] and loop_waits.allowed(marks[place + 1]) == 0
    ]
    in_all = len(marks) - sum(is_wait)
    return alone if in_all > 1 and len(alone) == in_all else ()


def _used_at_once(*names: str) -> Finder:
    def find(trip: Sequence[Instruction]) -> Iterable[Instruction]:
        for place, each in enumerate(trip):
            if not is_opcode(each.opcode, *names):
                continue
            results = set(written(each))
            if any(results & read(later) for later in trip[place + 1 : place + 1 + USED_WITHIN]):
                yield each

    return find


def _mufu_runs(trip: Sequence[Instruction]) -> Iterable[Instruction]:
    """The first of each run of MUFU with nothing between them."""
    run: list[Instruction] = []
    for each in (*trip, None):
        if each is not None and is_opcode(each.opcode, "MUFU"):
            run.append(each)
            continue
        if len(run) >= MUFU_RUN:
            yield run[0]
        run = []


def _divisions(trip: Sequence[Instruction]) -> Iterable[Instruction]:
    """An unsigned reciprocal estimate: I2F with rounding up, whose result a MUFU.RCP reads."""
    if any(is_opcode(each.opcode, "MUFU.RCP") for each in trip):
        yield from (each for each in trip if is_opcode(each.opcode, "I2F") and "RP" in each.opcode.split("."))


_GUIDE: Final = "CUDA C++ Programming Guide"
_PTX: Final = "PTX ISA"
_HOPPER: Final = "measured on H800: HPMLL/NVIDIA-Hopper-Benchmark, arXiv 2402.13499"

TABLE: Final[tuple[tuple[Pattern, Finder], ...]] = (
    (
        Pattern(
            "local memory",
            "a spilled register or an indexed local array: each access goes through L1 and takes a slot of the load/store unit",
            f"{_GUIDE}, Local Memory",
        ),
        _opcodes("LDL", "STL"),
    ),
    (
        Pattern(
            "serialized wgmma",
            "every warpgroup MMA is waited for before the next is issued: ptxas gave up on keeping them in flight",
            f"ptxas messages C7510 to C7515; {_PTX}, wgmma.mma_async (accumulator registers in flight)",
        ),
        _serialized,
    ),
    (
        Pattern(
            "wgmma drained at once",
            f"wait_group 0 at most {DRAINED_WITHIN} instructions behind the group: the tensor core is idle until this warpgroup"
            " issues again",
            f"{_PTX}, wgmma.wait_group; 20-30 % measured on H100: revollllt/flash-vla, hardware/nvidia/h100",
        ),
        _drained,
    ),
    (
        Pattern(
            "CTA barrier",
            "every trip meets other warps at a named or CTA-wide barrier: all wait for the last one",
            f"{_PTX}, bar and barrier",
        ),
        _opcodes("BAR.SYNC", "BAR.RED"),
    ),
    (
        Pattern(
            "memory fence",
            "the warp waits until its earlier writes are visible to the GPU or the system",
            f"{_PTX}, membar and fence",
        ),
        _wide_fences,
    ),
    (
        Pattern(
            "shared load used at once",
            f"the result is read within {USED_WITHIN} instructions; a shared load takes about 30 cycles",
            _HOPPER,
        ),
        _used_at_once("LDS", "LDSM"),
    ),
    (
        Pattern(
            "global load used at once",
            f"the result is read within {USED_WITHIN} instructions; a load takes about 260 cycles from L2, 600 from DRAM",
            _HOPPER,
        ),
        _used_at_once("LD", "LDG"),
    ),
    (
        Pattern(
            "run of MUFU",
            f"{MUFU_RUN} or more in a row: an SM takes 16 a cycle, so each one holds its scheduler's unit for 8 cycles, while FMA"
            " and conversion idle in this warp",
            f"{_GUIDE}, Throughput of Native Arithmetic Instructions",
        ),
        _mufu_runs,
    ),
    (
        Pattern(
            "integer division",
            "a divisor that is no constant: about 20 instructions with a reciprocal and two conversions",
            f"{_GUIDE}, Arithmetic Instructions (integer division and modulo)",
        ),
        _divisions,
    ),
    (
        Pattern(
            "call",
            "a function that was not inlined: registers are saved, and nothing is scheduled across it",
            f"{_GUIDE}, __noinline__ and __forceinline__",
        ),
        _opcodes("CALL"),
    ),
    (
        Pattern(
            "one thread at a time",
            "a loop over the threads of the warp around an instruction that takes uniform operands: the compiler does not know"
            " that one thread issues it (elect.sync tells it)",
            f"{_PTX}, elect.sync",
        ),
        _opcodes("BRA.U.ANY"),
    ),
)


def find(trip: Sequence[Instruction]) -> tuple[PatternFound, ...]:
    """The patterns of the table that occur in a trip."""
    found = []
    for pattern, finder in TABLE:
        places = list(finder(trip))
        if places:
            found.append(PatternFound(pattern, len(places), places[0].address))
    return tuple(found)
