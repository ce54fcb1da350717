# SPDX-License-Identifier: Apache-2.0
"""The run folder: manifest.json, records.npz, machine.json and the stamped sources."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from autostamp.diagnostics import AutostampError
from autostamp.model.manifest import KernelTrace, Manifest
from autostamp.model.run import MachineFacts
from autostamp.model.trace import Trace
from autostamp.runtime.decode import decode_region, signature_of
from autostamp.runtime.manifest_file import digest, digest_of_json, read_manifest, write_manifest, write_whole

LAYOUT_VERSION: Final = 1
"""Version of `runtime.layout`, stored beside the regions."""

MANIFEST_NAME: Final = "manifest.json"
RECORDS_NAME: Final = "records.npz"
MACHINE_NAME: Final = "machine.json"
SOURCES_NAME: Final = "sources"
_REGION: Final = "region_"

Region = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class RunData:
    """One recorded run.

    `traces` has an entry for every kernel trace of the manifest, by its number. One without lanes was never entered,
    or its records were overwritten; its `warnings` say which.
    """

    manifest: Manifest
    traces: dict[int, Trace]
    facts: MachineFacts
    path: Path


def write_run(
    path: Path,
    manifest: Manifest,
    regions: Mapping[int, Region],
    facts: MachineFacts,
    sources: Mapping[str, str],
) -> None:
    """Write a run folder. `regions` are raw buffers by `KernelTrace.region`, `sources` texts by relative POSIX name.

    Each file appears whole. The records come last and carry the manifest's digest, so a run cut short is recognised
    when it is read: without records it is no run, with those of an earlier run they do not fit. Raises AS7001.
    """
    for name in sources:
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise AutostampError.of("AS7001", path=name, detail="the name of a source leaves the run folder")
    _clear_sources(path / SOURCES_NAME, sources)
    for name, text in sources.items():
        write_whole(path / SOURCES_NAME / name, text.encode())
    write_whole(path / MACHINE_NAME, msgspec.json.format(msgspec.json.encode(facts), indent=1) + b"\n")
    write_manifest(path / MANIFEST_NAME, manifest)
    arrays: dict[str, Any] = {f"{_REGION}{number}": region for number, region in sorted(regions.items())}
    arrays["manifest_sha256"] = np.frombuffer(digest(manifest).encode(), np.uint8)
    packed = io.BytesIO()
    np.savez_compressed(packed, layout_version=np.array(LAYOUT_VERSION), **arrays)
    write_whole(path / RECORDS_NAME, packed.getvalue())


def load_run(path: Path | str) -> RunData:
    """Read and decode a run folder.

    Raises AS6004 when `path` is not one, AS6003 for its manifest, AS6001 for unreadable records or machine facts,
    AS6002 when the records were made under another manifest, and what `decode_region` raises.
    """
    path = Path(path)
    for name in (MANIFEST_NAME, RECORDS_NAME, MACHINE_NAME):
        if not (path / name).is_file():
            detail = f"it holds no {name}" if path.is_dir() else "there is no such folder"
            raise AutostampError.of("AS6004", path=path, detail=detail)
    manifest = read_manifest(path / MANIFEST_NAME)
    regions = _read_records(path / RECORDS_NAME, digest_of_json((path / MANIFEST_NAME).read_bytes()))
    facts = _read_facts(path / MACHINE_NAME)
    unknown = sorted(regions.keys() - {trace.region for trace in manifest.traces})
    if unknown:
        raise AutostampError.of("AS6002", detail=f"no kernel trace of it writes region {unknown[0]}")
    return RunData(manifest, decode_all(manifest, regions), facts, path)


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


def _read_records(path: Path, expected: str) -> dict[int, Region]:
    try:
        # From memory: np.load leaves a file open when it turns out not to be an archive.
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        version = int(arrays.pop("layout_version"))
        found = arrays.pop("manifest_sha256").tobytes().decode("ascii")
        regions = {int(name.removeprefix(_REGION)): array for name, array in arrays.items()}
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


def decode_all(manifest: Manifest, regions: Mapping[int, Region]) -> dict[int, Trace]:
    """Decode every region; traces by their number. A trace whose records another compilation overwrote has no lanes.

    Raises AS6002 when a region was written by a kernel that the manifest does not hold, and what `decode_region` raises.
    """
    traces: dict[int, Trace] = {}
    for number in sorted({trace.region for trace in manifest.traces}):
        sharers = [trace for trace in manifest.traces if trace.region == number]
        if number in regions:
            traces |= _decode_shared(sharers, regions[number])
        else:
            traces |= {trace.number: _empty(trace, "no region was recorded for it") for trace in sharers}
    return dict(sorted(traces.items()))


def _decode_shared(sharers: list[KernelTrace], region: Region) -> dict[int, Trace]:
    """Decode a region with the one of its kernel traces that wrote it last; the others get a trace without lanes."""
    signature = signature_of(region, sharers[0].capacity)
    writers = [trace for trace in sharers if signature in (0, trace.signature)]
    if not writers:
        detail = f"none of its kernel traces has the signature {signature:#010x} of region {sharers[0].region}"
        raise AutostampError.of("AS6002", detail=detail)
    writer = max(writers, key=lambda trace: trace.number)
    decoded = decode_region(region, writer)
    if not decoded.lanes:
        return {trace.number: Trace(trace, (), 0.0) for trace in sharers}
    if len(writers) > 1 and signature == 0:
        note = "no lane was released, so which compilation wrote the records is unknown: the latest is assumed"
        decoded = replace(decoded, warnings=(*decoded.warnings, note))
    others = {
        trace.number: _empty(trace, f"its region was written by kernel trace {writer.number} after it")
        for trace in sharers
        if trace is not writer
    }
    return {writer.number: decoded, **others}


def _empty(kernel: KernelTrace, warning: str) -> Trace:
    return Trace(kernel, (), 0.0, (warning,))
