# SPDX-License-Identifier: Apache-2.0
"""Instrument sources on disk or in memory, without running them."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

from autostamp import __version__
from autostamp.diagnostics import AutostampError
from autostamp.model.manifest import MANIFEST_VERSION, Manifest, SourceFile, Unit
from autostamp.model.options import InstrumentOptions
from autostamp.passes.cutedsl import Stamped, instrument


def instrument_source(data: bytes, path: str = "<string>", options: InstrumentOptions | None = None) -> Stamped:
    """Stamp one text. Raises AutostampError with AS1001 or AS1002 for text that is not Python in UTF-8."""
    return instrument(data, path, options)


def sources(name: str) -> Iterator[tuple[Path, Path]]:
    """(file, its path relative to what was named) for a file, a folder or an installed module or package.

    Raises AS9002 when `name` is none of these. Nothing is imported but the parents of a dotted module name.
    """
    path = Path(name)
    if path.is_file():
        yield path, Path(path.name)
        return
    if path.is_dir():
        yield from _tree(path, path)
        return
    try:
        spec = importlib.util.find_spec(name) if all(part.isidentifier() for part in name.split(".")) else None
    except (ImportError, ValueError):
        spec = None
    if spec is None or (spec.origin is None and not spec.submodule_search_locations):
        raise AutostampError.of("AS9002", path=name)
    if spec.submodule_search_locations:
        for folder in spec.submodule_search_locations:
            yield from _tree(Path(folder), Path(folder).parent)
    else:
        origin = Path(str(spec.origin))
        yield origin, Path(origin.name)


def _tree(folder: Path, root: Path) -> Iterator[tuple[Path, Path]]:
    for file in sorted(folder.rglob("*.py")):
        if not any(part.startswith(".") or part == "__pycache__" for part in file.relative_to(root).parts):
            yield file, file.relative_to(root)


def manifest_of(files: tuple[SourceFile, ...], unit: Unit | None = None) -> Manifest:
    """A manifest without kernel traces: what is known before anything ran. `unit` numbers the files of CUDA C++."""
    return Manifest(MANIFEST_VERSION, f"autostamp {__version__}", files, unit=unit)
