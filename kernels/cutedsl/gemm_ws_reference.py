# SPDX-License-Identifier: Apache-2.0
"""Inputs, NumPy reference and a one-launch check for ``gemm_ws``.

Run on a Hopper GPU: ``python -m kernels.cutedsl.gemm_ws_reference --m 2048 --n 2048 --k 4096``.
"""

import argparse
import sys

import numpy as np
from numpy.typing import NDArray

# Results are sums of small integers: exact in fp32, so only the rounding to fp16 may differ.
RELATIVE_TOLERANCE = 2.0**-11


def make_inputs(m: int, n: int, k: int, seed: int = 0) -> tuple[NDArray[np.float16], NDArray[np.float16]]:
    """Return A[m, k] and B[n, k] with random integer values from -2 to 2."""
    rng = np.random.default_rng(seed)
    a = rng.integers(-2, 3, size=(m, k)).astype(np.float16)
    b = rng.integers(-2, 3, size=(n, k)).astype(np.float16)
    return a, b


def reference(a: NDArray[np.float16], b: NDArray[np.float16]) -> NDArray[np.float32]:
    """Return A @ B^T, computed and kept in fp32."""
    product: NDArray[np.float32] = a.astype(np.float32) @ b.astype(np.float32).T
    return product


def run_on_gpu(
    m: int, n: int, k: int, *, seed: int = 0, repeat: int = 1
) -> tuple[NDArray[np.float16], NDArray[np.float32]]:
    """Compile, launch ``repeat`` times on the current GPU and return C of the last launch and its reference."""
    import cupy
    from cuda.bindings import driver as cuda
    from cutlass.cute.runtime import from_dlpack

    from autostamp.kernels.cutedsl.gemm_ws import GemmWarpSpecialized, compile_gemm

    gemm = GemmWarpSpecialized()
    gemm.check_shape(m, n, k)
    compiled = compile_gemm(gemm)

    a, b = make_inputs(m, n, k, seed)
    a_gpu, b_gpu = cupy.asarray(a), cupy.asarray(b)
    c_gpu = cupy.empty((m, n), dtype=cupy.float16)
    tensors = [from_dlpack(x, assumed_align=16).mark_layout_dynamic(leading_dim=1) for x in (a_gpu, b_gpu, c_gpu)]
    stream = cupy.cuda.get_current_stream()
    for _ in range(repeat):
        c_gpu.fill(cupy.nan)  # an element that the kernel does not write shows up as NaN
        compiled(*tensors, cuda.CUstream(stream.ptr))
    stream.synchronize()
    return cupy.asnumpy(c_gpu), reference(a, b)


def main() -> int:
    """Compare one GPU result with the reference; return 1 on a mismatch."""
    parser = argparse.ArgumentParser(description="Check the warp-specialized GEMM against NumPy.")
    parser.add_argument("--m", type=int, default=2048, help="rows of A and C, a multiple of 128")
    parser.add_argument("--n", type=int, default=2048, help="rows of B and columns of C, a multiple of 128")
    parser.add_argument("--k", type=int, default=4096, help="columns of A and B, a multiple of 64")
    parser.add_argument("--repeat", type=int, default=1, help="number of launches")
    args = parser.parse_args()

    c, c_ref = run_on_gpu(args.m, args.n, args.k, repeat=args.repeat)
    error = np.abs(c.astype(np.float32) - c_ref)
    matches = bool(np.all(error <= RELATIVE_TOLERANCE * np.abs(c_ref)))
    print(f"m={args.m} n={args.n} k={args.k} max abs error {error.max():g}: {'ok' if matches else 'MISMATCH'}")
    return 0 if matches else 1


if __name__ == "__main__":
    sys.exit(main())
