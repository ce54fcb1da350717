# SPDX-License-Identifier: Apache-2.0
"""Variants of a CUDA C++ kernel: one nvcc command line, run clean and in front of nvcc with chosen sites."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from autostamp.diagnostics import AutostampError
from autostamp.hooks.state import Outcome, StateFolder
from autostamp.hooks.variants import Candidate, Sites, Target
from autostamp.model.manifest import Manifest
from autostamp.model.options import InstrumentOptions
from autostamp.model.placement import (
    PLACEMENT_SCHEMA,
    Placement,
    ReplaySet,
    ScheduleFeatures,
    forms_of,
    site_key,
)
from autostamp.model.site import KernelDef
from autostamp.model.sync import Kind
from autostamp.runtime import compilers, cubin
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
            _, manifest = self._stamped(Path(folder), None)
        kernel, symbol = self._chosen(clean, [each for file in manifest.files for each in file.kernels])
        files = {file.key: file for file in manifest.files}
        sites = [
            (files[key], site)
            for key, number in kernel.reaches
            if key in files
            for site in files[key].sites
            if site.number == number
        ]
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
        )
        return self._found

    def _chosen(self, clean: bytes, kernels: Sequence[KernelDef]) -> tuple[KernelDef, str]:
        """The stamped kernel that reaches most sites of those that the pattern names and the cubin holds, and its symbol there.

        Of several instances of a template that are alike to the pattern it is the cubin's first. Raises AS8106.
        """
        symbols = [each.kernel for each in cubin.read(clean)]
        held = {each.name: _named(symbols, each.name) for each in kernels}
        found = [
            (each, symbol)
            for each in kernels
            for symbol in held[each.name]
            if each.reaches and (fnmatchcase(each.name, self.pattern) or fnmatchcase(symbol, self.pattern))
        ]
        if found:
            return max(found, key=lambda one: len(one[0].reaches))
        stamped = [each.name for each in kernels if each.reaches]
        missing = [name for name in stamped if not held[name] and fnmatchcase(name, self.pattern)]
        if missing:
            detail = f"the cubin holds no kernel {missing[0]} (it holds {', '.join(symbols) or 'none'})"
            raise AutostampError.of("AS8106", detail=detail, hint="A template needs an instance in this file.")
        detail = f"no stamped kernel matches {self.pattern} (stamped were: {', '.join(stamped) or 'none'})"
        raise AutostampError.of("AS8106", detail=detail, hint="Choose one with --kernel.")

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
        """Cubin and manifest of the unit, with the sites of a placement, or (None) with all that the options select."""
        output, state = folder / "stamped.cubin", folder / "state"
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
        """The command line with a cubin as its output."""
        words: list[str] = []
        is_value = False
        for word in self.words:
            if is_value or word in _OUTPUTS:
                is_value = False
                continue
            is_value = word in ("-o", "--output-file")
            if not is_value and not word.startswith(("-o=", "--output-file=")):
                words.append(word)
        return [*words, "-cubin", "-o", str(output)]


def _named(symbols: Sequence[str], name: str) -> list[str]:
    """The mangled names of a kernel of the source: those that hold its length and name (Itanium C++ ABI 5.1.2)."""
    plain = name.rpartition("::")[2]
    return [each for each in symbols if f"{len(plain)}{plain}" in each or each == plain]


def _said(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line for line in (done.stderr or done.stdout).strip().splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line] or lines
    return f"status {done.returncode}: {' | '.join(errors[:2]) or 'no output'}"
