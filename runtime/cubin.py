# SPDX-License-Identifier: Apache-2.0
"""A cubin's facts: resources, instructions, clock reads and waits of each kernel in it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from autostamp.diagnostics import AutostampError
from autostamp.model.cubin import CubinFacts
from autostamp.runtime import sass, toolchain

_CUDA_MACHINE: Final = 190
"""EM_CUDA, the machine of an ELF file that holds code for a GPU (the ELF registry of e_machine)."""


def require(file: Path) -> None:
    """Raise AS4030 when `file` is no cubin: an ELF file for the machine CUDA. Only its first bytes are read."""
    try:
        with file.open("rb") as opened:
            head = opened.read(20)
    except OSError as error:
        raise AutostampError.of("AS4030", path=file, detail=str(error)) from error
    if not head.startswith(b"\x7fELF"):
        kind = "an archive of several (fatbin)" if head.startswith(b"\x50\xed\x55\xba") else "no ELF file"
        raise AutostampError.of("AS4030", path=file, detail=kind if head else "it is empty")
    machine = int.from_bytes(head[18:20], "little")
    if machine != _CUDA_MACHINE:
        raise AutostampError.of("AS4030", path=file, detail=f"an ELF file for machine {machine}, a program or library")


def read(cubin: bytes) -> tuple[CubinFacts, ...]:
    """Facts of every function in `cubin`, in the disassembler's order.

    Instructions come from `nvdisasm -json`, resources from `cuobjdump -res-usage`. Raises AS4002 when a tool is missing and
    AS4003 when one fails or prints what cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="autostamp-") as folder:
        file = Path(folder, "kernel.cubin")
        file.write_bytes(cubin)
        return read_file(file)


def read_file(file: Path) -> tuple[CubinFacts, ...]:
    """As `read`, from a file."""
    disassembly = toolchain.run("nvdisasm", "-json", file)
    usage_text = toolchain.run("cuobjdump", "-res-usage", file)
    try:
        functions = sass.parse_disassembly(disassembly)
    except ValueError as error:
        raise AutostampError.of("AS4003", tool="nvdisasm", detail=str(error)) from error
    try:
        usages = sass.parse_usage(usage_text)
        return tuple(
            CubinFacts(name, usage.registers, usage.stack, usage.local, usage.shared, instructions)
            for name, instructions in functions.items()
            for usage in [usages[name]]
        )
    except ValueError as error:
        raise AutostampError.of("AS4003", tool="cuobjdump", detail=str(error)) from error
    except KeyError as error:
        raise AutostampError.of("AS4003", tool="cuobjdump", detail=f"no resource usage for {error}") from error
