# SPDX-License-Identifier: Apache-2.0
"""Compile a unit of CUDA C++ twice: as it is, and stamped."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NoReturn, Protocol

import numpy as np
import numpy.typing as npt

from autostamp.diagnostics import AutostampError
from autostamp.hooks.launch_plan import LaunchPlan
from autostamp.model.manifest import Manifest
from autostamp.passes.cuda import compiler_checks
from autostamp.runtime.buffer import Memory
from autostamp.runtime.cuda import nvcc
from autostamp.runtime.cuda.symbols import functions, symbol_of


class Symbol(Protocol):
    """A device variable: what cupy.RawModule.get_global gives."""

    ptr: int

    def copy_from_host(self, mem: int, size: int) -> None:
        """Copy `size` bytes from a host address."""


class Module(Protocol):
    """A loaded module: cupy.RawModule."""

    def get_global(self, name: str) -> Symbol:
        """The device variable of that name; an error of the driver where there is none."""


class StampedUnit(Protocol):
    """What stamping gives: the stamped text, and what to do on the device.

    `kernel` is the qualified name without template arguments.
    """

    text: bytes

    def nvcc_flags(self) -> list[str]:
        """Flags that the stamped text needs: macros and folders. They stand before all others, so that stamped headers are found
        before their originals.
        """

    def bind(self, module: Module, kernel: str, memory: Memory) -> int:
        """Give a loaded cupy module a region to record the kernel into; returns the region's address."""

    def manifest(self, kernel: str, records: npt.NDArray[np.uint8]) -> Manifest:
        """The manifest of what was recorded: its only kernel trace is of the region with these bytes."""


@dataclass(frozen=True, slots=True)
class Built:
    """One compiled copy: where its cubin is, the kernel's symbol in it, and ptxas's advisories."""

    cubin: Path
    symbol: str
    advisories: tuple[str, ...]


def build(plan: LaunchPlan, stamped: StampedUnit | None, folder: Path) -> tuple[Built, Built | None]:
    """Compile the clean copy and, with stamps, the stamped one, into a folder.

    Raises AS4010, AS4011 and AS4014 for nvcc itself, AS4012 and AS1028 for the clean copy, and AS4013 for the stamped one.
    """
    compiler = nvcc.find()
    nvcc.require(compiler, plan.flags.arch)
    source, extra = plan.source, compiler_checks.instance(plan.prototype)
    checks = compiler_checks.checks(plan.prototype)
    with ThreadPoolExecutor(2) as pool:
        # Side by side: a unit that includes CUTLASS takes minutes.
        compile_unit = partial(nvcc.compile_unit, compiler, source)
        clean = pool.submit(compile_unit, plan.text, plan.flags, folder / "clean", checks + extra)
        other = None
        if stamped is not None:
            flags = stamped.nvcc_flags()
            other = pool.submit(compile_unit, stamped.text, plan.flags, folder / "stamped", extra, flags)
        built = _built(plan, clean.result(), "AS4012", plan.text)
        if other is None or stamped is None:
            return built, None
        return built, _built(plan, other.result(), "AS4013", stamped.text)


def _built(plan: LaunchPlan, compilation: nvcc.Compilation, code: str, text: bytes) -> Built:
    if compilation.cubin is None:
        _refuse(plan, compilation, code, text)
    symbol = symbol_of(plan.prototype, functions(compilation.cubin.read_bytes()))
    advisories = {message.text: None for message in compilation.messages if message.is_performance}
    return Built(compilation.cubin, symbol, tuple(advisories))


def _refuse(plan: LaunchPlan, compilation: nvcc.Compilation, code: str, text: bytes) -> NoReturn:
    """Raise nvcc's first error as a finding; those of our own checks only where there is no other."""
    errors = compilation.errors
    others = [error for error in errors if error.path != compiler_checks.FILE]
    if not others:
        said = errors[0].text.partition(compiler_checks.MARK)[2].rstrip('"') or errors[0].text
        raise AutostampError.of("AS1028", kernel=plan.prototype.name, detail=said)
    first = others[0]
    more = f" (and {len(others) - 1} more)" if len(others) > 1 else ""
    is_own = first.path == str(plan.source)
    where = nvcc.position(first, text if is_own else b"")
    raise AutostampError.of(code, where, path=plan.source, detail=f"{first.text}{more}")
