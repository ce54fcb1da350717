# SPDX-License-Identifier: Apache-2.0
"""Check the attention forward on the GPU against float64, for every way to split P.

Run on a Hopper GPU: ``python -m autostamp.kernels.cutedsl.attention_handoff.reference --split 2 4 6 8``.
"""

import argparse
import math
import sys
from typing import Any

from autostamp.kernels.cutedsl.attention_handoff.build import compile_attention
from autostamp.kernels.cutedsl.attention_handoff.forward import CHUNKS, HEAD_DIM, AttentionHandoff
from autostamp.kernels.cutedsl.gemm_gallery.reference import current_stream, make_arguments

# P is rounded to bf16 before P V and O after it: relative errors of up to 2^-9 each, of a mean of values of V.
TOLERANCE = 2.0**-8


def make_inputs(heads: int, length_q: int, length_k: int) -> tuple[Any, Any, Any]:
    """Fresh random Q, K and V of shape (heads, length, 64), bf16."""
    import torch

    q, k, v = (
        torch.randn(heads, length, HEAD_DIM, device="cuda").bfloat16() for length in (length_q, length_k, length_k)
    )
    return q, k, v


def error_of(o: Any, q: Any, k: Any, v: Any) -> tuple[float, float]:
    """Largest absolute error of O against float64, and what the tolerance allows there (NaN: infinite error).

    Per element: ``TOLERANCE`` times the weighted mean of |V|, the size of the terms that were rounded.
    """
    import torch

    weights = torch.softmax(q.double() @ k.double().mT / math.sqrt(HEAD_DIM), dim=-1)
    exact, size = weights @ v.double(), weights @ v.double().abs()
    error = torch.nan_to_num((o.double() - exact).abs(), nan=float("inf"))
    worst = int((error / size).argmax())
    return float(error.flatten()[worst]), TOLERANCE * float(size.flatten()[worst])


def main() -> int:
    """Compare every variant that was asked for with the reference; 1 on a mismatch."""
    parser = argparse.ArgumentParser(description="Check the attention forward against float64.")
    parser.add_argument("--split", type=int, nargs="+", default=[4], help=f"chunks of 16 columns first, 1 to {CHUNKS}")
    parser.add_argument("--halves", type=int, nargs="+", default=[2], help="softmax warpgroups, 1 or 2")
    parser.add_argument(
        "--order", choices=("ahead", "serial"), nargs="+", default=["ahead"], help="S before or after P V"
    )
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--length-q", type=int, default=256, help="a multiple of 64 times the halves")
    parser.add_argument("--length-k", type=int, default=1024, help="a multiple of 128")
    parser.add_argument("--repeat", type=int, default=1, help="number of launches")
    args = parser.parse_args()

    import torch

    is_good = True
    q, k, v = make_inputs(args.heads, args.length_q, args.length_k)
    o = torch.empty_like(q)
    arguments = make_arguments(q, k, v, o)
    knobs = [(split, halves, order) for halves in args.halves for order in args.order for split in args.split]
    for split, halves, order in knobs:
        attention = AttentionHandoff(split, halves, order == "ahead")
        attention.check_shape(args.length_q, args.length_k)
        compiled = compile_attention(attention)
        for _ in range(args.repeat):
            o.fill_(float("nan"))  # an element that the kernel does not write shows up as NaN
            compiled(*arguments, current_stream())
        torch.cuda.synchronize()
        error, allowed = error_of(o, q, k, v)
        is_good &= error <= allowed
        shape = f"{args.heads}x{args.length_q}x{args.length_k}"
        verdict = "ok" if error <= allowed else "MISMATCH"
        print(f"{shape} split {split}/{CHUNKS} halves {halves} {order}: error {error:.2e} of {allowed:.2e}: {verdict}")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
