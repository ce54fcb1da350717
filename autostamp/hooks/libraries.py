# SPDX-License-Identifier: Apache-2.0
"""Which headers belong to the system or to a library that is used, not written, here: those are never stamped."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from autostamp.passes.cuda.includes import GENERATED

MARKERS: Final = {
    "the C library": ("stdio.h", "stdlib.h"),
    "the host compiler": ("stddef.h", "stdarg.h"),
    "the C++ standard library": ("cstdlib", "cstddef"),
    "the CUDA toolkit": ("cuda_runtime_api.h", "crt/host_config.h"),
    "CUB": ("cub/version.cuh",),
    "Thrust": ("thrust/version.h",),
    "libcu++": ("cuda/std/version",),
    "PyTorch": ("ATen/ATen.h", "c10/macros/Macros.h"),
    "Python": ("Python.h", "pyconfig.h"),
    "pybind11": ("pybind11/pybind11.h",),
}
"""What an include folder belongs to: it holds all of these files."""


@cache
def _owner_of_folder(folder: Path) -> str:
    for owner, files in MARKERS.items():
        if all((folder / file).is_file() for file in files):
            return owner
    return ""


def owner(file: Path, sources: tuple[Path, ...]) -> str:
    """What library an absolute path lies in; "" for a file of the project.

    A folder that holds one of the sources being compiled is never a library's, whatever else lies in it.
    """
    if file.name in GENERATED:
        return "autostamp"
    for folder in file.parents:
        if any(folder in source.parents for source in sources):
            return ""
        found = _owner_of_folder(folder)
        if found:
            return found
    return ""
