# SPDX-License-Identifier: Apache-2.0
"""Join what a trace saw (objects) with what the source said (sites) and what the catalogue knows (classes)."""

from __future__ import annotations

import re
from dataclasses import replace

from autostamp.model.manifest import Barrier, Instance, KernelTrace, SourceFile
from autostamp.model.site import Site
from autostamp.model.sync import StageFrom, SyncOp
from autostamp.passes.catalogue import resolve

_PARTICIPANT = {
    "acquire": "producer_acquire",
    "acquire_and_advance": "producer_acquire",
    "commit": "producer_commit",
    "tail": "producer_tail",
    "wait": "consumer_wait",
    "wait_and_advance": "consumer_wait",
    "release": "consumer_release",
}
"""What a participant or a handle calls on its pipeline, whose class says what the call does."""

_ENUMERATOR = re.compile(r"\b[A-Za-z_]\w*\.([A-Z]\w*)")


def complete(trace: KernelTrace, files: tuple[SourceFile, ...]) -> KernelTrace:
    """The trace with kind, side, signals and class facts of every instance, and a label for every barrier."""
    sites = {(file.key, site.number): site for file in files for site in file.sites}
    labels: dict[int, str] = {}
    instances: list[Instance] = []
    for instance in trace.instances:
        site = sites.get((instance.file, instance.site))
        if site is None:
            instances.append(instance)
            continue
        barrier = trace.barriers[instance.barrier - 1] if instance.barrier else None
        labels.setdefault(instance.barrier, _label(site, barrier))
        instances.append(_instance(instance, site, barrier))
    barriers = tuple(
        replace(barrier, label=_short(labels.get(barrier.number) or barrier.label or barrier.type or "barrier"))
        for barrier in trace.barriers
    )
    return replace(trace, instances=tuple(instances), barriers=barriers)


def _label(site: Site, barrier: Barrier | None) -> str:
    """The name of the object that the trace saw, else what the source calls it; a bare number or index says what it numbers."""
    label = (barrier.label if barrier is not None else "") or site.barrier
    is_number = site.stage_from is StageFrom.BARRIER_ID and label == site.barrier and not _ENUMERATOR.search(label)
    return f"barrier {label}" if is_number else label


def _short(label: str) -> str:
    """A barrier's label for people: `int(NamedBarrierFwd.PFull) + i` reads `PFull+`, the plus standing for what is computed."""
    named = _ENUMERATOR.search(label)
    if named is None or label.isidentifier() or "(" not in label:
        return label
    return named[1] if label == f"int({named[0]})" else f"{named[1]}+"


def _row(site: Site, barrier: Barrier | None) -> SyncOp | None:
    """What is certain about the call: the row of the barrier's class, else that of the module function called."""
    rows: list[SyncOp | None] = []
    if barrier is not None:
        rows += [resolve(barrier.type, method) for method in (site.method, _PARTICIPANT.get(site.method, ""))]
    if "." in site.owner:
        rows.append(resolve(site.owner, site.method))
    return next((row for row in rows if row is not None), None)


def _instance(instance: Instance, site: Site, barrier: Barrier | None) -> Instance:
    row = _row(site, barrier)
    side = instance.side or (row.side.value if row is not None else site.side.value)
    return replace(
        instance,
        kind=site.kind.value,
        side=side,
        signals=tuple(item.value for item in row.signals) if row is not None else (),
        is_noop=row.is_noop if row is not None else False,
        is_async=row.is_async if row is not None else False,
    )
