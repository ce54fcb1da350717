# SPDX-License-Identifier: Apache-2.0
"""The named sync calls of CUDA C++ as data: which blocks, which signals, and where the call writes its barrier.

Read from cutlass 4.x (`include/cutlass/arch/barrier.h`, `include/cutlass/pipeline`, `include/cute/arch`), libcu++
(`cuda/barrier`, `cuda/pipeline`, `cuda/ptx`), the CUDA C++ Programming Guide (synchronization functions, cooperative groups,
pipeline primitives, programmatic dependent launch), and ThunderKittens (`include/ops`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Flag, auto
from typing import Final

from autostamp.model.sync import Kind, Side, StageFrom, SyncOp

RECEIVER: Final = "receiver"
_W, _S, _P, _F = Kind.WAIT, Kind.SIGNAL, Kind.POLL, Kind.FENCE
_FULL, _EMPTY, _MBAR, _NAMED = Side.FULL, Side.EMPTY, Side.MBARRIER, Side.NAMED
_CTA, _WARP, _CLUSTER, _GRID = Side.CTA, Side.WARP, Side.CLUSTER, Side.GRID
_GROUP, _FLAG = Side.ASYNC_GROUP, Side.FLAG
_GROUPS: Final = {_CTA: "CTA", _WARP: "warp", _CLUSTER: "cluster", _GRID: "grid", _FLAG: "flag"}


class Way(Flag):
    """How a call is written: `f()` or `namespace::f()`, `Class::f()`, or `object.f()`."""

    FREE = auto()
    STATIC = auto()
    METHOD = auto()


@dataclass(frozen=True, slots=True)
class Entry:
    """A row with the shape that a call must have to mean it.

    `least` and `most` bound the number of arguments. `barrier`, `phase` and `state` are the places of the operands: the
    number of an argument (-1: the last), `receiver`, or empty. `qualifiers` are texts of which one must stand last before the
    name. `evidence` is a pattern that the object, its declared type, or for a free call the first argument must match, since
    names like `wait` mean other things too; rows that are `is_certain` need none. `definers` matches the classes whose method
    of that name is this op, so that its body is not looked into.
    """

    op: SyncOp
    way: Way
    least: int
    most: int
    barrier: str = ""
    phase: str = ""
    state: str = ""
    qualifiers: frozenset[str] = frozenset()
    evidence: re.Pattern[str] | None = None
    definers: re.Pattern[str] | None = None
    is_certain: bool = False


@dataclass(frozen=True, slots=True)
class _Shape:
    """What rows of one family have in common."""

    way: Way
    barrier: str = ""
    phase: str = ""
    state: str = ""
    qualifiers: str = ""
    evidence: str = ""
    definers: str = ""

    def rows(
        self, owner: str, names: str, kind: Kind, side: Side, least: int = 0, most: int = -1, **more: object
    ) -> tuple[Entry, ...]:
        """One entry for each of the blank-separated names; `most` is `least` unless given."""
        places = {name: str(more.pop(name, getattr(self, name))) for name in ("barrier", "phase", "state")}
        stage = more.pop("stage", _stage(side, places["barrier"], places["state"]))
        more.setdefault("group", _GROUPS.get(side, ""))
        return tuple(
            Entry(
                SyncOp(owner, name, kind, side, stage, **more),  # type: ignore[arg-type]
                self.way,
                least,
                max(least, most),
                **places,
                qualifiers=frozenset(self.qualifiers.split()),
                evidence=re.compile(self.evidence) if self.evidence else None,
                definers=re.compile(self.definers) if self.definers else None,
                is_certain=not self.evidence,
            )
            for name in names.split()
        )


def _stage(side: Side, barrier: str, state: str) -> StageFrom:
    if state:
        return StageFrom.STATE
    if side is _NAMED:
        return StageFrom.BARRIER_ID if barrier and barrier != RECEIVER else StageFrom.OBJECT
    if side is _MBAR and barrier:
        return StageFrom.OBJECT if barrier == RECEIVER else StageFrom.POINTER
    return StageFrom.NONE


_BARRIER_LIKE: Final = (
    r"(?i)bar(?!e)|sem(?!antic)|mbar|(?<![a-z])(?:full|empty|ready|free|done)"
    r"|pipe|(?:arrived|finished|inputs|outputs)\b|signal"
)
_FREE = _Shape(Way.FREE)
_ANY = _Shape(Way.FREE | Way.STATIC)

_RING = _Shape(Way.METHOD, RECEIVER, state="0", definers=r"\w*Pipeline\w*")
_TMA_STORE = _Shape(Way.METHOD, definers="PipelineTmaStore")
_CUDA_PIPELINE = _Shape(Way.METHOD, evidence=r"(?i)pipe")
_ORDERED = _Shape(Way.METHOD, RECEIVER, evidence=r"(?i)order|sequence", definers="OrderedSequenceBarrier")


def _ring(owner: str, *, is_async_commit: bool, is_async_release: bool, arms: bool = False) -> tuple[Entry, ...]:
    """The methods that every CUTLASS pipeline class has; the flags say what this class's hardware makes of them."""
    full = (_FULL,) if arms else ()
    return (
        *_RING.rows(owner, "producer_acquire producer_acquire_bytes", _W, _EMPTY, 1, 4, signals=full),
        *_RING.rows(owner, "producer_try_acquire", _P, _EMPTY, 1, 3),
        *_RING.rows(owner, "producer_commit producer_cpasync_commit", _S, _FULL, 1, 3, is_async=is_async_commit),
        *_RING.rows(owner, "producer_expect_transaction", _S, _FULL, 1, 2),
        *_RING.rows(owner, "producer_tail", _W, _EMPTY, 1, advances=True),
        *_RING.rows(owner, "consumer_wait", _W, _FULL, 1, 3),
        *_RING.rows(owner, "consumer_try_wait consumer_test_wait", _P, _FULL, 1, 3),
        *_RING.rows(owner, "consumer_release", _S, _EMPTY, 1, 2, is_async=is_async_release),
    )


