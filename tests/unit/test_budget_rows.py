# SPDX-License-Identifier: Apache-2.0
"""Rows of a budget: work, rate, and where each came from."""

from __future__ import annotations

import pytest

from autostamp.diagnostics import AutostampError
from autostamp.model.budget import BoundKind, Origin, Resource
from autostamp.model.machine import Constant, ConstantKind, MachineTable
from autostamp.predict.attention import AttentionTile, backward, forward
from autostamp.predict.bounds import predict
from autostamp.predict.gemm import GemmTile, gemm
from autostamp.predict.instructions import instruction_rows
from autostamp.predict.laws import Mma, Operand, operand_bytes
from autostamp.predict.machines import load_machine
from autostamp.predict.work import mma_rows, row

B200, B300, H100, H200 = (load_machine(name) for name in ("b200", "b300", "h100_sxm", "h200"))


def with_constants(table: MachineTable, **values: tuple[float, str]) -> MachineTable:
    added = {
        name: Constant(value, unit, "", "this test", ConstantKind.MEASURED) for name, (value, unit) in values.items()
    }
    return MachineTable(table.product, table.title, table.arch, {**table.constants, **added})


def without(table: MachineTable, name: str) -> MachineTable:
    kept = {key: each for key, each in table.constants.items() if key != name}
    return MachineTable(table.product, table.title, table.arch, kept)


def code_of(call, *arguments, **fields) -> str:
    with pytest.raises(AutostampError) as caught:
        call(*arguments, **fields)
    return caught.value.diagnostic.code


def test_a_row_says_where_work_and_rate_came_from():
    tensor, smem = mma_rows(Mma("QK", 128, 128, 64, "bf16", Operand.SMEM, 64, 128), H200, "mma")
    assert (tensor.role, tensor.resource, tensor.constant) == ("mma", Resource.TENSOR, "tensor_bf16")
    assert (tensor.work, tensor.unit, tensor.rate, tensor.cycles) == (2 * 128 * 128 * 64, "FLOP", 4096, 512)
    assert tensor.origin is Origin.SHAPE
    assert tensor.rate_source == H200.constants["tensor_bf16"].source
    # Two instructions of 64 rows for each 16 of K: (64 + 128) 64 elements of 2 bytes, twice.
    assert (smem.work, smem.unit, smem.cycles) == (2 * 192 * 64 * 2, "B", 384)


def test_a_duration_counts_uses():
    issue = row(B300, "load", Resource.TMA_ISSUE, "two loads", 2, "tma_issue", origin=Origin.GIVEN, source="budget")
    assert issue.cycles == 96


@pytest.mark.parametrize(
    ("operand", "ctas", "rows"), [(Operand.SMEM, 1, 384), (Operand.TMEM, 1, 256), (Operand.SMEM, 2, 256)]
)
def test_operands_by_where_a_is_and_by_ctas(operand, ctas, rows):
    assert operand_bytes(Mma("x", 128, 256, 64, "bf16", operand, 128, 256, ctas)) == rows * 64 * 2


def test_parts_of_an_atom_read_as_much_as_all_of_it():
    whole, part = (operand_bytes(Mma("x", m, 256, 64, "bf16", Operand.SMEM, 64, 256)) for m in (128, 65))
    assert whole == part == 2 * (64 + 256) * 64 * 2


def test_64_rows_in_one_cta_have_their_own_rate_on_tcgen05():
    half = Mma("x", 64, 256, 64, "bf16", Operand.SMEM, 64, 256)
    assert next(mma_rows(half, B200, "mma")).constant == "tensor_bf16_m64"
    assert next(mma_rows(half, H200, "mma")).constant == "tensor_bf16"
    pair = Mma("x", 64, 256, 64, "bf16", Operand.SMEM, 64, 256, 2)
    assert next(mma_rows(pair, B200, "mma")).constant == "tensor_bf16"
    # Not measured on B300.
    assert code_of(lambda: next(mma_rows(half, B300, "mma"))) == "AS7103"


# Softmax of one 128-wide row by one thread: 128 ex2, 64 packed conversions, 64 packed multiply-adds and 64 packed adds, 66 max
# (hao-ai-lab/flash-attention-fp4, half of its count for two unrolled bodies). 4 warps, 128 rows.
SOFTMAX = {"MUFU.EX2": 128, "F2FP": 64, "FFMA2": 64, "FADD2": 64, "FMNMX": 66}


def test_instructions_of_a_softmax_tile_on_b300():
    rows, missing = instruction_rows(SOFTMAX, 4, B300, "softmax", "loop at 0x1230", converts_to="bf16")
    assert missing == ()
    cycles = {each.resource: each.cycles for each in rows}
    assert cycles == {
        Resource.MUFU: 128 * 128 / 32,
        Resource.CONVERT: 64 * 128 / 62,
        Resource.FMA: 128 * 128 / 64,
        Resource.ALU: 66 * 128 / 64,
        Resource.ISSUE: 386,  # 386 instructions of 4 warps at 4 a cycle
    }
    assert {each.origin for each in rows} == {Origin.CUBIN}
    assert {each.source for each in rows} == {"loop at 0x1230"}
    # 75 % of the exponentials there, below them on B200.
    assert 386 / cycles[Resource.MUFU] == pytest.approx(0.75, abs=0.005)


