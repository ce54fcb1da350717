# SPDX-License-Identifier: Apache-2.0
"""A loop of one warp that does little but stamp, in CuTe-DSL: clean, or with a range of IKET's in each iteration.

    python -m benchmarks.rivals.cutedsl_loop clean|iket LAUNCHES

prints the median time of a launch in microseconds. IKET records only under `run-iket profile … -- python -m …`.
"""

# ruff: noqa: ANN401 - what the packages give is untyped

import sys
from typing import Any

import cutlass
import cutlass.cute as cute
from cuda.bindings import driver as cuda
from cutlass.cute.experimental import iket

from benchmarks.rivals.queued import us_per_launch

ITERATIONS = 2000
CHAIN = 16


class Loop:
    """The kernel and its launch."""

    def __init__(self, *, is_stamped: bool) -> None:
        self.is_stamped = is_stamped

    @cute.kernel
    def kernel(self, out: cute.Tensor, iterations: cutlass.Int32) -> None:
        value = out[0]
        for _ in cutlass.range(iterations, unroll=1):
            if cutlass.const_expr(self.is_stamped):
                iket.range_push("step")
            for _ in cutlass.range_constexpr(CHAIN):
                value = value * 1.0001 + 0.5
            if cutlass.const_expr(self.is_stamped):
                iket.range_pop()
        out[0] = value

    @cute.jit
    def __call__(self, out: cute.Tensor, iterations: cutlass.Int32, stream: cuda.CUstream) -> None:
        self.kernel(out, iterations).launch(grid=(1, 1, 1), block=(32, 1, 1), stream=stream)


def compiled(*, is_stamped: bool) -> Any:
    """The callable of one build."""
    from cutlass.cute.runtime import make_fake_compact_tensor, make_fake_stream

    out = make_fake_compact_tensor(cutlass.Float32, (32,), assumed_align=16)
    return cute.compile(Loop(is_stamped=is_stamped), out, cutlass.Int32(ITERATIONS), make_fake_stream())


def main(build: str, launches: int) -> None:
    import cupy
    from cutlass.cute.runtime import from_dlpack

    function = compiled(is_stamped=build == "iket")
    out = cupy.zeros(32, dtype=cupy.float32)
    value = from_dlpack(out, assumed_align=16)
    count = cutlass.Int32(ITERATIONS)
    us = us_per_launch(lambda stream: function(value, count, cuda.CUstream(stream.ptr)), launches)
    print(f"us_per_launch {us:.3f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
