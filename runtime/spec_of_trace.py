# SPDX-License-Identifier: Apache-2.0
"""A decoded trace as a slot spec and its buffer, for plotters that were written for hand-stamped fixed slots."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import numpy as np

from autostamp.model.flow import Arrow, End
from autostamp.model.manifest import EventKind, Instance, Manifest
from autostamp.model.run import MachineFacts
from autostamp.model.site import Site
from autostamp.model.sync import Kind, Side
from autostamp.model.timeline import State, Timeline
from autostamp.model.trace import Lane, Trace
from autostamp.runtime.manifest_file import digest, write_all
from autostamp.runtime.slots import dense, event_axis
from autostamp.runtime.spec_buffer import CLOCKS, COUNTS, MANIFEST, TRACE, arrays_of, pack
from autostamp.runtime.spec_schema import (
    SPEC_VERSION,
    Clock,
    Row,
    SlotSpec,
    SpecArrow,
    SpecBarrier,
    SpecEvent,
    SpecMarker,
    SpecSpan,
)

_Stamp: TypeAlias = tuple[int, int, EventKind]
"""Row, instance number and kind."""


def spec_of(
    trace: Trace,
    timeline: Timeline,
    manifest: Manifest,
    arrows: Iterable[Arrow] = (),
    facts: MachineFacts | None = None,
) -> SlotSpec:
    """The spec of a trace: one row per warp, the event axis of its kernel trace, and what was recorded in these slots.

    A wait that no warp visited stands on the rows of its role, so that it is not forgotten; on all rows when none has its role.
    """
    tables = _Tables.of(trace, timeline, manifest)
    view = dense(trace)
    return SlotSpec(
        version=SPEC_VERSION,
        shape=(len(trace.lanes), len(view.events), view.cycles.shape[2]),
        roles=tuple(Row(tables.roles[lane.warp], lane.warp) for lane in trace.lanes),
        events=tuple(SpecEvent(name) for name in view.events),
        spans=(*_waits_and_work(tables), *_holds(timeline, trace, tables)),
        markers=tuple(_markers(tables)),
        arrows=tuple(_arrows(arrows, tables)),
        barriers=tuple(SpecBarrier(b.number, b.label, b.type, b.stages, b.is_inferred) for b in trace.kernel.barriers),
        clock=_clock(trace),
        kernel=trace.kernel.kernel,
        block=trace.block,
        tool=manifest.tool,
        manifest=digest(manifest),
        trace=trace.kernel.number,
        machine=facts,
        notes=trace.warnings,
    )


def _clock(trace: Trace) -> Clock:
    """Of a nanosecond timer the step is the greatest that all times are multiples of."""
    if trace.unit != "ns":
        return Clock("cycles", trace.sm_mhz or None)
    times = [event.cycles for lane in trace.lanes for event in lane.events]
    times += [bound for lane in trace.lanes for bound in (lane.entry_cycles, lane.exit_cycles) if bound >= 0]
    return Clock("ns", None, math.gcd(*times) or 1)


def write_spec(spec_path: Path, buffer_path: Path, spec: SlotSpec, trace: Trace) -> None:
    """Write both files whole or neither; raises AS7001."""
    arrays: dict[str, Any] = {MANIFEST: np.frombuffer((spec.manifest or "").encode(), np.uint8)}
    arrays[TRACE] = np.array(spec.trace or trace.kernel.number)
    lanes = {
        field: np.array([getattr(lane, field) for lane in trace.lanes], np.int64)
        for field in (*CLOCKS.values(), *COUNTS.values())
    }
    write_all({buffer_path: pack(arrays_of(dense(trace), lanes) | arrays), spec_path: encode_spec(spec)})


def encode_spec(spec: SlotSpec) -> bytes:
    """The spec as JSON with one entry of a list a line, and a newline at the end."""
    lines = []
    for name, value in msgspec.to_builtins(spec).items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            entries = ",\n  ".join(msgspec.json.encode(entry).decode() for entry in value)
            text = f"[\n  {entries}\n ]"
        else:
            text = msgspec.json.encode(value).decode()
        lines.append(f' "{name}": {text}')
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


@dataclass(frozen=True, slots=True)
class _Tables:
    """Look-ups by number: a warp's row and role, an instance's row, site and file, the slot event of an instance's stamp, and
    the clocks that one row recorded for a stamp, by visit.
    """

    rows: Mapping[int, int]
    roles: Mapping[int, str]
    instances: Mapping[int, Instance]
    sites: Mapping[int, tuple[str, Site | None]]
    labels: Mapping[int, str]
    references: Mapping[int, int | str | None]
    events: Mapping[tuple[int, EventKind], int]
    clocks: Mapping[_Stamp, Mapping[int, int]]

    @classmethod
    def of(cls, trace: Trace, timeline: Timeline, manifest: Manifest) -> _Tables:
        kernel = trace.kernel
        sites = {(file.key, site.number): (file.path, site) for file in manifest.files for site in file.sites}
        count = Counter(barrier.label for barrier in kernel.barriers)
        references: dict[int, int | str | None] = {0: None}
        for barrier in kernel.barriers:
            references[barrier.number] = barrier.label if count[barrier.label] == 1 else barrier.number
        clocks: dict[_Stamp, dict[int, int]] = {}
        for row, lane in enumerate(trace.lanes):
            for event in lane.events:
                clocks.setdefault((row, event.instance, event.kind), {})[event.visit] = event.cycles
        return cls(
            rows={lane.warp: row for row, lane in enumerate(trace.lanes)},
            roles={warp.warp: warp.role for warp in timeline.warps},
            instances={row.number: row for row in kernel.instances},
            sites={row.number: sites.get((row.file, row.site), ("", None)) for row in kernel.instances},
            labels={barrier.number: barrier.label for barrier in kernel.barriers},
            references=references,
            events={(number, kind): index for index, (number, kind, _) in enumerate(event_axis(kernel))},
            clocks=clocks,
        )

    def name(self, number: int) -> str:
        """`K consumer_wait`, or the number where the manifest does not know the site."""
        label, (_, site) = self.labels.get(self.instances[number].barrier, ""), self.sites[number]
        return f"{label} {site.method if site else ''}".strip() or f"instance {number}"

    def fields(self, number: int) -> dict[str, Any]:
        """What a span and a marker say of their sync op alike."""
        row, (path, site) = self.instances[number], self.sites[number]
        found: dict[str, Any] = {
            "barrier": self.references.get(row.barrier),
            "side": Side(row.side),
            "signals": tuple(Side(side) for side in row.signals),
            "is_async": row.is_async,
            "is_noop": row.is_noop,
            "payload": row.payload,
            "stage": row.stage,
            "call_path": row.call_path,
            "instance": number,
        }
        if site is not None:
            place = {"file": path, "line": site.span.line, "column": site.span.column}
            found |= place | {"text": " ".join(site.text.split()), "method": site.method}
        return found

    def its(self, its: Sequence[int], shift: int, anchor: _Stamp, partner: _Stamp) -> tuple[int, ...] | None:
        """None where `its` are all slots of `anchor` that have a slot of `partner` `shift` iterations on."""
        there = self.clocks.get(partner, {})
        possible = {it for it in self.clocks.get(anchor, {}) if it + shift in there}
        return None if possible == set(its) else tuple(sorted(its))

    def arrival(self, end: End) -> _Stamp:
        """The stamp that an arrival is read from: its signal, or of a wait that arrives as well the one of that clock."""
        row = self.rows[end.warp]
        if self.instances[end.instance].signal:
            return row, end.instance, EventKind.SIGNAL
        enter: _Stamp = (row, end.instance, EventKind.ENTER)
        return enter if self.clocks[enter].get(end.visit) == end.cycles else (row, end.instance, EventKind.EXIT)

    def rows_of(self, number: int) -> list[int]:
        """The rows that visited an instance; of one that none did, those of its role, else all."""
        named = sorted({row for row, instance, _ in self.clocks if instance == number})
        role = self.instances[number].role
        return named or [row for warp, row in self.rows.items() if self.roles[warp] == role] or list(self.rows.values())


def _waits_and_work(tables: _Tables) -> Iterator[SpecSpan]:
    for number, instance in tables.instances.items():
        if not (instance.enter and instance.exit):
            continue
        is_work = instance.kind == Kind.WORK
        first, last = (EventKind.BEGIN, EventKind.END) if is_work else (EventKind.ENTER, EventKind.EXIT)
        for row in tables.rows_of(number):
            yield SpecSpan(
                role=row,
                name=tables.name(number),
                state="active" if is_work else "stall",
                start_evt=tables.events[number, first],
                end_evt=tables.events[number, last],
                **tables.fields(number),
            )


def _markers(tables: _Tables) -> Iterator[SpecMarker]:
    for number, instance in tables.instances.items():
        if instance.signal:
            event = tables.events[number, EventKind.SIGNAL]
            for row in tables.rows_of(number):
                yield SpecMarker(role=row, evt=event, name=tables.name(number), **tables.fields(number))


def _holds(timeline: Timeline, trace: Trace, tables: _Tables) -> Iterator[SpecSpan]:
    """Holds by the two slots that they lie between, and how many iterations apart; a signal's visit is found by its clock."""
    found: dict[tuple[int, int, int, int], list[int]] = {}
    for row, (lane, warp) in enumerate(zip(trace.lanes, timeline.warps, strict=True)):
        signals = _signal_visits(lane)
        for part in warp.slices:
            if part.state is State.ACTIVE and part.signal:
                # Signals of one instance share a clock on a coarse timer only; then each ends one hold, in their order.
                ends = signals[part.signal, part.end]
                visit = ends.pop(0) if len(ends) > 1 else ends[0]
                found.setdefault((row, part.instance, part.signal, visit - part.visit), []).append(part.visit)
    for (row, opened, ended, offset), its in found.items():
        fields = tables.fields(opened)
        kept = ("barrier", "side", "file", "line", "column", "text", "method")
        yield SpecSpan(
            role=row,
            name=f"{tables.labels.get(tables.instances[opened].barrier, '')} in use".strip(),
            state="active",
            start_evt=tables.events[opened, EventKind.EXIT],
            end_evt=tables.events[ended, EventKind.SIGNAL],
            offset=offset,
            its=tables.its(its, offset, (row, opened, EventKind.EXIT), (row, ended, EventKind.SIGNAL)),
            **{name: fields[name] for name in kept if name in fields},
        )


