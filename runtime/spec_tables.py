# SPDX-License-Identifier: Apache-2.0
"""A slot spec made into what a decoder needs: a manifest with one kernel trace, and what each slot of a row stands for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from autostamp.model.manifest import MANIFEST_VERSION, Barrier, EventKind, Instance, KernelTrace, Manifest
from autostamp.runtime.slots import Column
from autostamp.runtime.spec_references import SpecFault
from autostamp.runtime.spec_schema import SlotSpec, SpecSpan
from autostamp.runtime.spec_sites import Sites
from autostamp.runtime.spec_uses import Use, uses_of

_Identity: TypeAlias = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Tables:
    """`columns` says what the records of every row are, `names` what the spec calls each instance."""

    manifest: Manifest
    kernel: KernelTrace
    columns: tuple[tuple[Column, ...], ...]
    names: Mapping[int, str]


def tables_of(spec: SlotSpec) -> Tables:
    """The tables of a spec; raises SpecFault where it names what it does not have, or contradicts itself."""
    members: dict[_Identity, list[Use]] = {}
    for use in uses_of(spec):
        if not use.is_hold:
            members.setdefault(_identity(use), []).append(use)
    numbers = _instance_numbers([use for group in members.values() for use in group])
    events = _event_numbers(members, numbers)
    sites = Sites(spec)
    instances: list[Instance] = []
    columns: list[list[Column]] = [[] for _ in spec.roles]
    for identity, group in sorted(members.items(), key=lambda item: numbers[item[0]]):
        roles = {spec.roles[use.row].name for use in group}
        role = roles.pop() if len(roles) == 1 else ""
        instances.append(_instance(group[0], numbers[identity], role, sites.of(group[0]), events[identity]))
        for use in group:
            columns[use.row] += _columns(use, numbers[identity])
    for row in columns:
        row.sort(key=lambda column: column.event)
    files = sites.files()
    kernel = KernelTrace(
        number=spec.trace or 1,
        kernel=spec.kernel,
        file=files[0].key if files else "",
        capacity=spec.shape[1] * spec.shape[2],
        block=spec.block,
        region=0,
        signature=0,
        barriers=tuple(Barrier(b.number, b.label, b.type, b.stages, b.is_inferred) for b in spec.barriers),
        instances=tuple(instances),
    )
    manifest = Manifest(MANIFEST_VERSION, spec.tool or "slot spec", files, (kernel,))
    names = {numbers[identity]: group[0].op.name for identity, group in members.items()}
    return Tables(manifest, kernel, tuple(map(tuple, columns)), names)


def _event_numbers(
    members: Mapping[_Identity, list[Use]], numbers: Mapping[_Identity, int]
) -> dict[_Identity, dict[str, int]]:
    """Event numbers in the order of the event axis: where each slot has one meaning, the kernel trace's axis is the spec's."""
    stamps: list[tuple[int, int, str, _Identity]] = []
    for identity, group in members.items():
        use, number = group[0], numbers[identity]
        stamps.append((use.start, number, "signal" if use.is_marker else "enter", identity))
        if not use.is_marker:
            stamps.append((use.end, number, "exit", identity))
    events: dict[_Identity, dict[str, int]] = {}
    for event, (_, _, stamp, identity) in enumerate(sorted(stamps, key=lambda entry: entry[:3]), start=1):
        events.setdefault(identity, {})[stamp] = event
    return events


def _identity(use: Use) -> _Identity:
    """What must agree for spans or markers of several rows to be one instance: all but the row."""
    op = use.op
    shape = (op.state, op.offset, op.its) if isinstance(op, SpecSpan) else ("marker",)
    site = (op.name, op.file, op.line, op.column, op.text, op.method, op.call_path, op.instance)
    sync = (use.barrier, use.side, op.signals, op.is_async, op.is_noop, op.payload, op.stage)
    return (use.start, use.end, *shape, *site, *sync)


def _instance_numbers(uses: list[Use]) -> dict[_Identity, int]:
    """Those that the spec gives, and for the rest the lowest free ones in the order of the event axis."""
    numbers: dict[_Identity, int] = {}
    taken: dict[int, tuple[Use, _Identity]] = {}
    for use in uses:
        identity = _identity(use)
        if use.op.instance is not None:
            other, there = taken.setdefault(use.op.instance, (use, identity))
            if there != identity:
                raise SpecFault(f"{use.place}.instance", f"{other.place} is another instance {use.op.instance}")
            numbers[identity] = use.op.instance
    free = (number for number in range(1, 2 * len(uses) + 2 + len(taken)) if number not in taken)
    for use in sorted(uses, key=lambda use: (use.start, use.end)):
        identity = _identity(use)
        if identity not in numbers:
            numbers[identity] = next(free)
    return numbers


def _instance(use: Use, number: int, role: str, site: tuple[str, int], stamps: Mapping[str, int]) -> Instance:
    op = use.op
    return Instance(
        number=number,
        file=site[0],
        site=site[1],
        role=role,
        call_path=op.call_path,
        kind=use.kind,
        side=use.side,
        barrier=use.barrier,
        payload=op.payload,
        stage=op.stage,
        enter=stamps.get("enter", 0),
        exit=stamps.get("exit", 0),
        signal=stamps.get("signal", 0),
        signals=op.signals,
        is_noop=op.is_noop,
        is_async=op.is_async,
    )


def _columns(use: Use, number: int) -> list[Column]:
    if use.is_marker or not isinstance(use.op, SpecSpan):
        return [Column(use.start, number, EventKind.SIGNAL)]
    its, shift = use.op.its, use.op.offset
    kinds = (EventKind.ENTER, EventKind.EXIT) if use.is_stall else (EventKind.BEGIN, EventKind.END)
    starts = None if its is None else frozenset(its)
    ends = None if its is None else frozenset(it + shift for it in its)
    return [Column(use.start, number, kinds[0], 0, starts), Column(use.end, number, kinds[1], shift, ends)]
