# SPDX-License-Identifier: Apache-2.0
"""The original text of the files that a manifest names: as the run folder kept it, else as it still lies on this machine."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

from autostamp.model.manifest import Manifest, SourceFile
from autostamp.runtime.store import SOURCES_NAME


def original_texts(run: Path, manifest: Manifest) -> dict[str, str]:
    """Texts by file key; a file whose original is found nowhere has no entry. Only reads.

    Outside the run folder a file counts only with the very content that was stamped. It is looked for under its path in the
    manifest and under the ends of that path, from the current folder and from the folders that Python imports from: a run of
    another machine finds the package that is installed here.
    """
    found = {file.key: _text(run, file) for file in manifest.files}
    return {key: text for key, text in found.items() if text is not None}


def _text(run: Path, file: SourceFile) -> str | None:
    name = Path(file.path).name
    kept = _read(run / SOURCES_NAME / "original" / file.key / name)
    if kept is not None:
        return kept.decode(errors="replace")
    for path in _elsewhere(file):
        data = _read(path)
        if data is not None and hashlib.sha256(data).hexdigest() == file.sha256:
            return data.decode(errors="replace")
    return None


def _elsewhere(file: SourceFile) -> Iterator[Path]:
    """Where the file may lie, likeliest first: `/there/package/module.py` is also `package/module.py` and `module.py` here."""
    path = Path(file.path)
    parts = path.parts[1:] if path.is_absolute() else path.parts
    ends = [Path(*parts[first:]) for first in range(len(parts))]
    roots = [Path(root or ".") for root in dict.fromkeys(("", *sys.path))]
    yield path
    yield from _installed(file.module)
    for end in ends:
        for root in roots:
            yield root / end


def _installed(module: str) -> Iterator[Path]:
    """The module's file in the package of its name that is installed here, editable ones included; nothing is imported."""
    top, *rest = module.split(".")
    try:
        spec = importlib.util.find_spec(top) if rest else None
    except (ImportError, ValueError):  # ValueError: a program without a spec, such as __main__
        spec = None
    for folder in (spec and spec.submodule_search_locations) or ():
        yield Path(folder, *rest[:-1], f"{rest[-1]}.py")
        yield Path(folder, *rest, "__init__.py")


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (OSError, ValueError):  # ValueError: a path that the system cannot name
        return None
