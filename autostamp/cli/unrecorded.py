# SPDX-License-Identifier: Apache-2.0
"""What a joined run has no record of, and where the source says that it lies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from autostamp.analysis.unrecorded import Missing
    from autostamp.model.manifest import KernelTrace, Manifest
    from autostamp.model.program_order import Function
    from autostamp.model.replay import Bound, Replays
    from autostamp.model.trace import Trace
    from autostamp.runtime.store import RunData


def bounds_of(data: RunData, traces: Sequence[Trace]) -> tuple[Bound, ...]:
    """The bounds of the stamps that no replay recorded, over all launches of each kernel trace; none of a run of its own."""
    from autostamp.analysis.call_positions import CallPositions
    from autostamp.analysis.unrecorded import bounds
    from autostamp.runtime.sources import original_texts

    if data.replays is None:
        return ()
    functions = _functions(data.manifest, original_texts(data.path, data.manifest))
    found: list[Bound] = []
    for number in dict.fromkeys(trace.kernel.number for trace in traces):
        of_kernel = [trace for trace in traces if trace.kernel.number == number and trace.lanes]
        if of_kernel:
            kernel = of_kernel[0].kernel
            positions = CallPositions.of_kernel(kernel, data.manifest, functions)
            found += bounds(of_kernel, _missing(data.manifest, kernel, data.replays), positions)
    return tuple(found)


def _functions(manifest: Manifest, texts: Mapping[str, str]) -> list[Function]:
    from autostamp.passes.cuda import program_order as cuda
    from autostamp.passes.cutedsl import program_order as cutedsl

    found: list[Function] = []
    for file in manifest.files:
        text = texts.get(file.key)
        if text is not None:
            found += (cuda if file.language == "cuda" else cutedsl).functions_of(text, file.key)
    return found


def _missing(manifest: Manifest, kernel: KernelTrace, replays: Replays) -> Iterator[Missing]:
    """Sites without any record, then waits that have one of their two stamps."""
    from autostamp.analysis.unrecorded import Missing, Place
    from autostamp.model.placement import key_at, site_key
    from autostamp.model.sync import Kind

    places: dict[str, tuple[Place, Kind]] = {}
    for file in manifest.files:
        for skip in file.skips:
            key = key_at(file.path, file.key, skip)
            if skip.kind in (Kind.WAIT, Kind.SIGNAL):
                places.setdefault(key, (Place(file.key, skip.span.line, skip.span.column, key), skip.kind))
    for each in replays.uncovered:
        if each.key in places:
            place, kind = places[each.key]
            yield Missing(place, str(kind))
    sites = {(file.key, site.number): (file, site) for file in manifest.files for site in file.sites}
    for row in kernel.instances:
        if (row.file, row.site) in sites and row.kind == Kind.WAIT and bool(row.enter) is not bool(row.exit):
            file, site = sites[row.file, row.site]
            place = Place(file.key, site.span.line, site.span.column, site_key(file, site))
            yield Missing(place, "exit" if row.enter else "enter", row.number)
