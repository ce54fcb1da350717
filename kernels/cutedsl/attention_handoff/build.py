# SPDX-License-Identifier: Apache-2.0
"""Compile the attention forward without a GPU."""

from collections.abc import Callable

import cutlass
import cutlass.cute as cute
from cutlass.cute.runtime import make_fake_compact_tensor, make_fake_stream

from autostamp.kernels.cutedsl.attention_handoff.forward import BLOCK, HEAD_DIM, ROWS, AttentionHandoff


def compile_attention(
    attention: AttentionHandoff | None = None, options: str = "--gpu-arch sm_90a"
) -> Callable[..., object]:
    """Compile to a function of ``(q, k, v, o, stream)`` for any number of heads; needs no GPU.

    The tensors have shape (heads, length, 64). Call ``AttentionHandoff.check_shape`` before it.
    """
    attention = attention or AttentionHandoff()
    # The width is symbolic too: a call passes every extent and stride of a tensor whose layout is dynamic.
    sizes = (1, ROWS * attention.halves, BLOCK, HEAD_DIM)
    heads, length_q, length_k, width = (cute.sym_int(divisibility=size) for size in sizes)
    q, k, v, o = (
        make_fake_compact_tensor(cutlass.BFloat16, (heads, length, width), stride_order=(2, 1, 0), assumed_align=16)
        for length in (length_q, length_k, length_k, length_q)
    )
    compiled: Callable[..., object] = cute.compile(attention, q, k, v, o, make_fake_stream(), options=options)
    return compiled
