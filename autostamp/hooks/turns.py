# SPDX-License-Identifier: Apache-2.0
"""Programs that are started before their turn: they import and compile, and the first launch waits for a file to appear."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from autostamp.runtime.recorder import RECORDER

PAUSE: Final = 0.005
"""Seconds between two looks."""

LAUNCHES: Final = (
    ("cutlass.base_dsl.jit_executor", "JitExecutor", "run_compiled_program"),
    ("cutlass.cutlass_dsl.tvm_ffi_provider", "TVMFFIJitCompiledFunctionBase", "__call__"),
    ("cutlass.cutlass_dsl.tvm_ffi_provider", "TVMFFIJitCompiledFunction", "__call__"),
    ("cutlass.cutlass_dsl.tvm_ffi_provider", "TVMFFIJitCompiledFunctionWithKwargs", "__call__"),
)
"""Module, class and method of nvidia-cutlass-dsl 4.8.1 that every launch of a compiled function goes through: the first
for functions of its own ABI, the others for those of TVM FFI."""


def over(turn: Path) -> Path:
    """The file that a program makes when its last line has run."""
    return turn.with_name(f"{turn.name}.over")


def wait_for(turn: Path) -> None:
    """Let the first launch after the trace of a stamped kernel, recorded or not, wait until `turn` is there.

    So compilations of several programs run side by side, and only what they launch is one after the other. With a DSL that has
    none of `LAUNCHES`, the trace itself waits. When the process that would make the file has ended, the program ends as well.
    """
    before, parent = RECORDER.at_entry, os.getppid()

    def wait() -> None:
        while not turn.exists():
            if os.getppid() != parent:
                raise SystemExit(1)
            time.sleep(PAUSE)

    def at_entry() -> None:
        RECORDER.at_entry = before
        if not _before_launches(wait):
            wait()
        before()

    RECORDER.at_entry = at_entry


def _before_launches(wait: Callable[[], None]) -> bool:
    """Call `wait` before the first launch, and then leave the methods as they were; False where there are none."""
    held: list[tuple[Any, str, Any]] = []

    def guarded(method: Callable[..., object]) -> Callable[..., object]:
        def launch(*arguments: object, **named: object) -> object:
            wait()
            while held:
                owner, name, original = held.pop()
                setattr(owner, name, original)
            return method(*arguments, **named)

        return launch

    for module, kind, name in LAUNCHES:
        # The DSL imports its TVM FFI side when it has traced a kernel, which is after this.
        if module.partition(".")[0] in sys.modules:
            with contextlib.suppress(ImportError):
                importlib.import_module(module)
        owner = getattr(sys.modules.get(module), kind, None)
        method = vars(owner).get(name) if owner is not None else None
        if method is not None:
            held.append((owner, name, method))
            setattr(owner, name, guarded(method))
    return bool(held)
