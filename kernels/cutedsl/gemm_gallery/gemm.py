# SPDX-License-Identifier: Apache-2.0
"""What the three GEMMs of this folder share: tiles, shared memory, the producer, the main loop and the epilogue.

``C[M, N] = A[M, K] @ B[N, K]^T`` for Hopper (sm_90a): bf16 or fp16 operands with K contiguous, fp32 sums, and a row-major
result of the operands' type. One warp (*load*) fills a ring of shared-memory stages with TMA; consumer warpgroups (*mma*)
run wgmma on the stages and write their rows of C through shared memory with TMA stores. The two meet in one
``PipelineTmaAsync``: a *full* and an *empty* mbarrier per stage. A subclass says which tiles a consumer computes.
"""

import cutlass
import cutlass.cute as cute
import cutlass.utils.hopper_helpers as sm90_utils
from cuda.bindings import driver as cuda
from cutlass import pipeline
from cutlass.cute.nvgpu import OperandMajorMode, cpasync, warpgroup
from cutlass.utils import LayoutEnum, SmemAllocator, get_smem_capacity_in_bytes

THREADS_PER_WARPGROUP = 128
WARPS_PER_WARPGROUP = 4
WGMMA_M = 64
WGMMA_K = 16
SMEM_ALIGN_BYTES = 1024

# A slice of C that one warpgroup writes at a time: 64 columns of 16 bits are one 128-byte swizzle row.
SLICE = (64, 64)
SLICE_BUFFERS = 2

# Registers per thread of (load, mma) where a CTA has two consumer warpgroups: 128 * (40 + 2 * 232) fits in 64 Ki.
LOAD_REGISTERS, MMA_REGISTERS = 40, 232

# Named barriers 1 and 2 belong to the epilogues of the two consumers.
EPILOGUE_BARRIER = 1

# Neighbouring CTAs take neighbouring tiles of this many tile rows, so that what they read stays in L2.
ROWS_PER_GROUP = 16


