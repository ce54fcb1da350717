# SPDX-License-Identifier: Apache-2.0
"""Every sync primitive of CuTe-DSL as data: what blocks, what signals, on which side, and how the stage is written.

Read from nvidia-cutlass-dsl 4.8.1 (`cutlass/pipeline`, `cutlass/cute/arch`, `cutlass/experimental/primitives`,
`cutlass/memory/tmem.py`) and from flash-attn-4 4.0.0b36 and quack-kernels 0.6.5 for the subclasses' forms.
"""

from __future__ import annotations

from autostamp.model.sync import Kind, Side, StageFrom, SyncOp

_W, _S, _P, _F = Kind.WAIT, Kind.SIGNAL, Kind.POLL, Kind.FENCE
_FULL, _EMPTY, _MBAR, _NAMED = Side.FULL, Side.EMPTY, Side.MBARRIER, Side.NAMED
_STATE, _INDEX, _INDEX_PHASE = StageFrom.STATE, StageFrom.INDEX, StageFrom.INDEX_PHASE
_PTR, _ID, _OBJ, _NONE = StageFrom.POINTER, StageFrom.BARRIER_ID, StageFrom.OBJECT, StageFrom.NONE


def _op(owner: str, method: str, kind: Kind, side: Side, stage: StageFrom = _NONE, **more: object) -> SyncOp:
    return SyncOp(owner, method, kind, side, stage, **more)  # type: ignore[arg-type]


def _ring(
    owner: str, *, arms_full: bool, commit_is_noop: bool, is_async_release: bool = False, is_async_commit: bool = False
) -> tuple[SyncOp, ...]:
    """The nine methods that every pipeline class has; the flags say what this class's hardware makes of them."""
    arms = (_FULL,) if arms_full else ()
    commit = {"is_noop": commit_is_noop, "is_async": is_async_commit}
    return (
        _op(owner, "producer_acquire", _W, _EMPTY, _STATE, signals=arms),
        _op(owner, "producer_acquire_w_index_phase", _W, _EMPTY, _INDEX_PHASE, signals=arms),
        _op(owner, "producer_try_acquire", _P, _EMPTY, _STATE),
        _op(owner, "producer_commit", _S, _FULL, _STATE, **commit),
        _op(owner, "producer_commit_w_index", _S, _FULL, _INDEX, **commit),
        _op(owner, "producer_cpasync_commit", _S, _FULL, _STATE, is_async=True),
        _op(owner, "producer_tail", _W, _EMPTY, _STATE, advances=True),
        _op(owner, "consumer_wait", _W, _FULL, _STATE),
        _op(owner, "consumer_wait_w_index_phase", _W, _FULL, _INDEX_PHASE),
        _op(owner, "consumer_try_wait", _P, _FULL, _STATE),
        _op(owner, "consumer_release", _S, _EMPTY, _STATE, is_async=is_async_release),
        _op(owner, "consumer_release_w_index", _S, _EMPTY, _INDEX, is_async=is_async_release),
    )