PIPELINES: tuple[Entry, ...] = (
    # The class is a template argument more often than not: then the first ring stands for all of them.
    *_ring("Pipeline", is_async_commit=False, is_async_release=False),
    *_ring("PipelineAsync", is_async_commit=False, is_async_release=False),
    *_ring("PipelineTmaAsync", is_async_commit=True, is_async_release=False, arms=True),
    *_ring("PipelineTransactionAsync", is_async_commit=True, is_async_release=False),
    *_ring("PipelineTmaUmmaAsync", is_async_commit=True, is_async_release=True, arms=True),
    *_ring("PipelineUmmaAsync", is_async_commit=True, is_async_release=False),
    *_ring("PipelineUmmaConsumerAsync", is_async_commit=False, is_async_release=True),
    *_ring("PipelineCLCFetchAsync", is_async_commit=True, is_async_release=False, arms=True),
    # PipelineTmaStore: groups of cp.async.bulk, no barrier.
    *_TMA_STORE.rows("PipelineTmaStore", "producer_acquire producer_tail", _W, _GROUP, 1, group="cp.async.bulk"),
    *_TMA_STORE.rows("PipelineTmaStore", "producer_commit", _S, _GROUP, 1, group="cp.async.bulk"),
    # cuda::pipeline holds its own stage, so its methods take none.
    *_CUDA_PIPELINE.rows("cuda::pipeline", "producer_acquire", _W, _EMPTY, 0),
    *_CUDA_PIPELINE.rows("cuda::pipeline", "producer_commit", _S, _FULL, 0, is_async=True),
    *_CUDA_PIPELINE.rows("cuda::pipeline", "consumer_wait", _W, _FULL, 0),
    *_CUDA_PIPELINE.rows("cuda::pipeline", "consumer_release", _S, _EMPTY, 0),
    *_FREE.rows("cuda", "pipeline_consumer_wait_prior", _W, _FULL, 1),
    *_FREE.rows("cuda", "pipeline_producer_commit", _S, _MBAR, 2, barrier="1", is_async=True),
    *_ORDERED.rows("OrderedSequenceBarrier", "wait", _W, _MBAR, 0, barrier=""),
    *_ORDERED.rows("OrderedSequenceBarrier", "arrive", _S, _MBAR, 0, barrier="", advances=True),
    *_FREE.rows("cutlass", "pipeline_init_arrive_relaxed", _S, _CLUSTER, 1, note="nothing without a cluster"),
    *_FREE.rows("cutlass", "pipeline_init_wait", _W, _CLUSTER, 1, note="CTA barrier without a cluster"),
)

