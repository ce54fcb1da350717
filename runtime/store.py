# SPDX-License-Identifier: Apache-2.0
"""The run folder: manifest.json, records.npz, machine.json and the stamped sources."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Final

import msgspec
import numpy as np

from autostamp.diagnostics import AutostampError
from autostamp.model.manifest import KernelTrace, Manifest
from autostamp.model.replay import Replays
from autostamp.model.run import MachineFacts
from autostamp.model.trace import Trace
from autostamp.runtime.decode import decode_region, signature_of
from autostamp.runtime.joined_run import COLUMNS_NAME, REPLAYS_NAME, read_replays, with_origins
from autostamp.runtime.manifest_file import digest, digest_of_json, read_manifest, write_manifest, write_whole
from autostamp.runtime.regions import Recorded, Regions, recorded

LAYOUT_VERSION: Final = 1
"""Version of `runtime.layout`, stored beside the regions."""

MANIFEST_NAME: Final = "manifest.json"
RECORDS_NAME: Final = "records.npz"
MACHINE_NAME: Final = "machine.json"
SOURCES_NAME: Final = "sources"
TIMES_NAME: Final = "times.json"
"""Left by `autostamp launch --repeat N`: median microseconds of the `clean` and the `stamped` copy."""
_REGION: Final = re.compile(r"region_([0-9]{1,9})(?:_launch_([0-9]{1,9})_cta_([0-9]{1,9}))?")
_PLACES: Final = "places"
_PLACE_COLUMNS: Final = 9


@dataclass(frozen=True, slots=True)
class RunData:
    """One recorded run.

    `traces` has an entry for every kernel trace of the manifest, by its number: the first CTA that was recorded in the first
    launch that was kept. One without lanes was never entered, or its records were overwritten; its `warnings` say which.
    `recorded` has all CTAs of all launches that were kept, in the order of kernel trace, launch and CTA. `replays` is set
    where the run was joined from several.
    """

    manifest: Manifest
    traces: dict[int, Trace]
    facts: MachineFacts
    path: Path
    recorded: tuple[Trace, ...] = ()
    replays: Replays | None = None


def write_run(
    path: Path,
    manifest: Manifest,
    regions: Regions,
    facts: MachineFacts,
    sources: Mapping[str, str],
    replays: Mapping[str, bytes] | None = None,
) -> None:
    """Write a run folder. `regions` are raw buffers of `KernelTrace.region`, `sources` texts by relative POSIX name, and
    `replays` the files of a joined run (`joined_run.files_of`).

    Each file appears whole. The records come last and carry the manifest's digest, so a run cut short is recognised
    when it is read: without records it is no run, with those of an earlier run they do not fit. Raises AS7001.
    """
    for name in sources:
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise AutostampError.of("AS7001", path=name, detail="the name of a source leaves the run folder")
    _clear_sources(path / SOURCES_NAME, sources)
    for name in (REPLAYS_NAME, COLUMNS_NAME):
        _settle(path / name, (replays or {}).get(name))
    for name, text in sources.items():
        write_whole(path / SOURCES_NAME / name, text.encode())
    write_whole(path / MACHINE_NAME, msgspec.json.format(msgspec.json.encode(facts), indent=1) + b"\n")
    write_manifest(path / MANIFEST_NAME, manifest)
    arrays = _arrays(recorded(regions))
    arrays["manifest_sha256"] = np.frombuffer(digest(manifest).encode(), np.uint8)
    packed = io.BytesIO()
    np.savez_compressed(packed, layout_version=np.array(LAYOUT_VERSION), **arrays)
    write_whole(path / RECORDS_NAME, packed.getvalue())


def load_run(path: Path | str) -> RunData:
    """Read and decode a run folder.

    Raises AS6004 when `path` is not one, AS6003 for its manifest, AS6001 for unreadable records or machine facts,
    AS6002 when the records were made under another manifest, AS8128 for a joined run whose origins cannot be read, and what
    `decode_region` raises.
    """
    path = Path(path)
    for name in (MANIFEST_NAME, RECORDS_NAME, MACHINE_NAME):
        if not (path / name).is_file():
            detail = f"it holds no {name}" if path.is_dir() else "there is no such folder"
            raise AutostampError.of("AS6004", path=path, detail=detail)
    manifest = read_manifest(path / MANIFEST_NAME)
    regions = _read_records(path / RECORDS_NAME, digest_of_json((path / MANIFEST_NAME).read_bytes()))
    facts = _read_facts(path / MACHINE_NAME)
    unknown = sorted({each.region for each in regions} - {trace.region for trace in manifest.traces})
    if unknown:
        raise AutostampError.of("AS6002", detail=f"no kernel trace of it writes region {unknown[0]}")
    traces = decode_every(manifest, regions)
    replays = read_replays(path)
    if replays is not None:
        traces = with_origins(path, traces)
    return RunData(manifest, _first_of_each(traces), facts, path, traces, replays)


def _settle(path: Path, data: bytes | None) -> None:
    """Write a file, or remove what an earlier run left in its place."""
    if data is not None:
        write_whole(path, data)
        return
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise AutostampError.of("AS7001", path=path, detail=error.strerror or str(error)) from error


def _clear_sources(folder: Path, keep: Mapping[str, str]) -> None:
    """Remove sources that an earlier run left: beside this run's manifest they would be taken for its own."""
    try:
        for file in sorted(folder.rglob("*")) if folder.is_dir() else []:
            if file.is_file() and file.relative_to(folder).as_posix() not in keep:
                file.unlink()
    except OSError as error:
        raise AutostampError.of("AS7001", path=folder, detail=error.strerror or str(error)) from error


