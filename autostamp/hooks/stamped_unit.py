# SPDX-License-Identifier: Apache-2.0
"""A single .cu, stamped so that a kernel of it can be launched through the driver: what `autostamp launch` stamps with."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from autostamp import __version__
from autostamp.diagnostics import AutostampError
from autostamp.hooks.copies import named
from autostamp.hooks.instrument_cuda import gather
from autostamp.hooks.native import row_of
from autostamp.hooks.unit_build import Module
from autostamp.model.manifest import MANIFEST_VERSION, KernelTrace, Manifest
from autostamp.model.options import InstrumentOptions
from autostamp.passes.cuda.carrier import Carrier
from autostamp.passes.cuda.instrument import CudaOptions, Project, instrument
from autostamp.passes.cuda.lean import LaneForm
from autostamp.runtime.buffer import Memory
from autostamp.runtime.cuda.collect import visited_events
from autostamp.runtime.cuda.header import UNIT_HEADER, header_files, slot_bytes
from autostamp.runtime.cuda.instances import Kernel, UnitTable, table_of
from autostamp.runtime.layout import DEFAULT_CAPACITY, region_bytes

SLOTS = "autostamp_slots"
"""The device variable that kernels read their slot from, under its plain name (autostamp.cuh)."""

BLOCK = (0, 0, 0)
REGION = 1


@dataclass
class CudaUnit:
    """Implements `hooks.unit_build.StampedUnit`. `folder` holds the headers that the stamped text includes."""

    text: bytes
    project: Project
    folder: tempfile.TemporaryDirectory[str]

    def nvcc_flags(self) -> list[str]:
        """Turns the stamps on and finds their headers."""
        return ["-DAUTOSTAMP=1", "-I", self.folder.name]

    def bind(self, module: Module, kernel: str, memory: Memory) -> int:
        """Allocate a region and write the kernel's slot. Raises AS1004 for a kernel that reaches no sync call."""
        slot = self._kernel(kernel).slot
        address = memory.allocate(region_bytes(DEFAULT_CAPACITY))
        data = np.frombuffer(slot_bytes(address, DEFAULT_CAPACITY, BLOCK), np.uint8).copy()
        symbol = module.get_global(SLOTS)
        whole = np.zeros((len(self._table().kernels()), data.size), np.uint8)
        whole[slot] = data
        symbol.copy_from_host(whole.ctypes.data, whole.size)
        return address

    def manifest(self, kernel: str, records: npt.NDArray[np.uint8]) -> Manifest:
        """Files, unit, and one kernel trace whose region is the one that `bind` allocated."""
        table, found = self._table(), self._kernel(kernel)
        visited = [table.site_of(event) for event in visited_events(records, DEFAULT_CAPACITY)]
        rows = table_of(table, found.definition, [site for site in visited if site is not None], row_of)
        trace = KernelTrace(
            number=1,
            kernel=kernel,
            file=found.file.key,
            capacity=DEFAULT_CAPACITY,
            block=BLOCK,
            region=REGION,
            signature=table.signature_of(found),
            barriers=rows.barriers,
            instances=rows.instances,
        )
        files = tuple(item.file for item in self.project.changed.values())
        return Manifest(MANIFEST_VERSION, f"autostamp {__version__}", files, (trace,), None, self.project.unit)

    def _table(self) -> UnitTable:
        files = {item.file.key: item.file for item in self.project.changed.values()}
        return UnitTable(self.project.unit, files)

    def _kernel(self, name: str) -> Kernel:
        found = [kernel for kernel in self._table().kernels() if kernel.definition.name == name]
        if not found:
            raise AutostampError.of("AS1004", path=f"{name}, or in what it calls")
        return found[0]


def stamp(
    source: Path,
    text: bytes,
    options: InstrumentOptions,
    folders: tuple[str, ...] = (),
    form: LaneForm = LaneForm.AUTO,
) -> CudaUnit | None:
    """Stamp a file with the headers beside it; those in `folders` (-I) are read and stay. None: nothing to stamp.

    Raises what `instrument` raises, and the first of its findings.
    """
    batch = gather([str(source)], [Path(folder) for folder in folders])
    if batch.findings:
        raise AutostampError(batch.findings[0])
    own = Path(os.path.normpath(source))
    files = {**batch.files, own: text}
    project = instrument(files, batch.context, CudaOptions(options, Carrier.SYMBOL, form))
    if project.findings:
        raise AutostampError(project.findings[0])
    if own not in project.changed:
        return None
    folder = tempfile.TemporaryDirectory(prefix="autostamp-unit-")
    written: dict[Path, bytes] = {}
    for path in batch.files.keys() - {own}:
        # Those without stamps, too: what they include beside them must be the copy.
        item = project.changed.get(path)
        text = batch.files[path] if item is None else item.text
        written[batch.relative[path]] = named(text, str(path), is_stamped=item is not None)
    written |= {Path(name): data for name, data in header_files().items()}
    written[Path(UNIT_HEADER)] = project.unit_header
    for relative, data in written.items():
        path = Path(folder.name, relative)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return CudaUnit(project.changed[own].text, project, folder)
