# SPDX-License-Identifier: Apache-2.0
"""A kernel's loops as text: one build, or two side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from autostamp.model.kernel_loops import GroupWait, KernelComparison, KernelReport, LoopPair, LoopReport
from autostamp.model.loop import MmaShape

Rows = Sequence[tuple[str, ...]]


def as_text(report: KernelReport, every_loop: bool = False) -> str:
    """Resources, a table of the loops, and the main loops (all loops with `every_loop`) one by one."""
    lines = [report.kernel, _resources(report), "", *_loop_table(report)]
    if report.irregular:
        places = ", ".join(f"{each:#06x}" for each in report.irregular)
        lines.append(f"not analysed: cycles with several ways in, which begin at {places}")
    for loop in report.loops:
        if loop.is_main or every_loop:
            lines += ["", *_loop(loop)]
    return "\n".join(lines) + "\n"


def _resources(report: KernelReport) -> str:
    spilled = f"{report.spill_store_bytes} B stored to and {report.spill_load_bytes} B loaded from local memory"
    text = f"{report.registers} registers, {report.stack_bytes} B stack, {spilled}, {report.instructions} instructions"
    if report.stamps:
        what = "left out" if report.is_without_stamps else "counted; --no-stamps leaves them out"
        text += f"\n{report.stamps} instructions are stamps ({what})"
    return text


def _loop_table(report: KernelReport) -> list[str]:
    rows = [
        (
            _range(loop),
            loop.role + (" (main)" if loop.is_main else ""),
            str(loop.facts.depth),
            str(loop.facts.instructions),
            str(loop.conditional or ""),
            str(loop.copies if loop.copies > 1 else ""),
            str(loop.facts.local_bytes or ""),
        )
        for loop in report.loops
    ]
    return table(("loop", "role", "depth", "instructions", "of these not always", "alike parts", "local bytes"), rows)


def _range(loop: LoopReport) -> str:
    return f"{loop.facts.start:#06x}-{loop.facts.end:#06x}"


def _loop(loop: LoopReport) -> list[str]:
    lines = [f"{loop.role} loop {_range(loop)}, one trip: {loop.facts.instructions} instructions"]
    lines.append("  units: " + _listed(loop.units.items()))
    lines.append("  opcodes: " + _listed(sorted(loop.facts.counts.items(), key=lambda item: (-item[1], item[0]))))
    lines += [f"  MMA: {mma_text(each)}" for each in loop.facts.mma]
    if loop.copies > 1:
        lines.append(f"  a trip is {loop.copies} alike parts: an unrolled loop, or steps of one form such as K and V")
    if loop.inside:
        lines.append("  not counted, loops inside at " + ", ".join(f"{each:#06x}" for each in loop.inside))
    lines += [f"  {_wait_text(each)}" for each in loop.waits]
    lines += [
        f"  {each.first} and {each.second}: {each.first_count} and {each.second_count} in {each.switches + 1} runs,"
        f" the longest of {each.first} {each.longest}"
        for each in loop.alternations
    ]
    if loop.facts.local_bytes:
        lines.append(f"  local memory: {loop.facts.local_bytes} B a thread and trip")
    for each in loop.patterns:
        times = f"{each.count} times, first" if each.count > 1 else "once,"
        lines.append(f"  stall-prone: {each.pattern.name} ({times} at {each.address:#06x})")
        lines.append(f"    {each.pattern.meaning} [{each.pattern.source}]")
    return lines


def _listed(items: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{name} {count}" for name, count in items) or "none"


_PLACES = {"smem": "shared memory", "tmem": "tensor memory", "registers": "registers"}


def mma_text(shape: MmaShape) -> str:
    """One kind of matrix instruction in words."""
    size = f"{shape.m} x {shape.n} x {shape.k}" if shape.m else "shape not in the code"
    dtype = f" {shape.dtype}" if shape.dtype else ""
    return f"{shape.count} x {shape.opcode}: {size}{dtype}, A from {_PLACES[shape.operand_a]}"


def _wait_text(wait: GroupWait) -> str:
    what = f"{wait.opcode} at {wait.address:#06x} leaves {wait.allowed} in flight"
    if wait.distance < 0:
        return f"{what}: no group is closed in the loop"
    trips = {0: "", 1: ", issued one trip before"}.get(wait.trips, f", issued {wait.trips} trips before")
    return f"{what}: {wait.distance} instructions after its group ({wait.mufu} MUFU, {wait.mma} MMA){trips}"


def comparison_text(found: KernelComparison) -> str:
    """Both builds side by side: resources, order of the whole kernel, and each pair of loops that has a main loop."""
    first, second = found.first, found.second
    lines = [first.kernel if first.kernel == second.kernel else f"{first.kernel} and {second.kernel}"]
    lines += _delta_table(
        [
            ("registers", first.registers, second.registers),
            ("stack (bytes)", first.stack_bytes, second.stack_bytes),
            ("local stores (bytes)", first.spill_store_bytes, second.spill_store_bytes),
            ("local loads (bytes)", first.spill_load_bytes, second.spill_load_bytes),
            ("instructions", first.instructions, second.instructions),
            ("of these stamps" if not first.is_without_stamps else "stamps left out", first.stamps, second.stamps),
        ]
    )
    lines.append(
        f"whole kernel: distance {found.order.distance:.3f}, {found.order.common_length} core opcodes in order of"
        f" {found.order.clean_length} and {found.order.stamped_length}"
    )
    for pair in found.loops:
        if any(each is not None and each.is_main for each in (pair.first, pair.second)):
            lines += ["", *_pair(pair)]
    return "\n".join(lines) + "\n"


def _pair(pair: LoopPair) -> list[str]:
    if pair.first is None or pair.second is None or pair.order is None:
        alone = pair.first or pair.second
        if alone is None:
            return []
        return [f"{alone.role} loop {_range(alone)}: only in {'A' if pair.second is None else 'B'}"]
    first, second = pair.first, pair.second
    shared = (
        f"{pair.order.common_length} core opcodes in order of {pair.order.clean_length} and {pair.order.stamped_length}"
    )
    head = f"{first.role} loop {_range(first)} and {_range(second)}: distance {pair.order.distance:.3f}, {shared}"
    names = dict.fromkeys([*first.units, *second.units])
    rows = [("instructions", first.facts.instructions, second.facts.instructions)]
    rows += [(f"  {name}", first.units.get(name, 0), second.units.get(name, 0)) for name in names]
    rows += [("not always", first.conditional, second.conditional), ("alike parts", first.copies, second.copies)]
    rows.append(("local memory (bytes)", first.facts.local_bytes, second.facts.local_bytes))
    rows += _changed_families(first, second)
    rows += _mma_rows(first, second)
    rows += _mixing_rows(first, second)
    rows += _pattern_rows(first, second)
    return [head, *_delta_table(rows), *_wait_table(first, second)]


Numbers = list[tuple[str, int, int]]


def _changed_families(first: LoopReport, second: LoopReport) -> Numbers:
    one, other = first.facts.counts, second.facts.counts
    return [
        (f"  {name}", one.get(name, 0), other.get(name, 0))
        for name in sorted({*one, *other})
        if one.get(name, 0) != other.get(name, 0)
    ]


def _mma_rows(first: LoopReport, second: LoopReport) -> Numbers:
    counts: dict[str, list[int]] = {}
    for side, loop in enumerate((first, second)):
        for each in loop.facts.mma:
            counts.setdefault(f"{each.opcode}, A from {_PLACES[each.operand_a]}", [0, 0])[side] += each.count
    return [(name, one, other) for name, (one, other) in counts.items()]


def _mixing_rows(first: LoopReport, second: LoopReport) -> Numbers:
    counts: dict[str, list[int]] = {}
    for side, loop in enumerate((first, second)):
        for each in loop.alternations:
            counts.setdefault(f"{each.first}/{each.second} switches", [0, 0])[side] = each.switches
            counts.setdefault(f"longest run of {each.first} without {each.second}", [0, 0])[side] = each.longest
    return [(name, one, other) for name, (one, other) in counts.items()]


def _pattern_rows(first: LoopReport, second: LoopReport) -> Numbers:
    counts: dict[str, list[int]] = {}
    for side, loop in enumerate((first, second)):
        for each in loop.patterns:
            counts.setdefault(f"stall-prone: {each.pattern.name}", [0, 0])[side] = each.count
    return [(name, one, other) for name, (one, other) in counts.items()]


def _wait_table(first: LoopReport, second: LoopReport) -> list[str]:
    if not first.waits and not second.waits:
        return []
    longer = max(len(first.waits), len(second.waits))
    rows = []
    for place in range(longer):
        pair = [loop.waits[place] if place < len(loop.waits) else None for loop in (first, second)]
        name = next(each.opcode for each in pair if each is not None)
        rows.append((f"{place + 1} {name}", *(_wait_cell(each) for each in pair)))
    return table(("waits for groups, behind their group", "A", "B"), rows)


def _wait_cell(wait: GroupWait | None) -> str:
    if wait is None:
        return "-"
    if wait.distance < 0:
        return f"leaves {wait.allowed}, no group"
    return f"leaves {wait.allowed}, {wait.distance} instructions ({wait.mufu} MUFU, {wait.mma} MMA)"


def _delta_table(rows: Numbers) -> list[str]:
    return table(
        ("", "A", "B", "change"),
        [(name, str(one), str(other), f"{other - one:+d}" if other != one else "") for name, one, other in rows],
    )


def table(header: tuple[str, ...], rows: Rows) -> list[str]:
    """Aligned columns as lines."""
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (header, *rows)
    ]
