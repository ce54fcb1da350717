# SPDX-License-Identifier: Apache-2.0
"""Where an instance stands in the source, and what its barrier is called: from the manifest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from autostamp.model.manifest import Barrier, Instance, Manifest
from autostamp.model.site import Site


@dataclass(frozen=True, slots=True)
class Place:
    """One instance for a reader. `line` counts from 1 (0: the manifest does not hold the site); `text` is one line."""

    instance: int
    site: int
    file: str
    line: int
    text: str
    method: str
    kind: str
    side: str
    role: str
    barrier: str

    @property
    def where(self) -> str:
        """`name.py:854`: the file's name without its folders, and the line where it is known."""
        name = self.file.rsplit("/", 1)[-1]
        return f"{name}:{self.line}" if self.line else name

    def label(self, stage: int = -1) -> str:
        """`K[2] consumer_wait`; without the stage where it is unknown, the method alone where the barrier has no name."""
        barrier = f"{self.barrier}[{stage}]" if self.barrier and stage >= 0 else self.barrier
        return f"{barrier} {self.method}".strip() or f"instance {self.instance}"


def places_of(manifest: Manifest, trace: int) -> dict[int, Place]:
    """Every instance of kernel trace number `trace`, by instance number; empty when the manifest has no such trace."""
    sites = {(file.key, site.number): (file.path, site) for file in manifest.files for site in file.sites}
    kernel = next((kernel for kernel in manifest.traces if kernel.number == trace), None)
    if kernel is None:
        return {}
    barriers = {barrier.number: barrier for barrier in kernel.barriers}
    return {instance.number: _place(instance, sites, barriers) for instance in kernel.instances}


def barriers_of(manifest: Manifest, trace: int) -> dict[int, str]:
    """What every barrier of kernel trace number `trace` is called, by its number."""
    return {
        barrier.number: barrier.label
        for kernel in manifest.traces
        if kernel.number == trace
        for barrier in kernel.barriers
    }


def _place(
    instance: Instance, sites: Mapping[tuple[str, int], tuple[str, Site]], barriers: Mapping[int, Barrier]
) -> Place:
    path, site = sites.get((instance.file, instance.site), (instance.file, None))
    barrier = barriers.get(instance.barrier)
    return Place(
        instance=instance.number,
        site=instance.site,
        file=path.replace("\\", "/"),
        line=site.span.line if site else 0,
        text=" ".join(site.text.split()) if site else "",
        method=site.method if site else "",
        kind=instance.kind or (site.kind if site else ""),
        side=instance.side or (site.side if site else ""),
        role=instance.role,
        barrier=barrier.label if barrier else "",
    )