_BARRIER_CLASSES: Final = "Cluster(?:Transaction)?Barrier"
_OBJECT = _Shape(Way.METHOD, RECEIVER, evidence=_BARRIER_LIKE, definers=_BARRIER_CLASSES)
_LIBCUXX = _Shape(Way.METHOD, RECEIVER, evidence=_BARRIER_LIKE)
_CLASS = _Shape(
    Way.STATIC, "0", qualifiers="ClusterBarrier ClusterTransactionBarrier", evidence=".", definers=_BARRIER_CLASSES
)
_ARGUMENT = _Shape(Way.FREE, "0", evidence=_BARRIER_LIKE)


def _mbarrier(shape: _Shape, owner: str) -> tuple[Entry, ...]:
    """Methods of the mbarrier classes; a static or free form has the barrier as one argument more, before the others."""
    extra = 0 if shape.barrier == RECEIVER else 1
    first = str(extra)
    waits = "try_wait test_wait try_wait_parity test_wait_parity try_wait_for try_wait_until try_wait_parity_for"

    def rows(names: str, kind: Kind, least: int, most: int, **more: object) -> tuple[Entry, ...]:
        return shape.rows(owner, names, kind, _MBAR, least + extra, most + extra, **more)

    return (
        *rows("wait wait_parity", _W, 1, 1, phase=first),
        *rows(waits, _P, 1, 3, phase=first),
        *rows("arrive", _S, 0, 2),
        *rows("arrive_and_drop", _S, 0, 1),
        *rows("arrive_and_expect_tx", _S, 1, 3),
        *rows("expect_transaction", _S, 1, 1),
        *rows("complete_transaction", _S, 1, 3),
        *rows("arrive_and_wait", _W, 0, 0, signals=(_MBAR,)),
    )


