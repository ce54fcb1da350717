# SPDX-License-Identifier: Apache-2.0
"""Stamping the files of one compilation as a unit, and what is kept of it for decoding."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass
from pathlib import Path

from autostamp import __version__
from autostamp.diagnostics import render
from autostamp.model.manifest import MANIFEST_VERSION, Manifest
from autostamp.model.options import InstrumentOptions
from autostamp.passes.cuda.carrier import Carrier
from autostamp.passes.cuda.instrument import CudaOptions, Project, instrument
from autostamp.passes.cuda.lean import LaneForm
from autostamp.runtime.cuda.header import header_files
from autostamp.runtime.manifest_file import encode

UNIT_HEADER = "autostamp_unit.cuh"


@dataclass(frozen=True, slots=True)
class UnitOptions:
    """How to stamp a unit. `is_device_only`: its host code is not compiled with it. `is_relocatable`: it will be linked."""

    options: InstrumentOptions
    carrier: str = "auto"
    form: str = "auto"
    is_device_only: bool = False
    is_relocatable: bool = False


@dataclass(frozen=True, slots=True)
class UnitMade:
    """A stamped unit: what to compile, and what to keep."""

    project: Project

    @property
    def texts(self) -> dict[str, bytes]:
        """The stamped texts by path; empty when nothing is stamped."""
        return {str(path): item.text for path, item in self.project.changed.items()}

    @property
    def headers(self) -> dict[str, bytes]:
        """What stamped text includes, by file name."""
        return {**header_files(), UNIT_HEADER: self.project.unit_header}

    @property
    def signature(self) -> int:
        """The unit's signature."""
        return self.project.unit.signature

    @property
    def findings(self) -> tuple[str, ...]:
        """What is to be said, as text."""
        return tuple(render(finding) for finding in self.project.findings)

    @property
    def summary(self) -> str:
        """One line about what was found."""
        changed = self.project.changed
        sites = sum(len(item.file.sites) for item in changed.values())
        skips = sum(len(item.file.skips) for item in self.project.stamped.values())
        return f"{sites} sites stamped in {len(changed)} of {len(self.project.stamped)} files, {skips} calls left as they are"

    def records(self, command: str, sources: str) -> dict[str, bytes]:
        """What decoding needs, by path below the folder of units: the manifest, and the texts as a run folder lays them out."""
        name = f"{self.signature:08x}"
        told = [
            item for item in self.project.stamped.values() if item.file.sites or item.file.skips or item.file.kernels
        ]
        options = {"command": command, "sources": sources}
        manifest = Manifest(
            MANIFEST_VERSION,
            f"autostamp {__version__}",
            tuple(item.file for item in told),
            options=options,
            unit=self.project.unit,
        )
        found: dict[str, bytes] = {}
        for item in self.project.changed.values():
            place = f"{item.file.key}/{Path(item.file.path).name}"
            found[f"{name}/original/{place}"] = item.original
            found[f"{name}/stamped/{place}"] = item.text
        return {**found, f"{name}.manifest.json": encode(manifest)}


def stamp(files: Mapping[Path, bytes], chosen: Set[Path], sources: Set[Path], options: UnitOptions) -> UnitMade:
    """Stamp the chosen files; the others are read along. `sources` are those that the compiler is given, the rest headers.

    Kernels keep their parameters where their launches may be compiled elsewhere. Raises what `instrument` raises.
    """
    stamped = {path: data for path, data in files.items() if path in chosen}
    context = {path: data for path, data in files.items() if path not in chosen}

    def made(carrier: Carrier) -> Project:
        form = LaneForm(options.form)
        cuda = CudaOptions(options.options, carrier, form, without_calls_out_of_line=options.is_relocatable)
        return instrument(stamped, context, cuda)

    wanted = Carrier.SYMBOL if options.is_device_only else Carrier(options.carrier)
    project = made(wanted)
    if wanted is Carrier.AUTO and _is_launched_elsewhere(project, files, sources):
        project = made(Carrier.SYMBOL)
    return UnitMade(project)


def _is_launched_elsewhere(project: Project, files: Mapping[Path, bytes], sources: Set[Path]) -> bool:
    """True when a header names a kernel that a source defines and that got a parameter: other units may launch it."""
    names = [
        kernel.name.rpartition("::")[2].encode()
        for path, item in project.stamped.items()
        if path in sources
        for kernel in item.file.kernels
        if kernel.carrier == Carrier.PARAM
    ]
    if not names:
        return False
    pattern = re.compile(rb"\b(?:" + b"|".join(map(re.escape, names)) + rb")\b")
    return any(pattern.search(data) for path, data in files.items() if path not in sources)
