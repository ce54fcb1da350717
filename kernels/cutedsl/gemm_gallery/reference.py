# SPDX-License-Identifier: Apache-2.0
"""Check the gallery's GEMMs on the GPU against a float64 product of fresh random inputs.

Run on a Hopper GPU: ``python -m autostamp.kernels.cutedsl.gemm_gallery.reference --variant pingpong --m 1024``.
"""

import argparse
import math
import sys
from typing import Any

from autostamp.kernels.cutedsl.gemm_gallery.build import VARIANTS, compile_gemm, make_gemm

# One rounding to 16 bits, of a sum whose fp32 error is far below it: half a unit in the last place, and a little for ties.
UNITS_IN_THE_LAST_PLACE = 0.51
FRACTION_BITS = {"bf16": 7, "fp16": 10}


def make_arguments(*tensors: Any) -> tuple[Any, ...]:
    """Hand row-major torch tensors over to a compiled kernel."""
    from cutlass.cute.runtime import from_dlpack

    return tuple(from_dlpack(x, assumed_align=16).mark_layout_dynamic(leading_dim=x.dim() - 1) for x in tensors)


def current_stream() -> Any:
    """torch's current stream, as the kernels take it."""
    import torch
    from cuda.bindings import driver

    return driver.CUstream(torch.cuda.current_stream().cuda_stream)


def worst_error(c: Any, a: Any, b: Any, fraction_bits: int) -> float:
    """Largest error of C against A @ B^T in float64, in units in the last place of the exact result (NaN: infinite).

    What the sums lose in fp32 is not counted. Each of the K / 16 additions that wgmma makes truncates 23 bits of a partial sum,
    which is at most the sum of the terms' sizes; the losses are taken to add like independent ones.
    """
    import torch

    exact = a.double() @ b.double().T
    unit = torch.exp2(torch.floor(torch.log2(exact.abs().clamp(min=2.0**-14))) - fraction_bits)
    lost = 2.0**-23 * math.sqrt(a.shape[1] / 16) * (a.double().abs() @ b.double().abs().T)
    error = ((c.double() - exact).abs() - lost).clamp(min=0) / unit
    return float(torch.nan_to_num(error, nan=float("inf")).max())


def run_on_gpu(
    variant: str, shape: tuple[int, int, int], dtype: str = "bf16", repeat: int = 1, seed: int | None = None
):
    """Compile, launch ``repeat`` times, and return (A, B, C) of the last launch as torch tensors."""
    import cutlass
    import torch

    kinds = {"bf16": (cutlass.BFloat16, torch.bfloat16), "fp16": (cutlass.Float16, torch.float16)}
    cute_type, torch_type = kinds[dtype]
    gemm = make_gemm(variant, cute_type, torch.cuda.get_device_properties(0).multi_processor_count)
    gemm.check_shape(*shape)
    compiled = compile_gemm(gemm)
    if seed is not None:
        torch.manual_seed(seed)
    m, n, k = shape
    a, b = (torch.randn(rows, k, device="cuda").to(torch_type) for rows in (m, n))
    c = torch.empty(m, n, dtype=torch_type, device="cuda")
    arguments = make_arguments(a, b, c)
    for _ in range(repeat):
        c.fill_(float("nan"))  # an element that the kernel does not write shows up as NaN
        compiled(*arguments, current_stream())
    torch.cuda.synchronize()
    return a, b, c


def main() -> int:
    """Compare each variant with the reference; 1 on a mismatch."""
    parser = argparse.ArgumentParser(description="Check the GEMMs of the gallery against float64.")
    parser.add_argument("--variant", choices=VARIANTS, nargs="+", default=VARIANTS)
    parser.add_argument("--m", type=int, default=1024, help="rows of A and C, a multiple of 128 (cooperative: 256)")
    parser.add_argument("--n", type=int, default=1024, help="rows of B, columns of C, a multiple of 64")
    parser.add_argument("--k", type=int, default=1024, help="columns of A and B, a multiple of 64")
    parser.add_argument("--dtype", choices=sorted(FRACTION_BITS), default="bf16")
    parser.add_argument("--repeat", type=int, default=1, help="number of launches")
    parser.add_argument("--seed", type=int, help="default: fresh inputs every time")
    args = parser.parse_args()
    is_good = True
    for variant in args.variant:
        a, b, c = run_on_gpu(variant, (args.m, args.n, args.k), args.dtype, args.repeat, args.seed)
        error = worst_error(c, a, b, FRACTION_BITS[args.dtype])
        matches = error <= UNITS_IN_THE_LAST_PLACE
        is_good &= matches
        print(f"{variant} {args.dtype} {args.m}x{args.n}x{args.k}: {error:.3f} ulp: {'ok' if matches else 'MISMATCH'}")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
