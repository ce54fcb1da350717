# SPDX-License-Identifier: Apache-2.0
"""Cooperative role split: two consumer warpgroups share one tile, and two CTAs of a cluster share the tile of B.

Each warpgroup computes 64 rows of the tile and reads all of B's stage. The CTAs of a cluster lie along M; each loads half of
the tile of B and multicasts it to both. So a stage is empty only when the warpgroups of *both* CTAs have released it.
"""

import cutlass
import cutlass.cute as cute
from cutlass import pipeline
from cutlass.cute.nvgpu import warpgroup

from autostamp.kernels.cutedsl.gemm_gallery.gemm import SLICE, GalleryGemm


class CooperativeGemm(GalleryGemm):
    """Two consumer warpgroups on one tile of 128 rows, persistent, in clusters of two CTAs."""

    consumers = 2
    shares_a_tile = True
    cluster_m = 2

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
        """Compute and write 64 rows of every tile of this CTA (one of two consumer warpgroups)."""
        tCrA, tCrB, acc = self.operands(tiled_mma, warpgroup_idx, sA, sB)
        state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.stages)
        unit, step, end = self.walk(tiles)
        while unit < end:
            tile_row, tile_column = self.tile_at(unit, tiles, cta_rank)
            state, release_state = self.mainloop(consumer, state, num_k_tiles, tiled_mma, acc, tCrA, tCrB)
            warpgroup.wait_group(0)
            consumer.consumer_release(release_state)
            row_block = tile_row * (self.tile_m // SLICE[0]) + warpgroup_idx
            self.store(acc, warpgroup_idx, row_block, tile_column * self.slices[1], sC, tma_c, tCsC, tCgC)
            unit += step
        self.finish_stores()
