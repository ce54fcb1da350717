# SPDX-License-Identifier: Apache-2.0
"""The plan of a shadow tree: a copy of a project in which stamped files are written and all others are links.

Folders with sources are real ones, since `#include "../x.h"` in a linked folder would lead back to the original. A folder
without any is one link. Links inside the project lead to the same place of the shadow.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

SUFFIXES = frozenset(
    (
        *(".cu", ".cuh", ".h", ".hpp", ".hh", ".hxx", ".h++", ".cc", ".cpp", ".cxx", ".c++", ".c"),
        *(".inl", ".ipp", ".tpp", ".tcc", ".inc"),
    )
)
"""Endings of C++ and CUDA C++ sources and headers."""

IGNORED = frozenset({".git", ".hg", ".svn", "__pycache__", ".venv", "node_modules"})
"""Folders of a project that no compilation reads."""


LISTING = "autostamp.files.json"
"""What a shadow tree has at its top: a list of what was written there. A folder with one is no part of the project."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Something in a project's folder. `link` is the target of a symbolic link, absolute and resolved, else None."""

    path: Path
    is_folder: bool
    link: Path | None = None


@dataclass(slots=True)
class Shadow:
    """What a shadow tree holds; all paths are relative to it, targets of `links` are absolute, of `inner` relative to it."""

    folders: set[Path] = field(default_factory=set)
    links: dict[Path, Path] = field(default_factory=dict)
    inner: dict[Path, Path] = field(default_factory=dict)
    writes: dict[Path, bytes] = field(default_factory=dict)


def is_source(path: Path) -> bool:
    """True for a file whose ending is that of C++ or CUDA C++."""
    return path.suffix in SUFFIXES


def walk(root: Path, skipped: Path | None = None) -> list[Entry]:
    """Everything below `root`, paths relative to it, links not followed. `skipped` is a folder to leave out, as a whole."""
    return sorted(_walk(root, root, skipped), key=lambda entry: entry.path.parts)


def _walk(root: Path, folder: Path, skipped: Path | None) -> Iterator[Entry]:
    with os.scandir(folder) as entries:
        for each in entries:
            path = Path(each.path)
            if each.name in IGNORED or path == skipped:
                continue
            relative = path.relative_to(root)
            if each.is_symlink():
                yield Entry(relative, each.is_dir(), Path(os.path.realpath(path)))
            elif each.is_dir():
                if (path / LISTING).is_file():
                    continue
                yield Entry(relative, True)
                yield from _walk(root, path, skipped)
            else:
                yield Entry(relative, False)


def sources_below(folder: Path, skipped: Path | None = None) -> Iterator[Path]:
    """The sources of a project's folder in order: none of hidden folders, of shadow trees, or of `skipped`.

    A link to a source counts where it leads out of the folder; what it leads to inside is a source itself.
    """
    top = Path(os.path.realpath(folder))
    for entry in walk(folder, skipped):
        if entry.is_folder or not is_source(entry.path) or any(part.startswith(".") for part in entry.path.parts):
            continue
        if entry.link is None or (entry.link.is_file() and not entry.link.is_relative_to(top)):
            yield folder / entry.path


def shadow(root: Path, entries: Iterable[Entry], writes: Mapping[Path, bytes], skipped: Path | None = None) -> Shadow:
    """The shadow of `root` (absolute and resolved) with the files `writes`, which are relative to it, as they will be.

    `skipped` is the folder of `root` that the shadow itself lies in, if any: no link may lead to it.
    """
    listed = list(entries)
    real = {Path()}
    for path in (*(entry.path for entry in listed if not entry.is_folder and is_source(entry.path)), *writes):
        real.update(path.parents)
    # A link into the project leads into the shadow, so what it leads to must be real there, too.
    into = {entry.path: _inside(entry.link, root) for entry in listed if entry.link is not None}
    for target in into.values():
        if target is not None:
            real.update(target.parents)
    if skipped is not None and skipped.is_relative_to(root):
        real.update(skipped.relative_to(root).parents)
    found = Shadow(writes=dict(writes))
    for entry in listed:
        if entry.path in real or entry.path in writes or entry.path.parent not in real:
            continue
        target = into.get(entry.path)
        if target is not None:
            found.inner[entry.path] = target
        else:
            found.links[entry.path] = entry.link or root / entry.path
    for path in (*found.links, *found.inner, *found.writes):
        found.folders.update(path.parents)
    found.folders.discard(Path())
    return found


def _inside(target: Path | None, root: Path) -> Path | None:
    if target is None or not target.is_relative_to(root):
        return None
    return target.relative_to(root)
