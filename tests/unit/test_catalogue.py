# SPDX-License-Identifier: Apache-2.0
"""The catalogue against the public API of CuTe-DSL, written down here by hand.

What each call does was read in nvidia-cutlass-dsl 4.8.1, what subclasses add in flash-attn-4 4.0.0b36 and quack-kernels 0.6.5.
"""

from __future__ import annotations

from collections import Counter

import libcst as cst
import pytest

from autostamp.model.sync import Kind, Side, StageFrom, SyncOp
from autostamp.passes.catalogue import ROWS, resolve
from autostamp.passes.cutedsl.calls import Catalogue, match

CATALOGUE = Catalogue.of()

# What a class's four ring methods do: sides that an acquire arms besides waiting on empty, what a commit is, what a release is.
RINGS = {
    "PipelineAsync": ("", "signal", "signal"),
    "PipelineCpAsync": ("", "async", "signal"),
    "PipelineTmaAsync": ("full", "nothing", "signal"),
    "PipelineTmaUmma": ("full", "nothing", "async"),
    "PipelineAsyncUmma": ("", "signal", "async"),
    "PipelineUmmaAsync": ("", "async", "signal"),
    "PipelineClcFetchAsync": ("full", "signal", "signal"),
    "PipelineTmaMultiConsumersAsync": ("full", "nothing", "async"),
}

# owner: {kind and side: methods}
OBJECTS = {
    "PipelineTmaStore": {
        "wait async-group": "producer_acquire producer_tail",
        "signal async-group": "producer_commit",
    },
    "PipelineOrder": {"wait full": "wait", "signal full": "arrive"},
    "PipelineProducer": {
        "wait empty": "acquire acquire_and_advance tail",
        "poll empty": "try_acquire",
        "signal full": "commit",
    },
    "PipelineConsumer": {"wait full": "wait wait_and_advance", "poll full": "try_wait", "signal empty": "release"},
    "MbarrierArray": {
        "wait mbarrier": "wait arrive_and_wait",
        "poll mbarrier": "try_wait test_wait",
        "signal mbarrier": """arrive arrive_and_expect_tx arrive_and_expect_tx_with_dst arrive_and_drop arrive_mbarrier
            arrive_cp_async_mbarrier arrive_tcgen05mma""",
    },
    "NamedBarrier": {
        "wait named": "arrive_and_wait arrive_and_wait_unaligned arrive_and_wait_w_index sync wait wait_unaligned",
        "signal named": "arrive arrive_unaligned arrive_w_index arrive_and_drop",
    },
    "TmaStoreFence": {"wait async-group": "wait tail arrive_and_wait", "signal async-group": "arrive"},
    "TmemAllocator": {"wait named": "wait_for_alloc reserve"},
    "TensorMapManager": {"wait async-group": "update_tensormap"},
    "cutlass.pipeline": {
        "signal cluster": "pipeline_init_arrive",
        "wait cluster": "pipeline_init_wait",
        "wait cta": "agent_sync",
    },
    "cute.arch": {
        "wait mbarrier": "mbarrier_wait",
        "poll mbarrier": "mbarrier_try_wait mbarrier_test_wait mbarrier_conditional_try_wait",
        "signal mbarrier": """mbarrier_arrive mbarrier_arrive_and_expect_tx mbarrier_expect_tx cp_async_mbarrier_arrive_noinc
            issue_clc_query store_async_dsmem""",
        "fence mbarrier": "mbarrier_init_fence",
        "fence flag": "fence_acq_rel_cta fence_acq_rel_cluster fence_acq_rel_gpu fence_acq_rel_sys",
        "fence async-group": """fence_proxy fence_view_async_shared fence_view_async_tmem_load
            fence_view_async_tmem_store""",
        "wait named": "barrier",
        "signal named": "barrier_arrive",
        "wait cta": "sync_threads",
        "wait warp": "sync_warp",
        "signal cluster": "cluster_arrive cluster_arrive_relaxed",
        "wait cluster": "cluster_wait",
        "signal async-group": "cp_async_commit_group cp_async_bulk_commit_group",
        "wait async-group": "cp_async_wait_group cp_async_bulk_wait_group",
        "wait grid": "griddepcontrol_wait",
        "signal grid": "griddepcontrol_launch_dependents",
    },
    "cute.nvgpu.warpgroup": {
        "wait async-group": "wait_group",
        "signal async-group": "commit_group",
        "fence async-group": "fence",
    },
    "cute.nvgpu.tcgen05": {"signal mbarrier": "commit"},
    "cutlass.experimental.primitives": {
        "wait mbarrier": "mbarrier_wait_parity",
        "poll mbarrier": "mbarrier_try_wait_parity mbarrier_test_wait_parity mbarrier_try_wait_timelimit",
        "signal mbarrier": """mbarrier_arrive_expect_tx mbarrier_arrive_drop mbarrier_arrive_drop_expect_tx
            mbarrier_complete_tx tcgen05_commit""",
        "wait named": "barrier_cta_sync barrier_cta_sync_aligned barrier_cta_red barrier_cta_red_aligned",
        "signal named": "barrier_cta_arrive barrier_cta_arrive_aligned",
        "wait warp": "bar_warp_sync",
        "wait cluster": "barrier_cluster_wait barrier_cluster_wait_aligned",
        "signal cluster": """barrier_cluster_arrive barrier_cluster_arrive_relaxed barrier_cluster_arrive_aligned
            barrier_cluster_arrive_relaxed_aligned""",
        "wait async-group": "wgmma_wait_group_sync_aligned tcgen05_wait",
        "signal async-group": "wgmma_commit_group_sync_aligned",
        "wait grid": "griddepcontrol",
    },
    "GenericPipeline": {
        "wait empty": "acquire_sync producer_acquire_and_get_stage",
        "wait full": "consumer_wait_and_get_stage consumer_tail",
        "signal full": "commit_sync producer_commit_and_advance",
        "signal empty": "release_advance consumer_release_and_advance",
    },
    "quack.sync.barrier": {"wait flag": "wait_eq", "signal flag": "arrive_inc release_add release_store"},
}

