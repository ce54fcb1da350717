# SPDX-License-Identifier: Apache-2.0
"""Run a program that holds stamped CUDA C++ kernels, and make a run folder of what it recorded.

The kernels' own host runtime (`runtime/cuda/autostamp_host.cuh`) does the recording: it is told what to do by environment
variables and leaves drain files in a folder of ours.
"""

from __future__ import annotations

import datetime as dt
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from statistics import median

from autostamp import __version__
from autostamp.diagnostics import AutostampError, Diagnostic
from autostamp.hooks.state import StateFolder
from autostamp.hooks.unit_texts import UnitPlace, find_units, texts_of
from autostamp.model.manifest import Manifest
from autostamp.model.options import RecordOptions
from autostamp.model.run import MachineFacts
from autostamp.model.site import Site
from autostamp.model.sync import SyncOp
from autostamp.passes.cuda import catalogue, opcodes
from autostamp.runtime import machine, store
from autostamp.runtime.cuda.collect import Collected, Wanted, collect
from autostamp.runtime.cuda.drain import Drained, Head, read_drains
from autostamp.runtime.regions import unrecorded

_SHARED_MEMORY = Path("/dev/shm")  # pages of a file on disk cannot be pinned for a device; those of tmpfs can
_NO_DRAIN_HINT = (
    "Build the program with `autostamp nvcc`, or with -DAUTOSTAMP from files that `autostamp instrument` wrote; a compiler "
    "cache may have kept objects without stamps."
)
_LEFT_HINT = (
    "Records are read in an exit handler, which `_exit` passes by: run it with --mapped to keep what a watchdog cuts short. "
    "If no stamped kernel was launched, build it with `autostamp nvcc`."
)
_NO_REGION_HINT = "Check that the stamped kernel is launched, and that --block lies in its grid."


@dataclass(frozen=True, slots=True)
class NativeOptions:
    """What to record and where manifests lie.

    `launch` is `last`, `all`, or the number of one launch of each kernel, from 1. `is_mapped` lets records outlive a kill.
    `manifests` are manifest files and folders that hold some.
    """

    record: RecordOptions = field(default_factory=RecordOptions)
    launch: str = "last"
    kernel: str = ""
    is_mapped: bool = False
    manifests: tuple[Path, ...] = ()

    @property
    def wanted(self) -> Wanted:
        """The choice of kernels and launches."""
        is_one = self.launch.isdecimal()
        number = int(self.launch) if is_one else 0
        return Wanted(self.kernel, "one" if is_one else self.launch, number, self.record.repeat)

    def environment(self, folder: Path) -> dict[str, str]:
        """What the host runtime reads."""
        blocks = self.record.blocks
        return {
            "AUTOSTAMP_RUN": str(folder),
            "AUTOSTAMP_CAPACITY": str(self.record.capacity),
            "AUTOSTAMP_BLOCK": ",".join(str(part) for part in self.record.block) if blocks is None else blocks.ordered,
            "AUTOSTAMP_LAUNCH": self.launch,
            "AUTOSTAMP_REPEAT": str(self.record.repeat),
            "AUTOSTAMP_MEMORY": "mapped" if self.is_mapped else "device",
        }


@dataclass(frozen=True, slots=True)
class NativeResult:
    """How the program ended (as `subprocess` says: negative for a signal), what is to be said, and whether RUN was written."""

    status: int
    findings: tuple[Diagnostic, ...]
    was_written: bool


def run(command: Sequence[str], out: Path, options: NativeOptions, shown: tuple[str, ...] = ()) -> NativeResult:
    """Run a program to its end and write the run folder `out`, unless nothing was recorded.

    `shown` is the command line that the run folder keeps. Raises AS5007 when the program cannot be started, AS6001 for a drain
    file that cannot be read, AS7001. Findings: those of `collect`, AS5010, AS5011 and AS5012, and AS6002, AS6005 and AS6006 of
    records that cannot be decoded.
    """
    with _drain_folder(is_mapped=options.is_mapped) as folder:
        status = _execute(command, {**os.environ, **options.environment(folder)})
        heads, drained = read_drains(folder)
    units = find_units(_signatures(heads), options.manifests, _named_by(heads), StateFolder.of(os.environ))
    manifests = {signature: unit.manifest for signature, unit in units.items()}
    found = collect(heads, drained, manifests, options.wanted, f"autostamp {__version__}", row_of)
    found, broken = _decodable(found)
    findings = [*found.findings, *broken, *_unrecorded(found, options.record)]
    if not found.regions:
        return NativeResult(status, (*findings, *_why_empty(command, status, heads, drained, findings)), False)
    if status < 0:
        count = len(found.manifest.traces)
        findings.append(Diagnostic.of("AS5012", program=command[0], signal=_signal_name(status), count=count))
    _write(out, found, heads, units, shown or tuple(command))
    return NativeResult(status, tuple(findings), was_written=True)


def _unrecorded(found: Collected, options: RecordOptions) -> list[Diagnostic]:
    """AS5021 and AS5022: CTAs that there was no memory for, launches that did not come."""
    findings: list[Diagnostic] = []
    for trace in found.manifest.traces:
        regions = [each for each in found.regions if each.region == trace.region]
        findings += unrecorded(trace.kernel, regions, options)
    return findings


