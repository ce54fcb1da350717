# SPDX-License-Identifier: Apache-2.0
"""Pingpong role split: two consumer warpgroups take turns, tile by tile, in a persistent CTA.

While one writes its tile of C, the other one has the tensor cores. Named barriers hand the main loop over: a warpgroup may
begin its K tiles when the other has issued all of its own. So the stages of the ring are used in the order they were filled.
"""

import cutlass
import cutlass.cute as cute
from cutlass import pipeline
from cutlass.cute.nvgpu import warpgroup

from autostamp.kernels.cutedsl.gemm_gallery.gemm import SLICE, THREADS_PER_WARPGROUP, GalleryGemm

# Named barriers 3 and 4: the turn of warpgroup 0 and of warpgroup 1. One waits there (128 threads), the other arrives.
TURN_BARRIER = 3
TURN_THREADS = 2 * THREADS_PER_WARPGROUP


class PingpongGemm(GalleryGemm):
    """Two consumer warpgroups on alternating tiles of 128 rows."""

    consumers = 2

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
        """Compute and write every second tile of this CTA (one of two consumer warpgroups)."""
        tCrA, tCrB, acc = self.operands(tiled_mma, 0, sA, sB)
        own_turn, other_turn = TURN_BARRIER + warpgroup_idx, TURN_BARRIER + 1 - warpgroup_idx
        # Warpgroup 0 begins.
        if warpgroup_idx == 1:
            cute.arch.barrier_arrive(barrier_id=other_turn, number_of_threads=TURN_THREADS)

        # The producer fills the stages tile after tile: skip those of the other warpgroup's tiles.
        state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.stages)
        state.advance(warpgroup_idx * num_k_tiles)
        unit, step, end = self.walk(tiles)
        unit += warpgroup_idx * step
        while unit < end:
            tile_row, tile_column = self.tile_at(unit, tiles, cta_rank)
            cute.arch.barrier(barrier_id=own_turn, number_of_threads=TURN_THREADS)
            state, release_state = self.mainloop(consumer, state, num_k_tiles, tiled_mma, acc, tCrA, tCrB)
            # Every wgmma of this tile is issued. Hand over, unless this was the CTA's last tile: nobody would wait.
            if unit + step < end:
                cute.arch.barrier_arrive(barrier_id=other_turn, number_of_threads=TURN_THREADS)
            state.advance(num_k_tiles)
            warpgroup.wait_group(0)
            consumer.consumer_release(release_state)
            self.store(
                acc, warpgroup_idx, tile_row * (self.tile_m // SLICE[0]), tile_column * self.slices[1], sC, tma_c, tCsC,
                tCgC,
            )  # fmt: skip
            unit += 2 * step
        self.finish_stores()
