# SPDX-License-Identifier: Apache-2.0
"""Who waited for whom in FlashAttention's forward kernel and in our GEMMs, as recorded on an H200.

Counts follow from the kernels (tests/unit/test_recorded_runs.py): 32 blocks of keys, rings of two stages for K and for V, one
stage for Q, eight mma warps that each release every stage. Every wait counts as a stall here, however short.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from autostamp.analysis import analyse
from autostamp.analysis.arrows import by_address
from autostamp.analysis.flow import explain
from autostamp.analysis.latencies import Latencies
from autostamp.model.flow import Ending, Flow
from autostamp.model.manifest import EventKind
from autostamp.model.trace import Trace
from autostamp.runtime.store import load_run
from tests.simulator.tables import KINDS

ROOT = Path(__file__).parents[2]
ONE_CTA = ROOT / "tests/fixtures/runs/fa4_forward_one_cta"
FULL_GRID = ROOT / "tests/fixtures/runs/fa4_forward_full_grid"
GEMM = ROOT / "kernels/cutedsl/recorded/gemm_ws_h200"
CUDA_GEMM = ROOT / "kernels/cuda/recorded/gemm_ws_h200"
FLASH = pytest.mark.parametrize("run", [ONE_CTA, FULL_GRID], ids=lambda run: run.name)
LATENCIES = Latencies(ready={}, hand_off=dict.fromkeys(KINDS, 200), late=50)
BLOCKS, STAGES, CONSUMERS = 32, 2, 8


def read(run: Path) -> tuple[Trace, Flow]:
    (trace,) = load_run(run).traces.values()
    return trace, explain(trace, analyse(trace, latencies=LATENCIES), LATENCIES)


def by_label(trace: Trace, flow: Flow, role: str) -> Counter[tuple[str, str, str, Ending]]:
    """Causes of a role's stalls by barrier, side, arriving role and ending."""
    labels = {barrier.number: barrier.label for barrier in trace.kernel.barriers}
    return Counter(
        {
            (labels[row.barrier], row.side, row.by, row.ending): row.count
            for row in flow.blame
            if row.role == role and labels[row.barrier] != "cluster"
        }
    )


@FLASH
def test_the_load_warp_waits_for_the_consumers_releases_of_k_and_v(run):
    """Two rounds of K, V and one of Q are granted; the 30 others of K and V, and the tail of V, end with a release."""
    trace, flow = read(run)
    assert by_label(trace, flow, "load") == {
        ("pipeline_k", "empty", "mma", Ending.SIGNAL): BLOCKS - STAGES,
        ("pipeline_v", "empty", "mma", Ending.SIGNAL): BLOCKS - STAGES + 1,
        ("pipeline_k", "empty", "", Ending.GRANTED): STAGES,
        ("pipeline_v", "empty", "", Ending.GRANTED): STAGES,
        ("pipeline_q", "empty", "", Ending.GRANTED): 1,
    }
    released = [arrow for arrow in flow.arrows if arrow.side == "empty"]
    assert all(len(arrow.others) == CONSUMERS - 1 and not arrow.is_inferred for arrow in released)
    assert {end.warp for arrow in released for end in (arrow.signal, *arrow.others)} == set(range(4, 12))
    # Nearly all of it: what the granted waits cost is five ready waits of about 100 cycles in 78 thousand.
    explained = sum(row.share for row in flow.blame if row.role == "load" and row.by == "mma")
    assert 0.98 < explained < 1