def test_instructions_without_a_rate_are_named():
    rows, missing = instruction_rows(SOFTMAX, 4, H100, "softmax", "loop", converts_to="bf16")
    assert {each.resource for each in rows} == {Resource.MUFU, Resource.ALU, Resource.ISSUE}
    assert missing == (
        "conversion: h100_sxm has no constant cvt_bf16x2, so 64 instructions of 4 warps (softmax) are not counted",
        "FMA pipe: h100_sxm has no constant fma_packed, so 128 instructions of 4 warps (softmax) are not counted",
    )
    _, (unknown,) = instruction_rows({"F2FP": 1}, 4, H100, "softmax", "loop")
    assert "cvt_unknownx2" in unknown


def test_conversions_on_h200_have_their_measured_rate():
    # 64 instructions of 128 lanes at 63.67 and 62.86 a cycle: about one a scheduler every second cycle, 128.
    for dtype, published in (("bf16", 128.7), ("fp8", 130.3)):
        rows, missing = instruction_rows({"F2FP": 64}, 4, H200, "softmax", "loop", converts_to=dtype)
        assert missing == ()
        assert next(each.cycles for each in rows if each.resource is Resource.CONVERT) == pytest.approx(
            published, abs=0.05
        )


def test_families_share_a_pipe_and_others_only_take_a_slot():
    rows, _ = instruction_rows(
        {"MUFU.RCP": 2, "MUFU.LG2": 2, "FMUL": 8, "FFMA": 8, "BAR.SYNC": 4}, 4, H200, "mma", "loop"
    )
    assert {each.resource: each.cycles for each in rows} == {
        Resource.MUFU: 4 * 128 / 16,
        Resource.FMA: 16 * 128 / 128,
        Resource.ISSUE: 24,
    }
    assert instruction_rows({}, 4, H200, "mma", "loop") == ((), ())
    assert code_of(instruction_rows, {"FMUL": 1}, 0, H200, "mma", "loop") == "AS7106"


def test_measured_write_share_is_used_unless_one_is_given():
    tile = GemmTile(128, 256, 64, 64, 256)
    measured = with_constants(H200, smem_write_share=(0.5, "ratio"))
    assert gemm(H100, tile).smem_write_share == 1  # nobody measured it
    assert gemm(H200, tile).smem_write_share == pytest.approx(0.0156, abs=5e-5)
    assert gemm(measured, tile).smem_write_share == 0.5
    assert gemm(measured, tile, smem_write_share=0).smem_write_share == 0
    smem = next(bound for bound in predict(gemm(measured, tile)).bounds if bound.name == "shared memory")
    assert smem.cycles == 640 + 0.5 * 384


def test_the_ring_of_a_gemm_with_latencies():
    # (1000 + MMA 1024 + round trip 87) / 4 = 527.75 does not bind; with one stage it does.
    table = with_constants(H200, tma_latency_l2=(1000, "cycles"))
    bounds = {
        stages: next(
            bound
            for bound in predict(gemm(table, GemmTile(128, 256, 64, 64, 256, stages=stages))).bounds
            if bound.kind is BoundKind.CREDIT
        )
        for stages in (1, 4)
    }
    assert (bounds[1].cycles, bounds[4].cycles) == (2111, 527.75)
    assert bounds[4].detail == "(TMA load 1000 + MMA 1024 + round trip 87) / 4 stages"


def test_blind_spots_name_what_is_not_counted():
    budget = forward(H100, AttentionTile(128, 128, 128, software_exp=0.1))
    assert "conversion of P is not counted: h100_sxm has no constant cvt_bf16x2" in budget.blind_spots
    assert any("in software" in spot for spot in budget.blind_spots)
    assert predict(budget).blind_spots == budget.blind_spots
    assert "credit bound: the depth of the ring is unknown" in gemm(H200, GemmTile(128, 128, 64, 64, 128)).blind_spots
    spots = gemm(without(H200, "l2"), GemmTile(128, 128, 64, 64, 128)).blind_spots
    assert "not counted: L2, for h200 has no constant l2" in spots


@pytest.mark.parametrize("wrong", [{"m": 0}, {"n": -128}, {"d": 0}, {"software_exp": 1.0}, {"qk": "fp3"}])
def test_attention_that_cannot_be_is_refused(wrong):
    tile = AttentionTile(**({"m": 128, "n": 128, "d": 128} | wrong))
    assert code_of(forward, B200, tile) == "AS7106"


@pytest.mark.parametrize("wrong", [{"m": 0}, {"k": -1}, {"atom_n": 0}, {"share_a": 0}, {"dtype": "fp3"}, {"ctas": 0}])
def test_a_gemm_that_cannot_be_is_refused(wrong):
    tile = GemmTile(**({"m": 128, "n": 256, "k": 64, "atom_m": 64, "atom_n": 256} | wrong))
    assert code_of(gemm, H200, tile) == "AS7106"


def test_a_machine_without_the_rate_is_refused():
    for name in ("mufu_ex2", "tensor_bf16", "smem"):
        assert code_of(forward, without(H200, name), AttentionTile(128, 128, 128)) == "AS7103"
    assert code_of(gemm, H200, GemmTile(128, 256, 128, 64, 256, dtype="nvfp4")) == "AS7103"


def test_laws_are_not_stretched_to_other_machines():
    # mma.sync takes registers; the backward pass is known with tensor memory only.
    for name in ("a100", "l40s", "rtx_5090", "rtx_pro_6000"):
        assert code_of(gemm, load_machine(name), GemmTile(128, 128, 64, 64, 128)) == "AS7106"
        assert code_of(forward, load_machine(name), AttentionTile(128, 128, 128)) == "AS7106"
    assert code_of(backward, H200, AttentionTile(128, 128, 128)) == "AS7106"
    assert code_of(backward, B200, AttentionTile(128, 128, 0)) == "AS7106"