PIPELINES: tuple[SyncOp, ...] = (
    *_ring("PipelineAsync", arms_full=False, commit_is_noop=False),
    *_ring("PipelineCpAsync", arms_full=False, commit_is_noop=False, is_async_commit=True),
    *_ring("PipelineTmaAsync", arms_full=True, commit_is_noop=True),
    *_ring("PipelineTmaUmma", arms_full=True, commit_is_noop=True, is_async_release=True),
    *_ring("PipelineAsyncUmma", arms_full=False, commit_is_noop=False, is_async_release=True),
    *_ring("PipelineUmmaAsync", arms_full=False, commit_is_noop=False, is_async_commit=True),
    *_ring("PipelineClcFetchAsync", arms_full=True, commit_is_noop=False),
    *_ring("PipelineTmaMultiConsumersAsync", arms_full=True, commit_is_noop=True, is_async_release=True),
    _op(
        "PipelineTmaStore", "producer_acquire", _W, Side.ASYNC_GROUP, note="cp.async.bulk.wait_group.read(num_stages-1)"
    ),
    _op("PipelineTmaStore", "producer_commit", _S, Side.ASYNC_GROUP, note="cp.async.bulk.commit_group"),
    _op("PipelineTmaStore", "producer_tail", _W, Side.ASYNC_GROUP, note="cp.async.bulk.wait_group.read 0"),
    _op("PipelineOrder", "wait", _W, _FULL, _STATE),
    _op("PipelineOrder", "arrive", _S, _FULL, _STATE, advances=True),
    _op("PipelineEmpty", "producer_acquire", _W, _EMPTY, is_noop=True),
    _op("PipelineEmpty", "producer_commit", _S, _FULL, is_noop=True),
    _op("PipelineEmpty", "producer_tail", _W, _EMPTY, is_noop=True),
    _op("PipelineEmpty", "consumer_wait", _W, _FULL, is_noop=True),
    _op("PipelineEmpty", "consumer_release", _S, _EMPTY, is_noop=True),
)

PARTICIPANTS: tuple[SyncOp, ...] = (
    _op("PipelineProducer", "acquire", _W, _EMPTY, StageFrom.PARTICIPANT),
    _op("PipelineProducer", "acquire_and_advance", _W, _EMPTY, StageFrom.PARTICIPANT, advances=True),
    _op("PipelineProducer", "try_acquire", _P, _EMPTY, StageFrom.PARTICIPANT),
    _op("PipelineProducer", "commit", _S, _FULL, StageFrom.PARTICIPANT, note="also the handle's commit()"),
    _op("PipelineProducer", "tail", _W, _EMPTY, StageFrom.PARTICIPANT, advances=True),
    _op("PipelineConsumer", "wait", _W, _FULL, StageFrom.PARTICIPANT),
    _op("PipelineConsumer", "wait_and_advance", _W, _FULL, StageFrom.PARTICIPANT, advances=True),
    _op("PipelineConsumer", "try_wait", _P, _FULL, StageFrom.PARTICIPANT),
    _op("PipelineConsumer", "release", _S, _EMPTY, StageFrom.PARTICIPANT, note="also the handle's release()"),
)

