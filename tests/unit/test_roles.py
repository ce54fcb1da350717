# SPDX-License-Identifier: Apache-2.0
"""Names of roles. The tests on the warp index are spelled as in public kernels."""

from __future__ import annotations

import pytest

from autostamp.passes.cutedsl.roles import from_comment, from_helpers, from_pipelines, from_test, is_role_test

# (condition, role that its names give; '' where only the branch itself can say)
TESTS = [
    ("warp_idx == self.load_warp_id", "load"),
    ("warp_idx == self.mma_warp_id", "mma"),
    ("warp_idx < self.num_mma_warps", "mma"),
    ("warp_idx < self.mma_warp_id", "mma"),
    ("warp_idx == self.tma_load_warp_id", "tma_load"),
    ("warp_idx == tma_warp_id", "tma"),
    ("warp_idx == MMA_WARP", "mma"),
    ("warp_idx == _WARP_CONS", "cons"),
    ("warp_idx == self.epilogue_warp_id[0]", "epilogue"),
    ("warp_idx in self.epilogue_warp_ids", "epilogue"),
    ("warp_idx in (self.softmax_warp_ids[0], 3)", "softmax"),
    ("warp_idx == self.softmax0_warp_ids[0]", "softmax0"),
    ("warp_idx >= self.softmax1_warp_ids[0] and warp_idx <= self.softmax1_warp_ids[-1]", "softmax1"),
    ("warp_idx >= 4 and warp_idx < self.correction_warp_ids[-1]", "correction"),
    ("self.load_warp_id == warp_idx", "load"),
    ("is_tma_warp", "tma"),
    ("is_load_warp", "load"),
    ("is_umma_warp_0", "umma"),
    ("warp_group_idx == self.load_warp_group_id", "load"),
    ("warp_group_idx == self.mma_warp_group_ids[0] or warp_group_idx == 1", "mma"),
    ("is_dma_warp_group", "dma"),
    ("warp_idx == self.sched_warp_id and is_first_cta", "sched"),
    ("warp_idx == self.empty_warp_ids[i]", "empty"),
    ("warp_idx == 0", ""),
    ("warp_idx < 4", ""),
    ("warp_idx % 4 == 0", ""),
    ("warp_idx_in_wg == 0", ""),
    ("canonical_warp_group_idx == 1", ""),
    ("cute.arch.make_warp_uniform(cute.arch.warp_idx()) == 0", ""),
    ("not is_dma_warp_group", ""),
    ("warp_idx != self.load_warp_id", ""),
    ("not (warp_idx == self.load_warp_id)", ""),
    ("wg_idx == 0", ""),
]


@pytest.mark.parametrize(("test", "role"), TESTS)
def test_role_of_a_condition(test: str, role: str) -> None:
    assert is_role_test(test)
    assert from_test(test) == role


@pytest.mark.parametrize(
    "test",
    [
        "cutlass.const_expr(self.num_warps == 8)",
        "const_expr(self.use_tma_warp)",
        "work_tile.is_valid_tile",
        "tidx == 0",
        "is_leader_cta",
        "k < range_constexpr(self.num_warps)",
        "cute.arch.elect_one()",
        "bidx == 0 and tidx < 32",
        "lane_idx == 0",
    ],
)
def test_conditions_that_ask_for_something_else(test: str) -> None:
    assert not is_role_test(test)


@pytest.mark.parametrize(
    ("calls", "role"),
    [
        (["self.load"], "load"),
        (["cute.arch.setmaxregister_decrease", "self.load"], "load"),
        (["self.load", "self.mma"], "mma"),
        (["self.mma", "pipe.producer_tail"], "mma"),
        (["self._softmax_loop_"], "softmax_loop"),
        (["consume"], "consume"),
        (["self.unknown"], ""),
        (["self.helper.load"], ""),
        (["cpasync.prefetch_descriptor"], ""),
        ([""], ""),
        ([], ""),
    ],
)
def test_role_of_the_helpers_that_a_branch_calls(calls: list[str], role: str) -> None:
    assert from_helpers(calls, {"load", "mma", "_softmax_loop_", "consume"}) == role


@pytest.mark.parametrize(
    ("line", "role"),
    [
        ("if warp_idx == 0:  # Producer", "producer"),
        ("else:  # MMA warps", "mma_warps"),
        ("else:# epilogue\r", "epilogue"),
        ("if warp_idx == 0:  # noqa", ""),
        ("if warp_idx == 0:  # type: ignore", ""),
        ("if warp_idx == 0:  # TODO check this", ""),
        ("if warp_idx == 0:  # pragma no cover", ""),
        ("if warp_idx == 0:  # see issue 12, where this is explained at length", ""),
        ("if warp_idx == 0:", ""),
        ("if warp_idx == 0:  #", ""),
        ("if warp_idx == 0:  # 1st warp", ""),
    ],
)
def test_role_of_a_comment(line: str, role: str) -> None:
    assert from_comment(line) == role


@pytest.mark.parametrize(
    ("text", "role"),
    [
        ("pipe.consumer_wait(state)", "consumer"),
        ("handle = consumer.wait_and_advance()", "consumer"),
        ("pipe.producer_acquire(state)\npipe.consumer_wait_w_index_phase(i, p)", "consumer"),
        ("pipe.producer_acquire_w_index_phase(i, p)", "producer"),
        ("producer.acquire_and_advance().commit()", "producer"),
        ("cute.arch.sync_threads()", ""),
        ("pipe.consumer_release(state)", ""),
        ("", ""),
    ],
)
def test_role_of_the_pipelines_that_a_branch_uses(text: str, role: str) -> None:
    assert from_pipelines(text) == role
