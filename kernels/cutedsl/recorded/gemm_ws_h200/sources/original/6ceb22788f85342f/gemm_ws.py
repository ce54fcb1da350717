# SPDX-License-Identifier: Apache-2.0
"""A warp-specialized GEMM for Hopper (sm_90a), written in CuTe-DSL.

``C[M, N] = A[M, K] @ B[N, K]^T`` with fp16 operands (K contiguous), fp32 accumulation and an fp16
row-major result. Each CTA computes one output tile. Its warpgroups have fixed roles, which meet in one
``PipelineTmaAsync`` (a *full* and an *empty* mbarrier per shared-memory stage):

* the first ``tile_m / 64`` warpgroups are consumers: they run wgmma on 64 rows of the tile each, then
  write the result through shared memory with TMA stores;
* one warp of the last warpgroup is the producer: it fills the stages with TMA loads.
"""

import math
from collections.abc import Callable

import cutlass
import cutlass.cute as cute
import cutlass.utils.hopper_helpers as sm90_utils
from cuda.bindings import driver as cuda
from cutlass import pipeline
from cutlass.cute.nvgpu import OperandMajorMode, cpasync, warpgroup
from cutlass.cute.runtime import make_fake_compact_tensor, make_fake_stream
from cutlass.utils import LayoutEnum, SmemAllocator, get_smem_capacity_in_bytes

THREADS_PER_WARPGROUP = 128
WGMMA_M = 64
WGMMA_K = 16
SMEM_ALIGN_BYTES = 1024

# Registers per thread as (producer, consumer), by number of consumer warpgroups; an SM has 64 Ki.
REGISTERS = {1: (56, 256), 2: (40, 232)}


