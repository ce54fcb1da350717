# SPDX-License-Identifier: Apache-2.0
"""Regions of several CTAs and launches of one kernel: how large their memory is, what lies where in it, and what was recorded.

The memory of one kernel holds `repeat` groups of `count` regions back to back, a region for each chosen CTA. Where several
launches are kept, a u32 for each CTA and warp follows: how many launches of it were recorded. Launch n goes to group n modulo
`repeat`, so that the last ones are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from autostamp.diagnostics import AutostampError, Diagnostic
from autostamp.model.options import Block, Blocks, RecordOptions
from autostamp.runtime.decode import grid_of, headers_of, is_used
from autostamp.runtime.layout import WARPS, region_bytes

LIMIT_BYTES: Final = 512 << 20
"""Most device memory for the records of one kernel. It may not cross a 4 GiB boundary (`runtime.buffer.suits`)."""

LISTED_LIMIT: Final = 64
"""Most CTAs that may be listed one by one: each costs the kernel's entry a comparison."""

COUNTER_BYTES: Final = 4

Region: TypeAlias = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Recorded:
    """The region of one CTA in one launch. `region` is that of the kernel trace, `cta` the number among the chosen CTAs.

    `block` None: that of the kernel trace. `grid` is the launch's size in CTAs, (0, 0, 0) where it is unknown.
    """

    region: int
    data: Region
    launch: int = 0
    cta: int = 0
    block: Block | None = None
    grid: Block = (0, 0, 0)


Regions: TypeAlias = Mapping[int, Region] | Sequence[Recorded]
"""Regions of a run. A mapping by number has the one CTA of one launch of each."""


def recorded(regions: Regions) -> tuple[Recorded, ...]:
    """The regions in the order of number, launch and CTA."""
    listed = (
        [Recorded(number, data) for number, data in regions.items()] if isinstance(regions, Mapping) else list(regions)
    )
    return tuple(sorted(listed, key=lambda each: (each.region, each.launch, each.cta)))


def counters_at(options: RecordOptions) -> int:
    """Byte offset of the counts of launches in a kernel's memory, which is the size of its regions."""
    return options.repeat * options.ctas * region_bytes(options.capacity)


def memory_bytes(options: RecordOptions) -> int:
    """Device memory that a kernel's records need."""
    return counters_at(options) + (options.ctas * WARPS * COUNTER_BYTES if options.repeat > 1 else 0)


def resolved(options: RecordOptions) -> RecordOptions:
    """The options with the number of CTAs that there is memory for in the place of `all`. Raises AS5020 where what is asked for
    does not fit, which says what would.
    """
    if options.blocks is not None and options.blocks.is_all:
        options = replace(options, blocks=replace(options.blocks, count=_most_ctas(options)))
    if options.blocks is not None and len(options.blocks.listed) > LISTED_LIMIT:
        what, limit = f"{len(options.blocks.listed)} listed blocks", f"at most {LISTED_LIMIT} can be listed"
        raise AutostampError.of(
            "AS5020", what=what, limit=f"at most {LISTED_LIMIT} can be listed", hint="Give a range such as 0..99."
        )
    if options.ctas and memory_bytes(options) <= LIMIT_BYTES:
        return options
    launches = f" in {options.repeat} launches" if options.repeat > 1 else ""
    if not options.ctas:
        options = replace(options, blocks=Blocks(count=1))
    ctas = "1 CTA" if options.ctas == 1 else f"{options.ctas} CTAs"
    what = f"{ctas}{launches} with {options.capacity} records a warp"
    limit = f"they need {memory_bytes(options) >> 20} MiB, and a kernel gets {LIMIT_BYTES >> 20} MiB"
    raise AutostampError.of("AS5020", what=what, limit=limit, hint=_what_fits(options))


def _most_ctas(options: RecordOptions) -> int:
    one = options.repeat * region_bytes(options.capacity) + WARPS * COUNTER_BYTES
    return LIMIT_BYTES // one