_FIRST = _Shape(Way.FREE, "0")
_TMA_LOADS: Final = " ".join(f"cp_async_bulk_tensor_{number}d_global_to_shared" for number in range(1, 6))
_UMMA: Final = "umma_arrive umma_arrive_2x1SM umma_arrive_2x1SM_sm0 umma_arrive_noelect umma_arrive_2x1SM_noelect"
_UMMA_TO_MANY: Final = (
    "umma_arrive_multicast umma_arrive_multicast_2x1SM umma_arrive_multicast_noelect"
    " umma_arrive_multicast_2x1SM_noelect"
)
_TRIES: Final = "mbarrier_try_wait mbarrier_test_wait mbarrier_try_wait_parity mbarrier_test_wait_parity"
_EXPECTS: Final = (
    "mbarrier_arrive_expect_tx mbarrier_arrive_and_expect_tx mbarrier_expect_tx mbarrier_arrive_and_set_tx"
)
_TK_EXPECT = _Shape(Way.FREE | Way.STATIC, "0", qualifiers="tma cluster")
_TK_COMMIT = _Shape(Way.FREE | Way.STATIC, "0", qualifiers="tcgen05")
_TK_CLUSTER = _Shape(Way.FREE | Way.STATIC, "0", qualifiers="cluster", evidence=_BARRIER_LIKE)
_PTX_COPY = _Shape(Way.FREE, "5", evidence=r"space_(?:cluster|shared)")
_PTX_COMMIT = _Shape(Way.FREE, "1", evidence=r"cta_group")
_SPELT_WAITS = "mbarrier_wait mbarrier_wait_parity wait_barrier barrier_wait bar_wait mbar_wait"
MBARRIERS: tuple[Entry, ...] = (
    *_mbarrier(_OBJECT, "ClusterBarrier"),
    *_mbarrier(_LIBCUXX, "cuda::barrier"),
    *_mbarrier(_CLASS, "ClusterBarrier"),
    *_mbarrier(_ARGUMENT, "mbarrier"),
    *_FIRST.rows("mbarrier", _SPELT_WAITS, _W, _MBAR, 2, 4, phase="1"),
    *_FIRST.rows("mbarrier", _TRIES, _P, _MBAR, 2, 3, phase="1"),
    *_FIRST.rows("mbarrier", "mbarrier_arrive mbarrier_arrive_drop mbarrier_arrive_no_complete", _S, _MBAR, 1, 2),
    *_FIRST.rows("mbarrier", _EXPECTS, _S, _MBAR, 2),
    # cuda::ptx: memory order, scope and state space are arguments before the barrier.
    *_FREE.rows("cuda::ptx", _TRIES, _P, _MBAR, 4, 5, barrier="2", phase="3"),
    *_FREE.rows(
        "cuda::ptx", "mbarrier_arrive mbarrier_arrive_expect_tx mbarrier_expect_tx", _S, _MBAR, 4, 5, barrier="3"
    ),
    *_PTX_COPY.rows("cuda::ptx", "cp_async_bulk cp_async_bulk_tensor", _S, _MBAR, 6, 8, is_async=True),
    *_FREE.rows("cuda::ptx", "clusterlaunchcontrol_try_cancel", _S, _MBAR, 2, barrier="1", is_async=True),
    *_FIRST.rows("cuda::ptx", "cp_async_mbarrier_arrive cp_async_mbarrier_arrive_noinc", _S, _MBAR, 1, is_async=True),
    *_FIRST.rows("cuda::device", "barrier_arrive_tx", _S, _MBAR, 3),
    *_FIRST.rows("cuda::device", "barrier_expect_tx", _S, _MBAR, 2),
    *_FREE.rows("cuda::device::experimental", _TMA_LOADS, _S, _MBAR, 4, 9, barrier="-1", is_async=True),
    *_FREE.rows(
        "cuda::device::experimental", "cp_async_bulk_global_to_shared", _S, _MBAR, 4, barrier="3", is_async=True
    ),
    *_FREE.rows("cuda::device", "memcpy_async_tx", _S, _MBAR, 4, barrier="3", is_async=True),
    # cuda_awbarrier_primitives.h
    *_FIRST.rows("cuda", "__mbarrier_arrive __mbarrier_arrive_and_drop", _S, _MBAR, 1),
    *_FIRST.rows("cuda", "__mbarrier_test_wait __mbarrier_test_wait_parity", _P, _MBAR, 2, phase="1"),
    *_FIRST.rows("cuda", "__mbarrier_try_wait __mbarrier_try_wait_parity", _P, _MBAR, 2, 3, phase="1"),
    # ThunderKittens semaphores.
    *_FIRST.rows("kittens", "expect_bytes", _S, _MBAR, 2, 3),
    *_TK_EXPECT.rows("kittens::tma", "expect", _S, _MBAR, 2, 16),
    *_TK_CLUSTER.rows("kittens::tma::cluster", "arrive", _S, _MBAR, 2, 3),
    *_TK_CLUSTER.rows("kittens::tma::cluster", "wait", _W, _MBAR, 2, phase="1"),
    *_TK_COMMIT.rows("kittens", "commit", _S, _MBAR, 1, 2, is_async=True),
    # CUTLASS: completion of asynchronous work on a barrier.
    *_FIRST.rows("cutlass::arch", "cpasync_barrier_arrive cpasync_barrier_arrive_noinc", _S, _MBAR, 1, is_async=True),
    *_FIRST.rows("cutlass::arch", _UMMA, _S, _MBAR, 1, is_async=True),
    *_FIRST.rows("cutlass::arch", _UMMA_TO_MANY, _S, _MBAR, 2, is_async=True),
    *_PTX_COMMIT.rows("cuda::ptx", "tcgen05_commit tcgen05_commit_multicast", _S, _MBAR, 2, 3, is_async=True),
    *_FIRST.rows("mbarrier", "umma_commit umma_commit_multicast", _S, _MBAR, 1, 4, is_async=True),
    *_FIRST.rows("mbarrier", "tcgen05_commit tcgen05_commit_multicast", _S, _MBAR, 1, 4, is_async=True),
)

