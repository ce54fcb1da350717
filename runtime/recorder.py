# SPDX-License-Identifier: Apache-2.0
"""The process-wide recorder: which kernels were traced with stamps, and where their records go.

Regions are never freed while the process lives: compiled kernels hold their addresses, and a program may launch one long
after the session that traced it was closed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from autostamp.model.manifest import KernelTrace
from autostamp.model.options import RecordOptions
from autostamp.model.placement import Form
from autostamp.runtime.regions import memory_bytes


@dataclass(frozen=True, slots=True)
class Region:
    """Memory of one kernel: number, address and size in bytes. `is_real` is false for an address that is only compiled in;
    `options` say what lies where in it (`runtime.regions`).
    """

    number: int
    address: int
    size: int
    is_real: bool = True
    options: RecordOptions = field(default_factory=RecordOptions)


@dataclass
class Recorder:
    """`allocate` maps a size in bytes to a zeroed address; None while no session is open. `is_real`: kernels may write there.

    `original_line` maps a line of a stamped file to the author's line. `traces` are those since the last session began,
    `earlier` those before it: a program may still launch a kernel that it compiled then.

    `forms` narrows down what is traced: of the sites in the stamped text those that it has, by file key and number, each in its
    form; None is all of them. `at_kernel` is told the symbol of each kernel whose trace begins, `at_entry` is called before each,
    also where none is recorded.
    """

    options: RecordOptions = field(default_factory=RecordOptions)
    allocate: Callable[[int], int] | None = None
    is_real: bool = True
    original_line: Callable[[str, int], int] = lambda _file, line: line
    traces: list[KernelTrace] = field(default_factory=list)
    earlier: list[KernelTrace] = field(default_factory=list)
    forms: Mapping[tuple[str, int], Form] | None = None
    at_kernel: Callable[[str], None] = lambda _symbol: None
    at_entry: Callable[[], None] = lambda: None
    _regions: dict[tuple[str, ...], Region] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        """True while a session owns the buffers."""
        return self.allocate is not None

    def region(self, key: tuple[str, ...]) -> Region:
        """The region of the kernel that `key` names; the same key gets the same address, so recompiling changes nothing."""
        asked = (self.options.block, self.options.blocks, self.options.repeat)
        key = (*key, str(self.options.capacity), str(asked), str(self.is_real))
        if key not in self._regions:
            if self.allocate is None:
                message = "no session is open"
                raise RuntimeError(message)
            size = memory_bytes(self.options)
            made = Region(len(self._regions) + 1, self.allocate(size), size, self.is_real, self.options)
            self._regions[key] = made
        return self._regions[key]

    def regions(self) -> list[Region]:
        """All regions made so far."""
        return list(self._regions.values())

    def begin(self) -> list[KernelTrace]:
        """A new list of traces, for a session that begins."""
        self.earlier += self.traces
        self.traces = []
        return self.traces

    def add(self, trace: KernelTrace) -> None:
        """Keep a finished trace, once: tracing the same kernel again adds nothing."""
        same = (trace.region, trace.signature, trace.kernel, trace.symbol)
        if all((old.region, old.signature, old.kernel, old.symbol) != same for old in self.traces):
            self.traces.append(trace)


RECORDER = Recorder()
"""The one recorder of this process; `autostamp.hooks.session` opens and closes it."""
