# SPDX-License-Identifier: Apache-2.0
"""A slot spec made into what a decoder needs: a manifest with one kernel trace, and what each slot of a row stands for."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Final, TypeAlias

from autostamp.model.manifest import (
    MANIFEST_VERSION,
    Barrier,
    EventKind,
    Instance,
    KernelTrace,
    Manifest,
    SourceFile,
)
from autostamp.model.site import Shape, Site, Span
from autostamp.model.sync import Kind, Side, StageFrom
from autostamp.runtime.slots import Column
from autostamp.runtime.spec_references import References, SpecFault
from autostamp.runtime.spec_schema import SlotSpec, SpecArrow, SpecMarker, SpecSpan

_Identity: TypeAlias = tuple[object, ...]
_OPPOSITE: Final = {Side.FULL: Side.EMPTY, Side.EMPTY: Side.FULL}
_CUDA_SUFFIXES: Final = frozenset({".cu", ".cuh", ".h", ".hpp", ".cpp", ".cc", ".inl"})


@dataclass(frozen=True, slots=True)
class Use:
    """One span or marker on one row. `end` is -1 for a marker, `barrier` a barrier number, 0 where there is none."""

    row: int
    op: SpecSpan | SpecMarker
    place: str
    start: int
    end: int
    barrier: int
    side: Side

    @property
    def is_marker(self) -> bool:
        """True for a marker."""
        return self.end < 0

    @property
    def is_stall(self) -> bool:
        """True for a wait."""
        return isinstance(self.op, SpecSpan) and self.op.state == "stall"

    @property
    def is_hold(self) -> bool:
        """True for an active span that a wait opens and a marker ends; the analysis finds it in the records."""
        return isinstance(self.op, SpecSpan) and self.op.state == "active" and bool(self.barrier)


@dataclass(frozen=True, slots=True)
class Tables:
    """`columns` says what the records of every row are, `names` what the spec calls each instance."""

    manifest: Manifest
    kernel: KernelTrace
    columns: tuple[tuple[Column, ...], ...]
    names: Mapping[int, str]


def tables_of(spec: SlotSpec) -> Tables:
    """The tables of a spec; raises `SpecFault` where it names what it does not have, or contradicts itself."""
    references = References.of(spec)
    uses = list(_spans(spec, references))
    uses += _markers(spec, references)
    for number, arrow in enumerate(spec.arrows):
        uses = _with_arrow(uses, arrow, f"$.arrows[{number}]", references)
    _require_holds(uses)
    _require_apart(uses)
    return _numbered(spec, uses)


def _spans(spec: SlotSpec, references: References) -> Iterator[Use]:
    for number, op in enumerate(spec.spans):
        place = f"$.spans[{number}]"
        rows = references.rows(op.role, f"{place}.role")
        start = references.event(op.start_evt, f"{place}.start_evt")
        end = references.event(op.end_evt, f"{place}.end_evt")
        barrier = references.barrier(op.barrier, f"{place}.barrier")
        references.require_its(op.its, f"{place}.its")
        if start == end and op.offset == 0:
            raise SpecFault(f"{place}.end_evt", "a span must end in another slot than it starts in")
        yield from (Use(row, op, place, start, end, barrier, op.side) for row in rows)


def _markers(spec: SlotSpec, references: References) -> Iterator[Use]:
    for number, op in enumerate(spec.markers):
        place = f"$.markers[{number}]"
        rows = references.rows(op.role, f"{place}.role")
        event = references.event(op.evt, f"{place}.evt")
        barrier = references.barrier(op.barrier, f"{place}.barrier")
        yield from (Use(row, op, place, event, -1, barrier, op.side) for row in rows)


def _with_arrow(uses: list[Use], arrow: SpecArrow, place: str, references: References) -> list[Use]:
    """The uses with both ends of an arrow on its barrier; raises SpecFault where one is on another, or is none.

    Which record an arrow leads to is not taken from here: it is read from the clocks, use by use.
    """
    barrier = references.barrier(arrow.barrier, f"{place}.barrier")
    references.require_its(arrow.its, f"{place}.its")
    from_rows = references.rows(arrow.source[0], f"{place}.from[0]")
    from_event = references.event(arrow.source[1], f"{place}.from[1]")
    to_rows = references.rows(arrow.target[0], f"{place}.to[0]")
    to_event = references.event(arrow.target[1], f"{place}.to[1]")
    starts = [
        index
        for index, use in enumerate(uses)
        if use.row in from_rows
        and (
            (use.is_marker and use.start == from_event)
            or (use.is_stall and use.op.signals and from_event in _ends(use))
        )
    ]
    ends = [index for index, use in enumerate(uses) if use.row in to_rows and use.is_stall and use.end == to_event]
    if not starts:
        raise SpecFault(f"{place}.from", "no marker stands in this slot, nor a stall span that signals")
    if not ends:
        raise SpecFault(f"{place}.to", "no stall span ends in this slot")
    side = arrow.side or next((uses[index].side for index in ends if uses[index].side), Side.NONE)
    amended = list(uses)
    for end, found in (("from", starts), ("to", ends)):
        for index in found:
            use = uses[index]
            if use.barrier not in (0, barrier):
                raise SpecFault(f"{place}.{end}", f"{use.place} is on another barrier than this arrow")
            amended[index] = replace(use, barrier=barrier, side=use.side or side)
    return amended


def _ends(use: Use) -> tuple[int, int]:
    return use.start, use.end


def _require_holds(uses: list[Use]) -> None:
    """A hold is found by its barrier's two sides, so a span that has no such ends would be drawn nowhere."""
    for use in uses:
        if not use.is_hold:
            continue
        opened = {
            _OPPOSITE[wait.side]
            for wait in uses
            if wait.is_stall
            and (wait.row, wait.end, wait.barrier) == (use.row, use.start, use.barrier)
            and wait.side in _OPPOSITE
        }
        closed = {
            side
            for mark in uses
            if mark.is_marker and (mark.row, mark.start, mark.barrier) == (use.row, use.end, use.barrier)
            for side in (mark.side, *mark.op.signals)
        }
        if not opened & closed:
            detail = (
                "an active span with a barrier goes from the end of a wait on one of its sides (full, empty) to a marker "
                "on the other; leave the barrier out to draw it as work"
            )
            raise SpecFault(use.place, detail)


