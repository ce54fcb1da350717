# SPDX-License-Identifier: Apache-2.0
"""Attention forward with one warpgroup for both products and softmax in warpgroups of its own, for Hopper (sm_90a).

``O = softmax(Q K^T / sqrt(64)) V`` for bf16 tensors of shape (batch * heads, length, 64), no mask. A CTA has 64 rows of Q per
softmax warpgroup. Roles:

* *load*, one warp: Q once, then K and V block by block (128 rows each), with TMA;
* *mma*, one warpgroup: ``S = Q K^T`` and ``O += P V`` with wgmma;
* *softmax*, one or two warpgroups, 64 rows each: row maxima, exponentials, row sums.

Accumulators of wgmma live in registers of the warpgroup that issues it, so S goes through shared memory. P comes back in two
parts, each with a full and an empty mbarrier: the first ``split`` chunks of 16 columns, then the rest. P V of the first part
can run while the rest is still being exponentiated. ``split`` moves the border between the parts.
"""

import math

import cutlass
import cutlass.cute as cute
import cutlass.utils.hopper_helpers as sm90_utils
from cuda.bindings import driver as cuda
from cutlass import pipeline
from cutlass.cute.nvgpu import OperandMajorMode, cpasync, warpgroup
from cutlass.utils import LayoutEnum, SmemAllocator

from autostamp.kernels.cutedsl.attention_handoff.softmax import SoftmaxRows

THREADS_PER_WARPGROUP = 128
WARPS_PER_WARPGROUP = 4
WGMMA_K = 16
SMEM_ALIGN_BYTES = 1024
HEAD_DIM = 64
ROWS = 64  # rows of Q per softmax warpgroup
BLOCK = 128  # rows of K and V per step
CHUNKS = BLOCK // WGMMA_K  # chunks of P that one wgmma of P V reads each
KV_STAGES = 2
VALUES = ROWS * BLOCK // THREADS_PER_WARPGROUP  # of S, per thread

# Registers per thread where a CTA has two softmax warpgroups: all start with 128, and 24 + 208 + 2 * 136 is at most 4 * 128.
LOAD_REGISTERS, MMA_REGISTERS, SOFTMAX_REGISTERS = 24, 208, 136


