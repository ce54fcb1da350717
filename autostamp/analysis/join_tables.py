# SPDX-License-Identifier: Apache-2.0
"""One instance table out of those of several replays: each compilation of a kernel numbers the stamps that it has from 1."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from autostamp.model.manifest import Barrier, EventKind, Instance, KernelTrace

_Key = tuple[str, int, tuple[str, ...], str, int]
"""File, site, call path, kind, and which of several copies that a loop's unrolling made."""

EVENTS = {EventKind.ENTER: "enter", EventKind.EXIT: "exit", EventKind.SIGNAL: "signal"}


@dataclass(frozen=True, slots=True)
class Tables:
    """`kernel` has every instance and barrier of any replay, `numbers` for each replay its instances' numbers there."""

    kernel: KernelTrace
    numbers: tuple[Mapping[int, int], ...]


def unite(kernels: Sequence[KernelTrace]) -> Tables:
    """The common table. Instances are told by their site, call path and order; their order is the first table's, and one
    that it lacks comes after the one that it follows in its own.
    """
    keys = [_keys(kernel.instances) for kernel in kernels]
    order: list[_Key] = []
    for own in keys:
        at = 0
        for key in own:
            if key in order:
                at = order.index(key) + 1
            else:
                order.insert(at, key)
                at += 1
    numbers = {key: number for number, key in enumerate(order, 1)}
    barriers, renamed = _barriers(kernels, keys)
    rows: dict[_Key, Instance] = {}
    for kernel, own, names in zip(kernels, keys, renamed, strict=True):
        for key, row in zip(own, kernel.instances, strict=True):
            moved = replace(row, number=numbers[key], barrier=names.get(row.barrier, 0))
            rows[key] = _merged(rows[key], moved) if key in rows else moved
    instances = tuple(_numbered(rows[key] for key in order))
    first = kernels[0]
    capacity = max(kernel.capacity for kernel in kernels) * len(kernels)
    signature = zlib.crc32(repr((instances, barriers)).encode()) or 1
    united = replace(first, barriers=barriers, instances=instances, capacity=capacity, signature=signature)
    own_numbers = []
    for kernel, own in zip(kernels, keys, strict=True):
        own_numbers.append({row.number: numbers[key] for key, row in zip(own, kernel.instances, strict=True)})
    return Tables(united, tuple(own_numbers))


def _keys(instances: Sequence[Instance]) -> list[_Key]:
    seen: Counter[tuple[str, int, tuple[str, ...], str]] = Counter()
    keys = []
    for row in instances:
        name = (row.file, row.site, row.call_path, row.kind)
        keys.append((*name, seen[name]))
        seen[name] += 1
    return keys


def _merged(known: Instance, other: Instance) -> Instance:
    """What two replays know of one instance. Events are only marks of presence here; `_numbered` numbers them."""
    return replace(
        known,
        role=known.role or other.role,
        side=known.side or other.side,
        barrier=known.barrier or other.barrier,
        enter=known.enter or other.enter,
        exit=known.exit or other.exit,
        signal=known.signal or other.signal,
        signals=known.signals or other.signals,
        form=_form(known, other),
    )


def _form(known: Instance, other: Instance) -> str:
    """Of a signal that one replay stamped before and another after it, the form whose records say less."""
    return known.form if known.form == other.form else known.form or other.form if known.signal or other.signal else ""


def _numbered(rows: Iterable[Instance]) -> Iterable[Instance]:
    event = 0
    for row in rows:
        found = {}
        for name in EVENTS.values():
            if getattr(row, name):
                event += 1
                found[name] = event
        yield replace(row, **found)  # type: ignore[arg-type]


def _barriers(
    kernels: Sequence[KernelTrace], keys: Sequence[list[_Key]]
) -> tuple[tuple[Barrier, ...], list[dict[int, int]]]:
    """All barriers, and for each replay the numbers of its own among them.

    A barrier is known again by an instance that both replays have, else by its label and type.
    """
    barriers: list[Barrier] = []
    of_instance: dict[_Key, int] = {}
    renamed: list[dict[int, int]] = []
    for kernel, own in zip(kernels, keys, strict=True):
        names: dict[int, int] = {}
        for key, row in zip(own, kernel.instances, strict=True):
            if row.barrier and key in of_instance:
                names.setdefault(row.barrier, of_instance[key])
        for barrier in kernel.barriers:
            if barrier.number in names:
                known = barriers[names[barrier.number] - 1]
                barriers[known.number - 1] = replace(known, stages=known.stages or barrier.stages)
                continue
            taken = set(names.values())
            like = [
                one.number
                for one in barriers
                if (one.label, one.type) == (barrier.label, barrier.type) and one.number not in taken
            ]
            if not like:
                barriers.append(replace(barrier, number=len(barriers) + 1))
            names[barrier.number] = like[0] if like else len(barriers)
        of_instance |= {key: names[row.barrier] for key, row in zip(own, kernel.instances, strict=True) if row.barrier}
        renamed.append(names)
    return tuple(barriers), renamed
