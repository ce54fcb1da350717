# SPDX-License-Identifier: Apache-2.0
"""One CUDA C++ source compiled four ways with the same nvcc options, and what there is to compare of the results."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from autostamp.hooks import include_closure
from autostamp.hooks.copies import Copies
from autostamp.hooks.nvcc_command import NvccCommand
from autostamp.hooks.state import BuildNote, StateFolder
from autostamp.model.cubin import CubinFacts, SafetyReport
from autostamp.model.manifest import Manifest
from autostamp.model.site import Site
from autostamp.passes import ptxas_log, safety
from autostamp.passes.stamp_check import PtxStamps, ptx_stamps
from autostamp.runtime import cubin
from autostamp.runtime.manifest_file import read_manifest

ROOT = Path(__file__).parents[1]
SM_90A = ("-gencode", "arch=compute_90a,code=sm_90a")
SM_100A = ("-gencode", "arch=compute_100a,code=sm_100a")
TIMEOUT_S = 1800

MODES = ("clean", "off", "stamped", "copies")
"""clean: nvcc itself. off: through the launcher with AUTOSTAMP=0. stamped: through the launcher. copies: the files that the
stamped build compiled, without the macro that turns the stamps on.
"""

SAME = ("-frandom-seed=1", "-Xptxas=-v", "-cubin", "-o", "out.cubin")
"""Options of every mode. Without a seed, names of internal symbols may differ from run to run (nvcc: --frandom-seed)."""

_PATH_HASH = re.compile(rb"(_INTERNAL_|_GLOBAL__N__)[0-9a-f]{8}(?=_)")
"""What nvcc puts into the names of internal symbols and of what stands in unnamed namespaces: a hash of the path that the source
is read from, whatever `#line` says.
"""

LAUNCHER = (sys.executable, "-m", "autostamp", "nvcc", "--strict", "--")


class BuildError(Exception):
    """nvcc ended with an error, or did not stamp what it should have stamped."""


def build(folder: Path, words: Sequence[str], modes: Iterable[str] = MODES, **variables: str) -> Builds:
    """Compile `nvcc words` (absolute paths) in these modes into a new `folder`, one after the other.

    `variables` are for the launcher's environment. `copies` needs `stamped` before it. Raises BuildError.
    """
    folder.mkdir(parents=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AUTOSTAMP", "NVCC_"))}
    environment = {**kept, "PYTHONPATH": str(ROOT), "AUTOSTAMP_STATE": str(folder / "state"), **variables}
    nvcc = ("nvcc", *words, *SAME)
    for mode in modes:
        if mode == "stamped":
            (folder / "kept").mkdir()
            _run(folder, mode, [*LAUNCHER, *nvcc, "-keep", "-keep-dir", "kept"], environment)
            (ptx,) = (folder / "kept").glob("*.ptx")
            ptx.rename(folder / "stamped.ptx")
            shutil.rmtree(folder / "kept")
        elif mode == "copies":
            _run(folder, mode, _copies(folder / "state", NvccCommand.of(nvcc, {})).compilation([]), environment)
        elif mode == "off":
            _run(folder, mode, [*LAUNCHER, *nvcc], environment | {"AUTOSTAMP": "0"})
        else:
            _run(folder, mode, nvcc, environment)
    return Builds(folder)


def _run(folder: Path, mode: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    said = done.stdout + done.stderr
    if done.returncode:
        message = f"{mode}: {' '.join(command)} ended with {done.returncode}:\n{said[-4000:]}"
        raise BuildError(message)
    (folder / f"{mode}.log").write_text(said)
    (folder / "out.cubin").rename(folder / f"{mode}.cubin")


def _copies(state: Path, command: NvccCommand) -> Copies:
    """The copies that the only compilation so far made."""
    (unit,) = state.glob("copies/*/*/unit.json")
    (closure,) = (include_closure.load(path) for path in state.glob("closures/*.json"))
    if closure is None:
        message = f"{state} holds no current list of files"
        raise BuildError(message)
    return Copies(unit.parent, command, closure)


@dataclass(frozen=True)
class Builds:
    """A folder that `build` filled."""

    folder: Path

    def cubin(self, mode: str) -> bytes:
        return (self.folder / f"{mode}.cubin").read_bytes()

    def pathless(self, mode: str) -> bytes:
        """The cubin with zeros for the hash of the source's path, which alone must differ between the source and its copy."""
        return _PATH_HASH.sub(rb"\g<1>00000000", self.cubin(mode))

    def log(self, mode: str) -> str:
        """What nvcc printed, ptxas's resource usage included."""
        return (self.folder / f"{mode}.log").read_text()

    @cached_property
    def note(self) -> BuildNote:
        """What the launcher kept of the stamped compilation; of all that ran, it alone leaves a note."""
        (note,) = StateFolder(self.folder / "state").notes()
        return note

    @cached_property
    def manifest(self) -> Manifest:
        return read_manifest(StateFolder(self.folder / "state").manifest(int(self.note.unit, 16)))

    @cached_property
    def ptx(self) -> str:
        return (self.folder / "stamped.ptx").read_text()

    @cached_property
    def kernels(self) -> tuple[Kernel, ...]:
        clean, stamped = (cubin.read_file(self.folder / f"{mode}.cubin") for mode in ("clean", "stamped"))
        return tuple(Kernel(*pair, self.ptx) for pair in safety.pair(clean, stamped))

    def added_messages(self) -> list[str]:
        """The C75xx messages of ptxas that only the stamped build gives."""
        return list(ptxas_log.added(self.log("clean"), self.log("stamped")))

    def sites(self, file: str = "") -> Iterator[tuple[Site, set[int]]]:
        """Stamped sites of files whose path ends so, with their event numbers in the unit."""
        unit = self.manifest.unit
        first = {each.key: each.events for each in unit.files} if unit else {}
        for source in self.manifest.files:
            for site in source.sites if source.path.endswith(file) else ():
                enter = first[source.key] + 2 * site.number - 1
                yield site, {enter, enter + 1} if site.kind.value == "wait" else {enter}


@dataclass(frozen=True)
class Kernel:
    """Both builds of one kernel, and the PTX of the stamped unit."""

    clean: CubinFacts
    stamped: CubinFacts
    ptx: str

    @cached_property
    def written(self) -> PtxStamps:
        return ptx_stamps(self.ptx, self.stamped.kernel)

    @cached_property
    def report(self) -> SafetyReport:
        return safety.compare(self.clean, self.stamped, self.ptx)

    @property
    def clock_reads(self) -> int:
        """Those that the stamps added."""
        return self.stamped.clock_reads - self.clean.clock_reads

    @property
    def spills(self) -> tuple[int, int]:
        """Bytes stored to and loaded from local memory in the clean and in the stamped build, taken together."""
        clean, stamped = (each.spill_store_bytes + each.spill_load_bytes for each in (self.clean, self.stamped))
        return clean, stamped

    @property
    def changed(self) -> dict[str, tuple[int, int]]:
        """Families of sync instructions whose number differs: clean and stamped."""
        return {each.name: (each.clean, each.stamped) for each in self.report.syncs if each.change}

    @property
    def counts(self) -> dict[str, int]:
        """Sync instructions of the clean build by family."""
        return {each.name: each.clean for each in self.report.syncs if each.clean}
