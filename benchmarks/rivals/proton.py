# SPDX-License-Identifier: Apache-2.0
"""Triton's Proton, intra-kernel: a matrix product with scopes around the loads and the dot product of each step, and a loop.

Times are those of the kernel alone (torch's profiler): a launch under Proton also copies its buffer to the host.
"""

# ruff: noqa: ANN001, ANN201, ANN401 - Triton reads the annotations of its kernels

from __future__ import annotations

import json
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

    def run_matmul() -> None:
        matmul[(SIZE // 128, SIZE // 128)](a, b, c, SIZE, SIZE, 128, 128, 64, num_warps=8, num_stages=3)

    def run_loop() -> None:
        loop[(1,)](value, LOOP, num_warps=1)

    with tempfile.TemporaryDirectory() as folder:
        name = str(Path(folder) / "proton")
        session = proton.start(name, data="trace", backend="instrumentation", mode="default:metric_type=cycle")
        proton.deactivate(session)

        def stamped(kernel: str, launch: Any) -> float:
            proton.activate(session)
            time = kernel_us(kernel, launch)
            proton.deactivate(session)
            return time

        for launch in (run_matmul, run_loop):
            launch()
        measured.rounds = rounds_of(
            lambda: kernel_us("matmul", run_matmul), lambda: stamped("matmul", run_matmul), rounds
        )
        measured.loop = rounds_of(lambda: kernel_us("loop", run_loop), lambda: stamped("loop", run_loop), rounds)
        measured.loop_stamps = 2 * LOOP
        measured.sm_mhz = sm_mhz()
        proton.finalize()
        with_one = proton.start(name + "1", data="trace", backend="instrumentation", mode="default:metric_type=cycle")
        run_matmul()
        torch.cuda.synchronize()
        proton.finalize(with_one)
        for path in Path(folder).iterdir():
            print(path.name, path.stat().st_size)
        traces = sorted(Path(folder).glob("proton1*"))
        events = json.loads(traces[0].read_text())["traceEvents"] if traces else []
        print("events", len(events), events[:3])
        measured.events, measured.bytes_per_event, measured.step_ns = 2 * len(events), 8, 0.5
    measured.print()


if __name__ == "__main__":
    try:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
    except Exception as error:
        traceback.print_exc()
        Measured("Triton Proton", error=f"{type(error).__name__}: {error}".splitlines()[0]).print()