class GemmWarpSpecialized:
    """Tile shape, roles and launch of the GEMM.

    Args:
        tile_m: Rows of C per CTA, 64 or 128 (one consumer warpgroup per 64 rows).
        tile_n: Columns of C per CTA, a multiple of 32 up to 256.
        tile_k: Depth of one pipeline stage, 32, 64 or 128.
        stages: Shared-memory stages between the producer and the consumers, at least 2.
    """

    def __init__(self, tile_m: int = 128, tile_n: int = 128, tile_k: int = 64, stages: int = 4) -> None:
        if tile_m not in (64, 128):
            raise ValueError(f"tile_m must be 64 or 128, got {tile_m}")
        if tile_n % 32 != 0 or not 32 <= tile_n <= 256:
            raise ValueError(f"tile_n must be a multiple of 32 between 32 and 256, got {tile_n}")
        if tile_k not in (32, 64, 128):
            raise ValueError(f"tile_k must be 32, 64 or 128, got {tile_k}")
        if stages < 2:
            raise ValueError(f"stages must be at least 2, got {stages}")

        self.tile_mnk = (tile_m, tile_n, tile_k)
        self.stages = stages
        self.operand_dtype, self.acc_dtype, self.out_dtype = cutlass.Float16, cutlass.Float32, cutlass.Float16

        # The epilogue walks over the tile in column slices, with two buffers for TMA stores.
        self.epi_tile = (tile_m, 32)
        self.epi_stages = 2

        # Roles: warps [0, num_mma_warps) are consumers, the next warpgroup belongs to the producer.
        self.num_mma_warpgroups = tile_m // WGMMA_M
        self.num_mma_threads = self.num_mma_warpgroups * THREADS_PER_WARPGROUP
        self.num_mma_warps = self.num_mma_threads // cute.arch.WARP_SIZE
        self.load_warp_id = self.num_mma_warps
        self.store_warp_id = 0
        self.threads_per_cta = self.num_mma_threads + THREADS_PER_WARPGROUP
        self.load_registers, self.mma_registers = REGISTERS[self.num_mma_warpgroups]

        self.epilogue_barrier = pipeline.NamedBarrier(barrier_id=1, num_threads=self.num_mma_threads)

        smem_elements = stages * (tile_m + tile_n) * tile_k + self.epi_stages * math.prod(self.epi_tile)
        smem_bytes = SMEM_ALIGN_BYTES + smem_elements * self.operand_dtype.width // 8  # barriers, then buffers
        if smem_bytes > get_smem_capacity_in_bytes("sm_90"):
            raise ValueError(f"{stages} stages of {self.tile_mnk} need {smem_bytes} bytes of shared memory")

    def check_shape(self, m: int, n: int, k: int) -> None:
        """Raise ``ValueError`` unless the problem is a whole number of tiles."""
        for name, extent, tile in zip("MNK", (m, n, k), self.tile_mnk, strict=True):
            if extent <= 0 or extent % tile != 0:
                raise ValueError(f"{name} must be a positive multiple of {tile}, got {extent}")

    @cute.jit
    def __call__(self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, stream: cuda.CUstream) -> None:
        """Build the TMA descriptors and launch one CTA per output tile."""
        dtypes = (a.element_type, b.element_type, c.element_type)
        if cutlass.const_expr(dtypes != (self.operand_dtype, self.operand_dtype, self.out_dtype)):
            raise TypeError(f"A, B and C must be fp16, got {dtypes}")
        if cutlass.const_expr(cute.is_static((a.shape, b.shape))):
            self.check_shape(a.shape[0], b.shape[0], a.shape[1])
        tile_m, tile_n, tile_k = self.tile_mnk

        dtype, k_major, row_major = self.operand_dtype, OperandMajorMode.K, LayoutEnum.ROW_MAJOR
        tiled_mma = sm90_utils.make_trivial_tiled_mma(
            dtype, dtype, k_major, k_major, self.acc_dtype, (self.num_mma_warpgroups, 1, 1), (WGMMA_M, tile_n)
        )

        # Swizzled shared-memory layouts, as wgmma and TMA both expect them: (rows, columns, stages).
        a_layout = sm90_utils.make_smem_layout_a(row_major, self.tile_mnk, dtype, self.stages)
        b_layout = sm90_utils.make_smem_layout_b(row_major, self.tile_mnk, dtype, self.stages)
        c_layout = sm90_utils.make_smem_layout_epi(self.out_dtype, row_major, self.epi_tile, self.epi_stages)

        load_op, store_op = cpasync.CopyBulkTensorTileG2SOp(), cpasync.CopyBulkTensorTileS2GOp()
        a_stage, b_stage, c_stage = (cute.slice_(x, (None, None, 0)) for x in (a_layout, b_layout, c_layout))
        tma_a, tma_tensor_a = cpasync.make_tiled_tma_atom(load_op, a, a_stage, (tile_m, tile_k))
        tma_b, tma_tensor_b = cpasync.make_tiled_tma_atom(load_op, b, b_stage, (tile_n, tile_k))
        tma_c, tma_tensor_c = cpasync.make_tiled_tma_atom(store_op, c, c_stage, self.epi_tile)

        grid = (cute.ceil_div(c.shape[0], tile_m), cute.ceil_div(c.shape[1], tile_n), 1)
        self.kernel(
            tiled_mma, tma_a, tma_tensor_a, tma_b, tma_tensor_b, tma_c, tma_tensor_c, a_layout, b_layout, c_layout
        ).launch(grid=grid, block=(self.threads_per_cta, 1, 1), min_blocks_per_mp=1, stream=stream)

    @cute.kernel
    def kernel(
        self,
        tiled_mma: cute.TiledMma,
        tma_a: cute.CopyAtom,
        mA: cute.Tensor,
        tma_b: cute.CopyAtom,
        mB: cute.Tensor,
        tma_c: cute.CopyAtom,
        mC: cute.Tensor,
        a_layout: cute.ComposedLayout,
        b_layout: cute.ComposedLayout,
        c_layout: cute.ComposedLayout,
    ) -> None:
        """Set up the pipeline and the tensor views of this CTA's tile, then branch into the roles."""
        tile_m, tile_n, tile_k = self.tile_mnk
        tidx, _, _ = cute.arch.thread_idx()
        block_m, block_n, _ = cute.arch.block_idx()
        warp_idx = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        warpgroup_idx = cute.arch.make_warp_uniform(tidx // THREADS_PER_WARPGROUP)

        if warp_idx == self.load_warp_id:
            cpasync.prefetch_descriptor(tma_a)
            cpasync.prefetch_descriptor(tma_b)
            cpasync.prefetch_descriptor(tma_c)

        @cute.struct
        class SharedStorage:
            barriers: cute.struct.MemRange[cutlass.Int64, 2 * self.stages]
            a: cute.struct.Align[cute.struct.MemRange[self.operand_dtype, cute.cosize(a_layout)], SMEM_ALIGN_BYTES]
            b: cute.struct.Align[cute.struct.MemRange[self.operand_dtype, cute.cosize(b_layout)], SMEM_ALIGN_BYTES]
            c: cute.struct.Align[cute.struct.MemRange[self.out_dtype, cute.cosize(c_layout)], SMEM_ALIGN_BYTES]

        storage = SmemAllocator().allocate(SharedStorage)
        sA = storage.a.get_tensor(a_layout.outer, swizzle=a_layout.inner)
        sB = storage.b.get_tensor(b_layout.outer, swizzle=b_layout.inner)
        sC = storage.c.get_tensor(c_layout.outer, swizzle=c_layout.inner)

        # Arrivals per phase: on a full barrier one producer thread, which announces the bytes of both
        # tiles; on an empty barrier one lane of every consumer warp.
        stage_bytes = (tile_m + tile_n) * tile_k * self.operand_dtype.width // 8
        ab_pipeline = pipeline.PipelineTmaAsync.create(
            num_stages=self.stages,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, self.num_mma_warps),
            tx_count=stage_bytes,
            barrier_storage=storage.barriers.data_ptr(),
            defer_sync=True,
        )
        cute.arch.mbarrier_init_fence()
        cute.arch.sync_threads()

        # This CTA's tiles in global memory: (rows, columns, K tiles) for A and B, (slice, slices) for C.
        gA = cute.local_tile(mA, (tile_m, tile_k), (block_m, None))
        gB = cute.local_tile(mB, (tile_n, tile_k), (block_n, None))
        gC = cute.zipped_divide(cute.local_tile(mC, (tile_m, tile_n), (block_m, block_n)), self.epi_tile)
        num_k_tiles = cute.size(gA, mode=[2])

        # TMA views: (box, stage) in shared memory, (box, K tile) or (box, slice) in global memory.
        one_cta = cute.make_layout(1)
        tAsA, tAgA = cpasync.tma_partition(tma_a, 0, one_cta, cute.group_modes(sA, 0, 2), cute.group_modes(gA, 0, 2))
        tBsB, tBgB = cpasync.tma_partition(tma_b, 0, one_cta, cute.group_modes(sB, 0, 2), cute.group_modes(gB, 0, 2))
        tCsC, tCgC = cpasync.tma_partition(tma_c, 0, one_cta, cute.group_modes(sC, 0, 2), gC)

        is_mma_warp = warp_idx < self.num_mma_warps
        if not is_mma_warp:
            cute.arch.setmaxregister_decrease(self.load_registers)
        if warp_idx == self.load_warp_id:
            self.load(ab_pipeline, num_k_tiles, tma_a, tAgA, tAsA, tma_b, tBgB, tBsB)

        if is_mma_warp:
            cute.arch.setmaxregister_increase(self.mma_registers)
            acc = self.mma(ab_pipeline, num_k_tiles, tiled_mma, warpgroup_idx, sA, sB)
            self.store(tiled_mma, acc, tidx, warp_idx, sC, tma_c, tCsC, tCgC)

    @cute.jit
    def load(
        self,
        producer: pipeline.PipelineTmaAsync,
        num_k_tiles: cutlass.Int32,
        tma_a: cute.CopyAtom,
        tAgA: cute.Tensor,
        tAsA: cute.Tensor,
        tma_b: cute.CopyAtom,
        tBgB: cute.Tensor,
        tBsB: cute.Tensor,
    ) -> None:
        """Fill one stage per K tile with the tiles of A and B (producer warp)."""
        state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, self.stages)
        for k_tile in cutlass.range(num_k_tiles, unroll=1):
            # Waits until the stage is empty, then announces the bytes that the two copies will bring.
            producer.producer_acquire(state)
            full_barrier = producer.producer_get_barrier(state)
            cute.copy(tma_a, tAgA[None, k_tile], tAsA[None, state.index], tma_bar_ptr=full_barrier)
            cute.copy(tma_b, tBgB[None, k_tile], tBsB[None, state.index], tma_bar_ptr=full_barrier)
            producer.producer_commit(state)
            state.advance()
        # Stay until the consumers have released every stage: their arrivals need a live CTA.
        producer.producer_tail(state)

    @cute.jit
    def mma(
        self,
        consumer: pipeline.PipelineTmaAsync,
        num_k_tiles: cutlass.Int32,
        tiled_mma: cute.TiledMma,
        warpgroup_idx: cutlass.Int32,
        sA: cute.Tensor,
        sB: cute.Tensor,
    ) -> cute.Tensor:
        """Accumulate all K tiles and return the accumulator registers (consumer warpgroups)."""
        thr_mma = tiled_mma.get_slice(warpgroup_idx * THREADS_PER_WARPGROUP)
        tCrA = tiled_mma.make_fragment_A(thr_mma.partition_A(sA))
        tCrB = tiled_mma.make_fragment_B(thr_mma.partition_B(sB))
        acc = cute.make_rmem_tensor(thr_mma.partition_shape_C(self.tile_mnk[:2]), self.acc_dtype)
        acc.fill(0.0)
        tiled_mma.set(warpgroup.Field.ACCUMULATE, True)

        read_state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.stages)
        release_state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.stages)

        # First K tile: nothing to release yet, its wgmmas stay in flight.
        consumer.consumer_wait(read_state)
        self.issue_wgmma(tiled_mma, acc, tCrA, tCrB, read_state.index)
        read_state.advance()

        is_full = cutlass.Boolean(False)
        for k_tile in cutlass.range(1, num_k_tiles, unroll=1):
            consumer.consumer_wait(read_state, is_full)
            self.issue_wgmma(tiled_mma, acc, tCrA, tCrB, read_state.index)
            read_state.advance()
            # At most this tile's wgmmas are left in flight, so the previous stage is free again.
            warpgroup.wait_group(1)
            consumer.consumer_release(release_state)
            release_state.advance()
            # Peek at the next stage while the tensor cores work.
            is_full = cutlass.Boolean(False)
            if k_tile + 1 < num_k_tiles:
                is_full = consumer.consumer_try_wait(read_state)

        warpgroup.wait_group(0)
        consumer.consumer_release(release_state)
        return acc

    @cute.jit
    def issue_wgmma(
        self, tiled_mma: cute.TiledMma, acc: cute.Tensor, tCrA: cute.Tensor, tCrB: cute.Tensor, stage: cutlass.Int32
    ) -> None:
        """Issue the wgmmas of one stage and commit them as one group."""
        warpgroup.fence()
        for k_block in cutlass.range_constexpr(self.tile_mnk[2] // WGMMA_K):
            block = (None, None, k_block, stage)
            cute.gemm(tiled_mma, acc, tCrA[block], tCrB[block], acc)
        warpgroup.commit_group()

    @cute.jit
    def store(
        self,
        tiled_mma: cute.TiledMma,
        acc: cute.Tensor,
        tidx: cutlass.Int32,
        warp_idx: cutlass.Int32,
        sC: cute.Tensor,
        tma_c: cute.CopyAtom,
        tCsC: cute.Tensor,
        tCgC: cute.Tensor,
    ) -> None:
        """Convert to fp16, stage in shared memory and store with TMA (epilogue of the consumers)."""
        store_atom = sm90_utils.get_smem_store_op(LayoutEnum.ROW_MAJOR, self.out_dtype, self.acc_dtype)
        r2s_copy = cute.make_tiled_copy_S(store_atom, cute.make_tiled_copy_C_atom(store_atom, tiled_mma))
        thr_r2s = r2s_copy.get_slice(tidx)
        tRS_sC = thr_r2s.partition_D(sC)
        tRS_acc = r2s_copy.retile(acc)
        slice_shape = cute.shape(thr_r2s.partition_S(sC))[:3]
        slice_acc = cute.make_rmem_tensor(slice_shape, self.acc_dtype)
        slice_out = cute.make_rmem_tensor(slice_shape, self.out_dtype)
        slice_size = cute.size(slice_acc)

        store_group = pipeline.CooperativeGroup(pipeline.Agent.Thread, self.num_mma_threads)
        store_pipeline = pipeline.PipelineTmaStore.create(num_stages=self.epi_stages, producer_group=store_group)
        for epi_idx in cutlass.range_constexpr(self.tile_mnk[1] // self.epi_tile[1]):
            buffer = epi_idx % self.epi_stages
            for i in cutlass.range_constexpr(slice_size):
                slice_acc[i] = tRS_acc[epi_idx * slice_size + i]
            slice_out.store(slice_acc.load().to(self.out_dtype))

            # The buffer may be written once the TMA store that used it last has read it.
            if warp_idx == self.store_warp_id:
                store_pipeline.producer_acquire()
            self.epilogue_barrier.arrive_and_wait()
            cute.copy(r2s_copy, slice_out, tRS_sC[None, None, None, buffer])

            # Make the generic-proxy writes visible to TMA before one warp stores the whole slice.
            cute.arch.fence_proxy("async.shared", space="cta")
            self.epilogue_barrier.arrive_and_wait()
            if warp_idx == self.store_warp_id:
                cute.copy(tma_c, tCsC[None, buffer], tCgC[None, (0, epi_idx)])
                store_pipeline.producer_commit()
        if warp_idx == self.store_warp_id:
            store_pipeline.producer_tail()


def compile_gemm(gemm: GemmWarpSpecialized | None = None, options: str = "--gpu-arch sm_90a") -> Callable[..., object]:
    """Compile to a function of ``(a, b, c, stream)`` for any whole number of tiles; needs no GPU.

    The function does not check extents: call ``GemmWarpSpecialized.check_shape`` before it.
    """
    gemm = gemm or GemmWarpSpecialized()
    m, n, k = (cute.sym_int(divisibility=tile) for tile in gemm.tile_mnk)
    a, b, c = (
        make_fake_compact_tensor(cutlass.Float16, shape, stride_order=(1, 0), assumed_align=16)
        for shape in ((m, k), (n, k), (m, n))
    )
    compiled: Callable[..., object] = cute.compile(gemm, a, b, c, make_fake_stream(), options=options)
    return compiled


if __name__ == "__main__":
    compile_gemm()