def most_records(options: RecordOptions, ctas: int) -> int:
    """The largest capacity with which so many CTAs fit; 0 where none does."""
    each = LIMIT_BYTES // (ctas * options.repeat) - WARPS * COUNTER_BYTES
    return max(0, (each - region_bytes(0)) // (region_bytes(1) - region_bytes(0)))


def _what_fits(options: RecordOptions) -> str:
    fits = []
    if records := most_records(options, options.ctas):
        fits.append(f"--capacity {records}")
    if ctas := _most_ctas(options):
        fits.append(f"{ctas} CTAs")
    alternatives = " or ".join(fits)
    return f"What would fit: {alternatives}." if fits else "Keep fewer launches."


def split(number: int, memory: Region, options: RecordOptions) -> list[Recorded]:
    """What was recorded in the memory of one kernel: launches numbered from 0 in the order in which they ran.

    A launch of which another CTA's records are kept and a CTA's of the grid are not is left out, unless it is the only one. A
    kernel that was never launched has one region, which is empty.
    """
    size = region_bytes(options.capacity)
    if options.is_plain:
        return [Recorded(number, memory[:size], block=options.block)]
    found = [
        _placed(number, memory, options, group, cta) for group in range(options.repeat) for cta in range(options.ctas)
    ]
    entered = sorted(((_entry_ns(each, options), each) for each in found if each is not None), key=lambda pair: pair[0])
    if not entered:
        block = options.block if options.blocks is None else None
        return [Recorded(number, memory[:size], block=block)]
    launches = list(_launches([each for _, each in entered]))
    whole = [launch for launch in launches if _is_whole(launch, options)] or launches[-1:]
    kept = whole[-options.repeat :]
    return [replace(each, launch=at) for at, launch in enumerate(kept) for each in launch]


def is_written(memory: Region, options: RecordOptions) -> bool:
    """True where any CTA recorded."""
    size = region_bytes(options.capacity)
    begins = range(0, counters_at(options), size)
    return any(is_used(headers_of(memory[begin : begin + size], options.capacity)) for begin in begins)


def _placed(number: int, memory: Region, options: RecordOptions, group: int, cta: int) -> Recorded | None:
    size = region_bytes(options.capacity)
    begin = (group * options.ctas + cta) * size
    data = memory[begin : begin + size]
    if not is_used(headers_of(data, options.capacity)):
        return None
    grid = grid_of(data, options.capacity)
    block = options.block if options.blocks is None else options.blocks.block(cta, grid)
    return Recorded(number, data, 0, cta, block, grid)


def _entry_ns(each: Recorded, options: RecordOptions) -> tuple[int, int]:
    """When the CTA began: global timer, and the number of its launch where two began within one tick of it."""
    headers = headers_of(each.data, options.capacity)[:WARPS]
    used = headers[headers["state"] != 0]
    return int(used["entry_ns"].min()), int(used["launch"].max())


def _launches(in_order: Sequence[Recorded]) -> Iterator[list[Recorded]]:
    """CTAs in the order of their beginnings, by launch: a new one begins where a CTA comes again or the grid changes.

    Launches of one kernel follow each other. CTAs outside the grid of one are not counted up in it, so the device's own
    count of a CTA's launches says nothing about those of another.
    """
    current: list[Recorded] = []
    for each in in_order:
        if current and (each.grid != current[0].grid or any(each.cta == other.cta for other in current)):
            yield current
            current = []
        current.append(each)
    if current:
        yield current


def _is_whole(launch: Sequence[Recorded], options: RecordOptions) -> bool:
    return options.blocks is None or len(launch) == options.blocks.inside(launch[0].grid)


def unrecorded(kernel: str, regions: Sequence[Recorded], options: RecordOptions) -> list[Diagnostic]:
    """AS5021 where a grid has more CTAs than there was memory for, AS5022 (a note) where a kernel was launched less often than
    launches were to be kept. `regions` are those of one kernel.
    """
    findings = []
    grids = [each.grid for each in regions if all(each.grid)]
    ctas = max((x * y * z for x, y, z in grids), default=0)
    if options.blocks is not None and options.blocks.is_all and ctas > options.ctas:
        records = most_records(options, ctas)
        hint = f"All fit with --capacity {records}." if records >= 16 else "Record a part of them: --block 0..99."
        findings.append(Diagnostic.of("AS5021", kernel=kernel, count=options.ctas, of=ctas, hint=hint))
    launches = len({each.launch for each in regions if all(each.grid)})
    if 0 < launches < options.repeat:
        findings.append(Diagnostic.of("AS5022", kernel=kernel, count=launches, wanted=options.repeat))
    return findings
