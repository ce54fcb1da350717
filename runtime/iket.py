# SPDX-License-Identifier: Apache-2.0
"""The JSON of NVIDIA IKET (`run-iket profile --postprocess json`) read as decoded traces.

Its format is described in the CUTLASS documentation, guide "IKET Profiling", section "JSON Trace Shape", and is experimental
there. Ranges whose names say that they wait become waits, other ranges work, markers signals (`iket_names`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from autostamp.diagnostics import AutostampError
from autostamp.model.manifest import MANIFEST_VERSION, KernelTrace, Manifest
from autostamp.model.trace import Lane, Trace
from autostamp.runtime.iket_document import VERSION, Document, Grouped, Warp, fault, read_document
from autostamp.runtime.iket_lanes import Rows, events_of
from autostamp.runtime.iket_names import wait_side
from autostamp.runtime.iket_tables import NameTable
from autostamp.runtime.spec_file import ns_note

MOST: Final = 64
"""CTAs that are read unless one is asked for: a grid of thousands is more than a page can show."""


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
    document = read_document(path)
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
        grouped = Grouped.of(launch, document, place, path)
        kernel, rows = table.kernel(launch.kernel_name, grouped.range_names, grouped.marker_names)
        for cta in sorted(grouped.ctas):
            count += 1
            if trace == count or (trace is None and len(found) < MOST):
                found.append(_trace(grouped, replace(kernel, number=count, block=cta), rows, document))
    if not found:
        if count:
            raise AutostampError.of("AS7002", detail=f"no such kernel trace; {path} has {count} CTAs")
        raise fault(path, "no launch has a range or a marker", "$.launches")
    if trace is None and count > len(found):
        note = f"{count - len(found)} of {count} CTAs are left out; --trace N reads one of them"
        found = [replace(one, warnings=(*one.warnings, note)) for one in found]
    kernels = tuple(one.kernel for one in found)
    return IketRun(Manifest(MANIFEST_VERSION, "IKET", (table.source(),), kernels), tuple(found))


def _trace(grouped: Grouped, kernel: KernelTrace, rows: Rows, document: Document) -> Trace:
    every = (*grouped.ranges, *grouped.markers, *grouped.lifetimes)
    warps = sorted({warp for warp in every if warp[0] == kernel.block})
    clocks = [clock for warp in warps for clock in _clocks(grouped, warp)]
    zero = min(clocks)
    lanes = tuple(_lane(grouped, warp, rows, zero) for warp in warps)
    step = math.gcd(*(clock - zero for clock in clocks)) or 1
    return Trace(kernel, lanes, 0.0, tuple(_notes(grouped, step, document)), block=kernel.block, unit="ns")


def _clocks(grouped: Grouped, warp: Warp) -> Iterator[int]:
    for start, end, _ in grouped.ranges.get(warp, ()):
        yield from (start, end)
    yield from (time for time, _ in grouped.markers.get(warp, ()))
    if warp in grouped.lifetimes:
        yield from (grouped.lifetimes[warp].start_ts, grouped.lifetimes[warp].end_ts)


def _lane(grouped: Grouped, warp: Warp, rows: Rows, zero: int) -> Lane:
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


def _notes(grouped: Grouped, step: int, document: Document) -> Iterator[str]:
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