_NAMED_CLASS = _Shape(Way.STATIC, "1", qualifiers="NamedBarrier", definers="NamedBarrier")
_NAMED_OBJECT = _Shape(Way.METHOD, RECEIVER, evidence=r"NamedBarrier|(?i:named_?bar)", definers="NamedBarrier")
_TK_GROUP = _Shape(Way.STATIC | Way.FREE, "0", qualifiers="group warpgroup everyone G consumers producers")
_NAMED_WAITS: Final = "sync arrive_and_wait arrive_and_wait_unaligned sync_unaligned"
NAMED: tuple[Entry, ...] = (
    *_NAMED_CLASS.rows("NamedBarrier", _NAMED_WAITS, _W, _NAMED, 2, signals=(_NAMED,)),
    *_NAMED_CLASS.rows("NamedBarrier", "arrive arrive_unaligned", _S, _NAMED, 2),
    *_NAMED_OBJECT.rows("NamedBarrier", _NAMED_WAITS, _W, _NAMED, 0, signals=(_NAMED,)),
    *_NAMED_OBJECT.rows("NamedBarrier", "arrive arrive_unaligned", _S, _NAMED, 0),
    *_FIRST.rows("cuda", "__barrier_sync", _W, _NAMED, 1, signals=(_NAMED,)),
    *_FIRST.rows("cuda", "__barrier_sync_count", _W, _NAMED, 2, signals=(_NAMED,)),
    # ThunderKittens: group<N>::sync(id).
    *_TK_GROUP.rows("kittens::group", "sync", _W, _NAMED, 1, signals=(_NAMED,)),
    *_TK_GROUP.rows("kittens::group", "arrive", _S, _NAMED, 1),
)

_SYNC_CLASS = _Shape(Way.STATIC, qualifiers="Sync SyncthreadsSync", definers="SyncthreadsSync")
_TK_NAMESPACE_WARP = _Shape(Way.STATIC | Way.FREE, qualifiers="warp")
_TK_NAMESPACE_CLUSTER = _Shape(Way.STATIC | Way.FREE, qualifiers="cluster")
_COPIES = _Shape(Way.FREE, qualifiers="cg cooperative_groups")
_TOGETHER: Final = (
    # Cooperative groups: what the object is decides; the first that matches, widest first.
    (_GRID, r"(?i)grid"),
    (_CLUSTER, r"(?i)cluster"),
    (_CTA, r"(?i)thread_block\b(?!_tile)|this_thread_block|\b(?:\w+_)?block\b|\bcta\b|\bt?h?b\b"),
    (_WARP, r"(?i)tile|warp|coalesced|partition|subgroup|group|active|\bg\b"),
)


def _cooperative() -> tuple[Entry, ...]:
    found: list[Entry] = []
    for side, evidence in _TOGETHER:
        owner = "cooperative_groups"
        method, free = _Shape(Way.METHOD, evidence=evidence), _Shape(Way.FREE, evidence=evidence)
        found += method.rows(owner, "sync", _W, side, 0, signals=(side,))
        found += free.rows(owner, "sync", _W, side, 1, signals=(side,))
        found += method.rows(owner, "barrier_arrive", _S, side, 0)
        found += method.rows(owner, "barrier_wait", _W, side, 0, 1)
    return tuple(found)


