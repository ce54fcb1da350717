# SPDX-License-Identifier: Apache-2.0
"""Traces recorded on an H200 decode, agree with themselves, and say what the kernels' arithmetic says they must.

FlashAttention forward, head dimension 128, tile 128 x 128 (flash_attn/cute/interface.py, tile_n for sm_90, no mask): keys
4096 / 128 = 32 blocks, of which the first is waited for outside the main loop. GEMM: k 2048 / tile_k 64 = 32 steps.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from autostamp.analysis import analyse
from autostamp.analysis.arrows import by_address, by_declaration
from autostamp.model.manifest import EventKind
from autostamp.model.timeline import State
from autostamp.model.trace import Trace
from autostamp.runtime.decode import check
from autostamp.runtime.store import load_run

ROOT = Path(__file__).parents[2]
ONE_CTA = ROOT / "tests/fixtures/runs/fa4_forward_one_cta"
FULL_GRID = ROOT / "tests/fixtures/runs/fa4_forward_full_grid"
GEMM = ROOT / "kernels/cutedsl/recorded/gemm_ws_h200"
RUNS = [ONE_CTA, FULL_GRID, GEMM]
LOAD_WARP = {ONE_CTA: 0, FULL_GRID: 0, GEMM: 8}
MMA_WARPS = {ONE_CTA: range(4, 12), FULL_GRID: range(4, 12), GEMM: range(8)}
STEPS = 32


def only_trace(run: Path) -> Trace:
    (trace,) = load_run(run).traces.values()
    return trace


def visits(run: Path, warp: int, barrier: str, kind: str) -> int:
    """Waits of a warp on the pipeline labelled `barrier`, by side: how often the enter stamp was recorded."""
    trace = only_trace(run)
    numbers = {item.number for item in trace.kernel.barriers if item.label == barrier}
    wanted = {
        item.number
        for item in trace.kernel.instances
        if item.barrier in numbers and item.kind == "wait" and item.side == kind
    }
    lane = next(lane for lane in trace.lanes if lane.warp == warp)
    return sum(event.kind is EventKind.ENTER and event.instance in wanted for event in lane.events)


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_every_enter_has_its_exit_and_no_clock_runs_backwards(run):
    trace = only_trace(run)
    assert check(trace) == []
    assert [lane.warp for lane in trace.lanes] == list(range(12))
    assert all(lane.lost == 0 for lane in trace.lanes)
    for lane in trace.lanes:
        cycles = [event.cycles for event in lane.events]
        assert cycles == sorted(cycles)
        assert lane.entry_cycles <= cycles[0] <= cycles[-1] <= lane.exit_cycles


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_machine_facts_and_clock(run):
    data = load_run(run)
    assert data.facts.gpu == "NVIDIA H200"
    assert data.facts.sm_count == 132  # H200 SXM data sheet
    assert 1000 < data.facts.sm_mhz < 1980 * 1.001  # an H200 boosts to 1980 MHz


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_roles_come_out_as_the_source_names_them(run):
    roles = {warp.warp: warp.role for warp in analyse(only_trace(run)).warps}
    assert roles[LOAD_WARP[run]] == "load"
    assert {roles[warp] for warp in MMA_WARPS[run]} == {"mma"}


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_span_is_stall_and_passed_and_active_and_untracked(run):
    for warp in analyse(only_trace(run)).warps:
        assert warp.stall >= 0
        assert warp.passed >= 0
        assert warp.active >= 0
        assert warp.span == warp.stall + warp.passed + warp.active + warp.untracked


@pytest.mark.parametrize("run", [ONE_CTA, FULL_GRID], ids=lambda run: run.name)
def test_flash_attention_waits_once_for_every_block_of_keys(run):
    for warp in MMA_WARPS[run]:
        assert visits(run, warp, "pipeline_k", "full") == STEPS
        assert visits(run, warp, "pipeline_v", "full") == STEPS
        assert visits(run, warp, "pipeline_q", "full") == 1
    # The producer acquires a stage for every block, and waits for the last ones to come free at the end (producer_tail).
    assert visits(run, 0, "pipeline_k", "empty") == STEPS
    assert visits(run, 0, "pipeline_v", "empty") == STEPS + 1


def test_gemm_waits_once_for_every_step():
    for warp in MMA_WARPS[GEMM]:
        assert visits(GEMM, warp, "ab_pipeline", "full") == STEPS
    assert visits(GEMM, 8, "ab_pipeline", "empty") == STEPS + 1


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_ring_stages_come_round_in_order(run):
    trace = only_trace(run)
    rings = {barrier.number: barrier.stages for barrier in trace.kernel.barriers if barrier.stages > 1}
    waits = {item.number: item for item in trace.kernel.instances if item.barrier in rings and item.side == "full"}
    lane = trace.lanes[MMA_WARPS[run][0]]
    assert waits
    for barrier in {item.barrier for item in waits.values()}:
        stages = rings[barrier]
        seen = [
            event.payload
            for event in lane.events
            if event.kind is EventKind.ENTER and event.instance in waits and waits[event.instance].barrier == barrier
        ]
        assert seen == [number % stages for number in range(STEPS)]


CUDA_GEMM = ROOT / "kernels/cuda/recorded/gemm_ws_h200"
"""kernels/cuda/gemm_ws.cu, 128 x 128 x 1024 in one CTA: 16 tiles of K, 4 stages, 8 consumer warps, built by the launcher."""


def test_cuda_records_are_whole():
    trace = only_trace(CUDA_GEMM)
    assert check(trace) == []
    assert [lane.warp for lane in trace.lanes] == list(range(12))
    assert all(lane.lost == 0 and lane.exit_cycles > lane.entry_cycles for lane in trace.lanes)


def test_cuda_roles_and_stages_come_from_guards_and_addresses():
    timeline = analyse(only_trace(CUDA_GEMM))
    roles = {warp.warp: warp.role for warp in timeline.warps}
    assert [roles[warp] for warp in range(9)] == ["mma"] * 8 + ["load"]
    sides = {instance.number: instance.side for instance in only_trace(CUDA_GEMM).kernel.instances}
    for warp in timeline.warps[:8]:
        stages = [
            part.stage for part in warp.slices if part.state is not State.ACTIVE and sides[part.instance] == "full"
        ]
        assert stages == [tile % 4 for tile in range(16)]


def test_cuda_arrows_by_address_are_those_by_declaration():
    """Each consumer waits for 16 tiles; of the producer's 16 acquires a fresh ring grants four."""
    trace = only_trace(CUDA_GEMM)
    ring = {instance.number for instance in trace.kernel.instances if instance.side in ("full", "empty")}
    arrows = by_address(trace)
    assert arrows == {arrow for arrow in by_declaration(trace) if arrow.wait.instance in ring}
    assert len(arrows) == 8 * 16 + 16 - 4
    assert all(arrow.signal.cycles <= arrow.wait.cycles for arrow in arrows)


RECORDED = sorted(path.parent for pattern in ("kernels/*/recorded/*", "tests/fixtures/runs/*")
                  for path in ROOT.glob(f"{pattern}/manifest.json"))  # fmt: skip


@pytest.mark.parametrize("run", RECORDED, ids=lambda run: f"{run.parts[-3]}-{run.name}")
def test_a_recorded_run_names_no_folder_of_a_machine(run):
    """Files are named from the top of the repository, or of the package that was recorded; so are roots of barriers."""
    assert not re.search(r'"/\w', (run / "manifest.json").read_text(encoding="utf-8"))