class AttentionHandoff(SoftmaxRows):
    """Knobs, shared memory and roles.

    Args:
        split: Chunks of 16 columns of P in the first part, 1 to 8. 8: all of P in one part, and no second barrier.
        halves: Softmax warpgroups, 1 or 2; the CTA's tile has 64 rows for each.
        looks_ahead: Whether *mma* computes the next block's S before it waits for this block's P.
    """

    def __init__(self, split: int = 4, halves: int = 2, looks_ahead: bool = True) -> None:
        if not 1 <= split <= CHUNKS:
            raise ValueError(f"split must be between 1 and {CHUNKS}, got {split}")
        if halves not in (1, 2):
            raise ValueError(f"halves must be 1 or 2, got {halves}")
        self.split, self.halves, self.looks_ahead = split, halves, looks_ahead
        self.has_rest = split < CHUNKS
        self.dtype, self.acc_dtype = cutlass.BFloat16, cutlass.Float32
        self.scale_log2 = math.log2(math.e) / math.sqrt(HEAD_DIM)

        # Roles: the mma warpgroup comes first, then softmax, then the load warp.
        self.num_mma_warps = WARPS_PER_WARPGROUP
        self.load_warp_id = self.num_mma_warps + halves * WARPS_PER_WARPGROUP
        # setmaxnreg acts on whole warpgroups, so the load warp has one of its own where registers move.
        self.moves_registers = halves == 2
        load_warps = WARPS_PER_WARPGROUP if self.moves_registers else 1
        self.threads_per_cta = (self.load_warp_id + load_warps) * cute.arch.WARP_SIZE

    def check_shape(self, length_q: int, length_k: int) -> None:
        """Raise ``ValueError`` unless both lengths are a whole number of tiles."""
        for name, length, unit in (("Q", length_q, ROWS * self.halves), ("K", length_k, BLOCK)):
            if length <= 0 or length % unit != 0:
                raise ValueError(f"the length of {name} must be a positive multiple of {unit}, got {length}")

    @cute.jit
    def __call__(self, q: cute.Tensor, k: cute.Tensor, v: cute.Tensor, o: cute.Tensor, stream: cuda.CUstream) -> None:
        """Build the TMA descriptors and launch one CTA per tile of Q and head."""
        # (length, head dim, head); V is read as the B operand of P V, whose rows are the head dim: (head dim, length, head).
        q, k, o = (cute.make_tensor(x.iterator, cute.select(x.layout, mode=[1, 2, 0])) for x in (q, k, o))
        v = cute.make_tensor(v.iterator, cute.select(v.layout, mode=[2, 1, 0]))

        k_major, mn_major = OperandMajorMode.K, OperandMajorMode.MN
        one = (1, 1, 1)
        mma_qk = sm90_utils.make_trivial_tiled_mma(
            self.dtype, self.dtype, k_major, k_major, self.acc_dtype, one, (ROWS, BLOCK)
        )
        mma_pv = sm90_utils.make_trivial_tiled_mma(
            self.dtype, self.dtype, k_major, mn_major, self.acc_dtype, one, (ROWS, HEAD_DIM)
        )

        # Swizzled shared-memory layouts: (rows, columns, stages). Q and P have a "stage" per softmax warpgroup.
        row, column = LayoutEnum.ROW_MAJOR, LayoutEnum.COL_MAJOR
        qk_tile, pv_tile = (ROWS, BLOCK, HEAD_DIM), (ROWS, HEAD_DIM, BLOCK)
        q_layout = sm90_utils.make_smem_layout_a(row, qk_tile, self.dtype, self.halves)
        k_layout = sm90_utils.make_smem_layout_b(row, qk_tile, self.dtype, KV_STAGES)
        p_layout = sm90_utils.make_smem_layout_a(row, pv_tile, self.dtype, self.halves)
        v_layout = sm90_utils.make_smem_layout_b(column, pv_tile, self.dtype, KV_STAGES)

        load_op = cpasync.CopyBulkTensorTileG2SOp()
        q_stage, k_stage, v_stage = (cute.slice_(x, (None, None, 0)) for x in (q_layout, k_layout, v_layout))
        tma_q, mQ = cpasync.make_tiled_tma_atom(load_op, q, q_stage, (ROWS, HEAD_DIM))
        tma_k, mK = cpasync.make_tiled_tma_atom(load_op, k, k_stage, (BLOCK, HEAD_DIM))
        tma_v, mV = cpasync.make_tiled_tma_atom(load_op, v, v_stage, (HEAD_DIM, BLOCK))

        grid = (cute.ceil_div(q.shape[0], ROWS * self.halves), q.shape[2], 1)
        self.kernel(mma_qk, mma_pv, tma_q, mQ, tma_k, mK, tma_v, mV, o, q_layout, k_layout, p_layout, v_layout).launch(
            grid=grid, block=(self.threads_per_cta, 1, 1), min_blocks_per_mp=1, stream=stream
        )

    @cute.kernel
    def kernel(
        self,
        mma_qk: cute.TiledMma,
        mma_pv: cute.TiledMma,
        tma_q: cute.CopyAtom,
        mQ: cute.Tensor,
        tma_k: cute.CopyAtom,
        mK: cute.Tensor,
        tma_v: cute.CopyAtom,
        mV: cute.Tensor,
        mO: cute.Tensor,
        q_layout: cute.ComposedLayout,
        k_layout: cute.ComposedLayout,
        p_layout: cute.ComposedLayout,
        v_layout: cute.ComposedLayout,
    ) -> None:
        """Set up the pipelines and the tensor views, then branch into the roles."""
        tile, head, _ = cute.arch.block_idx()
        warp_idx = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        if warp_idx == self.load_warp_id:
            for atom in (tma_q, tma_k, tma_v):
                cpasync.prefetch_descriptor(atom)

        @cute.struct
        class SharedStorage:
            q_barriers: cute.struct.MemRange[cutlass.Int64, 2]
            k_barriers: cute.struct.MemRange[cutlass.Int64, 2 * KV_STAGES]
            v_barriers: cute.struct.MemRange[cutlass.Int64, 2 * KV_STAGES]
            s_barriers: cute.struct.MemRange[cutlass.Int64, 2 * self.halves]
            p_first_barriers: cute.struct.MemRange[cutlass.Int64, 2 * self.halves]
            p_rest_barriers: cute.struct.MemRange[cutlass.Int64, 2 * self.halves]
            row_scale: cute.struct.MemRange[cutlass.Float32, ROWS * self.halves]
            q: cute.struct.Align[cute.struct.MemRange[self.dtype, cute.cosize(q_layout)], SMEM_ALIGN_BYTES]
            k: cute.struct.Align[cute.struct.MemRange[self.dtype, cute.cosize(k_layout)], SMEM_ALIGN_BYTES]
            v: cute.struct.Align[cute.struct.MemRange[self.dtype, cute.cosize(v_layout)], SMEM_ALIGN_BYTES]
            p: cute.struct.Align[cute.struct.MemRange[self.dtype, cute.cosize(p_layout)], SMEM_ALIGN_BYTES]
            s: cute.struct.Align[cute.struct.MemRange[cutlass.Float32, ROWS * BLOCK * self.halves], SMEM_ALIGN_BYTES]

        storage = SmemAllocator().allocate(SharedStorage)
        sQ = storage.q.get_tensor(q_layout.outer, swizzle=q_layout.inner)
        sK = storage.k.get_tensor(k_layout.outer, swizzle=k_layout.inner)
        sV = storage.v.get_tensor(v_layout.outer, swizzle=v_layout.inner)
        sP = storage.p.get_tensor(p_layout.outer, swizzle=p_layout.inner)
        sS = storage.s.get_tensor(self.s_layout())
        row_scale = storage.row_scale.get_tensor(cute.make_layout((ROWS, self.halves)))

        q_bytes, kv_bytes = (x * HEAD_DIM * self.dtype.width // 8 for x in (ROWS * self.halves, BLOCK))
        q_pipeline = self.make_tma_ring(storage.q_barriers.data_ptr(), 1, q_bytes)
        k_pipeline = self.make_tma_ring(storage.k_barriers.data_ptr(), KV_STAGES, kv_bytes)
        v_pipeline = self.make_tma_ring(storage.v_barriers.data_ptr(), KV_STAGES, kv_bytes)
        s_pipeline = self.make_handoff(storage.s_barriers.data_ptr())
        p_first_pipeline = self.make_handoff(storage.p_first_barriers.data_ptr())
        p_rest_pipeline = self.make_handoff(storage.p_rest_barriers.data_ptr())
        rings, handoffs = (q_pipeline, k_pipeline, v_pipeline), (s_pipeline, p_first_pipeline, p_rest_pipeline)
        cute.arch.mbarrier_init_fence()
        cute.arch.sync_threads()
        # Of this head: (rows, columns, blocks).
        gQ = cute.local_tile(mQ, (ROWS, HEAD_DIM), (None, 0, head))
        gK = cute.local_tile(mK, (BLOCK, HEAD_DIM), (None, 0, head))
        gV = cute.local_tile(mV, (HEAD_DIM, BLOCK), (0, None, head))
        gO = cute.local_tile(mO, (ROWS, HEAD_DIM), (None, 0, head))
        num_blocks = cutlass.Int32(cute.size(gK, mode=[2]))
        if cutlass.const_expr(self.moves_registers):
            if warp_idx >= self.load_warp_id:
                cute.arch.setmaxregister_decrease(LOAD_REGISTERS)
        if warp_idx == self.load_warp_id:
            self.load(rings, num_blocks, tile, (tma_q, tma_k, tma_v), (gQ, gK, gV), (sQ, sK, sV))

        is_mma_warp = warp_idx < self.num_mma_warps
        if is_mma_warp:
            if cutlass.const_expr(self.moves_registers):
                cute.arch.setmaxregister_increase(MMA_REGISTERS)
            self.mma(rings, handoffs, num_blocks, (mma_qk, mma_pv), (sQ, sK, sP, sV), sS, row_scale, gO, tile)

        is_softmax_warp = warp_idx >= self.num_mma_warps and warp_idx < self.load_warp_id
        if is_softmax_warp:
            if cutlass.const_expr(self.moves_registers):
                cute.arch.setmaxregister_increase(SOFTMAX_REGISTERS)
            self.softmax(handoffs, num_blocks, warp_idx // WARPS_PER_WARPGROUP - 1, mma_qk, sS, sP, row_scale)

    def s_layout(self) -> cute.Layout:
        """S keeps the accumulator's order: (thread, value of that thread, half), 16 bytes of a thread side by side."""
        return cute.make_layout(
            (THREADS_PER_WARPGROUP, (4, VALUES // 4), self.halves),
            stride=(4, (1, 4 * THREADS_PER_WARPGROUP), ROWS * BLOCK),
        )

    @cute.jit
    def make_tma_ring(
        self, barriers: cute.Pointer, stages: cutlass.Constexpr[int], stage_bytes: cutlass.Constexpr[int]
    ):
        """Ring from the load warp to the mma warpgroup, of whose warps one lane each releases a stage."""
        return pipeline.PipelineTmaAsync.create(
            num_stages=stages,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, WARPS_PER_WARPGROUP),
            tx_count=stage_bytes,
            barrier_storage=barriers,
            defer_sync=True,
        )

    @cute.jit
    def make_handoff(self, barriers: cute.Pointer):
        """Hand-over between the mma warpgroup and each softmax warpgroup: its stage is the latter's number.

        All 128 threads of a side arrive, each after its own accesses to shared memory.
        """
        threads = pipeline.CooperativeGroup(pipeline.Agent.Thread, THREADS_PER_WARPGROUP)
        return pipeline.PipelineAsync.create(
            num_stages=self.halves,
            producer_group=threads,
            consumer_group=threads,
            barrier_storage=barriers,
            defer_sync=True,
        )

    @cute.jit
    def load(self, rings, num_blocks: cutlass.Int32, tile: cutlass.Int32, tma_atoms, in_global, in_shared) -> None:
        """Load Q, then K and V of every block (load warp). Of each of the three: ring, TMA atom and tensors."""
        q_pipeline, k_pipeline, v_pipeline = rings
        tma_q, tma_k, tma_v = tma_atoms
        (gQ, gK, gV), (sQ, sK, sV) = in_global, in_shared
        # TMA views: (box, stage) in shared memory; (box, block) in global memory.
        one_cta = cute.make_layout(1)
        tQsQ, tQgQ = cpasync.tma_partition(tma_q, 0, one_cta, cute.group_modes(sQ, 0, 2), cute.group_modes(gQ, 0, 2))
        tKsK, tKgK = cpasync.tma_partition(tma_k, 0, one_cta, cute.group_modes(sK, 0, 2), cute.group_modes(gK, 0, 2))
        tVsV, tVgV = cpasync.tma_partition(tma_v, 0, one_cta, cute.group_modes(sV, 0, 2), cute.group_modes(gV, 0, 2))

        q_state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, 1)
        q_pipeline.producer_acquire(q_state)
        q_full = q_pipeline.producer_get_barrier(q_state)
        for half in cutlass.range_constexpr(self.halves):
            cute.copy(tma_q, tQgQ[None, tile * self.halves + half], tQsQ[None, half], tma_bar_ptr=q_full)
        q_pipeline.producer_commit(q_state)

        state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, KV_STAGES)
        for block in cutlass.range(num_blocks, unroll=1):
            k_pipeline.producer_acquire(state)
            k_full = k_pipeline.producer_get_barrier(state)
            cute.copy(tma_k, tKgK[None, block], tKsK[None, state.index], tma_bar_ptr=k_full)
            k_pipeline.producer_commit(state)
            v_pipeline.producer_acquire(state)
            v_full = v_pipeline.producer_get_barrier(state)
            cute.copy(tma_v, tVgV[None, block], tVsV[None, state.index], tma_bar_ptr=v_full)
            v_pipeline.producer_commit(state)
            state.advance()

    @cute.jit
    def mma(
        self,
        rings,
        handoffs,
        num_blocks: cutlass.Int32,
        tiled_mmas,
        operands,
        sS: cute.Tensor,
        row_scale: cute.Tensor,
        gO: cute.Tensor,
        tile: cutlass.Int32,
    ) -> None:
        """Compute S and O of all blocks, then write O (mma warpgroup)."""
        q_pipeline, k_pipeline, v_pipeline = rings
        s_pipeline, p_first_pipeline, p_rest_pipeline = handoffs
        (mma_qk, mma_pv), (sQ, sK, sP, sV) = tiled_mmas, operands
        tidx, _, _ = cute.arch.thread_idx()
        thr_qk, thr_pv = mma_qk.get_slice(0), mma_pv.get_slice(0)
        tSrQ, tSrK = mma_qk.make_fragment_A(thr_qk.partition_A(sQ)), mma_qk.make_fragment_B(thr_qk.partition_B(sK))
        tOrP, tOrV = mma_pv.make_fragment_A(thr_pv.partition_A(sP)), mma_pv.make_fragment_B(thr_pv.partition_B(sV))
        o_shape = thr_pv.partition_shape_C((ROWS, HEAD_DIM))
        acc_o = tuple(cute.make_rmem_tensor(o_shape, self.acc_dtype) for _ in range(self.halves))
        for half in cutlass.range_constexpr(self.halves):
            acc_o[half].fill(0.0)

        consumer, producer = pipeline.PipelineUserType.Consumer, pipeline.PipelineUserType.Producer
        q_state = pipeline.make_pipeline_state(consumer, 1)
        k_state, v_state = (pipeline.make_pipeline_state(consumer, KV_STAGES) for _ in range(2))
        s_state = pipeline.make_pipeline_state(producer, self.halves)
        p_state = pipeline.make_pipeline_state(consumer, self.halves)

        q_pipeline.consumer_wait(q_state)
        k_state, s_state = self.scores(k_pipeline, s_pipeline, k_state, s_state, mma_qk, tSrQ, tSrK, sS)
        for _ in cutlass.range(num_blocks - 1, unroll=1):
            if cutlass.const_expr(self.looks_ahead):
                k_state, s_state = self.scores(k_pipeline, s_pipeline, k_state, s_state, mma_qk, tSrQ, tSrK, sS)
            v_state, p_state = self.values(
                v_pipeline, p_first_pipeline, p_rest_pipeline, v_state, p_state, mma_pv, tOrP, tOrV, acc_o, row_scale
            )
            if cutlass.const_expr(not self.looks_ahead):
                k_state, s_state = self.scores(k_pipeline, s_pipeline, k_state, s_state, mma_qk, tSrQ, tSrK, sS)
        v_state, p_state = self.values(
            v_pipeline, p_first_pipeline, p_rest_pipeline, v_state, p_state, mma_pv, tOrP, tOrV, acc_o, row_scale
        )

        # The softmax warpgroups send one more scale: the inverse row sums.
        for half in cutlass.range_constexpr(self.halves):
            p_first_pipeline.consumer_wait(p_state)
            self.scale_rows(acc_o[half], row_scale, half)
            out = cute.make_rmem_tensor(o_shape, self.dtype)
            out.store(acc_o[half].load().to(self.dtype))
            cute.autovec_copy(out, mma_pv.get_slice(tidx).partition_C(gO[None, None, tile * self.halves + half]))
            p_state.advance()

    @cute.jit
    def scores(
        self,
        k_pipeline: pipeline.PipelineTmaAsync,
        s_pipeline: pipeline.PipelineAsync,
        k_state: pipeline.PipelineState,
        s_state: pipeline.PipelineState,
        mma_qk: cute.TiledMma,
        tSrQ: cute.Tensor,
        tSrK: cute.Tensor,
        sS: cute.Tensor,
    ):
        """Compute S of one block of K and hand it to the softmax warpgroups."""
        tidx, _, _ = cute.arch.thread_idx()
        acc = cute.make_rmem_tensor(mma_qk.partition_shape_C((ROWS, BLOCK)), self.acc_dtype)
        by_vector = cute.make_tensor(acc.iterator, cute.make_layout((4, VALUES // 4)))
        k_pipeline.consumer_wait(k_state)
        for half in cutlass.range_constexpr(self.halves):
            warpgroup.fence()
            atom = cute.make_mma_atom(mma_qk.op)
            atom.set(warpgroup.Field.ACCUMULATE, False)
            for k_block in cutlass.range_constexpr(HEAD_DIM // WGMMA_K):
                a, b = tSrQ[None, None, k_block, half], tSrK[None, None, k_block, k_state.index]
                cute.gemm(atom, acc, a, b, acc)
                atom.set(warpgroup.Field.ACCUMULATE, True)
            warpgroup.commit_group()
            warpgroup.wait_group(0)
            if cutlass.const_expr(half == self.halves - 1):
                k_pipeline.consumer_release(k_state)
            # The softmax warpgroup has taken the last S into its registers.
            s_pipeline.producer_acquire(s_state)
            cute.autovec_copy(by_vector, sS[tidx, None, half])
            s_pipeline.producer_commit(s_state)
            s_state.advance()
        k_state.advance()
        return k_state, s_state

    @cute.jit
    def values(
        self,
        v_pipeline: pipeline.PipelineTmaAsync,
        p_first_pipeline: pipeline.PipelineAsync,
        p_rest_pipeline: pipeline.PipelineAsync,
        v_state: pipeline.PipelineState,
        p_state: pipeline.PipelineState,
        mma_pv: cute.TiledMma,
        tOrP: cute.Tensor,
        tOrV: cute.Tensor,
        acc_o,
        row_scale: cute.Tensor,
    ):
        """Add P V of one block to O: the first parts of all halves, then the rests, each as soon as it is there."""
        states = self.states_of_block(p_state)
        v_pipeline.consumer_wait(v_state)
        for half in cutlass.range_constexpr(self.halves):
            p_first_pipeline.consumer_wait(states[half])
            self.scale_rows(acc_o[half], row_scale, half)
            self.add_chunks(mma_pv, acc_o[half], tOrP, tOrV, half, v_state.index, 0, self.split)
        if cutlass.const_expr(self.has_rest):
            for half in cutlass.range_constexpr(self.halves):
                p_rest_pipeline.consumer_wait(states[half])
                self.add_chunks(mma_pv, acc_o[half], tOrP, tOrV, half, v_state.index, self.split, CHUNKS)
                if cutlass.const_expr(half == 0):
                    # At most the wgmmas just issued are in flight: those on the first parts are done.
                    warpgroup.wait_group(1)
                    for done in cutlass.range_constexpr(self.halves):
                        p_first_pipeline.consumer_release(states[done])
        last_pipeline = p_rest_pipeline if cutlass.const_expr(self.has_rest) else p_first_pipeline
        for half in cutlass.range_constexpr(self.halves):
            warpgroup.wait_group(self.halves - 1 - half)
            last_pipeline.consumer_release(states[half])
        v_pipeline.consumer_release(v_state)
        v_state.advance()
        return v_state, p_state

    def states_of_block(self, p_state: pipeline.PipelineState) -> list[pipeline.PipelineState]:
        """The state of each half's stage for this block; `p_state` moves on to the next block."""
        states = []
        for _ in range(self.halves):
            states.append(p_state.clone())
            p_state.advance()
        return states

    @cute.jit
    def add_chunks(
        self,
        mma_pv: cute.TiledMma,
        acc: cute.Tensor,
        tOrP: cute.Tensor,
        tOrV: cute.Tensor,
        half: cutlass.Constexpr[int],
        stage: cutlass.Int32,
        first: cutlass.Constexpr[int],
        end: cutlass.Constexpr[int],
    ) -> None:
        """Issue the wgmmas of chunks `first` to `end` of P and commit them as one group."""
        warpgroup.fence()
        atom = cute.make_mma_atom(mma_pv.op)
        atom.set(warpgroup.Field.ACCUMULATE, True)
        for chunk in cutlass.range_constexpr(first, end):
            cute.gemm(atom, acc, tOrP[None, None, chunk, half], tOrV[None, None, chunk, stage], acc)
        warpgroup.commit_group()

    @cute.jit
    def scale_rows(self, acc: cute.Tensor, row_scale: cute.Tensor, half: cutlass.Constexpr[int]) -> None:
        """Multiply the two rows that this thread holds of an accumulator by their scale."""
        row = self.first_row()
        scales = (row_scale[row, half], row_scale[row + 8, half])
        for i in cutlass.range_constexpr(cute.size(acc)):
            acc[i] = acc[i] * scales[i // 2 % 2]
