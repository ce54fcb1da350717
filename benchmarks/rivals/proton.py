# SPDX-License-Identifier: Apache-2.0
"""Triton's Proton, intra-kernel: a matrix product with scopes around the loads and the dot product of each step, and a loop.

Times are those of the kernel alone (torch's profiler): a launch under Proton also copies its buffer to the host.
"""

# ruff: noqa: ANN001, ANN201, ANN401 - Triton reads the annotations of its kernels

from __future__ import annotations

import json
import os
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

import torch
import triton
import triton.language as tl
import triton.profiler as proton
import triton.profiler.language as pl

from benchmarks.rivals.measured import Measured, rounds_of, sm_mhz

pl.enable_semantic("triton")
SIZE = 2048
LOOP = 500  # 1000 events: more than 1024 do not fit a warp's buffer
LAUNCHES = 3  # each is decoded on the host
TILE = 128
MODE = "default:metric_type=cycle"


@triton.jit
def matmul(a, b, c, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    at_a = a + row[:, None] * K + depth[None, :]
    at_b = b + depth[:, None] * N + column[None, :]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, K, BK):
        with pl.scope("load"):
            left = tl.load(at_a)
            right = tl.load(at_b)
        with pl.scope("dot"):
            total = tl.dot(left, right, total)
        at_a += BK
        at_b += BK * N
    tl.store(c + row[:, None] * N + column[None, :], total.to(tl.float16))


@triton.jit
def loop(out, n):
    value = tl.load(out)
    for _ in range(n):
        with pl.scope("step"):
            for _ in tl.static_range(16):
                value = value * 1.0001 + 0.5
    tl.store(out, value)


def kernel_us(name: str, launch: Any) -> float:
    """Median time of the kernel over some launches."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(LAUNCHES):
            launch()
        torch.cuda.synchronize()
    times = sorted(float(each.device_time_total) for each in profile.events() if each.name.startswith(name))
    return times[len(times) // 2]


def main(rounds: int) -> None:
    measured = Measured(
        "Triton Proton",
        triton.__version__,
        f"Triton matmul {SIZE}^3 fp16",
        "the last ones, circular buffer in shared memory",
    )
    a, b = (torch.randn(SIZE, SIZE, device="cuda", dtype=torch.float16) for _ in range(2))
    c = torch.empty_like(a)
    value = torch.zeros(1, device="cuda")

    def run_matmul(rows_of_tiles: int = SIZE // TILE) -> None:
        grid = (rows_of_tiles, SIZE // TILE)
        matmul[grid](a, b, c, SIZE, SIZE, TILE, TILE, 64, num_warps=8, num_stages=3)

    def run_loop() -> None:
        loop[(1,)](value, LOOP, num_warps=1)

    with tempfile.TemporaryDirectory() as folder:
        measured.events = SIZE // TILE * events_of(folder, lambda: run_matmul(1))
        measured.bytes_per_event, measured.step_ns = 8, 0.5
        measured.print()
        session = proton.start(str(Path(folder) / "all"), data="trace", backend="instrumentation", mode=MODE)
        proton.deactivate(session)

        def stamped(kernel: str, launch: Any) -> float:
            proton.activate(session)
            time = kernel_us(kernel, launch)
            proton.deactivate(session)
            return time

        for launch in (run_matmul, run_loop):
            launch()
            stamped("", launch)
        for _ in range(rounds):
            measured.rounds += rounds_of(
                lambda: kernel_us("matmul", run_matmul), lambda: stamped("matmul", run_matmul), 1
            )
            measured.loop += rounds_of(lambda: kernel_us("loop", run_loop), lambda: stamped("loop", run_loop), 1)
            measured.loop_stamps, measured.sm_mhz = 2 * LOOP, sm_mhz()
            measured.print()
    sys.stdout.flush()
    os._exit(0)  # or it would write the traces of all those launches: minutes


def events_of(folder: str, launch: Any) -> int:
    """Begins and ends in the trace of a launch."""
    session = proton.start(str(Path(folder) / "one"), data="trace", backend="instrumentation", mode=MODE)
    launch()
    torch.cuda.synchronize()
    proton.finalize(session)
    (trace,) = Path(folder).glob("one*")
    spans = [each for each in json.loads(trace.read_text())["traceEvents"] if each["ph"] == "X"]
    return 2 * len(spans)


if __name__ == "__main__":
    try:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
    except Exception as error:
        traceback.print_exc()
        Measured("Triton Proton", error=f"{type(error).__name__}: {error}".splitlines()[0]).print()
