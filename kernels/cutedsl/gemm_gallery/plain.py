# SPDX-License-Identifier: Apache-2.0
"""Plain role split: one producer warp, one consumer warpgroup, one tile per CTA.

While the consumer writes its tile of C, nobody computes: the tensor cores wait for the epilogue, and for the first loads of
the CTA that comes next on this SM.
"""

import cutlass
import cutlass.cute as cute
from cutlass import pipeline
from cutlass.cute.nvgpu import warpgroup

from autostamp.kernels.cutedsl.gemm_gallery.gemm import SLICE, GalleryGemm


class PlainGemm(GalleryGemm):
    """One consumer warpgroup computes a tile of 128 rows, as two wgmmas of 64 rows side by side."""

    consumers = 1

    @cute.jit
    def mma(
        self,
        consumer: pipeline.PipelineTmaAsync,
        tiles,
        num_k_tiles: cutlass.Int32,
        cta_rank: cutlass.Int32,
        tiled_mma: cute.TiledMma,
        warpgroup_idx: cutlass.Int32,
        sA: cute.Tensor,
        sB: cute.Tensor,
        sC: cute.Tensor,
        tma_c: cute.CopyAtom,
        tCsC: cute.Tensor,
        tCgC: cute.Tensor,
    ) -> None:
        """Compute and write the tiles of this CTA (consumer warpgroup)."""
        tCrA, tCrB, acc = self.operands(tiled_mma, 0, sA, sB)
        state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.stages)
        unit, step, end = self.walk(tiles)
        while unit < end:
            tile_row, tile_column = self.tile_at(unit, tiles, cta_rank)
            state, release_state = self.mainloop(consumer, state, num_k_tiles, tiled_mma, acc, tCrA, tCrB)
            warpgroup.wait_group(0)
            consumer.consumer_release(release_state)
            self.store(
                acc, warpgroup_idx, tile_row * (self.tile_m // SLICE[0]), tile_column * self.slices[1], sC, tma_c, tCsC,
                tCgC,
            )  # fmt: skip
            unit += step
        self.finish_stores()