EXPECTED = [
    (owner, method, *effect.split())
    for owner, effects in OBJECTS.items()
    for effect, methods in effects.items()
    for method in methods.split()
]


def row_of(owner: str, method: str) -> SyncOp:
    row = resolve(owner, method)
    assert row is not None, f"no row for {owner}.{method}"
    return row


@pytest.mark.parametrize(
    ("owner", "method", "kind", "side"), EXPECTED, ids=[f"{case[0]}.{case[1]}" for case in EXPECTED]
)
def test_row(owner: str, method: str, kind: str, side: str) -> None:
    row = row_of(owner, method)
    assert (row.kind, row.side) == (kind, side)
    assert not row.is_noop


RING_METHODS = {
    "producer_acquire": ("wait", "empty", "state"),
    "producer_acquire_w_index_phase": ("wait", "empty", "index-phase"),
    "producer_try_acquire": ("poll", "empty", "state"),
    "producer_commit": ("signal", "full", "state"),
    "producer_commit_w_index": ("signal", "full", "index"),
    "producer_tail": ("wait", "empty", "state"),
    "consumer_wait": ("wait", "full", "state"),
    "consumer_wait_w_index_phase": ("wait", "full", "index-phase"),
    "consumer_try_wait": ("poll", "full", "state"),
    "consumer_release": ("signal", "empty", "state"),
    "consumer_release_w_index": ("signal", "empty", "index"),
}


@pytest.mark.parametrize("owner", RINGS)
@pytest.mark.parametrize("method", RING_METHODS)
def test_ring_method(owner: str, method: str) -> None:
    row = row_of(owner, method)
    assert (row.kind, row.side, row.stage_from) == RING_METHODS[method]