BARRIER_OBJECTS: tuple[SyncOp, ...] = (
    _op("MbarrierArray", "wait", _W, _MBAR, _INDEX_PHASE),
    _op("MbarrierArray", "try_wait", _P, _MBAR, _INDEX_PHASE),
    _op("MbarrierArray", "test_wait", _P, _MBAR, _INDEX_PHASE),
    _op("MbarrierArray", "arrive", _S, _MBAR, _INDEX),
    _op("MbarrierArray", "arrive_and_expect_tx", _S, _MBAR, _INDEX),
    _op("MbarrierArray", "arrive_and_expect_tx_with_dst", _S, _MBAR, _INDEX),
    _op("MbarrierArray", "arrive_and_wait", _W, _MBAR, _INDEX_PHASE, signals=(_MBAR,)),
    _op("MbarrierArray", "arrive_and_drop", _S, _MBAR),
    _op("MbarrierArray", "arrive_mbarrier", _S, _MBAR, _INDEX),
    _op("MbarrierArray", "arrive_cp_async_mbarrier", _S, _MBAR, _INDEX, is_async=True),
    _op("MbarrierArray", "arrive_tcgen05mma", _S, _MBAR, _INDEX, is_async=True),
    _op("NamedBarrier", "arrive", _S, _NAMED, _OBJ),
    _op("NamedBarrier", "arrive_unaligned", _S, _NAMED, _OBJ),
    _op("NamedBarrier", "arrive_w_index", _S, _NAMED, _INDEX),
    _op("NamedBarrier", "arrive_and_wait", _W, _NAMED, _OBJ, signals=(_NAMED,)),
    _op("NamedBarrier", "arrive_and_wait_unaligned", _W, _NAMED, _OBJ, signals=(_NAMED,)),
    _op("NamedBarrier", "arrive_and_wait_w_index", _W, _NAMED, _INDEX, signals=(_NAMED,)),
    _op("NamedBarrier", "arrive_and_drop", _S, _NAMED, _OBJ),
    _op("NamedBarrier", "sync", _W, _NAMED, _OBJ, signals=(_NAMED,)),
    _op("NamedBarrier", "wait", _W, _NAMED, _OBJ, signals=(_NAMED,), note="warns: it arrives as well"),
    _op("NamedBarrier", "wait_unaligned", _W, _NAMED, _OBJ, signals=(_NAMED,)),
    _op("TmaStoreFence", "arrive", _S, Side.ASYNC_GROUP),
    _op("TmaStoreFence", "wait", _W, Side.ASYNC_GROUP),
    _op("TmaStoreFence", "arrive_and_wait", _W, Side.ASYNC_GROUP),
    _op("TmaStoreFence", "tail", _W, Side.ASYNC_GROUP),
    _op(
        "cutlass.pipeline", "pipeline_init_arrive", _S, Side.CLUSTER, note="nothing without a cluster", group="cluster"
    ),
    _op(
        "cutlass.pipeline",
        "pipeline_init_wait",
        _W,
        Side.CLUSTER,
        note="CTA barrier without a cluster",
        group="cluster",
    ),
    _op("cutlass.pipeline", "agent_sync", _W, Side.CTA, signals=(Side.CTA,), group="CTA"),
    _op("TmemAllocator", "wait_for_alloc", _W, _NAMED, _OBJ, note="NamedBarrier inside"),
    # TmemAllocator.free waits for the other CTA of a pair and, far more often, for nobody: no row, so nothing is drawn.
    _op("TmemAllocator", "reserve", _W, _NAMED, _OBJ, receiver="tmem", note="holds wait_for_alloc"),
    _op(
        "TensorMapManager",
        "update_tensormap",
        _W,
        Side.ASYNC_GROUP,
        note="bulk commit and wait, warp barrier",
        group="cp.async.bulk",
    ),
)

ARCH: tuple[SyncOp, ...] = (
    _op("cute.arch", "mbarrier_wait", _W, _MBAR, _PTR),
    _op("cute.arch", "mbarrier_try_wait", _P, _MBAR, _PTR),
    _op("cute.arch", "mbarrier_test_wait", _P, _MBAR, _PTR),
    _op("cute.arch", "mbarrier_conditional_try_wait", _P, _MBAR, _PTR),
    _op("cute.arch", "mbarrier_arrive", _S, _MBAR, _PTR),
    _op("cute.arch", "mbarrier_arrive_and_expect_tx", _S, _MBAR, _PTR),
    _op("cute.arch", "mbarrier_init_fence", _F, _MBAR),
    *(_op("cute.arch", f"fence_acq_rel_{scope}", _F, Side.FLAG) for scope in ("cta", "cluster", "gpu", "sys")),
    _op("cute.arch", "fence_proxy", _F, Side.ASYNC_GROUP),
    _op("cute.arch", "fence_view_async_shared", _F, Side.ASYNC_GROUP),
    _op(
        "cute.arch",
        "fence_view_async_tmem_load",
        _F,
        Side.ASYNC_GROUP,
        note="waits for this thread's own tcgen05 loads",
    ),
    _op("cute.arch", "fence_view_async_tmem_store", _F, Side.ASYNC_GROUP, note="waits for its own tcgen05 stores"),
    _op("cute.nvgpu.warpgroup", "fence", _F, Side.ASYNC_GROUP),
    _op("cute.arch", "cp_async_mbarrier_arrive_noinc", _S, _MBAR, _PTR, is_async=True),
    _op("cute.arch", "barrier", _W, _NAMED, _ID, signals=(_NAMED,)),
    _op("cute.arch", "barrier_arrive", _S, _NAMED, _ID),
    _op("cute.arch", "sync_threads", _W, Side.CTA, signals=(Side.CTA,), group="CTA"),
    _op("cute.arch", "sync_warp", _W, Side.WARP, signals=(Side.WARP,), group="warp"),
    _op("cute.arch", "cluster_arrive", _S, Side.CLUSTER, group="cluster"),
    _op("cute.arch", "cluster_arrive_relaxed", _S, Side.CLUSTER, group="cluster"),
    _op("cute.arch", "cluster_wait", _W, Side.CLUSTER, group="cluster"),
    _op("cute.arch", "cp_async_commit_group", _S, Side.ASYNC_GROUP, group="cp.async"),
    _op("cute.arch", "cp_async_wait_group", _W, Side.ASYNC_GROUP, group="cp.async"),
    _op("cute.arch", "cp_async_bulk_commit_group", _S, Side.ASYNC_GROUP, group="cp.async.bulk"),
    _op("cute.arch", "cp_async_bulk_wait_group", _W, Side.ASYNC_GROUP, group="cp.async.bulk"),
    _op("cute.arch", "griddepcontrol_wait", _W, Side.GRID, group="grid"),
    _op("cute.arch", "griddepcontrol_launch_dependents", _S, Side.GRID, group="grid"),
    _op("cute.arch", "issue_clc_query", _S, _MBAR, _PTR, is_async=True),
    _op("cute.arch", "store_async_dsmem", _S, _MBAR, is_async=True, group="dsmem"),
    _op("cute.nvgpu.warpgroup", "commit_group", _S, Side.ASYNC_GROUP, group="wgmma"),
    _op("cute.nvgpu.warpgroup", "wait_group", _W, Side.ASYNC_GROUP, group="wgmma"),
    _op("cute.nvgpu.tcgen05", "commit", _S, _MBAR, _PTR, is_async=True),
)

