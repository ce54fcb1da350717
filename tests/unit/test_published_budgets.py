# SPDX-License-Identifier: Apache-2.0
"""Budgets that others have published, computed by the product from tile, dtype and machine.

Sources: [FA4] FlashAttention-4, arXiv 2603.05451, section 3.1 and its walkthroughs; [FA3] FlashAttention-3, arXiv 2407.08608;
[FP4] hao-ai-lab/flash-attention-fp4, the notes on B300. Figures that follow from a published formula by arithmetic say so.
"""

from __future__ import annotations

import pytest

from autostamp.model.budget import Budget, Resource
from autostamp.predict.attention import AttentionTile, backward, forward
from autostamp.predict.bounds import predict
from autostamp.predict.machines import load_machine

B200, B300, H100 = (load_machine(name) for name in ("b200", "b300", "h100_sxm"))


def cycles(budget: Budget, resource: Resource, what: str = "", *, writes: bool = False) -> float:
    """Of the rows of one resource whose text has `what` in it; TMA writes only where asked for."""
    return sum(
        row.cycles for row in budget.rows if row.resource is resource and what in row.what and row.is_write is writes
    )


def binding(budget: Budget) -> set[str]:
    """Resources that need exactly the period."""
    found = predict(budget)
    return {bound.name for bound in found.bounds if bound.cycles == found.period}


# [FA4] the paper's rows for M = 128 and 256; those with d = 64 follow from its formula, whose rounding up to 128 they show.
# T_mma = 4MNd/8192, T_smem = b ceil(M/128) (ceil(N/128) 256 d + ceil(d/128) 128 N) / 128, T_exp = MN/16.
FA4_FORWARD = (
    ((128, 128, 128), 1024, 768, 1024, {"tensor core", "MUFU"}),
    ((256, 128, 128), 2048, 1536, 2048, {"tensor core", "MUFU"}),
    ((128, 128, 64), 512, 512, 1024, {"MUFU"}),
    ((256, 128, 64), 1024, 1024, 2048, {"MUFU"}),
)


@pytest.mark.parametrize(("tile", "mma", "smem", "exp", "binds"), FA4_FORWARD, ids=[str(row[0]) for row in FA4_FORWARD])
def test_flash_attention_4_forward_on_b200(tile, mma, smem, exp, binds):
    budget = forward(B200, AttentionTile(*tile), smem_write_share=0)  # the paper counts no TMA writes
    assert cycles(budget, Resource.TENSOR) == mma
    assert cycles(budget, Resource.SMEM) == smem
    assert cycles(budget, Resource.MUFU) == exp
    assert binding(budget) == binds


def test_a_quarter_of_the_exponentials_in_software():
    # [FA4] T_exp = (1 - f) MN / E: f = 0.25 gives 768 for 128 x 128.
    budget = forward(B200, AttentionTile(128, 128, 128, software_exp=0.25), smem_write_share=0)
    assert cycles(budget, Resource.MUFU) == 768
    assert binding(budget) == {"tensor core"}


# [FA4] backward, 128 x 128 x 128, one CTA, and one CTA of a pair. Operands of the pair: S 384, dP 384, dV 128, dK 128, dQ 512.
FA4_BACKWARD = (
    (1, {"mma": 2560, "operands": 2048, "written": 256, "exchanged": 0, "dQ": 1024, "smem": 3328, "exp": 1024}, 1.30),
    (2, {"mma": 2560, "operands": 1536, "written": 256, "exchanged": 384, "dQ": 512, "smem": 2688, "exp": 1024}, 1.05),
)


@pytest.mark.parametrize(("ctas", "published", "ratio"), FA4_BACKWARD, ids=["one CTA", "pair"])
def test_flash_attention_4_backward_on_b200(ctas, published, ratio):
    budget = backward(B200, AttentionTile(128, 128, 128), ctas=ctas)
    found = {
        "mma": cycles(budget, Resource.TENSOR),
        "operands": cycles(budget, Resource.SMEM, " reads "),
        "written": cycles(budget, Resource.SMEM, "dS is written"),
        "exchanged": cycles(budget, Resource.SMEM, "dS is exchanged"),
        "dQ": cycles(budget, Resource.SMEM, "dQ is written and read"),
        "smem": cycles(budget, Resource.SMEM),
        "exp": cycles(budget, Resource.MUFU),
    }
    assert found == published
    assert found["smem"] / found["mma"] == pytest.approx(ratio, abs=0.005)
    assert binding(budget) == {"shared memory"}


def test_operands_of_the_pair_mma_by_mma():
    budget = backward(B200, AttentionTile(128, 128, 128), ctas=2)
    reads = {name: cycles(budget, Resource.SMEM, f"{name} reads") for name in ("S", "dP", "dV", "dK", "dQ")}
    assert reads == {"S": 384, "dP": 384, "dV": 128, "dK": 128, "dQ": 512}


