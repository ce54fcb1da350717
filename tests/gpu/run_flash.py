# SPDX-License-Identifier: Apache-2.0
"""Run FlashAttention on the GPU: `python -m tests.gpu.run_flash OUT MODE`.

OUT gets `CASE.npz` with the raw bytes of every result. Clean runs are repeated, into `CASE.again.npz`; stamped ones have a
session each and leave a RUN folder `CASE` (so all but the first find their modules, and some their kernels, already there).
"""

from __future__ import annotations

import contextlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

HEAD_DIM = 128


@dataclass(frozen=True)
class Case:
    """Batch is 1. The mask of a causal case is aligned to the last key, so the last query sees all keys.

    Only the deterministic backward adds the blocks of dq in a fixed order; the other one adds them atomically.
    """

    direction: str
    is_causal: bool
    queries: int
    keys: int
    heads: int
    is_deterministic: bool = False


CASES = {
    "one_cta": Case("forward", False, 128, 4096, 1),
    "one_cta_causal": Case("forward", True, 128, 4096, 1),
    "grid": Case("forward", False, 4096, 4096, 16),
    "grid_causal": Case("forward", True, 4096, 4096, 16),
    "backward": Case("backward", False, 4096, 4096, 16),
    "backward_causal": Case("backward", True, 4096, 4096, 16),
    "backward_deterministic": Case("backward", False, 4096, 4096, 16, True),
    "backward_causal_deterministic": Case("backward", True, 4096, 4096, 16, True),
}


def run(case: Case) -> dict[str, Any]:
    """One call of FlashAttention's own functions, on inputs that are the same every time."""
    import torch
    from flash_attn.cute import interface

    generator = torch.Generator().manual_seed(0)

    def tensor(tokens: int) -> Any:
        shape = (1, tokens, case.heads, HEAD_DIM)
        return torch.randn(shape, generator=generator).to(torch.bfloat16).cuda()

    q, k, v, dout = tensor(case.queries), tensor(case.keys), tensor(case.keys), tensor(case.queries)
    out, lse = interface._flash_attn_fwd(q, k, v, causal=case.is_causal, return_lse=True)[:2]
    results = {"out": out, "lse": lse}
    if case.direction == "backward":
        options = {"causal": case.is_causal, "deterministic": case.is_deterministic}
        gradients = interface._flash_attn_bwd(q, k, v, out, dout, lse, **options)
        results |= dict(zip(("dq", "dk", "dv"), gradients, strict=False))
    torch.cuda.synchronize()
    return {name: each.contiguous().view(torch.uint8).cpu().numpy() for name, each in results.items()}


def main(out: Path, mode: str) -> None:
    """Run all cases; `mode` is clean or stamped."""
    import autostamp
    from autostamp.hooks import caches

    os.environ.update(caches.switched_off())
    out.mkdir(parents=True)
    for name, case in CASES.items():
        if mode == "clean":
            np.savez(out / f"{name}.again.npz", **run(case))
        session = (
            autostamp.session("flash_attn.cute", out=out / name) if mode == "stamped" else contextlib.nullcontext()
        )
        with session:
            results = run(case)
        np.savez(out / f"{name}.npz", **results)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