@pytest.mark.parametrize("owner", RINGS)
def test_what_a_ring_class_does_differently(owner: str) -> None:
    arms, commit, release = RINGS[owner]
    for suffix in ("", "_w_index_phase"):
        assert row_of(owner, f"producer_acquire{suffix}").signals == ((Side(arms),) if arms else ())
    for suffix in ("", "_w_index"):
        committed, released = row_of(owner, f"producer_commit{suffix}"), row_of(owner, f"consumer_release{suffix}")
        assert (committed.is_noop, committed.is_async) == (commit == "nothing", commit == "async")
        assert (released.is_noop, released.is_async) == (False, release == "async")
    assert row_of(owner, "consumer_wait").signals == ()


def test_every_method_of_the_empty_pipeline_is_nothing() -> None:
    rows = [row for row in ROWS if row.owner == "PipelineEmpty"]
    assert {row.method for row in rows} >= {"producer_acquire", "producer_commit", "consumer_wait", "consumer_release"}
    assert all(row.is_noop for row in rows)


def test_no_other_call_is_nothing() -> None:
    noop = {(row.owner, row.method) for row in ROWS if row.is_noop and row.owner != "PipelineEmpty"}
    owners = [owner for owner, (_, commit, _) in RINGS.items() if commit == "nothing"]
    assert noop == {(owner, method) for owner in owners for method in ("producer_commit", "producer_commit_w_index")}


@pytest.mark.parametrize(
    ("owner", "method"),
    [
        ("NamedBarrier", "arrive_and_wait"),
        ("NamedBarrier", "sync"),
        ("NamedBarrier", "wait"),
        ("cute.arch", "barrier"),
        ("cute.arch", "sync_threads"),
        ("cute.arch", "sync_warp"),
        ("cutlass.pipeline", "agent_sync"),
        ("cutlass.experimental.primitives", "barrier_cta_sync"),
    ],
)
def test_a_barrier_that_all_meet_at_is_also_arrived_on(owner: str, method: str) -> None:
    row = row_of(owner, method)
    assert row.signals == (row.side,)


@pytest.mark.parametrize(
    ("owner", "method"),
    [
        ("cute.arch", "cp_async_mbarrier_arrive_noinc"),
        ("cute.arch", "issue_clc_query"),
        ("cute.nvgpu.tcgen05", "commit"),
        ("cutlass.experimental.primitives", "tcgen05_commit"),
        ("PipelineAsync", "producer_cpasync_commit"),
    ],
)
def test_signals_that_fire_later_than_they_are_issued(owner: str, method: str) -> None:
    assert row_of(owner, method).is_async


ADVANCES = {
    "producer_tail",
    "acquire_and_advance",
    "wait_and_advance",
    "tail",
    "arrive",
    "release_advance",
    "producer_commit_and_advance",
    "consumer_release_and_advance",
}


def test_calls_that_move_the_state_they_are_given() -> None:
    assert {row.method for row in ROWS if row.advances} == ADVANCES
    assert {row.owner for row in ROWS if row.advances and row.method == "arrive"} == {"PipelineOrder"}


def test_no_row_is_there_twice() -> None:
    counts = Counter((row.owner, row.method) for row in ROWS)
    assert [key for key, count in counts.items() if count > 1] == []


def test_what_has_no_operand_says_what_it_waits_on() -> None:
    """A function without a barrier operand would otherwise have no name in a report."""
    rows = [row for row in ROWS if "." in row.owner and row.stage_from is StageFrom.NONE and row.kind is not Kind.FENCE]
    assert [f"{row.owner}.{row.method}" for row in rows if not row.group] == []


def test_classes_without_a_row_of_their_own() -> None:
    assert resolve("PipelineAsync", "nosuch") is None
    assert resolve("NoSuchPipeline", "consumer_wait") is None
    assert resolve("PipelineTmaStore", "consumer_wait") is None


