# SPDX-License-Identifier: Apache-2.0
"""Kernels predicted from their clean cubins before they were recorded on an H200: what came true, and what did not."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest

from autostamp.cli import main

CASES = Path(__file__).parents[1] / "fixtures" / "predicted"

# Head dimension 128: a tile of 128 queries by 128 keys is two products of 128^3 multiply-adds, at 4,096 FLOP a cycle.
TENSOR_128 = 2 * 2 * 128**3 / 4096
# Head dimension 64: tiles of 192 keys, an exponential for each element, 16 a cycle; those of the running maximum come on top.
MUFU_64 = 128 * 192 / 16

PREDICTED = {"hdim128": TENSOR_128, "hdim128_causal": TENSOR_128, "hdim64": MUFU_64, "hdim64_causal": MUFU_64}


def reconciled(case: str, capsys: pytest.CaptureFixture[str]) -> tuple[dict, str]:
    folder = CASES / case
    words = [str(folder / "RUN"), str(folder / "prediction.json"), "--cubin", str(folder / "clean.cubin"), "--json"]
    assert main(["reconcile", *words]) == 0
    out, err = capsys.readouterr()
    return json.loads(out), err


# A k-tile of 128 x 128 x 64.
GEMM = 2 * 128 * 128 * 64 / 4096
GEMMS = ("gemm_cuda_one_cta", "gemm_cuda_4096", "gemm_cutedsl_one_cta")


@pytest.mark.parametrize("case", [*PREDICTED, *GEMMS])
def test_it_was_written_before_the_run(case, capsys):
    _, said = reconciled(case, capsys)
    assert "AS7146" not in said
    written = json.loads((CASES / case / "prediction.json").read_bytes())["written_at"]
    recorded = json.loads((CASES / case / "RUN" / "machine.json").read_bytes())["recorded_at"]
    assert datetime.fromisoformat(written) < datetime.fromisoformat(recorded)


@pytest.mark.parametrize(("case", "least"), [*PREDICTED.items(), *((case, GEMM) for case in GEMMS)])
def test_the_predicted_period_is_what_hand_arithmetic_says(case, least):
    period = json.loads((CASES / case / "prediction.json").read_bytes())["prediction"]["period"]
    assert least <= period <= 1.05 * least


@pytest.mark.parametrize("case", GEMMS)
def test_ranking_came_true_of_every_gemm(case, capsys):
    found, _ = reconciled(case, capsys)
    assert found["ranking"]["predicted"] == found["ranking"]["measured"] == ["load", "mma"]
    assert found["ranking"]["swapped"] == []
    if found["ctas"]:
        assert found["ctas"]["ranking_holds"] == found["ctas"]["compared"] == 4


@pytest.mark.parametrize(
    ("case", "least", "most"), [("gemm_cuda_one_cta", 0.80, 0.85), ("gemm_cutedsl_one_cta", 0.99, 1.01)]
)
def test_one_cta_runs_at_the_rate_of_the_tensor_core(case, least, most, capsys):
    found, _ = reconciled(case, capsys)
    assert found["direction"]["holds"] is True
    # Of the CUDA kernel a fifth of the recorded period is stamps.
    assert least <= GEMM / found["period"]["mean"] <= most
    residual = sum(part["cycles"] for part in found["parts"])
    assert residual == pytest.approx(found["period"]["mean"] - GEMM)


def test_with_the_times_of_both_kernels_stamps_are_the_whole_residual(capsys):
    folder = CASES / "gemm_cuda_one_cta"
    times = json.loads((folder / "overhead.json").read_bytes())["cases"][0]["us"]
    ratio = sorted(times["stamped"])[1] / sorted(times["clean"])[1]
    words = ["--overhead", str(folder / "overhead.json"), "--case", "gemm", "--cubin", str(folder / "clean.cubin")]
    assert main(["reconcile", str(folder / "RUN"), str(folder / "prediction.json"), *words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["period"]["ratio"] == pytest.approx(ratio)
    assert found["finding"] == "the kernel runs at its bound"
    stamps = next(part for part in found["parts"] if part["kind"] == "stamp cost")
    assert stamps["cycles"] == pytest.approx(found["period"]["mean"] - GEMM)


def test_a_full_grid_is_bound_by_memory_that_the_cubin_does_not_show(capsys):
    found, _ = reconciled("gemm_cuda_4096", capsys)
    assert found["direction"]["holds"] is False
    assert found["direction"]["measured"] == "load"
    spread = found["ctas"]
    assert (spread["recorded"], spread["compared"], spread["unsteady"]) == (4, 4, 0)
    assert spread["period"]["least"] < found["period"]["mean"] <= spread["period"]["median"] < spread["period"]["most"]
    # What is said of L2 instead: between 32768 B at 89.537 B a cycle, and at 38.086 where nothing is shared, lies the period.
    assert any("; 860 cycles if each reads lines of its own" in spot for spot in found["blind_spots"])
    assert 32768 / 89.537 < found["period"]["mean"] < 32768 / 38.086


@pytest.mark.parametrize("case", PREDICTED)
def test_direction_and_ranking_came_true_and_the_length_did_not(case, capsys):
    main(
        [
            "reconcile",
            *(str(CASES / case / name) for name in ("RUN", "prediction.json")),
            "--cubin",
            str(CASES / case / "clean.cubin"),
        ]
    )
    text = " ".join(capsys.readouterr().out.split())
    assert "direction holds" in text
    assert "ranking by idle holds, most first: predicted load, mma; measured load, mma" in text
    # The chain of softmax and products, which the cubin's counts do not show, is missing from the budget.
    assert "the model is incomplete" in text
