# SPDX-License-Identifier: Apache-2.0
"""The programs of benchmarks/cuda that CUTLASS's synclog and autostamp are measured on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

CUDA: Final = Path(__file__).resolve().parents[1] / "cuda"
NVCC: Final = (
    "nvcc",
    "-gencode",
    "arch=compute_90a,code=sm_90a",
    "-std=c++17",
    "-O3",
    "-DNDEBUG",
    "--expt-relaxed-constexpr",
)
SYNCLOG: Final = (
    "-rdc=true",
    "-DCUTLASS_ENABLE_SYNCLOG",
)  # its buffer is a device variable that must have internal linkage

PROGRAMS: Final = {
    "clean": ("cutlass_gemm.cu", ()),
    "synclog": ("cutlass_gemm.cu", SYNCLOG),
    "loop_clean": ("synclog_loop.cu", ("-rdc=true",)),
    "loop_synclog": ("synclog_loop.cu", SYNCLOG),
}
"""Source and further options of `cutlass_NAME`; `cutlass_stamped` is the clean one through `autostamp nvcc`."""


def build(cutlass: Path, folder: Path) -> None:
    """Compile all into `folder`. Raises subprocess.CalledProcessError."""
    include = (f"-I{cutlass / 'include'}", f"-I{cutlass / 'tools' / 'util' / 'include'}")
    folder.mkdir(parents=True, exist_ok=True)
    for name, (source, options) in PROGRAMS.items():
        subprocess.run(
            [*NVCC, *include, *options, "-o", str(folder / f"cutlass_{name}"), str(CUDA / source)], check=True
        )
    words = [*NVCC, *include, "-o", str(folder / "cutlass_stamped"), str(CUDA / "cutlass_gemm.cu")]
    subprocess.run([sys.executable, "-m", "autostamp", "nvcc", "--strict", "--", *words], check=True)
