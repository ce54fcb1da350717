# SPDX-License-Identifier: Apache-2.0
"""The file that IKET writes, as types, and its ranges and markers by warp."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta, Struct

from autostamp.diagnostics import AutostampError
from autostamp.runtime.iket_lanes import Marks, Ranges

VERSION: Final = 1
"""`meta.version` of the traces that this was written for."""

Count: TypeAlias = Annotated[int, Meta(ge=0)]
Cta: TypeAlias = tuple[int, int, int]
Warp: TypeAlias = tuple[Cta, int]


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


def read_document(path: Path) -> Document:
    """Read a trace file, as it is or compressed with gzip. Raises AS9002 for one that is not there, AS6014 for another."""
    return _decode(_bytes_of(path), path)


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


def fault(path: Path, detail: str, place: str) -> AutostampError:
    """AS6014, with the JSON path of what is wrong."""
    return AutostampError.of("AS6014", path=path, detail=f"{detail} - at `{place}`")


@dataclass(frozen=True, slots=True)
class Grouped:
    """A launch by warp. `strays` counts ranges that one warp began and another ended."""

    ranges: Mapping[Warp, Ranges]
    markers: Mapping[Warp, Marks]
    lifetimes: Mapping[Warp, Lifetime]
    sms: Mapping[Warp, int]
    range_names: Sequence[str]
    marker_names: Sequence[str]
    strays: int

    @property
    def ctas(self) -> set[Cta]:
        """CTAs with a range or a marker."""
        return {cta for cta, _ in (*self.ranges, *self.markers)}

    @classmethod
    def of(cls, launch: Launch, document: Document, place: str, path: Path) -> Grouped:
        """Group a launch, which stands at the JSON path `place`. Raises AS6014 for an index outside its table, a warp on two
        SMs, and a range or a lifetime that ends before it starts.
        """
        look = _Lookup(document, path, {})
        ranges: dict[Warp, Ranges] = {}
        strays = 0
        for at, entry in enumerate(launch.ranges):
            where = f"{place}.ranges[{at}]"
            name = look.name(entry.range_name_idx, f"{where}.rangeNameIdx")
            warps = {look.warp(index, f"{where}.warpLocIdxs") for index in entry.warp_loc_idxs}
            look.require_forward(entry, where)
            if len(warps) > 1:
                strays += 1
            else:
                ranges.setdefault(warps.pop(), []).append((entry.start_ts, entry.end_ts, name))
        markers: dict[Warp, Marks] = {}
        for at, mark in enumerate(launch.markers):
            where = f"{place}.markers[{at}]"
            name = look.name(mark.marker_name_idx, f"{where}.markerNameIdx")
            markers.setdefault(look.warp(mark.loc_idx, f"{where}.locIdx"), []).append((mark.timestamp, name))
        lifetimes: dict[Warp, Lifetime] = {}
        for at, life in enumerate(launch.warp_lifetimes):
            where = f"{place}.warpLifetimes[{at}]"
            look.require_forward(life, where)
            lifetimes[look.warp(life.loc_idx, f"{where}.locIdx")] = life
        return cls(ranges, markers, lifetimes, look.sms, _names(ranges), _names(markers), strays)


@dataclass(frozen=True, slots=True)
class _Lookup:
    """The tables of a file. `sms` collects the SM of every warp that was looked up."""

    document: Document
    path: Path
    sms: dict[Warp, int]

    def warp(self, index: int, where: str) -> Warp:
        table = self.document.location_table
        if index >= len(table):
            raise fault(self.path, f"no location {index}: the table has {len(table)}", where)
        location = table[index]
        warp = (location.cta_id, location.warp_id)
        if self.sms.setdefault(warp, location.sm_id) != location.sm_id:
            raise fault(self.path, f"warp {location.warp_id} of CTA {location.cta_id} is on two SMs", where)
        return warp

    def name(self, index: int, where: str) -> str:
        table = self.document.string_table
        if index >= len(table):
            raise fault(self.path, f"no name {index}: the table has {len(table)}", where)
        return table[index]

    def require_forward(self, entry: Range | Lifetime, where: str) -> None:
        if entry.end_ts < entry.start_ts:
            back = entry.start_ts - entry.end_ts
            raise fault(self.path, f"it ends {back} ns before it starts", f"{where}.endTs")


def _names(entries: Mapping[Warp, Ranges] | Mapping[Warp, Marks]) -> list[str]:
    """Names in the order of their first use."""
    used: dict[str, int] = {}
    for group in entries.values():
        for entry in group:
            name, start = str(entry[-1]), int(entry[0])
            used[name] = min(start, used.get(name, start))
    return sorted(used, key=lambda name: used[name])
