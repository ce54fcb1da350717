# SPDX-License-Identifier: Apache-2.0
"""The tables that all timelines of a document share: sources, sites, instances and barriers, each named by one number.

Instances and barriers are numbered within a kernel trace. A document may hold several traces, so those after the first are
moved past the numbers that are taken; every row keeps its trace and its `own` number there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from autostamp.model.manifest import Barrier, Instance, KernelTrace, Manifest, SourceFile
from autostamp.model.site import Site
from autostamp.report.places import Place, places_of

PREDICTED: Final = 0
"""Stands for a kernel trace in rows of a prediction: the manifest's traces count from 1."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """What one kernel trace adds to its instance and barrier numbers to get those of the document."""

    instances: int = 0
    barriers: int = 0

    def barrier(self, number: int) -> int:
        """The document's number of a barrier; 0, which stands for none, stays 0."""
        return number + self.barriers if number else 0

    def instances_of(self, numbers: Iterable[int]) -> list[int]:
        """The document's numbers of instances; 0, which stands for none, stays 0."""
        added = self.instances
        return [number + added if number else 0 for number in numbers] if added else list(numbers)


@dataclass(frozen=True, slots=True)
class Tables:
    """`numbers` by kernel trace; the rest are the document's tables of those names."""

    numbers: Mapping[int, Numbers]
    sources: list[dict[str, Any]]
    sites: list[dict[str, Any]]
    instances: list[dict[str, Any]]
    barriers: list[dict[str, Any]]


def tables_of(manifest: Manifest, traces: Iterable[int], texts: Mapping[str, str]) -> Tables:
    """The tables for the kernel traces named by number. `texts` are original sources by file key.

    A file or site that no instance of these traces stands at is left out.
    """
    tables = Tables({}, [], [], [], [])
    files = {file.key: file for file in manifest.files}
    kernels = {kernel.number: kernel for kernel in manifest.traces}
    sources: dict[str, int] = {}
    sites: dict[tuple[str, int], int] = {}
    numbers: dict[int, Numbers] = {}
    for trace in dict.fromkeys(traces):
        taken = Numbers(_highest(tables.instances), _highest(tables.barriers))
        numbers[trace] = taken
        kernel = kernels.get(trace)
        if kernel is None:
            continue
        places = places_of(manifest, trace)
        for instance in kernel.instances:
            site = _site(instance, files, texts, (tables, sources, sites))
            tables.instances.append(_instance(instance, places[instance.number], site, taken, kernel))
        tables.barriers.extend(_barrier(barrier, taken, kernel) for barrier in kernel.barriers)
    return Tables(numbers, tables.sources, tables.sites, tables.instances, tables.barriers)


def add_predicted(tables: Tables, manifest: Manifest) -> Numbers:
    """Add the instances and barriers of a predicted timeline, whose manifest holds one kernel trace and no source."""
    taken = Numbers(_highest(tables.instances), _highest(tables.barriers))
    (kernel,) = manifest.traces
    places, named = places_of(manifest, kernel.number), replace(kernel, number=PREDICTED)
    for instance in kernel.instances:
        tables.instances.append(_instance(instance, places[instance.number], None, taken, named))
    tables.barriers.extend(_barrier(barrier, taken, named) for barrier in kernel.barriers)
    return taken


def _highest(rows: list[dict[str, Any]]) -> int:
    return max((row["number"] for row in rows), default=0)


def _site(
    instance: Instance,
    files: Mapping[str, SourceFile],
    texts: Mapping[str, str],
    known: tuple[Tables, dict[str, int], dict[tuple[str, int], int]],
) -> int | None:
    """Row of the instance's site, added (and its file's) when it is new; None when the manifest does not hold it."""
    tables, sources, sites = known
    key = (instance.file, instance.site)
    file = files.get(instance.file)
    site = next((site for site in file.sites if site.number == instance.site), None) if file else None
    if file is None or site is None:
        return None
    if file.key not in sources:
        sources[file.key] = len(tables.sources)
        row = {"path": file.path.replace("\\", "/"), "language": file.language, "text": texts.get(file.key, "")}
        tables.sources.append(row)
    if key not in sites:
        sites[key] = len(tables.sites)
        tables.sites.append(_site_row(site, sources[file.key]))
    return sites[key]


def _site_row(site: Site, source: int) -> dict[str, Any]:
    return {
        "source": source,
        "line": site.span.line,
        "column": site.span.column,
        "text": " ".join(site.text.split()),
        "method": site.method,
        "kind": str(site.kind),
        "side": str(site.side),
    }


def _instance(
    instance: Instance, place: Place, site: int | None, numbers: Numbers, kernel: KernelTrace
) -> dict[str, Any]:
    return {
        "number": instance.number + numbers.instances,
        "trace": kernel.number,
        "own": instance.number,
        "site": site,
        "barrier": numbers.barrier(instance.barrier),
        "label": place.label(),
        "side": place.side,
        "role": instance.role,
        "is_async": instance.is_async,
    }


def _barrier(barrier: Barrier, numbers: Numbers, kernel: KernelTrace) -> dict[str, Any]:
    return {
        "number": numbers.barrier(barrier.number),
        "trace": kernel.number,
        "own": barrier.number,
        "label": barrier.label,
        "type": barrier.type,
        "stages": barrier.stages,
        "is_inferred": barrier.is_inferred,
    }
