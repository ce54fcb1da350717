# SPDX-License-Identifier: Apache-2.0
"""Write a shadow tree, bring an older one up to date, and remove nothing but what was written before."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable
from pathlib import Path

from autostamp.diagnostics import AutostampError
from autostamp.passes.cuda.project import IGNORED, LISTING, Shadow
from autostamp.runtime.manifest_file import write_all

_VERSION = 1
_BUILD_FOLDERS = IGNORED | {"build", "out", "dist", "target", "stamped", "_build", "_deps"}


def require_place(root: Path, target: Path) -> None:
    """Raise AS9001 for a shadow that would hold itself: inside the project, but in no folder for build products.

    Also for one that holds the project, and for a folder with files that no earlier run wrote.
    """
    if target == root or root.is_relative_to(target):
        raise AutostampError.of("AS9001", detail=f"the shadow {target} would overwrite the project {root}")
    if target.is_relative_to(root):
        first = target.relative_to(root).parts[0]
        if not (first.startswith((".", "build", "cmake-build")) or first in _BUILD_FOLDERS):
            detail = f"the shadow {target} lies in the project: give a folder outside, or one below build/"
            raise AutostampError.of("AS9001", detail=detail)
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise AutostampError.of("AS9001", detail=f"{target} is not a folder")
    if target.is_dir() and not (target / LISTING).is_file() and any(target.iterdir()):
        raise AutostampError.of("AS9001", detail=f"{target} is not empty and holds no shadow that autostamp wrote")


def write(target: Path, shadow: Shadow) -> int:
    """Make `target` hold `shadow` and whatever others put there; the number of files written or linked anew.

    What an earlier run wrote and this one does not is removed: files and links only inside real folders of `target`, and folders
    only when they are empty. Raises AS7001.
    """
    links = {path: str(to) for path, to in shadow.links.items()}
    for path, to in shadow.inner.items():
        links[path] = os.path.relpath(target / to, (target / path).parent)
    kept = {*links, *shadow.writes}
    try:
        _remove(target, [path for path in _listed(target, "files") if path not in kept])
        _remove_folders(target, [path for path in _listed(target, "folders") if path not in shadow.folders])
        for folder in sorted(shadow.folders, key=lambda path: path.parts):
            _make_folder(target, folder)
        fresh = [path for path, to in links.items() if _link(target / path, to)]
    except OSError as error:
        where = error.filename or target
        raise AutostampError.of("AS7001", path=where, detail=error.strerror or str(error)) from error
    changed = {target / path: data for path, data in shadow.writes.items() if not _holds(target / path, data)}
    listing = {
        "version": _VERSION,
        "files": sorted(path.as_posix() for path in kept),
        "folders": sorted(path.as_posix() for path in shadow.folders),
    }
    write_all({**changed, target / LISTING: json.dumps(listing, indent=1).encode() + b"\n"})
    return len(fresh) + len(changed)


def _listed(target: Path, name: str) -> list[Path]:
    """Paths of the listing, without any that leads out of the shadow."""
    try:
        value = json.loads((target / LISTING).read_bytes())
        paths = [Path(str(each)) for each in value[name]]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [path for path in paths if path.parts and not path.is_absolute() and ".." not in path.parts]


def _is_real(target: Path, folder: Path) -> bool:
    """True when no part of the way from the shadow's top to `folder` is a link."""
    at = target
    for part in folder.parts:
        at /= part
        if at.is_symlink() or not at.is_dir():
            return False
    return True


def _remove(target: Path, paths: Iterable[Path]) -> None:
    for path in paths:
        file = target / path
        if _is_real(target, path.parent) and (file.is_symlink() or file.is_file()):
            file.unlink()


def _remove_folders(target: Path, paths: Iterable[Path]) -> None:
    for path in sorted(paths, key=lambda each: -len(each.parts)):
        if _is_real(target, path):
            with contextlib.suppress(OSError):  # someone else's files are in it
                (target / path).rmdir()


def _make_folder(target: Path, folder: Path) -> None:
    """Make one folder; a link of an earlier run in its place goes."""
    path = target / folder
    if path.is_symlink() and folder in _listed(target, "files"):
        path.unlink()
    path.mkdir(parents=True, exist_ok=True)
    if path.is_symlink():
        raise FileExistsError(17, "a link is in the way", str(path))


def _link(path: Path, to: str) -> bool:
    """Make `path` a link to `to`; False when it is one already."""
    if path.is_symlink() and str(path.readlink()) == to:
        return False
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with contextlib.suppress(FileNotFoundError):
        temporary.unlink()
    temporary.symlink_to(to)
    try:
        temporary.replace(path)
    except OSError:
        temporary.unlink()
        raise
    return True


def _holds(path: Path, data: bytes) -> bool:
    if path.is_symlink():
        path.unlink()
        return False
    try:
        return path.read_bytes() == data
    except OSError:
        return False
