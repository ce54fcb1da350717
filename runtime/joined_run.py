# SPDX-License-Identifier: Apache-2.0
"""A joined run as a run folder: the joined traces as records of one manifest, and beside them which replay each is from.

`replays.json` says what was replayed and how well it fits. `replays.npz` has, for the records of every trace in the order in
which the run folder is decoded, the number of the set that recorded it and by how many cycles its place may be wrong.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from autostamp.diagnostics import AutostampError
from autostamp.model.manifest import KernelTrace, Manifest, SourceFile
from autostamp.model.replay import REPLAYS_SCHEMA, Replays
from autostamp.model.trace import Lane, Trace
from autostamp.runtime.encode import encode_region
from autostamp.runtime.regions import Recorded
from autostamp.runtime.versioned_json import VersionedJson

REPLAYS_NAME: Final = "replays.json"
COLUMNS_NAME: Final = "replays.npz"
_FILE: Final = VersionedJson(Replays, REPLAYS_SCHEMA, "AS8128")
_STEP: Final = 16
"""Capacities are multiples of it."""


def united(manifests: Sequence[Manifest], kernels: Iterable[KernelTrace]) -> Manifest:
    """One manifest of all replays: every file with the sites that any of them stamped, and the joined kernel traces."""
    files: dict[str, SourceFile] = {}
    for manifest in manifests:
        for file in manifest.files:
            files[file.key] = _both(files[file.key], file) if file.key in files else file
    ordered = tuple(sorted(files.values(), key=lambda file: file.path))
    return Manifest(manifests[0].version, manifests[0].tool, ordered, tuple(kernels))


def _both(first: SourceFile, second: SourceFile) -> SourceFile:
    sites = {site.number: site for site in (*second.sites, *first.sites)}
    stamped = {site.span for site in sites.values()}
    skips = {(skip.span.start, skip.span.end, skip.code): skip for skip in (*first.skips, *second.skips)}
    left = [skip for _, skip in sorted(skips.items()) if skip.span not in stamped]
    return replace(first, sites=tuple(site for _, site in sorted(sites.items())), skips=tuple(left))


def fitted(traces: Sequence[Trace], number: int) -> tuple[Trace, ...]:
    """Traces of one kernel, with the first one's table, which is numbered `number` and gets room for their records."""
    most = max((len(lane.events) for trace in traces for lane in trace.lanes), default=0)
    capacity = -(-max(most, 1) // _STEP) * _STEP
    if not traces:
        return ()
    kernel = replace(traces[0].kernel, number=number, region=number, capacity=capacity)
    return tuple(replace(trace, kernel=kernel) for trace in traces)


def regions_of(traces: Iterable[Trace]) -> list[Recorded]:
    """The regions of joined traces. A CTA's number is its place among those of its launch."""
    seen: dict[tuple[int, int], int] = {}
    found = []
    for trace in traces:
        key = (trace.kernel.region, trace.launch)
        cta = seen.setdefault(key, 0)
        seen[key] += 1
        found.append(Recorded(trace.kernel.region, encode_region(trace), trace.launch, cta, trace.block, trace.grid))
    return found


def files_of(replays: Replays, traces: Sequence[Trace]) -> dict[str, bytes]:
    """The two files beside the records, by name."""
    lanes = [lane for trace in traces for lane in trace.lanes]
    packed = io.BytesIO()
    np.savez_compressed(
        packed,
        replay=np.array([number for lane in lanes for number in lane.replays], np.uint16),
        error=np.array([error for lane in lanes for error in lane.errors], np.int32),
    )
    return {REPLAYS_NAME: _FILE.encode(replays), COLUMNS_NAME: packed.getvalue()}


def read_replays(folder: Path) -> Replays | None:
    """What a run folder says of its replays, None where it was recorded as it is. Raises AS8128."""
    path = folder / REPLAYS_NAME
    if not path.is_file():
        return None
    return _FILE.read(path)


def with_origins(folder: Path, traces: Sequence[Trace]) -> tuple[Trace, ...]:
    """The traces of a joined run with the origin and the error of each record. Raises AS8128 where those do not fit them."""
    path = folder / COLUMNS_NAME
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as archive:
            columns = [archive[name].astype(np.int64).tolist() for name in ("replay", "error")]
    except Exception as error:  # damaged bytes surface as whatever zipfile, zlib or numpy raise on them
        raise AutostampError.of("AS8128", path=path, detail=str(error) or type(error).__name__) from error
    count = sum(len(lane.events) for trace in traces for lane in trace.lanes)
    if any(len(column) != count for column in columns):
        detail = f"it has {len(columns[0])} origins, and the run has {count} records"
        raise AutostampError.of("AS8128", path=path, detail=detail)
    at = 0
    found = []
    for trace in traces:
        lanes = []
        for lane in trace.lanes:
            lanes.append(_lane(lane, columns, at))
            at += len(lane.events)
        found.append(replace(trace, lanes=tuple(lanes)))
    return tuple(found)


def _lane(lane: Lane, columns: Sequence[Sequence[int]], at: int) -> Lane:
    replays, errors = (tuple(column[at : at + len(lane.events)]) for column in columns)
    return replace(lane, replays=replays, errors=errors)


def sources_of(folders: Iterable[Path], name: str) -> Mapping[str, str]:
    """The originals that replays kept, by their names in a run folder."""
    found: dict[str, str] = {}
    for folder in folders:
        root = folder / name
        for path in sorted((root / "original").rglob("*")) if root.is_dir() else []:
            if path.is_file() and path.suffix != ".cubin":
                found.setdefault(path.relative_to(root).as_posix(), path.read_text(errors="replace"))
    return found
