# SPDX-License-Identifier: Apache-2.0
"""The softmax role of ``forward``: S comes in, P goes out in two parts.

A thread gets the values of S that its counterpart in the mma warpgroup held: two rows, 8 apart, and of each group of 8
columns 2 neighbouring ones. Four neighbouring threads share a row. Value ``i`` lies in row ``i // 2 % 2``.
"""

import cutlass
import cutlass.cute as cute
import cutlass.utils.hopper_helpers as sm90_utils
from cutlass import pipeline
from cutlass.utils import LayoutEnum

THREADS_PER_WARPGROUP = 128
THREADS_PER_ROW = 4
VALUES_PER_CHUNK = 8  # of a thread, in 16 columns: what one stmatrix of four 8x8 matrices writes
ROWS_OF_A_THREAD = 2


class SoftmaxRows:
    """Online softmax of 64 rows in one warpgroup; the class that inherits it sets the knobs.

    Attributes:
        split, has_rest: Chunks of P in the first part, and whether there is another.
        halves: Softmax warpgroups, which is the number of stages of each hand-over.
        scale_log2: The softmax scale times log2(e).
    """

    split: int
    has_rest: bool
    halves: int
    scale_log2: float
    dtype: type[cutlass.Numeric]
    acc_dtype: type[cutlass.Numeric]

    @cute.jit
    def softmax(
        self,
        handoffs,
        num_blocks: cutlass.Int32,
        half: cutlass.Int32,
        mma_qk: cute.TiledMma,
        sS: cute.Tensor,
        sP: cute.Tensor,
        row_scale: cute.Tensor,
    ) -> None:
        """Turn each block's S into P, and keep row maxima and sums (softmax warpgroup number `half`)."""
        s_pipeline, p_first_pipeline, p_rest_pipeline = handoffs
        tidx, _, _ = cute.arch.thread_idx()
        thread = tidx % THREADS_PER_WARPGROUP
        own_s = sS[thread, None, half]
        scores = cute.make_rmem_tensor(own_s.shape, self.acc_dtype)

        store_atom = sm90_utils.get_smem_store_op(LayoutEnum.ROW_MAJOR, self.dtype, self.acc_dtype)
        r2s_copy = cute.make_tiled_copy_S(store_atom, cute.make_tiled_copy_C_atom(store_atom, mma_qk))
        own_p = r2s_copy.get_slice(thread).partition_D(sP)[None, None, None, half]

        row_max, row_sum = (cute.make_rmem_tensor((ROWS_OF_A_THREAD,), self.acc_dtype) for _ in range(2))
        row_max.fill(-cutlass.Float32.inf)
        row_sum.fill(0.0)

        # This warpgroup has one stage of each hand-over: its own number.
        zero, one = cutlass.Int32(0), cutlass.Int32(1)
        s_state = pipeline.PipelineState(self.halves, zero, half, zero)
        p_state = pipeline.PipelineState(self.halves, zero, half, one)
        for _ in cutlass.range(num_blocks, unroll=1):
            s_pipeline.consumer_wait(s_state)
            cute.autovec_copy(own_s, scores)
            s_pipeline.consumer_release(s_state)
            s_state.advance(self.halves)
            scales = self.update_max(scores, row_max)
            for row in cutlass.range_constexpr(ROWS_OF_A_THREAD):
                row_sum[row] = row_sum[row] * scales[row]

            # P V of the last block has read its P, and its row scales.
            p_first_pipeline.producer_acquire(p_state)
            self.send_scales(scales, row_scale, half)
            self.exponentiate(scores, row_max, row_sum, r2s_copy, own_p, 0, self.split)
            p_first_pipeline.producer_commit(p_state)
            if cutlass.const_expr(self.has_rest):
                p_rest_pipeline.producer_acquire(p_state)
                self.exponentiate(scores, row_max, row_sum, r2s_copy, own_p, self.split, cute.size(own_p, mode=[2]))
                p_rest_pipeline.producer_commit(p_state)
            p_state.advance(self.halves)

        inverse = cute.make_rmem_tensor((ROWS_OF_A_THREAD,), self.acc_dtype)
        for row in cutlass.range_constexpr(ROWS_OF_A_THREAD):
            inverse[row] = 1.0 / cute.arch.warp_reduction_sum(row_sum[row], threads_in_group=THREADS_PER_ROW)
        p_first_pipeline.producer_acquire(p_state)
        self.send_scales(inverse, row_scale, half)
        p_first_pipeline.producer_commit(p_state)

    @cute.jit
    def update_max(self, scores: cute.Tensor, row_max: cute.Tensor):
        """Raise `row_max` to the maximum of this block's rows; returns by how much older sums must shrink."""
        scales = cute.make_rmem_tensor((ROWS_OF_A_THREAD,), self.acc_dtype)
        for row in cutlass.range_constexpr(ROWS_OF_A_THREAD):
            highest = row_max[row]
            for i in cutlass.range_constexpr(cute.size(scores)):
                if cutlass.const_expr(i // 2 % 2 == row):
                    highest = cute.arch.fmax(highest, scores[i])
            highest = cute.arch.warp_reduction_max(highest, threads_in_group=THREADS_PER_ROW)
            scales[row] = cute.math.exp2((row_max[row] - highest) * self.scale_log2, fastmath=True)
            row_max[row] = highest
        return scales

    @cute.jit
    def send_scales(self, scales: cute.Tensor, row_scale: cute.Tensor, half: cutlass.Int32) -> None:
        """Write the scale of each row once, for the mma warpgroup."""
        if cute.arch.lane_idx() % THREADS_PER_ROW == 0:
            for i in cutlass.range_constexpr(ROWS_OF_A_THREAD):
                row_scale[self.first_row() + 8 * i, half] = scales[i]

    @cute.jit
    def exponentiate(
        self,
        scores: cute.Tensor,
        row_max: cute.Tensor,
        row_sum: cute.Tensor,
        r2s_copy: cute.TiledCopy,
        own_p: cute.Tensor,
        first: cutlass.Constexpr[int],
        end: cutlass.Constexpr[int],
    ) -> None:
        """Write chunks `first` to `end` of P, and make them visible to wgmma."""
        for chunk in cutlass.range_constexpr(first, end):
            values = cute.make_rmem_tensor(cute.shape(own_p[None, None, 0]), self.acc_dtype)
            for i in cutlass.range_constexpr(VALUES_PER_CHUNK):
                row = i // 2 % 2
                shifted = scores[chunk * VALUES_PER_CHUNK + i] * self.scale_log2 - row_max[row] * self.scale_log2
                values[i] = cute.math.exp2(shifted, fastmath=True)
                row_sum[row] = row_sum[row] + values[i]
            rounded = cute.make_rmem_tensor_like(values, self.dtype)
            rounded.store(values.load().to(self.dtype))
            cute.copy(r2s_copy, rounded, own_p[None, None, chunk])
        cute.arch.fence_proxy("async.shared", space="cta")

    @cute.jit
    def first_row(self) -> cutlass.Int32:
        """The upper one of the two rows that this thread holds, within its warpgroup's 64."""
        tidx, _, _ = cute.arch.thread_idx()
        return tidx % THREADS_PER_WARPGROUP // 32 * 16 + cute.arch.lane_idx() // THREADS_PER_ROW
