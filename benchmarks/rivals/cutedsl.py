# SPDX-License-Identifier: Apache-2.0
"""The bundled CuTe-DSL GEMM, clean, stamped by autostamp, or with NVIDIA IKET's ranges and marks at the very same sites.

    python -m benchmarks.rivals.cutedsl clean|autostamp|iket LAUNCHES

prints the median time of a launch in microseconds. IKET records only under `run-iket profile … -- python -m …`.
"""

# ruff: noqa: ANN401 - what the packages give is untyped

from __future__ import annotations

import contextlib
import importlib.util
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.rivals.queued import us_per_launch

SIZE = 2048
SOURCE = Path(__file__).parents[2] / "kernels" / "cutedsl" / "gemm_ws.py"
SHIM = "from benchmarks.rivals.iket_stamps import stamper as _as; _as = _as()"


def module_with_iket(folder: Path) -> Any:
    """The kernel's module as autostamp stamps it, where each stamp is IKET's."""
    text = stamped_text()
    text = re.sub(
        r"from autostamp\.runtime\.cutedsl import stamps as _as; _as = _as\.stamper\([^;]*\)", SHIM, text, count=1
    )
    path = folder / "gemm_with_iket.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("gemm_with_iket", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["gemm_with_iket"] = module
    spec.loader.exec_module(module)
    return module


def stamped_text() -> str:
    """What `autostamp instrument` writes."""
    import subprocess

    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "autostamp", "instrument", str(SOURCE), "-o", out]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return (Path(out) / SOURCE.name).read_text(encoding="utf-8")


def median_us(compiled: Any, launches: int) -> float:
    import cupy
    import numpy as np
    from cuda.bindings import driver as cuda
    from cutlass.cute.runtime import from_dlpack

    rng = np.random.default_rng(0)
    a, b = (cupy.asarray(rng.standard_normal((SIZE, SIZE)).astype(np.float16)) for _ in range(2))
    c = cupy.empty((SIZE, SIZE), dtype=cupy.float16)
    tensors = [from_dlpack(x, assumed_align=16).mark_layout_dynamic(leading_dim=1) for x in (a, b, c)]
    us = us_per_launch(lambda stream: compiled(*tensors, cuda.CUstream(stream.ptr)), launches)
    error = float(cupy.abs(c.astype(cupy.float32) - a.astype(cupy.float32) @ b.T.astype(cupy.float32)).max())
    if not error < 0.5:
        sys.exit(f"wrong result: {error}")
    return us


def main(build: str, launches: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        with contextlib.ExitStack() as stack:
            if build == "autostamp":
                import autostamp

                stack.enter_context(autostamp.session("autostamp.kernels.cutedsl.gemm_ws", out=run))
            if build == "iket":
                module = module_with_iket(Path(folder))
            else:
                from autostamp.kernels.cutedsl import gemm_ws as module
            compiled = module.compile_gemm(module.GemmWarpSpecialized())
            print(f"us_per_launch {median_us(compiled, launches):.3f}", flush=True)
        if build == "autostamp":
            from autostamp.runtime.store import load_run

            traces = load_run(run).traces.values()
            print(f"events {sum(len(lane.events) for trace in traces for lane in trace.lanes)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
