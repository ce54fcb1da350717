# SPDX-License-Identifier: Apache-2.0
"""Where the manifests and texts of stamped units lie: named by the user, by the program, or in the state folder."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from autostamp.diagnostics import AutostampError
from autostamp.hooks.state import StateFolder
from autostamp.model.manifest import Manifest, SourceFile
from autostamp.passes import edits
from autostamp.runtime.manifest_file import read_manifest

_PATTERN = "*.manifest.json"


@dataclass(frozen=True, slots=True)
class UnitPlace:
    """A unit's manifest and where it was found. `texts` is a folder with `original/KEY/NAME` and `stamped/KEY/NAME`, if any."""

    manifest: Manifest
    path: Path
    texts: Path | None = None


def find_units(
    signatures: Collection[int], given: Sequence[Path], named: Sequence[Path], state: StateFolder
) -> dict[int, UnitPlace]:
    """The manifests of units, by signature. What the user gave comes before what the program names and the state folder holds.

    Raises AS9002 for a given path that is not there, and AS6003 for a given file that is no manifest.
    """
    found: dict[int, UnitPlace] = {}
    for path in given:
        if not path.exists():
            raise AutostampError.of("AS9002", path=path)
        _take(found, signatures, _in(path, is_given=True))
    for path in named:
        _take(found, signatures, _in(path, is_given=False))
    for signature in signatures:
        path = state.manifest(signature)
        if signature not in found and path.is_file():
            found[signature] = UnitPlace(read_manifest(path), path, state.texts(signature))
    return found


def _in(path: Path, *, is_given: bool) -> Iterator[UnitPlace]:
    """The manifests at a path, which may be a file or a folder. In a folder, other JSON files are passed over."""
    if path.is_file() and is_given:
        yield UnitPlace(read_manifest(path), path)
        return
    for file in sorted(path.rglob(_PATTERN)) if path.is_dir() else [path]:
        with suppress(AutostampError):
            yield UnitPlace(read_manifest(file), file)


def _take(found: dict[int, UnitPlace], signatures: Collection[int], places: Iterable[UnitPlace]) -> None:
    for place in places:
        unit = place.manifest.unit
        if unit is not None and unit.signature in signatures:
            found.setdefault(unit.signature, place)


def texts_of(place: UnitPlace, keys: Collection[str]) -> dict[str, str]:
    """Original and stamped texts of the unit's files with these keys, by `original/KEY/NAME` and `stamped/KEY/NAME`.

    Without a folder of texts, stamped files are looked for where the manifest says and beside it; one that was changed since
    is left out.
    """
    found: dict[str, str] = {}
    for file in place.manifest.files:
        if file.key not in keys:
            continue
        name = f"{file.key}/{Path(file.path).name}"
        texts = _kept(place.texts, name) if place.texts is not None else _on_disk(place.path, file)
        found |= {f"{kind}/{name}": data.decode(errors="replace") for kind, data in texts.items()}
    return found


def _kept(folder: Path, name: str) -> dict[str, bytes]:
    return {
        kind: (folder / kind / name).read_bytes()
        for kind in ("original", "stamped")
        if (folder / kind / name).is_file()
    }


def _on_disk(manifest: Path, file: SourceFile) -> dict[str, bytes]:
    path = Path(file.path)
    places = (path, manifest.parent / path, manifest.parent / path.name)
    found: dict[str, bytes] = {}
    for place in places:
        data = place.read_bytes() if place.is_file() else b""
        original = _original(data, place)
        if hashlib.sha256(original).hexdigest() == file.sha256:
            found.setdefault("original", original)
            if original != data:
                found.setdefault("stamped", data)
    return found


def _original(data: bytes, path: Path) -> bytes:
    with suppress(AutostampError):
        return edits.strip(data, str(path)) if edits.is_stamped(data) else data
    return b""