class GalleryGemm:
    """Tile shape, roles and launch; see the subclasses for the role splits.

    Args:
        tile_n: Columns of C per tile, a multiple of 64 up to 256.
        stages: Shared-memory stages between the producer and the consumers, at least 2.
        dtype: Element type of A, B and C: ``cutlass.BFloat16`` or ``cutlass.Float16``.
        max_ctas: CTAs of a persistent launch at most; the number of SMs. ``None``: one CTA per tile.
    """

    consumers = 1
    shares_a_tile = False  # both consumers work on one tile, each on its own rows
    cluster_m = 1
    tile_m = 128
    tile_k = 64

    def __init__(self, tile_n=128, stages=6, dtype=cutlass.BFloat16, max_ctas=None):
        if tile_n % SLICE[1] != 0 or not SLICE[1] <= tile_n <= 256:
            raise ValueError(f"tile_n must be a multiple of 64 between 64 and 256, got {tile_n}")
        if stages < 2:
            raise ValueError(f"stages must be at least 2, got {stages}")
        if dtype not in (cutlass.BFloat16, cutlass.Float16):
            raise ValueError(f"dtype must be BFloat16 or Float16, got {dtype}")
        self.tile_mnk = (self.tile_m, tile_n, self.tile_k)
        self.stages, self.dtype, self.acc_dtype, self.max_ctas = stages, dtype, cutlass.Float32, max_ctas

        # Rows of C that one warpgroup computes, and how its accumulator is cut into slices.
        self.rows = self.tile_m // self.consumers if self.shares_a_tile else self.tile_m
        self.slices = (self.rows // SLICE[0], tile_n // SLICE[1])
        if self.rows * tile_n // THREADS_PER_WARPGROUP > 192:
            raise ValueError(f"an accumulator of {self.rows}x{tile_n} does not fit in the registers of a warpgroup")

        # Roles: the consumers' warps come first, then the producer warp.
        self.num_mma_warps = self.consumers * WARPS_PER_WARPGROUP
        self.load_warp_id = self.num_mma_warps
        # setmaxnreg acts on whole warpgroups, so the producer has one of its own where registers move.
        self.moves_registers = self.consumers > 1
        load_threads = THREADS_PER_WARPGROUP if self.moves_registers else cute.arch.WARP_SIZE
        self.threads_per_cta = self.consumers * THREADS_PER_WARPGROUP + load_threads

        elements = stages * (self.tile_m + tile_n) * self.tile_k + self.consumers * SLICE_BUFFERS * SLICE[0] * SLICE[1]
        smem_bytes = SMEM_ALIGN_BYTES + elements * dtype.width // 8  # barriers, then buffers
        if smem_bytes > get_smem_capacity_in_bytes("sm_90"):
            raise ValueError(f"{stages} stages of {self.tile_mnk} need {smem_bytes} bytes of shared memory")

    def check_shape(self, m: int, n: int, k: int) -> None:
        """Raise ``ValueError`` unless M, N and K are whole numbers of tiles (of all CTAs in a cluster), slices and stages.

        The last tile may stick out along N: TMA reads zeros there, and writes nothing.
        """
        units = (self.tile_m * self.cluster_m, SLICE[1], self.tile_k)
        for name, extent, unit in zip("MNK", (m, n, k), units, strict=True):
            if extent <= 0 or extent % unit != 0:
                raise ValueError(f"{name} must be a positive multiple of {unit}, got {extent}")

    @cute.jit
    def __call__(self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, stream: cuda.CUstream) -> None:
        """Build the TMA descriptors and launch."""
        if cutlass.const_expr({a.element_type, b.element_type, c.element_type} != {self.dtype}):
            raise TypeError(f"A, B and C must be {self.dtype}")
        tile_m, tile_n, tile_k = self.tile_mnk
        k_major, row_major = OperandMajorMode.K, LayoutEnum.ROW_MAJOR
        warpgroups = self.consumers if self.shares_a_tile else 1
        tiled_mma = sm90_utils.make_trivial_tiled_mma(
            self.dtype, self.dtype, k_major, k_major, self.acc_dtype, (warpgroups, 1, 1), (WGMMA_M, tile_n)
        )

        # Swizzled shared-memory layouts, as wgmma and TMA both expect them: (rows, columns, stages).
        a_layout = sm90_utils.make_smem_layout_a(row_major, self.tile_mnk, self.dtype, self.stages)
        b_layout = sm90_utils.make_smem_layout_b(row_major, self.tile_mnk, self.dtype, self.stages)
        c_layout = sm90_utils.make_smem_layout_epi(self.dtype, row_major, SLICE, self.consumers * SLICE_BUFFERS)
        a_stage, b_stage, c_stage = (cute.slice_(x, (None, None, 0)) for x in (a_layout, b_layout, c_layout))

        # The CTAs of a cluster lie along M: all need the same tile of B, so each loads a part of it for all.
        load_op, store_op = cpasync.CopyBulkTensorTileG2SOp(), cpasync.CopyBulkTensorTileS2GOp()
        load_b_op = cpasync.CopyBulkTensorTileG2SMulticastOp() if self.cluster_m > 1 else load_op
        tma_a, mA = cpasync.make_tiled_tma_atom(load_op, a, a_stage, (tile_m, tile_k))
        tma_b, mB = cpasync.make_tiled_tma_atom(load_b_op, b, b_stage, (tile_n, tile_k), num_multicast=self.cluster_m)
        tma_c, mC = cpasync.make_tiled_tma_atom(store_op, c, c_stage, SLICE)

        ctas = cute.ceil_div(c.shape[0], tile_m) * cute.ceil_div(c.shape[1], tile_n)
        if cutlass.const_expr(self.max_ctas is not None):
            ctas = cutlass.min(ctas, self.max_ctas // self.cluster_m * self.cluster_m)
        self.kernel(tiled_mma, tma_a, mA, tma_b, mB, tma_c, mC, a_layout, b_layout, c_layout).launch(
            grid=(ctas, 1, 1),
            block=(self.threads_per_cta, 1, 1),
            cluster=(self.cluster_m, 1, 1),
            min_blocks_per_mp=1,
            stream=stream,
        )

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
        """Set up the ring and the tensor views, then branch into the roles."""
        tile_m, tile_n, tile_k = self.tile_mnk
        tidx, _, _ = cute.arch.thread_idx()
        warp_idx = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        warpgroup_idx = cute.arch.make_warp_uniform(tidx // THREADS_PER_WARPGROUP)
        cta_rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())

        if warp_idx == self.load_warp_id:
            cpasync.prefetch_descriptor(tma_a)
            cpasync.prefetch_descriptor(tma_b)
            cpasync.prefetch_descriptor(tma_c)

        @cute.struct
        class SharedStorage:
            barriers: cute.struct.MemRange[cutlass.Int64, 2 * self.stages]
            a: cute.struct.Align[cute.struct.MemRange[self.dtype, cute.cosize(a_layout)], SMEM_ALIGN_BYTES]
            b: cute.struct.Align[cute.struct.MemRange[self.dtype, cute.cosize(b_layout)], SMEM_ALIGN_BYTES]
            c: cute.struct.Align[cute.struct.MemRange[self.dtype, cute.cosize(c_layout)], SMEM_ALIGN_BYTES]

        storage = SmemAllocator().allocate(SharedStorage)
        sA = storage.a.get_tensor(a_layout.outer, swizzle=a_layout.inner)
        sB = storage.b.get_tensor(b_layout.outer, swizzle=b_layout.inner)
        sC = storage.c.get_tensor(c_layout.outer, swizzle=c_layout.inner)

        ab_pipeline = self.make_ring(storage.barriers.data_ptr())
        cute.arch.mbarrier_init_fence()
        # Nobody may arrive at a barrier, here or in the other CTA, before it is initialised.
        if cutlass.const_expr(self.cluster_m > 1):
            cute.arch.cluster_arrive_relaxed()
            cute.arch.cluster_wait()
        else:
            cute.arch.sync_threads()

        # TMA views: (box, stage) in shared memory; (box, tile row, K tile) and (box, slice row, slice column) in global.
        gA = cute.local_tile(mA, (tile_m, tile_k), (None, None))
        gB = cute.local_tile(mB, (tile_n, tile_k), (None, None))
        gC = cute.local_tile(mC, SLICE, (None, None))
        one_cta, all_ctas = cute.make_layout(1), cute.make_layout(self.cluster_m)
        tAsA, tAgA = cpasync.tma_partition(tma_a, 0, one_cta, cute.group_modes(sA, 0, 2), cute.group_modes(gA, 0, 2))
        tBsB, tBgB = cpasync.tma_partition(
            tma_b, cta_rank, all_ctas, cute.group_modes(sB, 0, 2), cute.group_modes(gB, 0, 2)
        )
        tCsC, tCgC = cpasync.tma_partition(tma_c, 0, one_cta, cute.group_modes(sC, 0, 2), cute.group_modes(gC, 0, 2))
        num_k_tiles = cutlass.Int32(cute.size(gA, mode=[3]))
        tiles = (cutlass.Int32(cute.size(gA, mode=[2])), cutlass.Int32(cute.size(gB, mode=[2])))

        is_mma_warp = warp_idx < self.num_mma_warps
        if cutlass.const_expr(self.moves_registers):
            if not is_mma_warp:
                cute.arch.setmaxregister_decrease(LOAD_REGISTERS)
        if warp_idx == self.load_warp_id:
            self.load(ab_pipeline, tiles, num_k_tiles, cta_rank, tma_a, tAgA, tAsA, tma_b, tBgB, tBsB)

        if is_mma_warp:
            if cutlass.const_expr(self.moves_registers):
                cute.arch.setmaxregister_increase(MMA_REGISTERS)
            self.mma(ab_pipeline, tiles, num_k_tiles, cta_rank, tiled_mma, warpgroup_idx, sA, sB, sC, tma_c, tCsC, tCgC)

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
        """Compute and write this warpgroup's part of the CTA's tiles (consumer warpgroups); each role split has its own."""
        raise NotImplementedError

    @cute.jit
    def make_ring(self, barriers: cute.Pointer) -> pipeline.PipelineTmaAsync:
        """The ring between the producer and the consumers.

        Arrivals per phase. Full: one producer thread, which announces the bytes of both tiles, wherever they come from.
        Empty: one lane of every warp that reads the stage, in every CTA of the cluster.
        """
        tile_m, tile_n, tile_k = self.tile_mnk
        reading_warps = self.num_mma_warps if self.shares_a_tile else WARPS_PER_WARPGROUP
        return pipeline.PipelineTmaAsync.create(
            num_stages=self.stages,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, reading_warps * self.cluster_m),
            tx_count=(tile_m + tile_n) * tile_k * self.dtype.width // 8,
            barrier_storage=barriers,
            cta_layout_vmnk=cute.make_layout((1, self.cluster_m, 1, 1)),
            defer_sync=True,
        )

    @cute.jit
    def tile_at(self, unit: cutlass.Int32, tiles, cta_rank: cutlass.Int32):
        """Tile row and column of this CTA in the cluster's `unit`: down a group of tile rows, then one column right."""
        group = max(ROWS_PER_GROUP // self.cluster_m, 1)
        units_m = tiles[0] // self.cluster_m
        first = unit // (group * tiles[1]) * group
        rows = cutlass.min(group, units_m - first)
        rest = unit - first * tiles[1]
        return (first + rest % rows) * self.cluster_m + cta_rank, rest // rows

    @cute.jit
    def load(
        self,
        producer: pipeline.PipelineTmaAsync,
        tiles,
        num_k_tiles: cutlass.Int32,
        cta_rank: cutlass.Int32,
        tma_a: cute.CopyAtom,
        tAgA: cute.Tensor,
        tAsA: cute.Tensor,
        tma_b: cute.CopyAtom,
        tBgB: cute.Tensor,
        tBsB: cute.Tensor,
    ) -> None:
        """Fill one stage per K tile of every tile of this CTA (producer warp)."""
        b_mask = cutlass.Int16((1 << self.cluster_m) - 1) if cutlass.const_expr(self.cluster_m > 1) else None
        state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, self.stages)
        unit, step, end = self.walk(tiles)
        while unit < end:
            tile_row, tile_column = self.tile_at(unit, tiles, cta_rank)
            for k_tile in cutlass.range(num_k_tiles, unroll=1):
                # Waits until the stage is empty, then announces the bytes that the copies will bring.
                producer.producer_acquire(state)
                full = producer.producer_get_barrier(state)
                cute.copy(tma_a, tAgA[None, tile_row, k_tile], tAsA[None, state.index], tma_bar_ptr=full)
                cute.copy(
                    tma_b, tBgB[None, tile_column, k_tile], tBsB[None, state.index], tma_bar_ptr=full, mcast_mask=b_mask
                )
                producer.producer_commit(state)
                state.advance()
            unit += step
        # Stay until every stage is released: arrivals of the consumers, here and in the other CTA, need a live CTA.
        producer.producer_tail(state)

    @cute.jit
    def walk(self, tiles):
        """First unit of this CTA, the step to its next one, and the number of units; a unit is one tile of each CTA."""
        block, _, _ = cute.arch.block_idx()
        grid, _, _ = cute.arch.grid_dim()
        return block // self.cluster_m, grid // self.cluster_m, tiles[0] // self.cluster_m * tiles[1]

    @cute.jit
    def mainloop(
        self,
        consumer: pipeline.PipelineTmaAsync,
        state: pipeline.PipelineState,
        num_k_tiles: cutlass.Int32,
        tiled_mma: cute.TiledMma,
        acc: cute.Tensor,
        tCrA: cute.Tensor,
        tCrB: cute.Tensor,
    ):
        """Issue the wgmmas of all K tiles. The last ones are still in flight, and their stage is not released.

        Returns the ring's state for the tile to come, and that of the stage to release.
        """
        release_state = state.clone()
        # First K tile: nothing to release yet, its wgmmas stay in flight.
        consumer.consumer_wait(state)
        self.issue_wgmma(tiled_mma, acc, tCrA, tCrB, state.index, True)
        state.advance()
        for _ in cutlass.range(1, num_k_tiles, unroll=1):
            consumer.consumer_wait(state)
            self.issue_wgmma(tiled_mma, acc, tCrA, tCrB, state.index, False)
            state.advance()
            # At most this tile's wgmmas are left in flight, so the previous stage is free again.
            warpgroup.wait_group(1)
            consumer.consumer_release(release_state)
            release_state.advance()
        return state, release_state

    @cute.jit
    def issue_wgmma(
        self,
        tiled_mma: cute.TiledMma,
        acc: cute.Tensor,
        tCrA: cute.Tensor,
        tCrB: cute.Tensor,
        stage: cutlass.Int32,
        is_first: cutlass.Constexpr[bool],
    ) -> None:
        """Issue the wgmmas of one stage and commit them as one group. The first of a tile overwrites the accumulator."""
        warpgroup.fence()
        atom = cute.make_mma_atom(tiled_mma.op)
        atom.set(warpgroup.Field.ACCUMULATE, not is_first)
        for k_block in cutlass.range_constexpr(self.tile_k // WGMMA_K):
            block = (None, None, k_block, stage)
            cute.gemm(atom, acc, tCrA[block], tCrB[block], acc)
            atom.set(warpgroup.Field.ACCUMULATE, True)
        warpgroup.commit_group()

    @cute.jit
    def operands(self, tiled_mma: cute.TiledMma, slot: cutlass.Int32, sA: cute.Tensor, sB: cute.Tensor):
        """Operand descriptors and accumulator of the warpgroup that is number `slot` of those that share a tile."""
        thr_mma = tiled_mma.get_slice(slot * THREADS_PER_WARPGROUP)
        tCrA = tiled_mma.make_fragment_A(thr_mma.partition_A(sA))
        tCrB = tiled_mma.make_fragment_B(thr_mma.partition_B(sB))
        return tCrA, tCrB, cute.make_rmem_tensor(thr_mma.partition_shape_C(self.tile_mnk[:2]), self.acc_dtype)

    @cute.jit
    def store(
        self,
        acc: cute.Tensor,
        warpgroup_idx: cutlass.Int32,
        row_block: cutlass.Int32,
        column_block: cutlass.Int32,
        sC: cute.Tensor,
        tma_c: cute.CopyAtom,
        tCsC: cute.Tensor,
        tCgC: cute.Tensor,
    ) -> None:
        """Round to 16 bits and write one warpgroup's part of C, slice by slice, through its two buffers.

        `row_block` and `column_block` say where the part begins, in slices.
        """
        tidx, _, _ = cute.arch.thread_idx()
        is_store_warp = cute.arch.make_warp_uniform(cute.arch.warp_idx()) % WARPS_PER_WARPGROUP == 0
        # The register order of one warpgroup is the same whether it has the tile to itself or not.
        own_mma = sm90_utils.make_trivial_tiled_mma(
            self.dtype, self.dtype, OperandMajorMode.K, OperandMajorMode.K, self.acc_dtype, (1, 1, 1),
            (WGMMA_M, self.tile_mnk[1]),
        )  # fmt: skip
        store_atom = sm90_utils.get_smem_store_op(LayoutEnum.ROW_MAJOR, self.dtype, self.acc_dtype)
        r2s_copy = cute.make_tiled_copy_S(store_atom, cute.make_tiled_copy_C_atom(store_atom, own_mma))
        thr_r2s = r2s_copy.get_slice(tidx % THREADS_PER_WARPGROUP)
        tRS_sC = thr_r2s.partition_D(sC)
        slice_shape = cute.shape(thr_r2s.partition_S(sC))[:3]
        slice_acc = cute.make_rmem_tensor(slice_shape, self.acc_dtype)
        slice_out = cute.make_rmem_tensor(slice_shape, self.dtype)
        slice_size = cute.size(slice_acc)

        store_group = pipeline.CooperativeGroup(pipeline.Agent.Thread, THREADS_PER_WARPGROUP)
        store_pipeline = pipeline.PipelineTmaStore.create(num_stages=SLICE_BUFFERS, producer_group=store_group)
        epilogue = EPILOGUE_BARRIER + warpgroup_idx
        for number in cutlass.range_constexpr(self.slices[0] * self.slices[1]):
            row, column = number // self.slices[1], number % self.slices[1]
            buffer = warpgroup_idx * SLICE_BUFFERS + number % SLICE_BUFFERS
            for i in cutlass.range_constexpr(slice_size):
                slice_acc[i] = acc[number * slice_size + i]
            slice_out.store(slice_acc.load().to(self.dtype))

            # The buffer may be written once the TMA store that used it last has read it.
            if is_store_warp:
                store_pipeline.producer_acquire()
            cute.arch.barrier(barrier_id=epilogue, number_of_threads=THREADS_PER_WARPGROUP)
            cute.copy(r2s_copy, slice_out, tRS_sC[None, None, None, buffer])

            # Make the generic-proxy writes visible to TMA before one warp stores the whole slice.
            cute.arch.fence_proxy("async.shared", space="cta")
            cute.arch.barrier(barrier_id=epilogue, number_of_threads=THREADS_PER_WARPGROUP)
            if is_store_warp:
                cute.copy(tma_c, tCsC[None, buffer], tCgC[None, row_block + row, column_block + column])
                store_pipeline.producer_commit()

    @cute.jit
    def finish_stores(self) -> None:
        """Wait until the last TMA stores have read their buffers: the CTA must outlive them."""
        if cute.arch.make_warp_uniform(cute.arch.warp_idx()) % WARPS_PER_WARPGROUP == 0:
            cute.arch.cp_async_bulk_wait_group(0, read=True)
