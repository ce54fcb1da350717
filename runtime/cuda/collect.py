# SPDX-License-Identifier: Apache-2.0
"""Drained regions and the manifests of their units to one manifest of kernel traces with its regions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from autostamp.diagnostics import AutostampError, Diagnostic
from autostamp.model.manifest import MANIFEST_VERSION, KernelTrace, Manifest, SourceFile
from autostamp.runtime.cuda.drain import Drained, Head, notes_of, sharers_of, without_stale_lanes
from autostamp.runtime.cuda.instances import Kernel, Row, UnitTable, events_in, table_of, unknown
from autostamp.runtime.cuda.names import kernel_name, shortened
from autostamp.runtime.decode import headers_of, signature_of
from autostamp.runtime.layout import HEADER_BYTES, LANES, RECORD_DTYPE, RELEASED, WARPS, lane_bytes
from autostamp.runtime.regions import Recorded

LIMIT: Final = 64
"""Launches that the host runtime keeps when all are asked for (`most_launches` in autostamp_host.cuh)."""

Region = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be kept: kernels whose name `kernel` finds ("": all), and which launches (the last `repeat` ones, all, or one by
    number).
    """

    kernel: str = ""
    keep: str = "last"
    launch: int = 0
    repeat: int = 1


@dataclass(frozen=True, slots=True)
class Collected:
    """Kernel traces with their regions, and what is to be said about them. Raw bytes, without stale lanes."""

    manifest: Manifest
    regions: tuple[Recorded, ...]
    findings: tuple[Diagnostic, ...]


@dataclass(frozen=True, slots=True)
class _Found:
    """One CTA's region whose kernel is known."""

    drained: Drained
    data: Region
    unit: UnitTable
    kernel: Kernel
    name: str

    @property
    def entry_ns(self) -> int:
        """When the first warp of the CTA was bound."""
        headers = headers_of(self.data, self.drained.entry.capacity)[:WARPS]
        return int(headers["entry_ns"][headers["state"] != 0].min())


@dataclass(frozen=True, slots=True)
class _Launches:
    """What becomes one kernel trace: launches of one kernel in the order in which they ran, each with its CTAs."""

    launches: tuple[tuple[_Found, ...], ...]

    @property
    def first(self) -> _Found:
        """What stands for all: they have kernel, device and process in common."""
        return self.launches[-1][0]

    @property
    def all(self) -> list[_Found]:
        """Every CTA of every launch."""
        return [item for launch in self.launches for item in launch]


def collect(
    heads: Sequence[Head],
    drained: Sequence[Drained],
    manifests: Mapping[int, Manifest],
    wanted: Wanted,
    tool: str,
    row_of: Row = unknown,
) -> Collected:
    """Name every region that was written, keep those that are wanted, and number them as kernel traces from 1.

    `manifests` are by signature of their unit. What could not be named or is doubtful is in the findings: AS5013 (no manifest),
    AS5014 (not in it), AS5015 (doubtful records), AS5016 (too many launches), AS5017 (what the host runtime said), AS5018
    (nothing of what was asked for), AS5019 (threads that shared a lane, a note).
    """
    tables = {signature: UnitTable.of(manifest) for signature, manifest in manifests.items() if manifest.unit}
    findings = [Diagnostic.of("AS5017", detail=error) for head in heads for error in dict.fromkeys(head.errors)]
    found: list[_Found] = []
    for each in drained:
        try:
            item = _identify(each, tables)
        except AutostampError as error:
            findings.append(error.diagnostic)
            continue
        if item is not None:
            found.append(item)
    kept = _kept(found, wanted)
    findings += _missed(found, kept, wanted)
    findings += _dropped(heads, tables)
    files: dict[str, SourceFile] = {}
    traces: list[KernelTrace] = []
    regions: list[Recorded] = []
    names = _display([each.first for each in kept])
    for number, (launches, name) in enumerate(zip(kept, names, strict=True), 1):
        traces.append(_trace(number, launches, name, row_of))
        files |= {file: launches.first.unit.files[file] for file in _files_of(traces[-1])}
        regions += _recorded(number, launches)
        findings += _doubts(launches, shortened(name))
    manifest = Manifest(MANIFEST_VERSION, tool, tuple(files.values()), tuple(traces))
    if len({id(each.first.unit) for each in kept}) == 1:
        manifest = replace(manifest, unit=kept[0].first.unit.unit)
    return Collected(manifest, tuple(regions), tuple(dict.fromkeys(findings)))


