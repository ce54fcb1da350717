# SPDX-License-Identifier: Apache-2.0
"""Run the bundled GEMM on the GPU: `python -m tests.gpu.run_gemm OUT MODE`. OUT gets `result.npz`, and RUN when stamped."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import numpy as np

TARGET = "autostamp.kernels.cutedsl.gemm_ws"
M, N, K = 256, 384, 1024


def main(out: Path, mode: str) -> None:
    """Compile and launch once; `mode` is clean or stamped."""
    import autostamp

    out.mkdir(parents=True)
    session = autostamp.session(TARGET, out=out / "run") if mode == "stamped" else contextlib.nullcontext()
    with session:
        from autostamp.kernels.cutedsl.gemm_ws_reference import run_on_gpu

        result, reference = run_on_gpu(M, N, K)
    np.savez(out / "result.npz", result=result, reference=reference)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
