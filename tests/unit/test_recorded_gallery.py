# SPDX-License-Identifier: Apache-2.0
"""Traces of the gallery's CuTe-DSL kernels, recorded on an H200, against their case files and the kernels' arithmetic.

GEMM: M = N = 4096, K = 2048 in K tiles of 64: 32 steps a tile. Tiles of 128 x 192 are 32 * 22 = 704; a grid of 132 CTAs gives
the first one tiles 0, 132, ..., 660. Tiles of 128 x 256 are 256 pairs for 66 clusters: 0, 66, 132 and 198 for the first.
Attention, serial order: 2048 keys in blocks of 128, so 16; each of two softmax warpgroups has 64 queries.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from autostamp.analysis import analyse
from autostamp.analysis.flow import explain
from autostamp.model.manifest import EventKind
from autostamp.model.trace import Trace
from autostamp.runtime.decode import check
from autostamp.runtime.store import RunData, load_run
from tests.gallery import edges_of, read_case, sites_of

RECORDED = Path(__file__).parents[2] / "kernels" / "cutedsl" / "recorded"
GEMMS = ("gemm_plain", "gemm_pingpong", "gemm_cooperative")
ATTENTIONS = ("attention_split_2", "attention_split_4", "attention_split_6", "attention_split_8")
NAMES = (*GEMMS, *ATTENTIONS)
each_kernel = pytest.mark.parametrize("name", NAMES)

STEPS = 2048 // 64
TILES = {"gemm_plain": 1, "gemm_pingpong": len(range(0, 704, 132)), "gemm_cooperative": len(range(0, 256, 66))}
TILES_PER_WARPGROUP = {"gemm_plain": 1, "gemm_pingpong": 3, "gemm_cooperative": 4}
SLICES = {"gemm_plain": 2 * 3, "gemm_pingpong": 2 * 3, "gemm_cooperative": 4}
MMA_WARPS = {"gemm_plain": 4, "gemm_pingpong": 8, "gemm_cooperative": 8, **dict.fromkeys(ATTENTIONS, 4)}
BLOCKS = 2048 // 128
HALVES = 2


def load(name: str) -> tuple[RunData, Trace]:
    """The recorded run of the kernel, and its trace."""
    data = load_run(RECORDED / f"{name}_h200")
    (trace,) = data.traces.values()
    return data, trace


def visits(trace: Trace, warp: int, barrier: str, side: str, kind: EventKind = EventKind.ENTER) -> int:
    """Records of a warp of one kind on the barrier labelled so."""
    labels = {item.number: item.label for item in trace.kernel.barriers}
    wanted = {row.number for row in trace.kernel.instances if (labels[row.barrier], row.side) == (barrier, side)}
    lane = next(lane for lane in trace.lanes if lane.warp == warp)
    return sum(event.kind is kind and event.instance in wanted for event in lane.events)


@each_kernel
def test_records_are_whole(name):
    data, trace = load(name)
    assert check(trace) == []
    assert all(lane.lost == 0 for lane in trace.lanes)
    assert data.facts.gpu == "NVIDIA H200"
    assert 1000 < data.facts.sm_mhz < 1980 * 1.001


@each_kernel
def test_sites_roles_and_edges_are_those_of_the_case_file(name):
    data, trace = load(name)
    expected = read_case(name)
    timeline = analyse(trace)
    assert sites_of(data.manifest, trace.kernel) == expected.sites
    assert edges_of(trace, timeline, explain(trace, timeline)) == expected.edges


@pytest.mark.parametrize("name", GEMMS)
def test_gemm_goes_once_through_every_step_of_its_tiles(name):
    _, trace = load(name)
    load_warp = MMA_WARPS[name]
    assert visits(trace, load_warp, "ab_pipeline", "empty") == STEPS * TILES[name] + 1  # producer_tail is the last one
    for warp in range(MMA_WARPS[name]):
        steps = STEPS * TILES_PER_WARPGROUP[name]
        assert visits(trace, warp, "ab_pipeline", "full") == steps
        assert visits(trace, warp, "ab_pipeline", "empty", EventKind.SIGNAL) == steps
        assert visits(trace, warp, "wgmma", "async-group") == steps
        assert visits(trace, warp, "barrier epilogue", "named") == 2 * SLICES[name] * TILES_PER_WARPGROUP[name]


def test_pingpong_takes_turns():
    """Six tiles, so five hand-overs and the one that starts warpgroup 0; the last tile hands over to nobody."""
    _, trace = load("gemm_pingpong")
    given = [visits(trace, warp, "barrier other_turn", "named", EventKind.SIGNAL) for warp in range(8)]
    taken = [visits(trace, warp, "barrier own_turn", "named") for warp in range(8)]
    assert given == [3] * 4 + [1 + 2] * 4
    assert taken == [3] * 8


@pytest.mark.parametrize("name", ATTENTIONS)
def test_attention_hands_over_once_a_block(name):
    _, trace = load(name)
    parts = ("p_first_pipeline",) if name == "attention_split_8" else ("p_first_pipeline", "p_rest_pipeline")
    for warp in range(4):
        assert visits(trace, warp, "k_pipeline", "full") == BLOCKS
        assert visits(trace, warp, "v_pipeline", "full") == BLOCKS
        assert visits(trace, warp, "s_pipeline", "full", EventKind.SIGNAL) == BLOCKS * HALVES
        for part in parts:
            last = HALVES if part == "p_first_pipeline" else 0  # the inverse row sums
            assert visits(trace, warp, part, "full") == BLOCKS * HALVES + last
            assert visits(trace, warp, part, "empty", EventKind.SIGNAL) == BLOCKS * HALVES
    for warp in range(4, 4 + 4 * HALVES):
        assert visits(trace, warp, "s_pipeline", "full") == BLOCKS
        for part in parts:
            assert visits(trace, warp, part, "full", EventKind.SIGNAL) == BLOCKS + (part == "p_first_pipeline")