def matched(text: str, known: tuple[str, ...] = ()) -> SyncOp | None:
    call = cst.parse_expression(text)
    assert isinstance(call, cst.Call)
    return match(call, CATALOGUE, known)


@pytest.mark.parametrize(
    ("text", "owner", "method", "stage_from"),
    [
        ("pipe.consumer_wait(state)", "PipelineAsync", "consumer_wait", "state"),
        ("self.pipe.consumer_wait(state, token)", "PipelineAsync", "consumer_wait", "state"),
        ("consumer.wait()", "PipelineConsumer", "wait", "participant"),
        ("handle.release()", "PipelineConsumer", "release", "participant"),
        ("handle.commit()", "PipelineProducer", "commit", "participant"),
        ("order.wait(state)", "PipelineOrder", "wait", "state"),
        ("pipe.sync_object_full.wait(index, phase)", "MbarrierArray", "wait", "index-phase"),
        ("pipe.sync_object_full.arrive(index, mask)", "MbarrierArray", "arrive", "index"),
        ("barrier.arrive_and_wait()", "NamedBarrier", "arrive_and_wait", "object"),
        ("barrier.arrive_w_index(index)", "NamedBarrier", "arrive_w_index", "index"),
        ("pipeline.sync(barrier_id=1)", "cutlass.pipeline", "sync", "barrier-id"),
        ("cute.arch.mbarrier_wait(bar, 0)", "cute.arch", "mbarrier_wait", "pointer"),
        ("arch.mbarrier_wait(bar, 0)", "cute.arch", "mbarrier_wait", "pointer"),
        ("prims.mbarrier_wait_parity(bar, 0)", "cutlass.experimental.primitives", "mbarrier_wait_parity", "pointer"),
        ("nvvm.barrier_cta_sync(1, 128)", "cutlass.experimental.primitives", "barrier_cta_sync", "barrier-id"),
        ("warpgroup.wait_group(0)", "cute.nvgpu.warpgroup", "wait_group", "none"),
        ("cute.nvgpu.warpgroup.wait_group(0)", "cute.nvgpu.warpgroup", "wait_group", "none"),
        ("tcgen05.commit(bar)", "cute.nvgpu.tcgen05", "commit", "pointer"),
        ("sync_threads()", "cute.arch", "sync_threads", "none"),
        ("pipeline_init_wait(shape)", "cutlass.pipeline", "pipeline_init_wait", "none"),
        ("get(i).consumer_release(state)", "PipelineAsync", "consumer_release", "state"),
    ],
)
def test_the_row_of_a_call(text: str, owner: str, method: str, stage_from: str) -> None:
    row = matched(text)
    assert row is not None
    assert (row.owner, row.method, row.stage_from) == (owner, method, stage_from)


@pytest.mark.parametrize(
    "text",
    [
        "wait(x)",
        "release()",
        "pipe.advance()",
        "pipe.consumer_get_barrier(state)",
        "dist.barrier()",
        "torch.cuda.event.wait()",
        "stream.wait()",
        "self.lock.release()",
        "process.wait()",
        "x[0](1)",
        "(lambda: 1)()",
    ],
)
def test_calls_that_are_no_sync_op(text: str) -> None:
    assert matched(text) is None


def test_a_function_of_the_program_with_the_name_of_a_method() -> None:
    row = matched("wait(bar, phase)", known=("wait",))
    assert row is not None
    assert (row.kind, row.stage_from, row.owner) == (Kind.WAIT, StageFrom.POINTER, "program.function")


def test_rows_of_the_user_come_first() -> None:
    own = SyncOp("Mine", "consumer_wait", Kind.SIGNAL, Side.EMPTY, StageFrom.STATE)
    call = cst.parse_expression("pipe.consumer_wait(state)")
    assert isinstance(call, cst.Call)
    assert match(call, Catalogue.of([own])) == own