def _read_facts(path: Path) -> MachineFacts:
    try:
        return msgspec.json.decode(path.read_bytes(), type=MachineFacts, strict=True)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise AutostampError.of("AS6001", path=path, detail=str(error)) from error


def _arrays(regions: Sequence[Recorded]) -> dict[str, Any]:
    """Arrays of the records file. A region of the one CTA of one launch bears its number alone, as such regions always did."""
    arrays: dict[str, Any] = {}
    places = []
    for each in regions:
        if each.block is None or (each.launch, each.cta, each.grid) == (0, 0, (0, 0, 0)):
            arrays[f"region_{each.region}"] = each.data
        else:
            arrays[f"region_{each.region}_launch_{each.launch}_cta_{each.cta}"] = each.data
            places.append((each.region, each.launch, each.cta, *each.block, *each.grid))
    if places:
        arrays[_PLACES] = np.array(places, np.int64)
    return arrays


def _read_records(path: Path, expected: str) -> tuple[Recorded, ...]:
    try:
        # From memory: np.load leaves a file open when it turns out not to be an archive.
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        version = int(arrays.pop("layout_version"))
        found = arrays.pop("manifest_sha256").tobytes().decode("ascii")
        regions = _placed(arrays)
    except KeyError as error:
        raise AutostampError.of("AS6001", path=path, detail=f"it holds no {error.args[0]}") from error
    except Exception as error:  # damaged bytes surface as whatever zipfile, zlib, tokenize or numpy raise on them
        raise AutostampError.of("AS6001", path=path, detail=str(error)) from error
    if version != LAYOUT_VERSION:
        detail = f"its records have layout {version}, this autostamp reads layout {LAYOUT_VERSION}"
        raise AutostampError.of("AS6001", path=path, detail=detail)
    if found != expected:
        detail = f"they were made under manifest {found[:12]}, this one is {expected[:12]}"
        raise AutostampError.of("AS6002", detail=detail)
    return regions


