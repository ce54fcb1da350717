# SPDX-License-Identifier: Apache-2.0
"""Source files and sites of a slot spec, from what its spans and markers say of their calls."""

from __future__ import annotations

import hashlib
from pathlib import PurePosixPath
from typing import Final

from autostamp.model.manifest import SourceFile
from autostamp.model.site import Shape, Site, Span
from autostamp.model.sync import StageFrom
from autostamp.runtime.spec_schema import SlotSpec
from autostamp.runtime.spec_uses import Use

_CUDA_SUFFIXES: Final = frozenset({".cu", ".cuh", ".h", ".hpp", ".cpp", ".cc", ".inl"})


class Sites:
    """Source files and their sites, numbered as spans and markers name them."""

    def __init__(self, spec: SlotSpec) -> None:
        self._labels = {barrier.number: barrier.label for barrier in spec.barriers}
        self._sites: dict[str, dict[tuple[object, ...], Site]] = {}

    def of(self, use: Use) -> tuple[str, int]:
        """Key of the file and number of the site; calls of one line, text and name are one site."""
        op, kind, label = use.op, use.kind, self._labels.get(use.barrier, "")
        method = op.method or op.name.removeprefix(f"{label} ")
        key = (op.line, op.column, op.text, method, kind, "" if op.line else op.name)
        sites = self._sites.setdefault(op.file, {})
        if key not in sites:
            sites[key] = Site(
                number=len(sites) + 1,
                span=Span(0, len(op.text.encode()), op.line, op.column),
                text=op.text,
                method=method,
                owner="",
                kind=kind,
                side=use.side,
                stage_from=StageFrom.NONE,
                shape=Shape.STATEMENT,
                function="",
                barrier=label,
                role="",
                loop_depth=0,
            )
        return _key(op.file), sites[key].number

    def files(self) -> tuple[SourceFile, ...]:
        """The files in the order in which they were named. No text is known, so a key is a hash of the path."""
        return tuple(
            SourceFile(
                key=_key(path),
                path=path,
                module=PurePosixPath(path).stem,
                sha256="",
                sites=tuple(sites.values()),
                skips=(),
                kernels=(),
                language="cuda" if PurePosixPath(path).suffix in _CUDA_SUFFIXES else "cutedsl",
            )
            for path, sites in self._sites.items()
        )


def _key(path: str) -> str:
    return hashlib.sha256(path.encode()).hexdigest()[:16]