# 128 x 128 x 128 in other types: FLOP rates of [FA4] and the data sheets, conversions and exponentials of [FP4].
# T_smem = (256 d b_qk + 128 N b_pv) / 128 without block scales; conversion = (MN / 2) / 62, 32 or 57 on B300.
BF16, FP8, FP4 = "bf16", "fp8", "nvfp4"
PRECISION = (
    (BF16, BF16, 1024, 768, 8192 / 62, {"tensor core", "MUFU"}, {"tensor core"}),
    (FP8, FP8, 512, 384, 256, {"MUFU"}, {"tensor core", "MUFU"}),
    (FP4, BF16, 640, 384, 8192 / 62, {"MUFU"}, {"tensor core"}),
    (FP4, FP8, 384, 256, 256, {"MUFU"}, {"MUFU"}),
    (FP4, FP4, 256, 192, 8192 / 57, {"MUFU"}, {"MUFU"}),
)


@pytest.mark.parametrize(("qk", "pv", "mma", "smem", "convert", "on_b200", "on_b300"), PRECISION)
def test_precision_table(qk, pv, mma, smem, convert, on_b200, on_b300):
    tile = AttentionTile(128, 128, 128, qk, pv)
    first, second = (forward(table, tile, smem_write_share=0) for table in (B200, B300))
    for budget in (first, second):
        assert cycles(budget, Resource.TENSOR) == mma
        assert cycles(budget, Resource.SMEM, " reads ") == smem
    assert cycles(first, Resource.MUFU) == 1024
    assert cycles(second, Resource.MUFU) == 512
    assert cycles(second, Resource.CONVERT) == convert
    assert binding(first) == on_b200
    assert binding(second) == on_b300


@pytest.mark.parametrize(("dtype", "published"), [(BF16, 132.1), (FP8, 256.0), (FP4, 143.7)])
def test_conversions_as_published(dtype, published):
    budget = forward(B300, AttentionTile(128, 128, 128, dtype, dtype))
    assert cycles(budget, Resource.CONVERT) == pytest.approx(published, abs=0.05)


def test_fp4_with_k_96_on_b300():
    # 4 x 128^3 FLOP at 49152 a cycle: the published 170.7.
    budget = forward(B300, AttentionTile(128, 128, 128, FP4, FP4, atom_k=96))
    assert cycles(budget, Resource.TENSOR) == pytest.approx(170.7, abs=0.05)


def test_block_scales_of_nvfp4():
    # MK/16 + NK/16 bytes for each of the two MMAs: 2 x 2048 B at 128 B a cycle.
    budget = forward(B300, AttentionTile(128, 128, 128, FP4, FP4))
    assert cycles(budget, Resource.SMEM, "block scales") == 2 * 16


# [FA3] tiles on Hopper. T_mma = 4MNd/4096, reads = b (M/64) ((64 + N) d + N d) / 128, writes = 2 N d b / 128, T_exp = MN/16.
HOPPER = (
    ((128, 128, 128, BF16, BF16), 2048, 1280, 1792, 1024, 0.625, 0.50),
    ((128, 176, 128, BF16, BF16), 2816, 1664, 2368, 1408, 0.591, 0.50),
    ((128, 128, 128, FP8, FP8), 1024, 640, 896, 1024, 0.625, 1.00),
)


@pytest.mark.parametrize("machine", ["h100_sxm", "h200"])
@pytest.mark.parametrize(("tile", "mma", "reads", "both", "exp", "reads_by_mma", "exp_by_mma"), HOPPER)
def test_flash_attention_3_tiles(machine, tile, mma, reads, both, exp, reads_by_mma, exp_by_mma):
    # The published rows count writes fully.
    budget = forward(load_machine(machine), AttentionTile(*tile), smem_write_share=1)
    assert cycles(budget, Resource.TENSOR) == mma
    assert cycles(budget, Resource.SMEM) == reads
    assert cycles(budget, Resource.SMEM) + cycles(budget, Resource.SMEM, writes=True) == both
    assert cycles(budget, Resource.MUFU) == exp
    assert reads / mma == pytest.approx(reads_by_mma, abs=0.0005)
    assert exp / mma == pytest.approx(exp_by_mma, abs=0.0005)
    smem = next(bound for bound in predict(budget).bounds if bound.name == "shared memory")
    assert smem.cycles == both


def test_counters_of_flash_attention_3_on_h100():
    # Nsight Compute, 64 heads, d = 128, published by TileSight: tensor core 74.78 %, SFU 38.58 %, shared memory 51.14 %. Ratios
    # need no clock: the SFU's within 5 %, shared memory between reads alone and reads with writes.
    budget = forward(H100, AttentionTile(128, 176, 128))
    mma = cycles(budget, Resource.TENSOR)
    assert cycles(budget, Resource.MUFU) / mma == pytest.approx(38.58 / 74.78, rel=0.05)
    reads = cycles(budget, Resource.SMEM)
    assert reads / mma < 51.14 / 74.78 < (reads + cycles(budget, Resource.SMEM, writes=True)) / mma


def test_flash_attention_3_published_rate_and_time_agree():
    # 4 b s^2 h d FLOP: batch 4, 8448 keys, 16 heads, d = 128, 661 TFLOP/s, 3.538 ms.
    work = 4 * 4 * 8448**2 * 16 * 128
    assert work == pytest.approx(2.339e12, rel=0.0005)
    assert work / 661e12 == pytest.approx(3.538e-3, rel=0.001)
