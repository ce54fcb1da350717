# SPDX-License-Identifier: Apache-2.0
"""Which compiler turns stamps into a schedule: in words that two builds can be compared by. "" is not known."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import PurePath

_RELEASE = re.compile(r"release [0-9.]+, V([0-9.]+)")
_TIMEOUT_S = 60


def of_dsl() -> str:
    """The CuTe-DSL that this process has imported, with the CUDA that its ptxas is of."""
    dsl = sys.modules.get("cutlass")
    cuda = getattr(dsl, "CUDA_VERSION", None)
    if dsl is None or cuda is None:
        return ""
    return f"nvidia-cutlass-dsl {getattr(dsl, '__version__', '?')}, CUDA {cuda.major}.{cuda.minor}"


def of_nvcc(words: Sequence[str]) -> str:
    """The nvcc of a command line, perhaps behind a compiler cache, as it reports itself."""
    found = next((word for word in words if "nvcc" in PurePath(word).name), "")
    if not found:
        return ""
    try:
        done = subprocess.run(
            [found, "--version"], capture_output=True, text=True, errors="replace", check=False, timeout=_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    release = _RELEASE.search(done.stdout)
    return f"nvcc {release[1]}" if release else ""


def differs(recorded: str, own: str) -> bool:
    """True where both are known and are not the same: a placement of before this field says nothing."""
    return bool(recorded and own and recorded != own)
