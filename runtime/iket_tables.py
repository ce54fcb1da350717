# SPDX-License-Identifier: Apache-2.0
"""Names of IKET ranges and markers as sites, instances and barriers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from autostamp.model.manifest import Barrier, Instance, KernelTrace, Payload, SourceFile
from autostamp.model.site import Shape, Site, Span
from autostamp.model.sync import Kind, Side, StageFrom
from autostamp.runtime.iket_lanes import Rows
from autostamp.runtime.iket_names import signal_side, split_barrier, wait_side


class NameTable:
    """Sites are names: IKET records no source line. All launches of a file share them."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._key = hashlib.sha256(path.encode()).hexdigest()[:16]
        self._sites: dict[tuple[str, bool], Site] = {}

    def kernel(self, kernel: str, ranges: Sequence[str], markers: Sequence[str]) -> tuple[KernelTrace, Rows]:
        """The table of one launch, and its instances by name."""
        names = [*((name, False) for name in ranges), *((name, True) for name in markers)]
        labels = dict.fromkeys(barrier for name, _ in names if (barrier := split_barrier(name)[0]))
        barriers = {label: Barrier(number, label, "", 0, True) for number, label in enumerate(labels, start=1)}
        instances = tuple(self._instances(names, barriers))
        table = KernelTrace(1, kernel, self._key, 0, (0, 0, 0), 0, 0, tuple(barriers.values()), instances)
        return table, dict(zip(names, instances, strict=True))

    def source(self) -> SourceFile:
        """The trace file in the place of the source."""
        return SourceFile(self._key, self._path, "", "", tuple(self._sites.values()), (), ())

    def _instances(self, names: Iterable[tuple[str, bool]], barriers: dict[str, Barrier]) -> Iterable[Instance]:
        event = 1
        for number, (name, is_marker) in enumerate(names, start=1):
            site = self._site(name, is_marker)
            label = split_barrier(name)[0]
            yield Instance(
                number=number,
                file=self._key,
                site=site.number,
                role="",
                call_path=(),
                kind=site.kind,
                side=site.side,
                barrier=barriers[label].number if label else 0,
                payload=Payload.NONE,
                enter=0 if is_marker else event,
                exit=0 if is_marker else event + 1,
                signal=event if is_marker else 0,
            )
            event += 1 if is_marker else 2

    def _site(self, name: str, is_marker: bool) -> Site:
        if (name, is_marker) not in self._sites:
            label, operation = split_barrier(name)
            side = signal_side(name) if is_marker else wait_side(name)
            self._sites[name, is_marker] = Site(
                number=len(self._sites) + 1,
                span=Span(0, len(name.encode()), 0, 0),
                text=name,
                method=operation,
                owner="",
                kind=Kind.WORK if side is None else Kind.SIGNAL if is_marker else Kind.WAIT,
                side=side or Side.NONE,
                stage_from=StageFrom.NONE,
                shape=Shape.EXPRESSION,
                function="",
                barrier=label,
                role="",
                loop_depth=0,
            )
        return self._sites[name, is_marker]
