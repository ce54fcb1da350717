# SPDX-License-Identifier: Apache-2.0
"""Roles named by conditions, functions and comments, as public kernels write them; and the opposite of a condition."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autostamp.passes.cuda.functions import index
from autostamp.passes.cuda.guards import Guards, common, negated
from autostamp.passes.cuda.nodes import chain_to
from autostamp.passes.cuda.role_tests import Rank, from_test, is_partition, is_role_test
from autostamp.passes.cuda.roles import Roles, from_comment_text, from_function
from autostamp.passes.cuda.scopes import Scopes
from autostamp.passes.cuda.source import parse

NAMED = (
    # cutlass/include/cutlass/gemm/kernel/sm90_gemm_tma_warpspecialized_pingpong.hpp
    ("warp_group_role == WarpGroupRole::Producer", "load"),
    ("warp_group_role == WarpGroupRole::Consumer0 || warp_group_role == WarpGroupRole::Consumer1", "mma"),
    ("producer_warp_role == ProducerWarpRole::Mainloop", "load"),
    ("producer_warp_role == ProducerWarpRole::Epilogue", "epilogue_load"),
    ("producer_warp_role == ProducerWarpRole::MainloopEpilogue", "load"),
    ("producer_warp_role == ProducerWarpRole::Scheduler", "scheduler"),
    ("warp_group_role != WarpGroupRole::Producer", "mma"),
    # cutlass/include/cutlass/gemm/kernel/sm100_gemm_tma_warpspecialized.hpp
    ("WarpCategory::MMA == warp_category", "mma"),
    ("(warp_category == WarpCategory::Sched) && lane_predicate", "scheduler"),
    ("WarpCategory::MainloopSFLoad == warp_category", "sf_load"),
    ("is_participant.main_load", "load"),
    ("is_participant.epi_load", "epilogue_load"),
    ("is_participant.mma", "mma"),
    # FlashMLA/csrc/sm100, DeepEP/csrc/kernels/legacy/internode.cu, DeepGEMM/deep_gemm/include/deep_gemm/impls
    ("role == WarpRole::Softmax0 || role == WarpRole::Softmax1", "softmax"),
    ("warp_role == WarpRole::kRDMASender", "rdma_sender"),
    ("epilogue_warp_idx == 0 and cute::elect_one_sync()", "epilogue"),
    ("is_tma_load_warp", "load"),
    ("is_producer", "load"),
    ("!is_producer", "mma"),
    ("not is_producer", "mma"),
    ("warp_idx == TMA_WARP", "load"),
    ("warp_idx == kMmaWarp && elect_one_sync()", "mma"),
)
NUMBERED = (
    ("warp_idx == 0", Rank.NUMBER, "warp 0"),
    ("0 == warp_idx", Rank.NUMBER, "warp 0"),
    ("warp_idx == 0 and cute::elect_one_sync()", Rank.NUMBER, "warp 0"),
    ("warp_idx == kNumMathThreads / 32", Rank.NUMBER, "warp kNumMathThreads / 32"),
    ("threadIdx.x / 32 == 1", Rank.NUMBER, "warp 1"),
    ("threadIdx.x >> 5 == 1", Rank.NUMBER, "warp 1"),
    ("cutlass::canonical_warp_idx_sync() == 0", Rank.NUMBER, "warp 0"),
    ("warp_group_idx == 0", Rank.NUMBER, "warpgroup 0"),
    ("warpgroupid == 1", Rank.NUMBER, "warpgroup 1"),
    ("warpgroup::groupid() == NUM_CONSUMERS", Rank.NUMBER, "warpgroup NUM_CONSUMERS"),
    ("threadIdx.x == 128", Rank.THREAD, "thread 128"),
    ("tid == 0", Rank.THREAD, "thread 0"),
)
NAMELESS = (
    "wg_idx != 0",
    "warp_idx >= 4 && warp_idx < 8",
    "warp_idx >= kNumMathThreads / 32",
    "warp_idx_in_warpgroup == 0",
    "lane_predicate",
    "is_partial_warp",
    "has_mma_peer_cta && lane_predicate",
    "collective_epilogue.is_producer_load_needed()",
    "!TileScheduler::valid_warpgroup_in_work_tile(work_tile_info)",
    "role != WarpRole::Softmax0",
    "role == WarpRole::Load || role == WarpRole::Mma",
    "num_groups == 0",
    "k_tile == 0",
)


@pytest.mark.parametrize(("test", "role"), NAMED)
def test_a_condition_names_the_role(test: str, role: str) -> None:
    assert from_test(test) == (Rank.NAMED, role)
    assert is_role_test(test)


@pytest.mark.parametrize(("test", "rank", "name"), NUMBERED)
def test_a_condition_gives_a_number(test: str, rank: Rank, name: str) -> None:
    assert from_test(test) == (rank, name)


@pytest.mark.parametrize("test", NAMELESS)
def test_a_condition_names_nothing(test: str) -> None:
    assert from_test(test)[1] == ""


def test_what_asks_for_a_warp_and_what_splits_the_warps() -> None:
    assert is_role_test("elect_one_sync()")
    assert not is_partition("elect_one_sync()")
    assert not is_partition("threadIdx.x == 0")
    assert is_partition("warp_idx < 4")
    assert is_partition("warp_idx == 1 && elect_one_sync()")
    assert not is_role_test("k_tile == 0")
    assert not is_role_test("is_leader_cta")


@pytest.mark.parametrize(
    ("name", "owner", "role"),
    [
        ("load", "CollectiveMainloop", "load"),
        ("load_tail", "", "load"),
        ("mma_pv", "", "mma"),
        ("store", "Epilogue", "store"),
        ("compute", "consumer", "mma"),
        ("setup", "producer", "load"),
        ("softmax", "", "softmax"),
        ("loader_count", "", ""),
        ("operator()", "Kernel", ""),
        ("kernel", "", ""),
    ],
)
def test_a_function_names_the_role(name: str, owner: str, role: str) -> None:
    assert from_function(name, owner) == role


@pytest.mark.parametrize(
    ("comment", "role"),
    [
        ("TMA load warp", "load"),
        ("GEMM TMA load warp for tokens with SFA", "load"),
        ("GEMM MMA issue warp (only the leader CTA will run)", "mma"),
        ("Math warp-groups for WGMMA", "mma"),
        ("TMA warp-group for loading data", "load"),
        ("Epilogue warp groups", "epilogue"),
        ("NVL consumers", "mma"),
        ("Wait consumer release", ""),
        ("We use the third warp, as warp 0/1 may be doing WGMMA", ""),
        ("NOTES: only one thread (or warp) will be used", ""),
        ("Adjust registers", ""),
    ],
)
def test_a_comment_names_the_role(comment: str, role: str) -> None:
    assert from_comment_text(comment) == role


_TERMS = st.sampled_from(
    (
        "a",
        "!a",
        "b",
        "a == b",
        "a != b",
        "a && b",
        "a and b",
        "a == b and c",
        "a || !b",
        "!(a && b)",
        "not a",
        "!(a)",
        "a == (b)",
    )
)


def _truth(text: str, values: dict[str, bool]) -> bool:
    """The value of a condition, read by Python's grammar: `!` binds closer than `not`, which no term makes use of."""
    python = re.sub(r"!(?!=)", " not ", text.replace("&&", " and ").replace("||", " or ")).strip()
    return bool(eval(python, {}, values))