@contextmanager
def _drain_folder(*, is_mapped: bool) -> Iterator[Path]:
    place = _SHARED_MEMORY if is_mapped and os.access(_SHARED_MEMORY, os.W_OK) else None
    folder = tempfile.mkdtemp(prefix="autostamp-", dir=place)
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _execute(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run to the end. An interrupt from the keyboard reaches the program too: its records are read all the same."""
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, lambda *_: None) if is_main else None
    try:
        return subprocess.Popen(command, env=environment).wait()
    except OSError as error:
        raise AutostampError.of("AS5007", command=command[0], detail=error.strerror or str(error)) from error
    finally:
        if is_main:
            signal.signal(signal.SIGINT, before)


def _signal_name(status: int) -> str:
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"


def _signatures(heads: Iterable[Head]) -> set[int]:
    return {unit.signature for head in heads for unit in head.units}


def _named_by(heads: Iterable[Head]) -> tuple[Path, ...]:
    """Manifests, or their folders, that the program itself names."""
    return tuple(Path(unit.manifest) for head in heads for unit in head.units if unit.manifest)


@cache
def _rows() -> dict[tuple[str, str], tuple[SyncOp, ...]]:
    found: dict[tuple[str, str], tuple[SyncOp, ...]] = {}
    for row in (*catalogue.ROWS, *opcodes.ROWS):
        found[row.owner, row.method] = (*found.get((row.owner, row.method), ()), row)
    return found


def row_of(site: Site) -> SyncOp | None:
    """The catalogue's row for the call at a site; None for a wrapper of the user's own."""
    rows = [row for row in _rows().get((site.owner, site.method), ()) if row.kind is site.kind]
    return next((row for row in rows if row.side is site.side), rows[0] if rows else None)


def _decodable(found: Collected) -> tuple[Collected, list[Diagnostic]]:
    """What can be decoded, and why the rest cannot: one kernel's broken records must not cost the others theirs."""
    findings: list[Diagnostic] = []
    kept = []
    for trace in found.manifest.traces:
        alone = replace(found.manifest, traces=(trace,))
        try:
            store.decode_every(alone, [each for each in found.regions if each.region == trace.region])
        except AutostampError as error:
            findings.append(Diagnostic.of("AS5015", kernel=trace.kernel, detail=error.diagnostic.message))
            continue
        kept.append(trace)
    numbers = {trace.region for trace in kept}
    regions = tuple(each for each in found.regions if each.region in numbers)
    return replace(found, manifest=replace(found.manifest, traces=tuple(kept)), regions=regions), findings


def _why_empty(
    command: Sequence[str],
    status: int,
    heads: Sequence[Head],
    drained: Sequence[Drained],
    findings: Sequence[Diagnostic],
) -> list[Diagnostic]:
    """Why there is nothing to write, unless that has been said."""
    program = command[0]
    if status < 0 and all(head.drained == "mapped" for head in heads):
        return [Diagnostic.of("AS5011", program=program, signal=_signal_name(status))]
    if findings:
        return []
    if not heads and status:
        detail = f"it ended with status {status}, before a launch of a stamped kernel or without its exit handlers"
        return [Diagnostic.of("AS5010", program=program, detail=detail, hint=_LEFT_HINT)]
    if not heads:
        detail = "it came to no launch of a stamped kernel"
        return [Diagnostic.of("AS5010", program=program, detail=detail, hint=_NO_DRAIN_HINT)]
    block = heads[0].blocks or ",".join(str(part) for part in heads[0].block)
    count = len(drained) + sum(head.unused for head in heads)
    detail = f"of {count} regions that were given out, CTA {block} of no kernel wrote to one"
    return [Diagnostic.of("AS5010", program=program, detail=detail, hint=_NO_REGION_HINT)]


def _write(
    out: Path, found: Collected, heads: Sequence[Head], units: Mapping[int, UnitPlace], command: tuple[str, ...]
) -> None:
    traces = store.decode_every(found.manifest, found.regions)
    rates = [trace.sm_mhz for trace in traces if trace.sm_mhz]
    facts = _facts(heads, command, median(rates) if rates else 0.0)
    store.write_run(out, found.manifest, found.regions, facts, _texts(found.manifest, units))


def _texts(manifest: Manifest, units: Mapping[int, UnitPlace]) -> dict[str, str]:
    """Original and stamped texts of the manifest's files, as far as they are still where they were stamped."""
    wanted = {file.key for file in manifest.files}
    found: dict[str, str] = {}
    for unit in units.values():
        found |= texts_of(unit, wanted)
    return found


def _facts(heads: Sequence[Head], command: tuple[str, ...], sm_mhz: float) -> MachineFacts:
    devices = [device for head in heads for device in head.devices]
    versions = {key: value for key, value in machine.versions().items() if key in ("autostamp", "python")}
    facts = MachineFacts(
        driver=machine.driver_version(),
        sm_mhz=sm_mhz,
        versions=versions,
        recorded_at=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        command=command,
    )
    if not devices:
        return facts
    first = devices[0]
    return replace(
        facts,
        gpu=first.name,
        compute_capability=first.compute_capability,
        sm_count=first.sm_count,
        cuda_runtime=str(first.runtime),
        versions={**versions, "cuda_driver": str(first.driver)},
    )