def _signal_visits(lane: Lane) -> dict[tuple[int, int], list[int]]:
    visits: dict[tuple[int, int], list[int]] = {}
    for event in lane.events:
        if event.kind is EventKind.SIGNAL:
            visits.setdefault((event.instance, event.cycles), []).append(event.visit)
    return visits


def _arrows(arrows: Iterable[Arrow], tables: _Tables) -> Iterator[SpecArrow]:
    """Arrivals to waits by their slots: every arrival of a use leads to its wait, the last one and those before it."""
    found: dict[tuple[_Stamp, _Stamp, int], list[int]] = {}
    firsts: dict[tuple[_Stamp, _Stamp, int], Arrow] = {}
    for arrow in arrows:
        target = (tables.rows[arrow.wait.warp], arrow.wait.instance, EventKind.EXIT)
        for end in (arrow.signal, *arrow.others):
            key = (tables.arrival(end), target, arrow.wait.visit - end.visit)
            found.setdefault(key, []).append(arrow.wait.visit)
            firsts.setdefault(key, arrow)
    for (source, target, offset), its in found.items():
        first = firsts[source, target, offset]
        yield SpecArrow(
            source=(source[0], tables.events[source[1:]]),
            target=(target[0], tables.events[target[1:]]),
            barrier=tables.references.get(first.barrier) or first.barrier,
            side=Side(first.side),
            offset=offset,
            its=tables.its(its, -offset, target, source),
            is_inferred=first.is_inferred,
            is_async=first.is_async,
        )
