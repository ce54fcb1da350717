# SPDX-License-Identifier: Apache-2.0
"""JAX's Mosaic GPU profiler: JAX's own matrix product for Hopper with regions around wgmma and its wait, and a loop."""

# ruff: noqa: ANN401 - what the packages give is untyped

from __future__ import annotations

import functools
import json
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

import jax
import jax.experimental.pallas.mosaic_gpu as plgpu
import jax.numpy as jnp
from jax import lax
from jax.experimental.mosaic.gpu import profiler
from jax.experimental.pallas.ops.gpu import hopper_matmul_mgpu as hopper

from benchmarks.rivals.measured import Measured, rounds_of, sm_mhz

SIZE = 2048
LOOP = 2000
LAUNCHES = 10


class Named:
    """`plgpu` with regions around the calls that are to be timed, and with the profiler on or off."""

    def __init__(self, regions: int, folder: str) -> None:
        self.regions, self.folder = regions, folder

    def __getattr__(self, name: str) -> Any:
        found = getattr(plgpu, name)
        if name == "CompilerParams" and self.regions:
            return functools.partial(found, profile_space=self.regions, profile_dir=self.folder)
        if name in ("wgmma", "wgmma_wait"):

            def call(*arguments: Any, **options: Any) -> Any:
                with jax.named_scope(name):
                    return found(*arguments, **options)

            return call
        return found


def matmul(regions: int, folder: str) -> Any:
    # Three stages, in both builds: with four there is no room for events.
    config = hopper.TuningConfig(tile_m=128, tile_n=128, tile_k=64, max_concurrent_steps=3, grid_tile_width=8)

    def call(a: Any, b: Any) -> Any:
        hopper.plgpu = Named(regions, folder)
        try:
            return hopper.matmul(a, b, None, config)
        finally:
            hopper.plgpu = plgpu

    return jax.jit(call)


def loop(regions: int, folder: str) -> Any:
    def kernel(source: Any, target: Any) -> None:
        def step(_: Any, value: Any) -> Any:
            with jax.named_scope("step"):
                for _ in range(16):
                    value = value * 1.0001 + 0.5
            return value

        target[...] = lax.fori_loop(0, LOOP, step, source[...])

    parameters = plgpu.CompilerParams(profile_space=regions, profile_dir=folder) if regions else plgpu.CompilerParams()
    call = plgpu.kernel(
        kernel,
        out_type=jax.ShapeDtypeStruct((128,), jnp.float32),
        grid=(1,),
        grid_names=("x",),
        compiler_params=parameters,
    )
    return jax.jit(call)


def kernel_us(function: Any, *arguments: Any) -> float:
    """Median time of the longest kernel of a call, over some launches, as CUPTI says."""
    _, launches = profiler.Cupti(finalize=False).measure(function, aggregate=False, iterations=LAUNCHES)(*arguments)
    times = sorted(max(time for _, time in launch) for launch in launches)
    return 1e3 * times[len(times) // 2]


def main(rounds: int) -> None:
    measured = Measured(
        "JAX Mosaic GPU",
        jax.__version__,
        f"JAX hopper_matmul {SIZE}^3 fp16",
        "as many as the space it is given in shared memory holds",
    )
    a, b = (jax.random.uniform(jax.random.key(i), (SIZE, SIZE), jnp.float16) for i in range(2))
    value = jnp.zeros((128,), jnp.float32)
    with tempfile.TemporaryDirectory() as folder:
        clean, stamped = matmul(0, folder), matmul(256, folder)
        measured.rounds = rounds_of(lambda: kernel_us(clean, a, b), lambda: kernel_us(stamped, a, b), rounds)
        traces = sorted(Path(folder).glob("*.json"))
        events = json.loads(traces[-1].read_text())["traceEvents"] if traces else []
        measured.events, measured.bytes_per_event, measured.step_ns = len(events), 8, 0.5
        clean_loop, stamped_loop = loop(0, folder), loop(LOOP + 8, folder)
        measured.loop = rounds_of(lambda: kernel_us(clean_loop, value), lambda: kernel_us(stamped_loop, value), rounds)
        measured.loop_stamps = 2 * LOOP
        measured.sm_mhz = sm_mhz()
    measured.print()


if __name__ == "__main__":
    try:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
    except Exception as error:
        traceback.print_exc()
        Measured("JAX Mosaic GPU", error=f"{type(error).__name__}: {error}".splitlines()[0]).print()
