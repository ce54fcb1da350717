# SPDX-License-Identifier: Apache-2.0
"""The JSON of NVIDIA IKET (`run-iket profile --postprocess json`) read as decoded traces.

Its format is described in the CUTLASS documentation, guide "IKET Profiling", section "JSON Trace Shape", and is experimental
there. Ranges whose names say that they wait become waits, other ranges work, markers signals (`iket_names`).
"""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta, Struct

from autostamp.diagnostics import AutostampError
from autostamp.model.manifest import MANIFEST_VERSION, KernelTrace, Manifest
from autostamp.model.trace import Lane, Trace
from autostamp.runtime.iket_lanes import Marks, Ranges, Rows, events_of
from autostamp.runtime.iket_names import wait_side
from autostamp.runtime.iket_tables import NameTable
from autostamp.runtime.spec_file import ns_note

VERSION: Final = 1
"""`meta.version` of the traces that this was written for."""
MOST: Final = 64
"""CTAs that are read unless one is asked for: a grid of thousands is more than a page can show."""

Count: TypeAlias = Annotated[int, Meta(ge=0)]
_Cta: TypeAlias = tuple[int, int, int]


class Location(Struct, frozen=True, rename="camel"):
    """One warp of one CTA on one SM."""

    sm_id: int
    cta_id: tuple[Count, Count, Count]
    warp_id: Count


class Range(Struct, frozen=True, rename="camel"):
    """A duration, in ns. `warp_loc_idxs` are the warps that began and ended it."""

    start_ts: Count
    end_ts: Count
    range_name_idx: Count
    warp_loc_idxs: Annotated[tuple[Count, ...], Meta(min_length=1)]


class Marker(Struct, frozen=True, rename="camel"):
    """A point in time, in ns."""

    timestamp: Count
    marker_name_idx: Count
    loc_idx: Count


class Lifetime(Struct, frozen=True, rename="camel"):
    """From a warp's start to its end, in ns."""

    start_ts: Count
    end_ts: Count
    loc_idx: Count


class Launch(Struct, frozen=True, rename="camel"):
    """One launch of an instrumented kernel."""

    kernel_name: str
    ranges: tuple[Range, ...] = ()
    markers: tuple[Marker, ...] = ()
    warp_lifetimes: tuple[Lifetime, ...] = ()


class _Meta(Struct, frozen=True):
    version: int = VERSION


class Document(Struct, frozen=True, rename="camel"):
    """The whole file. Keys that are not listed here are left alone."""

    string_table: tuple[str, ...]
    location_table: tuple[Location, ...]
    launches: tuple[Launch, ...]
    graph_launches: dict[str, tuple[Launch, ...]] = {}
    meta: _Meta = _Meta()


@dataclass(frozen=True, slots=True)
class IketRun:
    """A manifest with one kernel trace for every CTA of every launch, and those traces, in ns."""

    manifest: Manifest
    traces: tuple[Trace, ...]


def read_iket(path: Path, trace: int | None = None) -> IketRun:
    """Read a trace file, as it is or compressed with gzip: all its CTAs up to MOST, or kernel trace number `trace` alone.

    CTAs are numbered from 1, launch by launch, in the order of block indices. Raises AS6014 for a file that is none, with
    the JSON path of what is wrong; AS7002 when it has no CTA of that number.
    """
    document = _decode(_bytes_of(path), path)
    launches = [(f"$.launches[{at}]", launch) for at, launch in enumerate(document.launches)]
    launches += [
        (f"$.graphLaunches[{key!r}][{at}]", launch)
        for key, group in document.graph_launches.items()
        for at, launch in enumerate(group)
    ]
    table = NameTable(path.name)
    found: list[Trace] = []
    count = 0
    for place, launch in launches:
        grouped = _Grouped.of(launch, document, place, path)
        kernel, rows = table.kernel(launch.kernel_name, grouped.range_names, grouped.marker_names)
        for cta in sorted(grouped.ctas):
            count += 1
            if trace == count or (trace is None and len(found) < MOST):
                found.append(_trace(grouped, replace(kernel, number=count, block=cta), rows, document))
    if not found:
        if count:
            raise AutostampError.of("AS7002", detail=f"no such kernel trace; {path} has {count} CTAs")
        raise _fault(path, "no launch has a range or a marker", "$.launches")
    if trace is None and count > len(found):
        note = f"{count - len(found)} of {count} CTAs are left out; --trace N reads one of them"
        found = [replace(one, warnings=(*one.warnings, note)) for one in found]
    kernels = tuple(one.kernel for one in found)
    return IketRun(Manifest(MANIFEST_VERSION, "IKET", (table.source(),), kernels), tuple(found))


def _bytes_of(path: Path) -> bytes:
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    except FileNotFoundError as error:
        raise AutostampError.of("AS9002", path=path) from error
    except (OSError, EOFError, zlib.error) as error:
        raise AutostampError.of("AS6014", path=path, detail=str(error)) from error


def _decode(data: bytes, path: Path) -> Document:
    try:
        return msgspec.json.decode(data, type=Document, strict=True)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise AutostampError.of("AS6014", path=path, detail=str(error)) from error


def _fault(path: Path, detail: str, place: str) -> AutostampError:
    return AutostampError.of("AS6014", path=path, detail=f"{detail} - at `{place}`")


_Warp: TypeAlias = tuple[_Cta, int]


