# SPDX-License-Identifier: Apache-2.0
"""A cubin's facts: resources, instructions, clock reads and waits of each kernel in it."""

from __future__ import annotations

import tempfile
from pathlib import Path

from autostamp.diagnostics import AutostampError
from autostamp.model.cubin import CubinFacts
from autostamp.runtime import sass, toolchain


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