def _require_apart(uses: list[Use]) -> None:
    """One slot cannot be the start, or the end, of two waits, nor two arrivals on one barrier."""
    seen: dict[tuple[object, ...], Use] = {}
    for use in uses:
        keys: list[tuple[object, ...]] = []
        if use.is_stall:
            keys = [(use.row, "start", use.start), (use.row, "end", use.end)]
        elif use.is_marker:
            keys = [(use.row, "marker", use.start, use.barrier, use.side)]
        for key in keys:
            other = seen.setdefault(key, use)
            if other is not use and not _are_apart(other, use):
                raise SpecFault(use.place, f"{other.place} has the same slots of row {use.row} already")


def _are_apart(first: Use, second: Use) -> bool:
    """True when both say which slots are theirs, and share none."""
    its = [use.op.its for use in (first, second) if isinstance(use.op, SpecSpan)]
    return len(its) == 2 and None not in its and not set(its[0] or ()) & set(its[1] or ())


def _numbered(spec: SlotSpec, uses: list[Use]) -> Tables:
    members: dict[_Identity, list[Use]] = {}
    for use in uses:
        if not use.is_hold:
            members.setdefault(_identity(use), []).append(use)
    numbers = _instance_numbers([use for group in members.values() for use in group])
    events = _event_numbers(members, numbers)
    sites = _Sites(spec)
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
        kind=_kind(use),
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


def _kind(use: Use) -> Kind:
    return Kind.SIGNAL if use.is_marker else Kind.WAIT if use.is_stall else Kind.WORK


def _columns(use: Use, number: int) -> list[Column]:
    if use.is_marker or not isinstance(use.op, SpecSpan):
        return [Column(use.start, number, EventKind.SIGNAL)]
    its, shift = use.op.its, use.op.offset
    kinds = (EventKind.ENTER, EventKind.EXIT) if use.is_stall else (EventKind.BEGIN, EventKind.END)
    starts = None if its is None else frozenset(its)
    ends = None if its is None else frozenset(it + shift for it in its)
    return [Column(use.start, number, kinds[0], 0, starts), Column(use.end, number, kinds[1], shift, ends)]


class _Sites:
    """Source files and their sites, numbered as spans and markers name them."""

    def __init__(self, spec: SlotSpec) -> None:
        self._labels = {barrier.number: barrier.label for barrier in spec.barriers}
        self._sites: dict[str, dict[tuple[object, ...], Site]] = {}

    def of(self, use: Use) -> tuple[str, int]:
        """Key of the file and number of the site; calls of one line, text and name are one site."""
        op, kind, label = use.op, _kind(use), self._labels.get(use.barrier, "")
        method = op.method or op.name.removeprefix(f"{label} ")
        key = (op.line, op.column, op.text, method, kind, "" if op.line else op.name)
        sites = self._sites.setdefault(op.file, {})
        if key not in sites:
            sites[key] = Site(
                number=len(sites) + 1,
                span=Span(0, len(op.text.encode()), op.line, op.column),
                text=op.text,
                method=method,
                owner="",
                kind=kind,
                side=use.side,
                stage_from=StageFrom.NONE,
                shape=Shape.STATEMENT,
                function="",
                barrier=label,
                role="",
                loop_depth=0,
            )
        return _key(op.file), sites[key].number

    def files(self) -> tuple[SourceFile, ...]:
        """The files in the order in which they were named. No text is known, so a key is a hash of the path."""
        return tuple(
            SourceFile(
                key=_key(path),
                path=path,
                module=PurePosixPath(path).stem,
                sha256="",
                sites=tuple(sites.values()),
                skips=(),
                kernels=(),
                language="cuda" if PurePosixPath(path).suffix in _CUDA_SUFFIXES else "cutedsl",
            )
            for path, sites in self._sites.items()
        )


def _key(path: str) -> str:
    return hashlib.sha256(path.encode()).hexdigest()[:16]