@FLASH
def test_a_release_frees_the_stage_that_the_block_two_later_takes(run):
    """Block n goes through stage n % 2. Its acquire waits for the release of block n - 2: use n // 2 - 1."""
    trace, flow = read(run)
    k = next(item.number for item in trace.kernel.barriers if item.label == "pipeline_k")
    acquires = [arrow for arrow in flow.arrows if (arrow.barrier, arrow.side) == (k, "empty")]
    assert [(arrow.stage, arrow.use) for arrow in acquires] == [(n % 2, n // 2 - 1) for n in range(2, BLOCKS)]
    # The release is of this ring, and after the wait of the block that it frees.
    rows = {item.number: item for item in trace.kernel.instances}
    assert all(rows[arrow.signal.instance].barrier == k for arrow in acquires)


@FLASH
def test_the_tail_waits_for_the_last_release_of_v(run):
    trace, flow = read(run)
    v = next(item.number for item in trace.kernel.barriers if item.label == "pipeline_v")
    releases = {
        item.number for item in trace.kernel.instances if (item.barrier, item.kind, item.side) == (v, "signal", "empty")
    }
    last = max(event.cycles for lane in trace.lanes for event in lane.events if event.instance in releases)
    arrow = max(
        (arrow for arrow in flow.arrows if arrow.barrier == v and arrow.side == "empty"), key=lambda a: a.wait.cycles
    )
    assert arrow.signal.cycles == last


@FLASH
def test_the_mma_warps_wait_for_copies_of_k_v_and_q(run):
    trace, flow = read(run)
    found = by_label(trace, flow, "mma")
    for label, uses in (("pipeline_k", BLOCKS), ("pipeline_v", BLOCKS), ("pipeline_q", 1)):
        assert found[label, "full", "load", Ending.TRANSFER] == CONSUMERS * uses
    copies = [arrow for arrow in flow.arrows if arrow.side == "full"]
    assert all(
        arrow.is_async and arrow.signal.warp == 0 and arrow.signal.cycles < arrow.wait.cycles for arrow in copies
    )
    # The copy of K and V has a commit for its mark, that of Q only the acquire which armed the barrier.
    assert Counter(len(arrow.others) for arrow in copies) == {1: 2 * CONSUMERS * BLOCKS, 0: CONSUMERS}


@FLASH
def test_what_is_left_unexplained_is_said(run):
    """Their own wgmma and store groups have no arrow. The named barriers have none either: see the test below."""
    trace, flow = read(run)
    found = by_label(trace, flow, "mma")
    assert found["wgmma", "async-group", "", Ending.GROUP] == CONSUMERS * 2 * (BLOCKS - 1)
    assert found["cp.async.bulk", "async-group", "", Ending.GROUP] == 1
    unseen = {label for label, _, _, ending in found if ending is Ending.UNSEEN}
    assert unseen <= {"WarpSchedulerWG1", "WarpSchedulerWG1+"}
    assert any(note.startswith("WarpSchedulerWG1 (named): waits ended before all had arrived") for note in flow.notes)
    for cause in flow.causes:
        assert cause.stall.cycles == cause.awaited + cause.in_flight + cause.handed_over + cause.unexplained


@FLASH
def test_in_these_recordings_warps_leave_a_named_barrier_before_it_is_complete(run):
    """`BAR.SYNC.DEFER_BLOCKING` lets the clock after it be read before the warp blocks, so the exit's stamp comes too early.

    The four warps of a group meet at their scheduler barrier in every block; in the first, one of them has its exit stamp before
    another has its enter. An arrow to such an exit would be wrong, so there is none.
    """
    trace, _ = read(run)
    (number,) = {
        item.number
        for item in trace.kernel.instances
        if item.side == "named" and item.kind == "wait" and item.barrier == 6
    }
    stamps = {
        kind: [
            event.cycles
            for lane in trace.lanes[4:8]
            for event in lane.events
            if (event.instance, event.kind, event.visit) == (number, kind, 0)
        ]
        for kind in (EventKind.ENTER, EventKind.EXIT)
    }
    assert len(stamps[EventKind.ENTER]) == 4
    assert min(stamps[EventKind.EXIT]) < max(stamps[EventKind.ENTER])


def test_gemm_the_consumers_wait_for_copies_and_the_load_warp_for_all_their_releases():
    trace, flow = read(GEMM)
    found = by_label(trace, flow, "load")
    # 32 steps through four stages, and the tail.
    assert found["ab_pipeline", "empty", "mma", Ending.SIGNAL] == 32 - 4 + 1
    assert found["ab_pipeline", "empty", "", Ending.GRANTED] == 4
    assert by_label(trace, flow, "mma")["ab_pipeline", "full", "load", Ending.TRANSFER] == CONSUMERS * 32
    assert {len(arrow.others) for arrow in flow.arrows if arrow.side == "empty"} == {CONSUMERS - 1}


def test_cuda_gemm_arrows_are_those_by_address_and_start_at_the_later_copy():
    """By address knows neither counts nor copies: its arrival, the expect_tx, is the first record of the same use."""
    trace, flow = read(CUDA_GEMM)
    arrows = [arrow for arrow in flow.arrows if arrow.side in {"full", "empty"}]
    told = {arrow.wait: arrow.signal for arrow in by_address(trace)}
    assert len(arrows) == len(told) == 8 * 16 + 16 - 4
    for arrow in arrows:
        signal = arrow.signal if arrow.side == "empty" else arrow.others[0]
        assert told[arrow.wait] == signal
        assert len(arrow.others) == (CONSUMERS - 1 if arrow.side == "empty" else 2)