PRIMITIVES: tuple[SyncOp, ...] = (
    _op("cutlass.experimental.primitives", "mbarrier_arrive_expect_tx", _S, _MBAR, _PTR),
    _op("cutlass.experimental.primitives", "mbarrier_arrive_drop", _S, _MBAR, _PTR),
    _op("cutlass.experimental.primitives", "mbarrier_arrive_drop_expect_tx", _S, _MBAR, _PTR),
    _op("cutlass.experimental.primitives", "mbarrier_complete_tx", _S, _MBAR, _PTR),
    _op("cutlass.experimental.primitives", "mbarrier_try_wait_parity", _P, _MBAR, _PTR),
    _op("cutlass.experimental.primitives", "mbarrier_test_wait_parity", _P, _MBAR, _PTR),
    _op("cutlass.experimental.primitives", "mbarrier_wait_parity", _W, _MBAR, _PTR),
    _op("cutlass.experimental.primitives", "barrier_cta_sync", _W, _NAMED, _ID, signals=(_NAMED,)),
    _op("cutlass.experimental.primitives", "barrier_cta_sync_aligned", _W, _NAMED, _ID, signals=(_NAMED,)),
    _op("cutlass.experimental.primitives", "barrier_cta_arrive", _S, _NAMED, _ID),
    _op("cutlass.experimental.primitives", "barrier_cta_arrive_aligned", _S, _NAMED, _ID),
    _op("cutlass.experimental.primitives", "barrier_cta_red", _W, _NAMED, _ID, signals=(_NAMED,)),
    _op("cutlass.experimental.primitives", "barrier_cta_red_aligned", _W, _NAMED, _ID, signals=(_NAMED,)),
    _op("cutlass.experimental.primitives", "bar_warp_sync", _W, Side.WARP, signals=(Side.WARP,), group="warp"),
    _op("cutlass.experimental.primitives", "barrier_cluster_arrive", _S, Side.CLUSTER, group="cluster"),
    _op("cutlass.experimental.primitives", "barrier_cluster_arrive_relaxed", _S, Side.CLUSTER, group="cluster"),
    _op("cutlass.experimental.primitives", "barrier_cluster_arrive_aligned", _S, Side.CLUSTER, group="cluster"),
    _op("cutlass.experimental.primitives", "barrier_cluster_arrive_relaxed_aligned", _S, Side.CLUSTER, group="cluster"),
    _op("cutlass.experimental.primitives", "barrier_cluster_wait", _W, Side.CLUSTER, group="cluster"),
    _op("cutlass.experimental.primitives", "barrier_cluster_wait_aligned", _W, Side.CLUSTER, group="cluster"),
    _op("cutlass.experimental.primitives", "wgmma_commit_group_sync_aligned", _S, Side.ASYNC_GROUP, group="wgmma"),
    _op("cutlass.experimental.primitives", "wgmma_wait_group_sync_aligned", _W, Side.ASYNC_GROUP, group="wgmma"),
    _op("cutlass.experimental.primitives", "tcgen05_commit", _S, _MBAR, _PTR, is_async=True),
    _op("cutlass.experimental.primitives", "tcgen05_wait", _W, Side.ASYNC_GROUP, group="tcgen05"),
    _op("cutlass.experimental.primitives", "griddepcontrol", _W, Side.GRID, group="grid"),
    _op("cute.arch", "mbarrier_expect_tx", _S, _MBAR, _PTR, note="raises the pending count; no arrival"),
    _op("cutlass.experimental.primitives", "cp_async_mbarrier_arrive", _S, _MBAR, _PTR, is_async=True),
    _op("cutlass.experimental.primitives", "mbarrier_arrive_nocomplete", _S, _MBAR, _PTR),
    _op("cutlass.experimental.primitives", "mbarrier_arrive_drop_nocomplete", _S, _MBAR, _PTR),
    _op("cutlass.experimental.primitives", "mbarrier_try_wait_timelimit", _P, _MBAR, _PTR),
    _op("quack.sync.barrier", "release_add", _S, Side.FLAG, group="flag", note="atomic on a word in global memory"),
    _op("quack.sync.barrier", "release_store", _S, Side.FLAG, group="flag", note="store to a word in global memory"),
    _op("quack.sync.barrier", "wait_eq", _W, Side.FLAG, note="spin on a word in global memory", group="flag"),
    _op("quack.sync.barrier", "arrive_inc", _S, Side.FLAG, note="atomic on a word in global memory", group="flag"),
)