def _recorded(number: int, of: _Launches) -> list[Recorded]:
    """The regions of a kernel trace. Where one CTA of one launch was asked for there is nothing to tell regions apart by."""
    head = of.first.drained.head
    if head.chosen is None and head.repeat == 1:
        return [Recorded(number, of.first.data)]
    return [
        Recorded(
            number, item.data, launch, item.drained.cta, item.drained.block or (0, 0, 0), item.drained.geometry.grid
        )
        for launch, ctas in enumerate(of.launches)
        for item in ctas
    ]


def _doubts(of: _Launches, name: str) -> list[Diagnostic]:
    doubtful = [note for item in of.all for note in _notes(item)]
    shared = [note for item in of.all for note in sharers_of(item.data, item.drained.entry.capacity)]
    return [
        *(Diagnostic.of("AS5015", kernel=name, detail=note) for note in dict.fromkeys(doubtful)),
        *(Diagnostic.of("AS5019", kernel=name, detail=note) for note in dict.fromkeys(shared)),
    ]


def _identify(drained: Drained, tables: Mapping[int, UnitTable]) -> _Found | None:
    """Whose records a region holds; None when no warp was bound. Raises AS5013, AS5014, and AS6002 for a mixture."""
    data = without_stale_lanes(drained.data, drained.entry.capacity)
    if not headers_of(data, drained.entry.capacity)["state"][:WARPS].any():
        return None
    signature = signature_of(data, drained.entry.capacity)
    unit, kernel = _kernel(drained, tables, signature, data)
    name = kernel_name(drained.entry.name) or kernel.definition.name
    return _Found(drained, data, unit, kernel, name)


def _kernel(
    drained: Drained, tables: Mapping[int, UnitTable], signature: int, data: Region
) -> tuple[UnitTable, Kernel]:
    """The kernel of a signature; where no lane was released (0), what the host knew and the events tell."""
    entry = drained.entry
    name = entry.name or entry.place or "a kernel"
    unit = tables.get(entry.unit)
    if signature == 0:
        if unit is None:
            raise AutostampError.of("AS5013", unit=f"{entry.unit:08x}", program=drained.head.program)
        return unit, _guess(drained, unit, data)
    for table in (*([unit] if unit is not None else []), *tables.values()):
        kernel = table.kernel_of(signature)
        if kernel is not None:
            return table, kernel
    if unit is None:
        raise AutostampError.of("AS5013", unit=f"{entry.unit:08x}", program=drained.head.program)
    raise AutostampError.of("AS5014", kernel=name, detail=f"no kernel of its unit has the signature {signature:#010x}")


def _guess(drained: Drained, unit: UnitTable, data: Region) -> Kernel:
    """The kernel of lanes that were never released: by slot, else by name, else the only one that reaches what was visited."""
    entry, kernels = drained.entry, unit.kernels()
    if entry.slot >= 0:
        kernels = tuple(kernel for kernel in kernels if kernel.slot == entry.slot)
    elif entry.name:
        bare = kernel_name(entry.name).partition("<")[0].rpartition("::")[2]
        kernels = tuple(kernel for kernel in kernels if kernel.definition.name.rpartition("::")[2] == bare)
    if len(kernels) > 1:
        visited = {unit.site_of(event) for event in visited_events(data, entry.capacity)}
        kernels = tuple(kernel for kernel in kernels if visited <= set(kernel.definition.reaches))
    if len(kernels) != 1:
        detail = f"no lane was released, and {len(kernels) or 'none'} of its unit's kernels could have written them"
        raise AutostampError.of("AS5014", kernel=entry.name or entry.place or "a kernel", detail=detail)
    return kernels[0]


def visited_events(data: Region, capacity: int) -> Sequence[int]:
    """Event numbers of all records that lie in a region, whether they belong to the last launch or not."""
    size = lane_bytes(capacity)
    records = data.reshape(LANES, size)[:, HEADER_BYTES:].copy().view(RECORD_DTYPE)
    words: Iterable[int] = np.unique(records["event"]).tolist()
    return events_in(words)


def _kept(found: Sequence[_Found], wanted: Wanted) -> list[_Launches]:
    """Launches of wanted kernels, in the order of launches.

    Where a symbol carries the slot, the host did not know whose launch came: the n-th is counted here, and the last ones are
    those that the device says were the last.
    """
    by_launch: dict[tuple[object, ...], list[_Found]] = {}
    for item in found:
        if re.search(wanted.kernel, item.name):
            drained = item.drained
            by_launch.setdefault((drained.path, drained.entry.offset, *_where(item), item.name), []).append(item)
    launches = [tuple(ctas) for ctas in by_launch.values()]
    if wanted.keep == "all":
        return [_Launches((ctas,)) for ctas in launches]
    if wanted.keep == "last":
        return _last(launches, wanted.repeat)
    counts: Counter[tuple[int, int, int]] = Counter()
    kept: list[_Launches] = []
    for ctas in launches:
        counts[_where(ctas[0])] += 1
        is_it = ctas[0].drained.entry.carrier == "param" or counts[_where(ctas[0])] == wanted.launch
        kept += [_Launches((ctas,))] if is_it else []
    return kept