SYNCS: tuple[Entry, ...] = (
    *_FREE.rows("cuda", "__syncthreads", _W, _CTA, 0, signals=(_CTA,)),
    *_FREE.rows("cuda", "__syncthreads_or __syncthreads_and __syncthreads_count", _W, _CTA, 1, signals=(_CTA,)),
    *_FREE.rows("cuda", "__syncwarp", _W, _WARP, 0, 1, signals=(_WARP,)),
    # cutlass/barrier.h: the class that a flag barrier synchronises its threads with, SyncthreadsSync if not given.
    *_SYNC_CLASS.rows("Sync", "sync", _W, _CTA, 0, signals=(_CTA,)),
    *_TK_NAMESPACE_WARP.rows("kittens::warp", "sync", _W, _WARP, 0, signals=(_WARP,)),
    *_FREE.rows("cute", "cluster_arrive cluster_arrive_relaxed", _S, _CLUSTER, 0),
    *_FREE.rows("cute", "cluster_wait", _W, _CLUSTER, 0),
    *_FREE.rows("cute", "cluster_sync", _W, _CLUSTER, 0, signals=(_CLUSTER,)),
    *_FREE.rows("cuda", "__cluster_barrier_arrive __cluster_barrier_arrive_relaxed", _S, _CLUSTER, 0),
    *_FREE.rows("cuda", "__cluster_barrier_wait", _W, _CLUSTER, 0),
    *_FREE.rows("cuda::ptx", "barrier_cluster_arrive", _S, _CLUSTER, 0, 2),
    *_FREE.rows("cuda::ptx", "barrier_cluster_wait", _W, _CLUSTER, 0, 1),
    *_TK_NAMESPACE_CLUSTER.rows("kittens::cluster", "sync", _W, _CLUSTER, 0, signals=(_CLUSTER,)),
    *_TK_NAMESPACE_CLUSTER.rows("kittens::cluster", "arrive arrive_aligned", _S, _CLUSTER, 0),
    *_TK_NAMESPACE_CLUSTER.rows("kittens::cluster", "wait wait_aligned", _W, _CLUSTER, 0),
    *_cooperative(),
    *_COPIES.rows("cooperative_groups", "wait", _W, _GROUP, 1, group="cp.async"),
    *_COPIES.rows("cooperative_groups", "wait_prior", _W, _GROUP, 1, group="cp.async"),
    # Programmatic dependent launch.
    *_FREE.rows("cuda", "cudaGridDependencySynchronize", _W, _GRID, 0),
    *_FREE.rows("cuda", "cudaTriggerProgrammaticLaunchCompletion", _S, _GRID, 0),
    *_FREE.rows("cutlass::arch", "wait_on_dependent_grids", _W, _GRID, 0),
    *_FREE.rows("cutlass::arch", "launch_dependent_grids", _S, _GRID, 0),
)


def _groups(owner: str, waits: str, signals: str, group: str) -> tuple[Entry, ...]:
    return (
        *_ANY.rows(owner, waits, _W, _GROUP, 0, 1, group=group),
        *_ANY.rows(owner, signals, _S, _GROUP, 0, group=group),
    )


