# SPDX-License-Identifier: Apache-2.0
"""What stamping changed in the compiled kernel: the comparison, and which differences are findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from autostamp.diagnostics import AutostampError, Diagnostic
from autostamp.model.cubin import CubinFacts, Delta, SafetyReport, Schedule, StampCheck
from autostamp.model.manifest import KernelTrace
from autostamp.passes import ptxas_log, schedule
from autostamp.passes.stamp_check import check

REGISTER_UNIT: Final = 8
"""Registers per thread are allocated in this granularity (256 per warp: CUDA C++ Programming Guide, occupancy)."""

REGISTERS, SHARED = "registers", "static shared memory (bytes)"
SPILLS: Final = ("spill stores (bytes)", "spill loads (bytes)")


@dataclass(frozen=True, slots=True)
class Limits:
    """What still counts as the same schedule. Both are shares from 0 to 1.

    `distance` is the most core opcodes out of the clean order, `shift` the furthest that a wait may move in its window. The
    defaults come from FlashAttention forward on an H200: of the sets of stamps that were timed and compared there, each that
    cost 7 % or more was over one of them, and none that cost 5 % or less was.
    """

    distance: float = 0.1
    shift: float = 0.1


def pair(clean: Sequence[CubinFacts], stamped: Sequence[CubinFacts]) -> tuple[tuple[CubinFacts, CubinFacts], ...]:
    """Kernels of two cubins that belong together: by name, then by the name that a threaded parameter lengthens, and the rest
    in order. Raises AS9001 when the cubins hold different numbers of kernels.
    """
    if len(clean) != len(stamped):
        detail = f"the clean cubin holds {len(clean)} kernels, the stamped one {len(stamped)}"
        raise AutostampError.of("AS9001", detail=detail)
    by_name = {each.kernel: each for each in clean}
    found = {each.kernel: by_name.pop(each.kernel) for each in stamped if each.kernel in by_name}
    for each in stamped:
        # Appended to the parameters, a type is appended to the mangled name (Itanium C++ ABI 5.1.5, bare function types).
        begun = [name for name in by_name if each.kernel not in found and each.kernel.startswith(name)]
        if begun:
            found[each.kernel] = by_name.pop(max(begun, key=len))
    rest = iter(by_name.values())
    return tuple((found[each.kernel] if each.kernel in found else next(rest), each) for each in stamped)


def compare(
    clean: CubinFacts, stamped: CubinFacts, ptx: str | None = None, trace: KernelTrace | None = None
) -> SafetyReport:
    """Compare two builds of one kernel. `ptx` is the stamped build's text; `trace` its instances."""
    return SafetyReport(
        kernel=stamped.kernel,
        resources=_resources(clean, stamped),
        syncs=_syncs(clean, stamped),
        schedule=schedule.compare(clean, stamped),
        stamps=check(clean, stamped, ptx, trace),
    )


def _resources(clean: CubinFacts, stamped: CubinFacts) -> tuple[Delta, ...]:
    stores, loads = SPILLS
    return (
        Delta(REGISTERS, clean.registers, stamped.registers),
        Delta("stack (bytes)", clean.stack_bytes, stamped.stack_bytes),
        Delta(stores, clean.spill_store_bytes, stamped.spill_store_bytes),
        Delta(loads, clean.spill_load_bytes, stamped.spill_load_bytes),
        Delta(SHARED, clean.shared_bytes, stamped.shared_bytes),
        Delta("instructions", clean.instruction_count, stamped.instruction_count),
        Delta("clock reads", clean.clock_reads, stamped.clock_reads),
    )


def _syncs(clean: CubinFacts, stamped: CubinFacts) -> tuple[Delta, ...]:
    before, after = (
        Counter(name for name in schedule.core_sequence(facts.instructions) if name in schedule.SYNC)
        for facts in (clean, stamped)
    )
    return tuple(Delta(name, before[name], after[name]) for name in sorted(before | after))


def findings(report: SafetyReport, limits: Limits | None = None) -> tuple[Diagnostic, ...]:
    """What in the report means that the stamped kernel is not the clean one plus stamps: AS3101, and AS3102 for a lost stamp."""
    details = [
        *_resource_findings(report.resources),
        *(
            f"{each.name}: {each.clean} in the clean kernel, {each.stamped} in the stamped one"
            for each in report.syncs
            if each.change
        ),
        *_schedule_findings(report.schedule, limits or Limits()),
    ]
    found = [Diagnostic.of("AS3101", detail=detail) for detail in details]
    return (*(_stamp_findings(report.stamps) if report.stamps is not None else ()), *found)


def log_findings(clean: str, stamped: str) -> tuple[Diagnostic, ...]:
    """AS3101 for each C75xx message of ptxas (wgmma serialised, waits injected) that only the stamped build gives."""
    return tuple(Diagnostic.of("AS3101", detail=detail) for detail in ptxas_log.added(clean, stamped))


def _resource_findings(resources: Sequence[Delta]) -> Iterator[str]:
    for each in resources:
        told = f"{each.name}: {each.clean} in the clean kernel, {each.stamped} in the stamped one"
        if each.name == REGISTERS and _allocated(each.stamped) > _allocated(each.clean):
            yield f"{told}, which may lower occupancy"
        elif (each.name in SPILLS and each.change > 0) or (each.name == SHARED and each.change):
            yield told


def _allocated(registers: int) -> int:
    return -(-registers // REGISTER_UNIT) * REGISTER_UNIT


def _schedule_findings(found: Schedule, limits: Limits) -> Iterator[str]:
    if found.distance > limits.distance:
        yield f"{found.distance:.1%} of the core opcodes left the clean order (limit {limits.distance:.0%})"
    if len(found.clean_waits) != len(found.stamped_waits):
        return  # the numbers of DEPBARs differ, which is a finding already
    for number, (clean, stamped) in enumerate(zip(found.clean_waits, found.stamped_waits, strict=True), 1):
        if schedule.shift(clean, stamped) > limits.shift:
            yield (
                f"wait {number} ({clean.opcode}) moved: after {stamped.mufu} MUFU and {stamped.mma} matrix instructions,"
                f" {clean.mufu} and {clean.mma} in the clean kernel"
            )


def _stamp_findings(stamps: StampCheck) -> Iterator[Diagnostic]:
    for number in stamps.missing:
        yield Diagnostic.of("AS3102", instance=number)
    if stamps.unnamed:
        detail = f"{stamps.unnamed} stamps have no clock read in the compiled kernel"
        yield Diagnostic.of("AS3101", detail=detail)
    for number in stamps.misplaced:
        yield Diagnostic.of("AS3101", detail=f"the stamps of instance {number} are not on both sides of its wait")