def _last(launches: Sequence[tuple[_Found, ...]], repeat: int) -> list[_Launches]:
    """The last `repeat` launches of each kernel, kernels in the order of their last ones."""
    by_kernel: dict[tuple[object, ...], list[tuple[_Found, ...]]] = {}
    for ctas in launches:
        key = (*_where(ctas[0]), ctas[0].name)
        members = by_kernel.pop(key, [])
        by_kernel[key] = [*members, ctas]
    if repeat > 1:
        for members in by_kernel.values():
            members.sort(key=lambda ctas: min(item.entry_ns for item in ctas))
    return [_Launches(tuple(members[-repeat:])) for members in by_kernel.values()]


def _where(item: _Found) -> tuple[int, int, int]:
    """Process, device and signature."""
    return item.drained.head.pid, item.drained.entry.device, item.unit.signature_of(item.kernel)


def _missed(found: Sequence[_Found], kept: Sequence[_Launches], wanted: Wanted) -> list[Diagnostic]:
    """AS5018 for what was asked for by name or number and is not there."""
    if kept or not found:
        return []
    names = ", ".join(dict.fromkeys(item.name for item in found))
    if not any(re.search(wanted.kernel, item.name) for item in found):
        return [
            Diagnostic.of("AS5018", what=f"a kernel named like {wanted.kernel!r}", detail=f"recorded were: {names}")
        ]
    return [Diagnostic.of("AS5018", what=f"launch {wanted.launch}", detail=f"fewer launches were seen of: {names}")]


def _dropped(heads: Sequence[Head], tables: Mapping[int, UnitTable]) -> list[Diagnostic]:
    findings = []
    for head in heads:
        for dropped in head.dropped:
            _, unit, slot = (int(part) for part in dropped.of.split(":"))
            kernels = tables[unit].kernels() if unit in tables else ()
            named = [kernel.definition.name for kernel in kernels if kernel.slot == slot]
            of = named[0] if named else f"unit {unit:08x}"
            findings.append(Diagnostic.of("AS5016", count=dropped.count, kernel=of, limit=LIMIT))
    return findings


def _display(kept: Sequence[_Found]) -> list[str]:
    """Names of the traces: the kernel's, with device, process and launch where those tell two of one name apart."""
    names = [item.name for item in kept]
    parts: tuple[Callable[[_Found], str], ...] = (
        lambda item: f" on device {item.drained.entry.device}",
        lambda item: f" of process {item.drained.head.pid}",
        lambda item: f" #{item.drained.entry.launch}",
        lambda item: f" in stream {item.drained.entry.stream:#x}",
    )
    for part in parts:
        groups: dict[str, set[str]] = {}
        for name, item in zip(names, kept, strict=True):
            groups.setdefault(name, set()).add(part(item))
        names = [name + part(item) if len(groups[name]) > 1 else name for name, item in zip(names, kept, strict=True)]
    return names


def _trace(number: int, of: _Launches, name: str, row_of: Row) -> KernelTrace:
    item, capacity = of.first, of.first.drained.entry.capacity
    events = dict.fromkeys(event for each in of.all for event in visited_events(each.data, capacity))
    visited = [item.unit.site_of(event) for event in sorted(events)]
    table = table_of(item.unit, item.kernel.definition, [site for site in visited if site is not None], row_of)
    return KernelTrace(
        number=number,
        kernel=name,
        file=item.kernel.file.key,
        capacity=capacity,
        block=item.drained.head.block,
        region=number,
        signature=item.unit.signature_of(item.kernel),
        barriers=table.barriers,
        instances=table.instances,
        blocks=item.drained.head.blocks,
    )


def _files_of(trace: KernelTrace) -> list[str]:
    return list(dict.fromkeys([trace.file, *(instance.file for instance in trace.instances)]))


def _notes(item: _Found) -> list[str]:
    entry = item.drained.entry
    notes = notes_of(item.data, entry.capacity)
    headers = headers_of(item.data, entry.capacity)[:WARPS]
    if headers["state"].any() and not (headers["state"] == RELEASED).any():
        notes.append("no warp came to the end of the kernel")
    return notes