_BULK_WAITS: Final = "cp_async_bulk_wait_group cp_async_bulk_wait_group_read"
GROUPS: tuple[Entry, ...] = (
    *_groups("cute", "cp_async_wait", "cp_async_fence", "cp.async"),
    *_groups("cuda", "__pipeline_wait_prior", "__pipeline_commit", "cp.async"),
    *_groups("cp.async", "cp_async_wait_group cp_async_wait_all", "cp_async_commit_group cp_async_commit", "cp.async"),
    *_groups("cute", "tma_store_wait", "tma_store_arrive tma_store_commit", "cp.async.bulk"),
    *_groups("cute", "tma_desc_wait_group", "tma_desc_commit_group", "cp.async.bulk"),
    *_groups("cuda::ptx", _BULK_WAITS, "cp_async_bulk_commit_group", "cp.async.bulk"),
    *_groups("kittens::tma", "store_async_wait store_async_read_wait", "store_commit_group", "cp.async.bulk"),
    *_ANY.rows("kittens", "load_async_wait", _W, _GROUP, 0, 1, group="cp.async"),
    *_groups("cute", "warpgroup_wait", "warpgroup_commit_batch", "wgmma"),
    *_groups("kittens", "mma_async_wait", "mma_commit_group", "wgmma"),
    *_FREE.rows(
        "cutlass::arch", "fence_view_async_tmem_load fence_view_async_tmem_store", _W, _GROUP, 0, group="tcgen05"
    ),
    *_FREE.rows("kittens", "tensor_load_wait tensor_store_wait", _W, _GROUP, 0, group="tcgen05"),
    *_FREE.rows("tcgen05", "tcgen05_wait_ld tcgen05_wait_st", _W, _GROUP, 0, 1, group="tcgen05"),
)

_FLAG_CLASS = _Shape(
    Way.STATIC, definers=r"Generic(?:System)?Barrier|BarrierSync|SystemBarrier|SyncManager|\w*BarrierManager"
)
_SEMAPHORE = _Shape(Way.METHOD, evidence=r"(?i)semaphore|lock", definers="Semaphore")
_SPIN: Final = "spin on a word in global memory"
FLAGS: tuple[Entry, ...] = (
    *_FLAG_CLASS.rows("Barrier", "wait_eq wait_lt wait_eq_reset", _W, _FLAG, 3, 5, note=_SPIN),
    *_FLAG_CLASS.rows("Barrier", "arrive_inc arrive_range_inc", _S, _FLAG, 3, 5),
    *_SEMAPHORE.rows("Semaphore", "wait", _W, _FLAG, 0, 1, note=_SPIN),
    *_SEMAPHORE.rows("Semaphore", "release", _S, _FLAG, 0, 1),
    *_FREE.rows("nvshmem", "nvshmem_signal_wait_until", _W, _FLAG, 3),
)

_TCGEN05_FENCES: Final = "tcgen05_before_thread_sync tcgen05_after_thread_sync"
_TK_FENCES: Final = "tensor_before_thread_sync tensor_after_thread_sync"
FENCES: tuple[Entry, ...] = (
    *_FREE.rows("cuda", "__threadfence __threadfence_block __threadfence_system", _F, _FLAG, 0),
    *_FREE.rows("cutlass::arch", "fence_barrier_init", _F, _MBAR, 0),
    *_FREE.rows("cutlass::arch", "fence_view_async_shared", _F, _GROUP, 0),
    *_FREE.rows("cute", "tma_store_fence", _F, _GROUP, 0),
    *_FREE.rows("cute", "tma_descriptor_fence_acquire tma_descriptor_fence_release", _F, _GROUP, 0, 1),
    *_FREE.rows("cute", "tma_descriptor_cp_fence_release", _F, _GROUP, 2),
    *_FREE.rows("cute", "warpgroup_arrive", _F, _GROUP, 0, group="wgmma", note="wgmma.fence: orders registers"),
    *_FREE.rows("cute", _TCGEN05_FENCES, _F, _GROUP, 0, group="tcgen05"),
    *_FREE.rows("kittens", _TK_FENCES, _F, _GROUP, 0, group="tcgen05"),
    *_FREE.rows("cuda::device::experimental", "fence_proxy_async_shared_cta", _F, _GROUP, 0),
)

# In order of precedence: what is a named barrier looks like a barrier, too.
ENTRIES: tuple[Entry, ...] = (*PIPELINES, *NAMED, *MBARRIERS, *SYNCS, *GROUPS, *FLAGS, *FENCES)
ROWS: tuple[SyncOp, ...] = tuple(entry.op for entry in ENTRIES)
