# SPDX-License-Identifier: Apache-2.0
"""The table that a CUDA C++ kernel's records are decoded with: one instance for each site that the kernel reaches.

Stamps of CUDA C++ name sites, not call paths, so every site has one instance and its barrier is known by declaration.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from autostamp.model.manifest import Barrier, Instance, Manifest, Payload, SourceFile, Unit, UnitFile
from autostamp.model.placement import Form
from autostamp.model.site import KernelDef, Site
from autostamp.model.sync import Kind, StageFrom, SyncOp

SIGNATURES: Final = 1 << 32

Row = Callable[[Site], SyncOp | None]
"""What the catalogue knows about a site's call, beyond what the site says."""

SiteKey = tuple[str, int]
"""File key and site number."""


def unknown(_: Site) -> SyncOp | None:
    """For want of a catalogue."""
    return None


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel of a unit, with the slot that its signature says."""

    definition: KernelDef
    file: SourceFile
    slot: int


@dataclass(frozen=True, slots=True)
class UnitTable:
    """A unit and its files: what events and signatures mean in it."""

    unit: Unit
    files: Mapping[str, SourceFile]

    @classmethod
    def of(cls, manifest: Manifest) -> UnitTable:
        """The unit of a manifest; raises ValueError for a manifest without one."""
        if manifest.unit is None:
            message = "the manifest has no unit"
            raise ValueError(message)
        return cls(manifest.unit, {file.key: file for file in manifest.files})

    def kernels(self) -> tuple[Kernel, ...]:
        """All kernels of the unit, by slot."""
        found = [
            Kernel(definition, self.files[row.key], row.kernels + definition.number - 1)
            for row in self.unit.files
            if row.key in self.files
            for definition in self.files[row.key].kernels
        ]
        return tuple(sorted(found, key=lambda kernel: kernel.slot))

    def kernel_of(self, signature: int) -> Kernel | None:
        """The kernel whose lanes are released with a signature."""
        slot = (signature - self.unit.signature) % SIGNATURES
        return next((kernel for kernel in self.kernels() if kernel.slot == slot), None)

    def signature_of(self, kernel: Kernel) -> int:
        """What the kernel's lanes are released with."""
        return (self.unit.signature + kernel.slot) % SIGNATURES

    def site_of(self, event: int) -> SiteKey | None:
        """The site that an event number belongs to."""
        rows = sorted(self.unit.files, key=lambda row: row.events)
        at = bisect_left([row.events for row in rows], event) - 1
        if at < 0:
            return None
        number = (event - rows[at].events + 1) // 2
        file = self.files.get(rows[at].key)
        known = file is not None and any(site.number == number for site in file.sites)
        return (rows[at].key, number) if known else None


@dataclass(frozen=True, slots=True)
class Table:
    """Barriers and instances of one kernel trace. `strays` are sites that it visited and was not known to reach."""

    barriers: tuple[Barrier, ...]
    instances: tuple[Instance, ...]
    strays: tuple[SiteKey, ...]


def table_of(unit: UnitTable, kernel: KernelDef, visited: Iterable[SiteKey], row_of: Row = unknown) -> Table:
    """One instance for each site that the kernel reaches or that was visited, in the order of files and sites."""
    reached, seen = set(kernel.reaches), set(visited)
    barriers: dict[str, Barrier] = {}
    instances: list[Instance] = []
    for row in unit.unit.files:
        file = unit.files.get(row.key)
        for site in file.sites if file is not None else ():
            if (row.key, site.number) in reached | seen:
                number = _barrier(site, barriers)
                form = dict(file.forms).get(site.number, "") if file is not None else ""
                instances.append(_instance(len(instances) + 1, row, site, number, row_of(site), form))
    return Table(tuple(barriers.values()), tuple(instances), tuple(sorted(seen - reached)))


def _barrier(site: Site, barriers: dict[str, Barrier]) -> int:
    """The number of the site's barrier, 0 when it names none. Sites of one declaration share one."""
    key = site.root or site.barrier
    if not key:
        return 0
    is_inferred = site.payload != Payload.ADDRESS
    known = barriers.get(key)
    if known is None:
        known = Barrier(len(barriers) + 1, _label(site), site.owner, 0, is_inferred)
    elif known.is_inferred and not is_inferred:
        known = Barrier(known.number, known.label, known.type, known.stages, is_inferred)
    barriers[key] = known
    return known.number


def _label(site: Site) -> str:
    """What a reader calls the barrier: the declared name at the end of `file:line:name`, else the text at the call."""
    name = site.root.rpartition(":")[2] or site.barrier
    is_number = site.stage_from is StageFrom.BARRIER_ID and name.isdecimal()
    return f"barrier {name}" if is_number else name


def _instance(number: int, row: UnitFile, site: Site, barrier: int, op: SyncOp | None, form: str) -> Instance:
    """`form` is "" where the stamps are in the usual places. The exit carries no payload."""
    first = row.events + 2 * site.number - 1
    is_wait = site.kind is Kind.WAIT
    return Instance(
        number=number,
        file=row.key,
        site=site.number,
        role=site.role,
        call_path=(),
        kind=site.kind.value,
        side=site.side.value,
        barrier=barrier,
        payload=Payload.NONE if form == Form.EXIT else Payload(site.payload),
        enter=first if is_wait and form != Form.EXIT else 0,
        exit=first + 1 if is_wait and form != Form.ENTER else 0,
        signal=0 if is_wait else first,
        signals=tuple(side.value for side in op.signals) if op is not None else (),
        is_noop=op.is_noop if op is not None else False,
        is_async=site.is_async or (op.is_async if op is not None else False),
        form=form,
    )


def events_in(words: Iterable[int]) -> Sequence[int]:
    """Event numbers in event words, each once, in order."""
    return sorted({word & 0xFFFF for word in words} - {0})
