# SPDX-License-Identifier: Apache-2.0
"""Drain files: what the host runtime of a stamped CUDA C++ program wrote (docs/formats/drain.md)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

import msgspec
import numpy as np
from numpy.typing import NDArray

from autostamp.diagnostics import AutostampError
from autostamp.model.options import Block, Blocks, parse_blocks
from autostamp.runtime.cuda.header import MAIN_EXTRA, SINGLE_EXTRA
from autostamp.runtime.layout import HEADER_BYTES, LANES, WARPS, lane_bytes, region_bytes

VERSION: Final = 1
PATTERNS: Final = ("drain-*.bin", "mapped-*.bin")
_LINE: Final = re.compile(rb"autostamp drain (\d{1,9}) (\d{1,9})\n")
_LONGEST_LINE: Final = 64


class UnitEntry(msgspec.Struct, frozen=True):
    """A unit that the program holds: its signature, how many kernels and visible launches, and where its manifest is."""

    signature: int
    slots: int
    launches: int
    manifest: str


class DeviceEntry(msgspec.Struct, frozen=True):
    """A device that a region lies on. `driver` and `runtime` are CUDA versions as 1000 x major + 10 x minor."""

    device: int
    name: str
    compute_capability: str
    sm_count: int
    driver: int
    runtime: int


class RegionEntry(msgspec.Struct, frozen=True):
    """Where in the file the regions of `ctas` CTAs are, one behind the other, and which launch they were given to.

    `slot` is the kernel's number in the unit, -1 where the region served whichever kernel came next. `launch` counts the
    launches of that kernel (or unit) from 1, `sequence` all launches of the process. `place` and `function` say where the
    launch stands; `name` is what the kernel called itself, "" where that could not be read.
    """

    device: int
    unit: int
    slot: int
    carrier: str
    place: str
    function: str
    name: str
    stream: int
    is_captured: bool
    launch: int
    sequence: int
    capacity: int
    offset: int
    size: int
    ctas: int = 1


class Dropped(msgspec.Struct, frozen=True):
    """Launches that were not recorded because the limit was reached: `of` is `device:unit:slot`."""

    of: str
    count: int


class Head(msgspec.Struct, frozen=True):
    """The JSON head of a drain file. `drained` is exit, request, or mapped where the program came to neither; `unused` counts
    regions in device memory that no warp was bound to, which are not in the file. `blocks` says which CTAs were to record where
    there were several, `repeat` how many of the last launches.
    """

    version: int
    pid: int
    program: str
    drained: str
    keep: str
    launch: int
    block: tuple[int, int, int]
    units: tuple[UnitEntry, ...]
    devices: tuple[DeviceEntry, ...]
    regions: tuple[RegionEntry, ...]
    dropped: tuple[Dropped, ...]
    unused: int
    errors: tuple[str, ...]
    blocks: str = ""
    repeat: int = 1

    @property
    def chosen(self) -> Blocks | None:
        """The CTAs that were to record; None for the one `block`. Raises ValueError for a choice that cannot be read."""
        found = parse_blocks(self.blocks) if self.blocks else None
        return found if isinstance(found, Blocks) else None


@dataclass(frozen=True, slots=True)
class Geometry:
    """What a bound region's first thread noted: blocks and threads of the launch, (0, 0, 0) where it was not bound."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]

    @property
    def warps(self) -> int:
        """Warps of a CTA."""
        x, y, z = self.block
        return -(-x * y * z // 32)


@dataclass(frozen=True, slots=True)
class Drained:
    """One CTA's region with its bytes, `uint8[region_bytes(capacity)]`, and the file that it came from. `cta` is the CTA's number
    among the chosen ones.
    """

    entry: RegionEntry
    head: Head
    path: Path
    data: NDArray[np.uint8]
    cta: int = 0

    @property
    def geometry(self) -> Geometry:
        """Blocks and threads of the launch that wrote last."""
        return geometry_of(self.data, self.entry.capacity)

    @property
    def block(self) -> Block | None:
        """The CTA's index; None where the grid does not have it."""
        chosen = self.head.chosen
        return self.head.block if chosen is None else chosen.block(self.cta, self.geometry.grid)


def read_drains(folder: Path) -> tuple[tuple[Head, ...], tuple[Drained, ...]]:
    """All drain files of a folder: their heads, and their regions in the order of launches. Raises AS6001."""
    heads: list[Head] = []
    regions: list[Drained] = []
    for path in sorted(each for pattern in PATTERNS for each in folder.glob(pattern)):
        head, found = read_drain(path)
        heads.append(head)
        regions += found
    return tuple(heads), tuple(sorted(regions, key=lambda each: (each.head.pid, each.entry.sequence)))


def read_drain(path: Path) -> tuple[Head, tuple[Drained, ...]]:
    """Read one drain file. Raises AS6001 when it cannot be read, is of another version, or is shorter than it says."""
    try:
        data = path.read_bytes()
    except OSError as error:
        _refuse(path, error.strerror or str(error))
    line = _LINE.match(data[:_LONGEST_LINE])
    if line is None:
        _refuse(path, "it does not begin as a drain file does")
    if int(line[1]) != VERSION:
        _refuse(path, f"it has version {int(line[1])}, this autostamp reads version {VERSION}")
    try:
        head = msgspec.json.decode(data[line.end() : line.end() + int(line[2])], type=Head, strict=True)
        most = 1 if head.chosen is None else head.chosen.count
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        _refuse(path, str(error))
    if any(not 0 < entry.ctas <= most for entry in head.regions):
        _refuse(path, f"it has regions of more CTAs than the {most} that were to record")
    return head, tuple(
        Drained(entry, head, path, region, cta)
        for entry in head.regions
        for cta, region in enumerate(_regions(path, data, entry))
    )


def _refuse(path: Path, detail: str) -> NoReturn:
    raise AutostampError.of("AS6001", path=path, detail=detail)


def _regions(path: Path, data: bytes, entry: RegionEntry) -> list[NDArray[np.uint8]]:
    one = region_bytes(entry.capacity)
    expected = entry.ctas * one
    if entry.size != expected:
        _refuse(path, f"a region of {entry.size} bytes, where {expected} hold {entry.capacity} records a lane")
    if entry.offset < 0 or entry.offset + entry.size > len(data):
        _refuse(path, f"it ends at byte {len(data)}, in the region that begins at {entry.offset}")
    begins = range(entry.offset, entry.offset + entry.size, one)
    return [np.frombuffer(data, np.uint8, one, begin).copy() for begin in begins]


def field(data: NDArray[np.uint8], capacity: int, lane: int, offset: int, count: int = 1) -> tuple[int, ...]:
    """`count` 32-bit words at a byte offset of a lane's header."""
    begin = lane * lane_bytes(capacity) + offset
    return tuple(int(word) for word in data[begin : begin + 4 * count].view("<u4"))


def geometry_of(data: NDArray[np.uint8], capacity: int) -> Geometry:
    """Blocks and threads of the launch that wrote a region last."""
    x, y, z = field(data, capacity, WARPS, SINGLE_EXTRA["grid"], 3)
    bx, by, bz = field(data, capacity, WARPS, SINGLE_EXTRA["block"], 3)
    return Geometry((x, y, z), (bx, by, bz))


def without_stale_lanes(data: NDArray[np.uint8], capacity: int) -> NDArray[np.uint8]:
    """The region without the headers of warps that the last launch did not have: an earlier, larger one left them."""
    warps = geometry_of(data, capacity).warps
    if not 0 < warps < WARPS:
        return data
    kept = data.copy()
    for lane in range(LANES):
        if lane % WARPS >= warps:
            begin = lane * lane_bytes(capacity)
            kept[begin : begin + HEADER_BYTES] = 0
    return kept


def notes_of(data: NDArray[np.uint8], capacity: int) -> list[str]:
    """What makes the records of a region doubtful: launches that overlapped."""
    warps = geometry_of(data, capacity).warps or WARPS
    if any(field(data, capacity, warp, MAIN_EXTRA["overlap"]) != (0,) for warp in range(min(warps, WARPS))):
        return ["another launch wrote to it at the same time, or an earlier one never came to its end"]
    return []


def sharers_of(data: NDArray[np.uint8], capacity: int) -> list[str]:
    """Threads of one warp that recorded in the lane for single threads, for each warp with more than one."""
    notes = []
    warps = geometry_of(data, capacity).warps or WARPS
    for warp in range(min(warps, WARPS)):
        (writers,) = field(data, capacity, WARPS + warp, SINGLE_EXTRA["writers"])
        if writers.bit_count() > 1:
            lanes = _runs([lane for lane in range(32) if writers >> lane & 1])
            notes.append(
                f"threads {lanes} of warp {warp}, which count as one: had they taken turns, records would be lost"
            )
    return notes


def _runs(numbers: Sequence[int]) -> str:
    """Ascending numbers for a reader: `3, 5-7`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
