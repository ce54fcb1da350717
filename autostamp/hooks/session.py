# SPDX-License-Identifier: Apache-2.0
"""A profiling session: stamps target modules as they load, owns the record buffers, writes the run folder."""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import median

from autostamp import __version__
from autostamp.diagnostics import AutostampError, Diagnostic, render
from autostamp.hooks import caches
from autostamp.hooks.complete import complete
from autostamp.hooks.importer import Loaded, StampingFinder, StampingLoader
from autostamp.hooks.targets import MAIN, Target
from autostamp.model.manifest import MANIFEST_VERSION, KernelTrace, Manifest, SourceFile
from autostamp.model.options import InstrumentOptions, RecordOptions
from autostamp.model.placement import site_key
from autostamp.passes.cutedsl import Stamped
from autostamp.runtime import compilers, machine, store
from autostamp.runtime.buffer import DeviceMemory, Memory, NoMemory
from autostamp.runtime.recorder import RECORDER
from autostamp.runtime.regions import Recorded, is_written, resolved, split, unrecorded

_MEMORY: dict[bool, DeviceMemory | NoMemory] = {}
_STAMPED: dict[str, Stamped] = {}
"""Stamped files of this process. Their modules outlive the session that loaded them, so a later session knows them too."""


@cache
def _folder() -> Path:
    """Where stamped files lie until the process ends."""
    folder = tempfile.mkdtemp(prefix="autostamp-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _memory(*, compile_only: bool) -> DeviceMemory | NoMemory:
    """The process's memory for regions: made once, because compiled kernels keep its addresses."""
    if compile_only not in _MEMORY:
        _MEMORY[compile_only] = NoMemory() if compile_only else DeviceMemory()
    return _MEMORY[compile_only]


class Session:
    """Open it before the target modules are imported; `write` makes the run folder.

    With `compile_only` kernels are compiled with stamps and nothing is launched or recorded. With `record` off, target
    modules are stamped but no buffer is bound: the build equals the unstamped one, byte for byte.
    """

    def __init__(
        self,
        targets: Sequence[str],
        *,
        options: RecordOptions | None = None,
        instrument: InstrumentOptions | None = None,
        compile_only: bool = False,
        record: bool = True,
    ) -> None:
        self._targets = tuple(Target.of(text) for text in targets)
        self._options = resolved(options or RecordOptions())
        self._compile_only = compile_only
        self._record = record
        self._traces: list[KernelTrace] = []
        self._unrecorded: list[Diagnostic] = []
        self._loaded = Loaded(_folder(), instrument or InstrumentOptions(), _STAMPED)
        self._finder = StampingFinder(self._targets, self._loaded)

    @property
    def loaded(self) -> Loaded:
        """What the import hook did so far."""
        return self._loaded

    def open(self) -> None:
        """Install the hook and take the recorder. Raises AS5002, AS5004, AS5005, and AS5001 or AS5008 without a device."""
        if RECORDER.is_open:
            raise AutostampError.of("AS5005")
        self._meet_imported()
        self._traces = RECORDER.begin()
        if self._record:
            caches.check()
            memory: Memory = _memory(compile_only=self._compile_only)
            if isinstance(memory, DeviceMemory):
                memory.clear()
            RECORDER.options = self._options
            RECORDER.allocate = memory.allocate
            RECORDER.is_real = not self._compile_only
            RECORDER.original_line = self._loaded.original_line
        sys.meta_path.insert(0, self._finder)

    def _meet_imported(self) -> None:
        """Count targets that an earlier session imported as met, and refuse those that were imported without the hook."""
        for name, module in list(sys.modules.items()):
            origin = str(getattr(module, "__file__", None) or "")
            if name == MAIN or not origin.endswith(".py"):
                continue
            covering = [target.text for target in self._targets if target.covers(name, origin)]
            if covering and not _was_hooked(module):
                raise AutostampError.of("AS5002", module=name, importer=_importer(name))
            self._loaded.met.update(covering)

    def close(self) -> None:
        """Remove the hook and give the recorder back. Kernels compiled meanwhile keep their buffers."""
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
        RECORDER.allocate = None

    def files(self) -> tuple[SourceFile, ...]:
        """The stamped files, in the order of their paths."""
        return tuple(sorted((item.file for item in self._loaded.stamped.values()), key=lambda file: file.path))

    def manifest(self) -> Manifest:
        """Kernel traces of this session and the files that they reached; all stamped files while nothing was traced."""
        files = self.files()
        traces = tuple(
            replace(complete(trace, files), number=number) for number, trace in enumerate(self._own_traces(), 1)
        )
        reached = {instance.file for trace in traces for instance in trace.instances} | {trace.file for trace in traces}
        if traces:
            files = tuple(file for file in files if file.key in reached)
        return Manifest(MANIFEST_VERSION, f"autostamp {__version__}", files, traces)

    def _own_traces(self) -> list[KernelTrace]:
        """What was traced in this session, after earlier kernels that were launched in it: programs keep what they compiled."""
        if self._compile_only or not self._record or not RECORDER.earlier:
            return self._traces
        memory = _memory(compile_only=False)
        earlier = {trace.region for trace in RECORDER.earlier}
        written = {
            item.number
            for item in RECORDER.regions()
            if item.is_real and item.number in earlier and is_written(memory.read(item.address), item.options)
        }
        found = {(trace.region, trace.signature): trace for trace in RECORDER.earlier if trace.region in written}
        known = {(trace.region, trace.signature) for trace in self._traces}
        return [*(trace for key, trace in found.items() if key not in known), *self._traces]

    def findings(self) -> list[Diagnostic]:
        """What went wrong without stopping the program: files that could not be stamped, targets never imported."""
        missing = [target for target in self._targets if target.text not in self._loaded.met]
        absent = [Diagnostic.of("AS5006", module=target.text) for target in missing]
        return [*self._loaded.findings, *absent, *self._unplaced(), *self._otherwise_compiled(), *self._unrecorded]

    def _otherwise_compiled(self) -> list[Diagnostic]:
        """AS8108 where the placement was searched for with another compiler."""
        recorded, own = self._loaded.options.selection.toolchain, compilers.of_dsl()
        return [Diagnostic.of("AS8108", recorded=recorded, own=own)] if compilers.differs(recorded, own) else []

    def _unplaced(self) -> list[Diagnostic]:
        """AS8103 for sites of a placement that no stamped file holds."""
        there = {site_key(file, site) for file in self.files() for site in file.sites}
        keys = [key for key, _ in self._loaded.options.selection.placed or () if key not in there]
        if not keys:
            return []
        named = ", ".join(key.partition("@")[0] for key in keys[:4])
        return [Diagnostic.of("AS8103", count=len(keys), keys=named)]

    def regions(self) -> list[Recorded]:
        """Every region that a kernel of this session wrote to, with CTA and launch; an empty one of a kernel that never ran."""
        used = {trace.region: trace.kernel for trace in self._own_traces()}
        memory = _memory(compile_only=self._compile_only)
        found: list[Recorded] = []
        self._unrecorded = []
        for item in RECORDER.regions():
            if item.number in used:
                parts = split(item.number, memory.read(item.address), item.options)
                self._unrecorded += unrecorded(used[item.number], parts, item.options)
                found += parts
        return found

    def write(self, out: Path, command: tuple[str, ...] = ()) -> Manifest:
        """Write the run folder. Raises AS5003 when no record was written (the folder is written all the same).

        After `compile_only` the folder holds manifest and sources, and no regions; AS5003 then means that nothing was compiled.
        """
        manifest = self.manifest()
        found = [] if self._compile_only else self.regions()
        sources = {f"{item.file.key}/{Path(item.file.path).name}": item for item in self._loaded.stamped.values()}
        texts = {f"stamped/{name}": item.text.decode() for name, item in sources.items()}
        texts |= {f"original/{name}": item.original.decode() for name, item in sources.items()}
        traces = store.decode_every(manifest, found)
        rates = [trace.sm_mhz for trace in traces if trace.sm_mhz]
        store.write_run(out, manifest, found, machine.facts(command, median(rates) if rates else 0.0), texts)
        recorded = any(lane.events for trace in traces for lane in trace.lanes)
        if not (manifest.traces if self._compile_only else recorded):
            detail, hint = self._why_empty(manifest.traces)
            raise AutostampError.of("AS5003", detail=detail, hint=hint)
        return manifest

    def _why_empty(self, traces: tuple[KernelTrace, ...]) -> tuple[str, str]:
        if not self._loaded.met:
            names = ", ".join(target.text for target in self._targets)
            return f"{names} was never imported", "Check the names given to --instrument."
        if not self._loaded.stamped:
            return "the targets hold no sync call", "Instrument the module that holds the kernel."
        if not traces:
            detail = "no stamped kernel was compiled"
            return detail, "The program may use a kernel from another module, or a cached binary."
        blocks = self._options.blocks
        block = ",".join(str(part) for part in self._options.block) if blocks is None else blocks.text
        detail = f"{len(traces)} stamped kernels were compiled, but CTA {block} of none ran"
        return detail, "Check that the kernel is launched and that --block lies in its grid."


def _was_hooked(module: object) -> bool:
    """True for a module that came through the hook, or that was stamped on disk."""
    loader = getattr(getattr(module, "__spec__", None), "loader", None)
    return isinstance(loader, StampingLoader) or type(getattr(module, "_as", None)).__name__ == "Stamper"


def _importer(name: str) -> str:
    """A module that holds a reference to `name`, the best guess at who imported it."""
    module = sys.modules[name]
    for other, holder in list(sys.modules.items()):
        # Every package holds its own modules, whoever imported them.
        is_family = f"{name}.".startswith(f"{other}.") or other.startswith(f"{name}.")
        if not is_family and any(value is module for value in vars(holder).values()):
            return other
    return "this program"


@contextmanager
def session(
    *targets: str,
    out: str | Path,
    options: RecordOptions | None = None,
    instrument: InstrumentOptions | None = None,
    compile_only: bool = False,
) -> Iterator[Session]:
    """`with autostamp.session("flash_attn.cute", out="RUN"): ...` stamps, records, and writes RUN at the end."""
    opened = Session(targets, options=options, instrument=instrument, compile_only=compile_only)
    opened.open()
    try:
        yield opened
        opened.write(Path(out), tuple(sys.argv))
        for finding in opened.findings():
            warnings.warn(render(finding), stacklevel=3)
    finally:
        opened.close()