@dataclass(frozen=True, slots=True)
class _Grouped:
    """A launch by warp. `strays` counts ranges that one warp began and another ended."""

    ranges: Mapping[_Warp, Ranges]
    markers: Mapping[_Warp, Marks]
    lifetimes: Mapping[_Warp, Lifetime]
    sms: Mapping[_Warp, int]
    range_names: Sequence[str]
    marker_names: Sequence[str]
    strays: int

    @property
    def ctas(self) -> set[_Cta]:
        """CTAs with a range or a marker."""
        return {cta for cta, _ in (*self.ranges, *self.markers)}

    @classmethod
    def of(cls, launch: Launch, document: Document, place: str, path: Path) -> _Grouped:
        sms: dict[_Warp, int] = {}

        def warp_of(index: int, where: str) -> _Warp:
            if index >= len(document.location_table):
                raise _fault(path, f"no location {index}: the table has {len(document.location_table)}", where)
            location = document.location_table[index]
            warp = (location.cta_id, location.warp_id)
            if sms.setdefault(warp, location.sm_id) != location.sm_id:
                raise _fault(path, f"warp {location.warp_id} of CTA {location.cta_id} is on two SMs", where)
            return warp

        def name_of(index: int, where: str) -> str:
            if index >= len(document.string_table):
                raise _fault(path, f"no name {index}: the table has {len(document.string_table)}", where)
            return document.string_table[index]

        ranges: dict[_Warp, Ranges] = {}
        strays = 0
        for at, entry in enumerate(launch.ranges):
            where = f"{place}.ranges[{at}]"
            name = name_of(entry.range_name_idx, f"{where}.rangeNameIdx")
            warps = {warp_of(index, f"{where}.warpLocIdxs") for index in entry.warp_loc_idxs}
            if entry.end_ts < entry.start_ts:
                raise _fault(path, f"it ends {entry.start_ts - entry.end_ts} ns before it starts", f"{where}.endTs")
            if len(warps) > 1:
                strays += 1
            else:
                ranges.setdefault(warps.pop(), []).append((entry.start_ts, entry.end_ts, name))
        markers: dict[_Warp, Marks] = {}
        for at, mark in enumerate(launch.markers):
            where = f"{place}.markers[{at}]"
            name = name_of(mark.marker_name_idx, f"{where}.markerNameIdx")
            markers.setdefault(warp_of(mark.loc_idx, f"{where}.locIdx"), []).append((mark.timestamp, name))
        lifetimes: dict[_Warp, Lifetime] = {}
        for at, life in enumerate(launch.warp_lifetimes):
            where = f"{place}.warpLifetimes[{at}]"
            if life.end_ts < life.start_ts:
                raise _fault(path, f"it ends {life.start_ts - life.end_ts} ns before it starts", f"{where}.endTs")
            lifetimes[warp_of(life.loc_idx, f"{where}.locIdx")] = life
        return cls(ranges, markers, lifetimes, sms, _names(ranges), _names(markers), strays)


def _names(entries: Mapping[_Warp, Ranges] | Mapping[_Warp, Marks]) -> list[str]:
    """Names in the order of their first use."""
    used: dict[str, int] = {}
    for group in entries.values():
        for entry in group:
            name, start = str(entry[-1]), int(entry[0])
            used[name] = min(start, used.get(name, start))
    return sorted(used, key=lambda name: used[name])


def _trace(grouped: _Grouped, kernel: KernelTrace, rows: Rows, document: Document) -> Trace:
    every = (*grouped.ranges, *grouped.markers, *grouped.lifetimes)
    warps = sorted({warp for warp in every if warp[0] == kernel.block})
    clocks = [clock for warp in warps for clock in _clocks(grouped, warp)]
    zero = min(clocks)
    lanes = tuple(_lane(grouped, warp, rows, zero) for warp in warps)
    step = math.gcd(*(clock - zero for clock in clocks)) or 1
    return Trace(kernel, lanes, 0.0, tuple(_notes(grouped, step, document)), unit="ns")


def _clocks(grouped: _Grouped, warp: _Warp) -> Iterator[int]:
    for start, end, _ in grouped.ranges.get(warp, ()):
        yield from (start, end)
    yield from (time for time, _ in grouped.markers.get(warp, ()))
    if warp in grouped.lifetimes:
        yield from (grouped.lifetimes[warp].start_ts, grouped.lifetimes[warp].end_ts)


def _lane(grouped: _Grouped, warp: _Warp, rows: Rows, zero: int) -> Lane:
    life = grouped.lifetimes.get(warp)
    return Lane(
        warp=warp[1],
        smid=grouped.sms[warp],
        events=events_of(grouped.ranges.get(warp, []), grouped.markers.get(warp, []), rows, zero),
        lost=0,
        entry_cycles=life.start_ts - zero if life else -1,
        exit_cycles=life.end_ts - zero if life else -1,
        entry_ns=life.start_ts if life else 0,
        exit_ns=life.end_ts if life else 0,
    )


def _notes(grouped: _Grouped, step: int, document: Document) -> Iterator[str]:
    yield ns_note(step)
    waits = [name for name in grouped.range_names if wait_side(name) is not None]
    work = [name for name in grouped.range_names if wait_side(name) is None]
    yield f"by their names, these ranges are waits: {_listed(waits)}; and these are work: {_listed(work)}"
    if not any("." in name for name in (*grouped.range_names, *grouped.marker_names)):
        yield "no name says which barrier it is about (as K.consumer_wait does), so there are no arrows and no holds"
    if grouped.strays:
        yield f"{grouped.strays} ranges that one warp began and another ended are left out"
    if document.meta.version != VERSION:
        yield f"the trace has version {document.meta.version}, this was written for version {VERSION}"


def _listed(names: Iterable[str], most: int = 30) -> str:
    shown = list(names)
    more = f" and {len(shown) - most} more" if len(shown) > most else ""
    return ", ".join(shown[:most]) + more if shown else "none"
