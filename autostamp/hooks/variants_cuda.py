# SPDX-License-Identifier: Apache-2.0
"""Variants of a CUDA C++ kernel: one nvcc command line, run clean and in front of nvcc with chosen sites."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from autostamp.diagnostics import AutostampError
from autostamp.hooks.state import Outcome, StateFolder
from autostamp.hooks.variants import Candidate, Sites, Target
from autostamp.model.manifest import Manifest, SourceFile
from autostamp.model.options import InstrumentOptions
from autostamp.model.placement import (
    PLACEMENT_SCHEMA,
    Placement,
    ReplaySet,
    ScheduleFeatures,
    forms_of,
    site_key,
)
from autostamp.model.site import Site
from autostamp.model.sync import Kind
from autostamp.runtime import compilers
from autostamp.runtime.cuda.instances import UnitTable
from autostamp.runtime.cuda.ptx_stamps import events_of
from autostamp.runtime.manifest_file import read_manifest
from autostamp.runtime.placement_file import write_placement
from autostamp.runtime.prediction_file import digest_of_sources

_OUTPUTS: Final = ("-c", "--compile", "-cubin", "--cubin", "-ptx", "--ptx", "-dc", "-dw", "-fatbin", "--fatbin")
_NO_FEATURES: Final = ScheduleFeatures(1.0, {}, (1.0, 1.0), (0, 0), (0, 0), 0.0)


@dataclass
class CudaBuilder:
    """`words` is an nvcc command line with one source; what it would write is replaced by a cubin for the first architecture.

    `pattern` chooses the kernel by its name in the source or its mangled one.
    """

    words: Sequence[str]
    pattern: str = "*"
    options: InstrumentOptions = field(default_factory=InstrumentOptions)
    _found: Target | None = None

    def target(self) -> Target:
        """Compile clean and with all stamps. Raises AS8106 where no kernel was stamped, AS8107 where nvcc fails."""
        with tempfile.TemporaryDirectory(prefix="autostamp-") as folder:
            output = Path(folder, "clean.cubin")
            done = subprocess.run(self._command(output), capture_output=True, text=True, errors="replace", check=False)
            if done.returncode or not output.is_file():
                raise AutostampError.of("AS8107", detail=_said(done))
            clean = output.read_bytes()
            ptx, manifest = self._stamped(Path(folder), None)
        found = self._matching(events_of(ptx.decode(errors="replace")), manifest)
        symbol, sites = max(found.items(), key=lambda item: len(item[1]))
        self._found = Target(
            symbol=symbol,
            clean=clean,
            candidates=tuple(
                Candidate(
                    site_key(file, site),
                    (site.role,) if site.role else (),
                    site.kind is Kind.WAIT,
                    site.text,
                    forms_of(is_wait=site.kind is Kind.WAIT, is_deferred=True),  # no clock is carried in CUDA C++
                )
                for file, site in sites
            ),
            files=tuple(sorted(file.key for file in manifest.files)),
            digest=digest_of_sources(manifest),
            toolchain=compilers.of_nvcc(self.words),
            others=tuple(each for each in found if each != symbol),
        )
        return self._found

    def _matching(
        self, stamped: Mapping[str, frozenset[int]], manifest: Manifest
    ) -> dict[str, list[tuple[SourceFile, Site]]]:
        """The kernels that the pattern names, with the sites whose stamps each holds: the one with most is taken, of equals the
        first. `stamped` has the events of each kernel that is compiled. Raises AS8106.
        """
        table = UnitTable.of(manifest)
        names = [kernel.name for file in manifest.files for kernel in file.kernels]
        found: dict[str, list[tuple[SourceFile, Site]]] = {}
        for symbol, events in stamped.items():
            numbers = {table.site_of(event) for event in events}
            held = [
                (file, site) for file in manifest.files for site in file.sites if (file.key, site.number) in numbers
            ]
            if held and any(fnmatchcase(name, self.pattern) for name in (symbol, *_named(names, symbol))):
                found[symbol] = held
        if found:
            return found
        there = ", ".join(symbol for symbol, events in stamped.items() if events) or "none"
        detail = f"no kernel that is compiled with stamps matches {self.pattern} (there are: {there})"
        hint = "Choose one with --kernel. A template needs an instance in this file."
        raise AutostampError.of("AS8106", detail=detail, hint=hint)

    def build(self, sites: Sites) -> bytes:
        """The cubin with exactly these stamps. Raises AS8104."""
        with tempfile.TemporaryDirectory(prefix="autostamp-") as folder:
            try:
                return self._stamped(Path(folder), sites)[0]
            except AutostampError as error:
                listed = ", ".join(sorted(key.partition("@")[0] for key, _ in sites)[:4])
                raise AutostampError.of("AS8104", sites=listed, detail=error.diagnostic.message) from error

    def close(self) -> None:
        """Nothing is kept."""

    def _stamped(self, folder: Path, sites: Sites | None) -> tuple[bytes, Manifest]:
        """The unit's manifest, and its cubin with these sites, or (None) its PTX with all that the options select."""
        output, state = folder / ("stamped.ptx" if sites is None else "stamped.cubin"), folder / "state"
        environment = {**os.environ, "AUTOSTAMP_STATE": str(state), "AUTOSTAMP_STRICT": "1"}
        if sites is not None:
            chosen = ReplaySet(1, tuple(sorted(sites)), (), _NO_FEATURES)
            file = folder / "placement.json"
            write_placement(file, Placement(PLACEMENT_SCHEMA, "", "", (), (chosen,), (), 0, True))
            environment |= {"AUTOSTAMP_PLACEMENT": str(file), "AUTOSTAMP_SET": "1"}
        else:
            environment |= {"AUTOSTAMP_ONLY": " ".join(self.options.selection.only)}
            environment |= {"AUTOSTAMP_SKIP": " ".join(self.options.selection.skip)}
        command = [sys.executable, "-m", "autostamp", "nvcc", "--", *self._command(output)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode or not output.is_file():
            raise AutostampError.of("AS8107", detail=_said(done))
        notes = [each for each in StateFolder(state).notes() if each.outcome is Outcome.STAMPED]
        if not notes:
            hint = "Name a source that holds a kernel with waits or signals."
            raise AutostampError.of("AS8106", detail="nothing in this compilation is stamped", hint=hint)
        return output.read_bytes(), read_manifest(StateFolder(state).manifest(int(notes[0].unit, 16)))

    def _command(self, output: Path) -> list[str]:
        """The command line with a cubin or PTX as its output, as the name ends."""
        words: list[str] = []
        is_value = False
        for word in self.words:
            if is_value or word in _OUTPUTS:
                is_value = False
                continue
            is_value = word in ("-o", "--output-file")
            if not is_value and not word.startswith(("-o=", "--output-file=")):
                words.append(word)
        return [*words, f"-{output.suffix[1:]}", "-o", str(output)]


def _named(names: Iterable[str], symbol: str) -> list[str]:
    """The kernels of the source that a mangled name may be of: it holds their length and name (Itanium C++ ABI 5.1.2)."""
    plain = {name: name.rpartition("::")[2] for name in names}
    return [name for name, last in plain.items() if f"{len(last)}{last}" in symbol or last == symbol]


def _said(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line for line in (done.stderr or done.stdout).strip().splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line] or lines
    return f"status {done.returncode}: {' | '.join(errors[:2]) or 'no output'}"