_EXPERIMENTAL = "GenericPipeline"
EXPERIMENTAL: tuple[SyncOp, ...] = (
    # cutlass.cute.experimental pipelines, a deprecated path: the object carries its own state.
    _op(_EXPERIMENTAL, "acquire_sync", _W, _EMPTY, StageFrom.PARTICIPANT),
    _op(_EXPERIMENTAL, "commit_sync", _S, _FULL, StageFrom.PARTICIPANT),
    _op(_EXPERIMENTAL, "release_advance", _S, _EMPTY, StageFrom.PARTICIPANT, advances=True),
    _op(_EXPERIMENTAL, "consumer_tail", _W, _FULL, StageFrom.PARTICIPANT),
    _op(_EXPERIMENTAL, "producer_acquire_and_get_stage", _W, _EMPTY, StageFrom.PARTICIPANT),
    _op(_EXPERIMENTAL, "consumer_wait_and_get_stage", _W, _FULL, StageFrom.PARTICIPANT),
    _op(_EXPERIMENTAL, "producer_commit_and_advance", _S, _FULL, StageFrom.PARTICIPANT, advances=True),
    _op(_EXPERIMENTAL, "consumer_release_and_advance", _S, _EMPTY, StageFrom.PARTICIPANT, advances=True),
)

ROWS: tuple[SyncOp, ...] = (*PIPELINES, *PARTICIPANTS, *BARRIER_OBJECTS, *ARCH, *PRIMITIVES, *EXPERIMENTAL)


_BY_OWNER: dict[tuple[str, str], SyncOp] = {(row.owner, row.method): row for row in ROWS}


def resolve(type_name: str, method: str) -> SyncOp | None:
    """The row for `method` on an object whose public class is `type_name`, or None when the class has no row of its own."""
    return _BY_OWNER.get((type_name, method))