@given(_TERMS)
def test_the_opposite_of_a_condition_holds_when_it_does_not(text: str) -> None:
    for values in itertools.product((False, True), repeat=3):
        names = dict(zip("abc", values, strict=True))
        assert _truth(negated(text), names) is not _truth(text, names), negated(text)


SHARED = b"""
__device__ void work(int);
__device__ void shared(int s) { work(s); }
__device__ void once(int s) { if (s) shared(s); }
__global__ void kernel(int role, int n) {
  if (n > 0) {
    if (role == 0) { once(n); shared(n); }
    else shared(n + 1);
  }
  auto step = [&](int i) { work(i); };
  if (role == 2) step(1);
}
__device__ void again(int s) { if (s) again(s - 1); }
"""


def test_paths_go_through_the_callers() -> None:
    source = parse(SHARED)
    functions = index({Path("a.cu"): source})
    guards = Guards(functions, Scopes(functions, {Path("a.cu"): source}))

    def texts(name: str, call: str) -> list[list[str]]:
        function = functions.by_name[name][0]
        found = next(each for each in function.calls if each.name == call)
        return [
            [step.text for step in path if hasattr(step, "text")]
            for path in guards.paths(function, chain_to(function.node, found.node))
        ]

    assert texts("once", "shared") == [["n > 0", "role == 0", "s"]]
    assert sorted(texts("shared", "work")) == [
        ["n > 0", "role != 0"],
        ["n > 0", "role == 0"],
        ["n > 0", "role == 0", "s"],
    ]
    assert texts("kernel", "work") == [["role == 2"]]
    assert texts("again", "again") == [["s"]]
    function = functions.by_name["shared"][0]
    paths = guards.paths(function, chain_to(function.node, function.calls[0].node))
    assert [guard.text for guard in common(paths)] == ["n > 0"]


def test_callers_that_disagree_name_no_role() -> None:
    source = parse(SHARED)
    functions = index({Path("a.cu"): source})
    guards, roles = Guards(functions, Scopes(functions, {Path("a.cu"): source})), Roles()
    for name, role in (("shared", ""), ("once", "")):
        function = functions.by_name[name][0]
        paths = guards.paths(function, chain_to(function.node, function.calls[0].node))
        assert roles.of_all(paths, source) == role
