# SPDX-License-Identifier: Apache-2.0
"""The original text of the files that a manifest names: as the run folder kept it, else as it still lies on this machine."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

from autostamp.model.manifest import Manifest, SourceFile
from autostamp.runtime.store import SOURCES_NAME


def original_texts(run: Path, manifest: Manifest) -> dict[str, str]:
    """Texts by file key; a file whose original is found nowhere has no entry. Only reads.

    Outside the run folder a file counts only with the very content that was stamped. It is looked for under its path in the
    manifest, from the current folder and from the folders that Python imports from.
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
    for root in dict.fromkeys(("", *sys.path)):
        yield Path(root or ".") / file.path


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (OSError, ValueError):  # ValueError: a path that the system cannot name
        return None
