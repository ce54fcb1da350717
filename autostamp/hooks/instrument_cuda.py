# SPDX-License-Identifier: Apache-2.0
"""Gather CUDA C++ files from disk, with the headers that they include, and stamp them as one unit."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from autostamp.diagnostics import AutostampError, Diagnostic
from autostamp.passes import edits
from autostamp.passes.cuda.includes import GENERATED, closure
from autostamp.passes.cuda.instrument import CudaOptions, Project, Watch, instrument
from autostamp.passes.cuda.plan import position
from autostamp.passes.cuda.project import sources_below
from autostamp.runtime.cuda.header import UNIT_HEADER, header_files


@dataclass(slots=True)
class Batch:
    """CUDA C++ files that are stamped together: their bytes, their paths below the folder that is written, and the headers
    that are only read. `named` are those that were named one by one, `own` headers that came with them; `findings` holds
    AS1010 for what they lack.
    """

    files: dict[Path, bytes] = field(default_factory=dict)
    relative: dict[Path, Path] = field(default_factory=dict)
    named: list[Path] = field(default_factory=list)
    own: set[Path] = field(default_factory=set)
    context: dict[Path, bytes] = field(default_factory=dict)
    findings: list[Diagnostic] = field(default_factory=list)


def gather(names: Sequence[str], folders: Sequence[Path], written: Path | None = None) -> Batch:
    """The files of `names` (files and folders), their own headers, and those found in `folders` (-I).

    What lies below `written`, an earlier output, is left out of a folder that holds it. Raises AS3002 and AS9002.
    """
    batch = Batch()
    roots: dict[Path, Path] = {}
    seen: set[Path] = set()
    for name in names:
        path = Path(os.path.normpath(name))
        for file, root in _cuda_sources(path, written):
            if file.resolve() not in seen and file.name not in GENERATED:
                seen.add(file.resolve())
                roots[file] = root
        if path.is_file():
            batch.named.append(path)
    batch.files = {path: _read(path) for path in roots}
    originals = {path: _original(path, data) for path, data in batch.files.items()}
    found = closure(roots, folders, read_header, originals)
    # A folder is stamped for what it holds; only a file that was named by itself must have all of its headers.
    texts = {**{path: originals[path] for path in batch.named if path in originals}, **found.own}
    for path, include in found.missing if batch.named else ():
        if path in texts:
            where = position(texts[path], str(path), include.offset, len(include.name) + 2)
            batch.findings.append(Diagnostic.of("AS1010", where, path=str(path), include=include.name))
    for path in found.own:
        batch.files[path] = _read(path)
        roots[path] = _root_of(path, roots)
    batch.relative = {path: path.relative_to(root) for path, root in roots.items()}
    batch.context = found.context
    batch.own = set(found.own)
    return batch


def _root_of(header: Path, roots: dict[Path, Path]) -> Path:
    """The folder of the named file that a header lies below: the nearest one."""
    return max((root for root in roots.values() if header.is_relative_to(root)), key=lambda root: len(root.parts))


def _cuda_sources(path: Path, written: Path | None) -> Iterator[tuple[Path, Path]]:
    """(file, folder that its own headers lie in or below)."""
    if path.is_file():
        yield path, path.parent
        return
    skipped = next((path / below for below in _ways_down(path, written)), None)
    for file in sources_below(path, skipped):
        yield file, path


def _ways_down(path: Path, written: Path | None) -> Iterator[Path]:
    """How an output folder inside a named one is reached from it, when it is inside at all."""
    if written is not None and path.resolve() in written.parents:
        yield written.relative_to(path.resolve())


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise AutostampError.of("AS9002", path=f"{file}: {error.strerror}") from error


def _original(file: Path, data: bytes) -> bytes:
    return edits.strip(data, str(file)) if edits.is_stamped(data) else data


def read_header(file: Path) -> bytes | None:
    """The bytes of a header without stamps, None where there is none; for `closure`. Raises AS3002."""
    return _original(file, _read(file)) if file.is_file() else None


def instrument_batch(batch: Batch, options: CudaOptions, watch: Watch = iter) -> Project:
    """Stamp a batch. The stamped files include the stamps' header from the top of the folder that is written."""
    headers = {path: include_of(relative) for path, relative in batch.relative.items()}
    return instrument(batch.files, batch.context, replace(options, headers=headers), watch)


def include_of(relative: Path) -> str:
    """How a file at `relative` includes the header at the top: no flag of the compiler is needed."""
    return "../" * (len(relative.parts) - 1) + "autostamp.cuh"


def unit_files(project: Project) -> dict[str, bytes]:
    """The headers that stamped files need beside the manifest, by name."""
    return {**header_files(), UNIT_HEADER: project.unit_header}
