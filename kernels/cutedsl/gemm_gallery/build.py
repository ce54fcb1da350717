# SPDX-License-Identifier: Apache-2.0
"""The three GEMMs by name, and how to compile them without a GPU."""

from collections.abc import Callable

import cutlass
import cutlass.cute as cute
from cutlass.cute.runtime import make_fake_compact_tensor, make_fake_stream

from autostamp.kernels.cutedsl.gemm_gallery.cooperative import CooperativeGemm
from autostamp.kernels.cutedsl.gemm_gallery.gemm import SLICE, GalleryGemm
from autostamp.kernels.cutedsl.gemm_gallery.pingpong import PingpongGemm
from autostamp.kernels.cutedsl.gemm_gallery.plain import PlainGemm

VARIANTS = ("plain", "pingpong", "cooperative")
H200_SMS = 132


def make_gemm(variant: str, dtype: type = cutlass.BFloat16, sms: int = H200_SMS) -> GalleryGemm:
    """One of ``VARIANTS`` with the tile that suits it. The two persistent ones launch at most ``sms`` CTAs.

    Where a warpgroup has a tile to itself, 128x192 is the largest whose sums fit in its registers. Smaller ones need more
    bytes from L2 for each wgmma. Two warpgroups that share a tile can have 128x256.
    """
    if variant == "plain":
        return PlainGemm(tile_n=192, stages=4, dtype=dtype)
    if variant == "pingpong":
        return PingpongGemm(tile_n=192, stages=4, dtype=dtype, max_ctas=sms)
    if variant == "cooperative":
        return CooperativeGemm(tile_n=256, stages=4, dtype=dtype, max_ctas=sms)
    raise ValueError(f"variant must be one of {', '.join(VARIANTS)}, got {variant!r}")


def compile_gemm(gemm: GalleryGemm, options: str = "--gpu-arch sm_90a") -> Callable[..., object]:
    """Compile to a function of ``(a, b, c, stream)``; needs no GPU. Call ``gemm.check_shape`` before it."""
    tile_m, _, tile_k = gemm.tile_mnk
    m, n, k = (cute.sym_int(divisibility=d) for d in (tile_m * gemm.cluster_m, SLICE[1], tile_k))
    a, b, c = (
        make_fake_compact_tensor(gemm.dtype, shape, stride_order=(1, 0), assumed_align=16)
        for shape in ((m, k), (n, k), (m, n))
    )
    compiled: Callable[..., object] = cute.compile(gemm, a, b, c, make_fake_stream(), options=options)
    return compiled
