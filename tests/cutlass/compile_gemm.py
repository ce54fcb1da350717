# SPDX-License-Identifier: Apache-2.0
"""Compile benchmarks/cuda/cutlass_gemm.cu in every mode of `tests.cuda_builds`: `… compile_gemm OUT SCHEDULE INCLUDE`."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.cuda_builds import ROOT, SM_90A, build

SOURCE = ROOT / "benchmarks" / "cuda" / "cutlass_gemm.cu"
FLAGS = (*SM_90A, "-std=c++17", "-O3", "-DNDEBUG", "--expt-relaxed-constexpr")


def main(out: Path, schedule: str, include: str) -> None:
    """`schedule` is Pingpong or Cooperative, `include` CUTLASS's include folder."""
    build(out, [*FLAGS, f"-I{include}", f"-DSCHEDULE={schedule}", str(SOURCE)])


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
