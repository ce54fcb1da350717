# SPDX-License-Identifier: Apache-2.0
"""A slot spec and its buffer read from files, as a decoded trace."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import msgspec

from autostamp.diagnostics import AutostampError
from autostamp.model.manifest import Manifest
from autostamp.model.run import MachineFacts
from autostamp.model.trace import Lane, Trace
from autostamp.runtime.slots import events_of
from autostamp.runtime.spec_buffer import Buffer, read_buffer
from autostamp.runtime.spec_checks import require_forward, unnamed, unpaired
from autostamp.runtime.spec_references import SpecFault, warps_of
from autostamp.runtime.spec_schema import SPEC_VERSION, SlotSpec
from autostamp.runtime.spec_tables import Tables, tables_of


@dataclass(frozen=True, slots=True)
class SpecRun:
    """What a spec and its buffer hold: a manifest with one kernel trace, that trace decoded, and facts of the machine."""

    manifest: Manifest
    trace: Trace
    facts: MachineFacts


def read_spec(spec_path: Path, buffer_path: Path) -> SpecRun:
    """Read a fixed-slot buffer (.npz) by its spec (.json).

    Raises AS6010 for a spec that cannot be read, with the JSON path of what is wrong; AS6001 for an archive that cannot;
    AS6002 when the two belong to different manifests; AS6011 when the buffer is not what the spec says; AS6012 when no
    slot is used; AS6013 when clocks contradict the order that the spec gives them.
    """
    spec = decode_spec(_bytes_of(spec_path), str(spec_path))
    try:
        tables = tables_of(spec)
    except SpecFault as fault:
        raise AutostampError.of("AS6010", path=spec_path, detail=str(fault)) from fault
    buffer = read_buffer(buffer_path, spec)
    return SpecRun(tables.manifest, _trace(spec, tables, buffer, buffer_path), spec.machine or MachineFacts())


def decode_spec(data: bytes, path: str = "spec") -> SlotSpec:
    """Parse a spec; nothing is coerced and no key is ignored. Raises AS6010, naming `path`."""
    try:
        spec = msgspec.json.decode(data, type=SlotSpec, strict=True)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise AutostampError.of("AS6010", path=path, detail=str(error)) from error
    if spec.version != SPEC_VERSION:
        detail = f"it has version {spec.version}, this autostamp reads version {SPEC_VERSION} - at `$.version`"
        raise AutostampError.of("AS6010", path=path, detail=detail)
    return spec


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise AutostampError.of("AS9002", path=path) from error
    except OSError as error:
        raise AutostampError.of("AS6010", path=path, detail=error.strerror or str(error)) from error


def _trace(spec: SlotSpec, tables: Tables, buffer: Buffer, path: Path) -> Trace:
    require_forward(buffer.view, tables.columns, spec, path)
    lanes = tuple(_lane(row, warp, tables, buffer) for row, warp in enumerate(warps_of(spec)))
    recorded = [row for row, lane in enumerate(lanes) if lane.events or lane.entry_cycles >= 0]
    # Lanes stand in the order of warps, as decoded ones do.
    recorded.sort(key=lambda row: lanes[row].warp)
    warnings = chain(
        spec.notes,
        _unit_note(spec),
        (f"row {row} ({spec.roles[row].name}) holds no record" for row in range(len(lanes)) if row not in recorded),
        unnamed(buffer.view, tables.columns, spec),
        unpaired(lanes, tables.names),
    )
    return Trace(
        kernel=tables.kernel,
        lanes=tuple(lanes[row] for row in recorded),
        sm_mhz=spec.clock.mhz or 0.0,
        warnings=tuple(dict.fromkeys(warnings)),
        block=spec.block,
        unit=spec.clock.unit,
        roles=tuple(spec.roles[row].name for row in recorded),
    )


def _lane(row: int, warp: int, tables: Tables, buffer: Buffer) -> Lane:
    known = {name: int(values[row]) for name, values in buffer.lanes.items()}
    return Lane(
        warp=warp,
        smid=known.get("smid", -1),
        events=events_of(buffer.view, row, tables.columns[row]),
        lost=known.get("lost", 0),
        entry_cycles=known.get("entry_cycles", -1),
        exit_cycles=known.get("exit_cycles", -1),
        entry_ns=known.get("entry_ns", 0),
        exit_ns=known.get("exit_ns", 0),
    )


def _unit_note(spec: SlotSpec) -> list[str]:
    return [ns_note(spec.clock.step)] if spec.clock.unit == "ns" else []


def ns_note(step: int) -> str:
    """What a report of a trace in nanoseconds must say."""
    steps = f", which moves in steps of {step}" if step > 1 else ""
    return f"the clock is a nanosecond timer{steps}: every figure given as cycles is in nanoseconds"