def _placed(arrays: dict[str, Any]) -> tuple[Recorded, ...]:
    """The regions with what `places` says of them. KeyError for one that it does not name, ValueError for other arrays."""
    places = arrays.pop(_PLACES, np.empty((0, _PLACE_COLUMNS), np.int64))
    by_key = {tuple(row[:3]): (tuple(row[3:6]), tuple(row[6:])) for row in places.reshape(-1, _PLACE_COLUMNS).tolist()}
    regions = []
    for name, data in arrays.items():
        match = _REGION.fullmatch(name)
        if match is None:
            message = f"it holds an array {name!r}"
            raise ValueError(message)
        if match[2] is None:
            regions.append(Recorded(int(match[1]), data))
            continue
        region, launch, cta = (int(part) for part in match.groups())
        if (region, launch, cta) not in by_key:
            raise KeyError(f"place of {name}")
        block, grid = by_key[region, launch, cta]
        regions.append(Recorded(region, data, launch, cta, block, grid))
    return recorded(regions)


def decode_all(manifest: Manifest, regions: Regions) -> dict[int, Trace]:
    """Decode every region; the first trace with lanes of each kernel trace, by number, and one without where there is none.

    Raises what `decode_every` raises.
    """
    return _first_of_each(decode_every(manifest, regions))


def _first_of_each(traces: Sequence[Trace]) -> dict[int, Trace]:
    found: dict[int, Trace] = {}
    for trace in traces:
        known = found.get(trace.kernel.number)
        if known is None or (trace.lanes and not known.lanes):
            found[trace.kernel.number] = trace
    return found


def decode_every(manifest: Manifest, regions: Regions) -> tuple[Trace, ...]:
    """Decode every region, in the order of kernel trace, launch and CTA.

    A kernel trace of which nothing was recorded, or whose records another compilation overwrote, has one trace without lanes.
    Raises AS6002 when a region was written by a kernel that the manifest does not hold, and what `decode_region` raises.
    """
    by_region: dict[int, list[Recorded]] = {}
    for each in recorded(regions):
        by_region.setdefault(each.region, []).append(each)
    traces: list[Trace] = []
    for number in sorted({trace.region for trace in manifest.traces}):
        sharers = [trace for trace in manifest.traces if trace.region == number]
        decoded = [_decode_shared(sharers, each) for each in by_region.get(number, [])]
        for trace in sharers:
            own = [found for parts in decoded for found in parts if found.kernel is trace]
            with_lanes = [found for found in own if found.lanes]
            traces += with_lanes or own[:1] or [_empty(trace, "no region was recorded for it")]
    return tuple(sorted(traces, key=lambda trace: trace.kernel.number))


def _decode_shared(sharers: list[KernelTrace], of: Recorded) -> list[Trace]:
    """Decode a region with the one of its kernel traces that wrote it last; the others get a trace without lanes."""
    region, signature = of.data, signature_of(of.data, sharers[0].capacity)
    writers = [trace for trace in sharers if signature in (0, trace.signature)]
    if not writers:
        detail = f"none of its kernel traces has the signature {signature:#010x} of region {sharers[0].region}"
        raise AutostampError.of("AS6002", detail=detail)
    writer = max(writers, key=lambda trace: trace.number)
    decoded = decode_region(region, writer)
    if not decoded.lanes:
        return [Trace(trace, (), 0.0, block=trace.block) for trace in sharers]
    if of.block is not None:
        decoded = replace(decoded, block=of.block, launch=of.launch, grid=of.grid)
    if len(writers) > 1 and signature == 0:
        note = "no lane was released, so which compilation wrote the records is unknown: the latest is assumed"
        decoded = replace(decoded, warnings=(*decoded.warnings, note))
    others = [
        _empty(trace, f"its region was written by kernel trace {writer.number} after it")
        for trace in sharers
        if trace is not writer
    ]
    return [decoded, *others]


def _empty(kernel: KernelTrace, warning: str) -> Trace:
    return Trace(kernel, (), 0.0, (warning,), kernel.block)
