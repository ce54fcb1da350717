# SPDX-License-Identifier: Apache-2.0
"""`autostamp reconcile` and `autostamp lessons` on recorded runs."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from autostamp.cli import main
from autostamp.model.budget import Budget
from autostamp.predict.attention import AttentionTile, Roles, forward
from autostamp.predict.bounds import predict
from autostamp.predict.gemm import GemmTile, gemm
from autostamp.predict.machines import load_machine
from autostamp.runtime.prediction_file import digest_of, digest_of_sources, made, write_prediction
from autostamp.runtime.store import load_run

ROOT = Path(__file__).parents[2]
H200 = load_machine("h200")
GEMM = ROOT / "kernels/cutedsl/recorded/gemm_ws_h200"
CUDA_GEMM = ROOT / "kernels/cuda/recorded/gemm_ws_h200"
ATTENTION = ROOT / "tests/fixtures/runs/fa4_forward_one_cta"
EARLY, LATE = datetime(2026, 11, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def lessons(monkeypatch, tmp_path):
    path = tmp_path / "lessons.toml"
    monkeypatch.setenv("AUTOSTAMP_LESSONS", str(path))
    return path


def tile(share: float = 0, ctas: int = 4) -> Budget:
    return gemm(H200, GemmTile(128, 128, 64, 64, 128), smem_write_share=share, active_sms=ctas)


def prediction(path: Path, run: Path, budget: Budget, written_at: datetime = EARLY, source: str = "") -> str:
    source = source or digest_of_sources(load_run(run).manifest)
    file = path / "prediction.json"
    write_prediction(file, made(budget, predict(budget), source=source, given=None, written_at=written_at))
    return str(file)


def run(capsys, *arguments: object) -> tuple[int, str, str]:
    status = main([str(each) for each in arguments])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def test_a_prediction_that_fits(capsys, tmp_path):
    status, out, err = run(capsys, "reconcile", GEMM, prediction(tmp_path, GEMM, tile()), "--fail-over", "1")
    assert (status, err) == (0, "")
    assert out.startswith("GemmWarpSpecialized.kernel: the kernel runs at its bound")
    assert "predicted 512 cycles (tensor core), measured 512" in out
    assert max(map(len, out.splitlines())) <= 100


def test_past_the_limit(capsys, tmp_path):
    # (512 - 621.5) / 621.5 = -17.6 %.
    file = prediction(tmp_path, CUDA_GEMM, tile(ctas=1))
    status, _, err = run(capsys, "reconcile", CUDA_GEMM, file, "--fail-over", "17")
    assert status == 1
    assert "AS7144 the predicted period is -17.6 % off the measured one (limit 17 %)" in err
    assert run(capsys, "reconcile", CUDA_GEMM, file, "--fail-over", "18")[0] == 0


def test_the_clean_time_may_come_from_a_benchmark_or_from_the_user(capsys, tmp_path):
    file = prediction(tmp_path, CUDA_GEMM, tile(ctas=1))
    overhead = ROOT / "benchmarks/results/overhead_cuda_h200.json"
    found = run(capsys, "reconcile", CUDA_GEMM, file, "--overhead", overhead, "--case", "gemm 128x128x4096", "--json")
    assert json.loads(found[1])["period"]["ratio"] == pytest.approx(1.2408711399595245)
    # The CTA's 15093 cycles at 1807 MHz are 8.35 us.
    found = run(capsys, "reconcile", CUDA_GEMM, file, "--clean-us", "8", "--json")
    assert json.loads(found[1])["period"]["ratio"] == pytest.approx(8.35 / 8, rel=0.001)
    both = run(capsys, "reconcile", CUDA_GEMM, file, "--clean-us", "8", "--overhead", overhead)
    assert both[0] == 2


def test_a_bound_that_the_run_refutes(capsys, tmp_path):
    status, out, err = run(capsys, "reconcile", GEMM, prediction(tmp_path, GEMM, tile(share=1)))
    assert status == 1
    assert "AS7143 a bound is longer than the measured period: shared memory, 640 cycles against 512" in err
    assert "what follows is with smem_write_share 0" in out
    assert "without what is in error: the kernel runs at its bound" in out


def test_json_holds_all(capsys, tmp_path):
    status, out, _ = run(capsys, "reconcile", GEMM, prediction(tmp_path, GEMM, tile(share=1)), "--json")
    found = json.loads(out)
    assert status == 1
    assert found["schema_version"] == 1
    assert (found["predicted"], found["finding"], found["over"]) == (640, "model error", [["shared memory", 640]])
    assert found["corrected"]["predicted"] == 512
    assert [part["kind"] for part in found["parts"]][-1] == "unexplained"
    assert sum(part["cycles"] for part in found["parts"]) == pytest.approx(found["residual"])
    assert found["error"] == pytest.approx((640 - 511.5) / 511.5)
    assert found["lessons"] == []


def test_a_prediction_of_other_code_is_refused(capsys, tmp_path):
    cubin = tmp_path / "kernel.cubin"
    cubin.write_bytes(b"a cubin")
    file = prediction(tmp_path, GEMM, tile(), source=digest_of(b"a cubin"))
    status, out, err = run(capsys, "reconcile", GEMM, file)
    assert (status, out) == (2, "")
    assert f"AS7142 the prediction is of another source: it is of {digest_of(b'a cubin')[:12]}" in err
    assert run(capsys, "reconcile", GEMM, file, "--cubin", cubin)[0] == 0


def test_a_prediction_after_the_run_is_told(capsys, tmp_path):
    status, _, err = run(capsys, "reconcile", GEMM, prediction(tmp_path, GEMM, tile(), LATE))
    assert status == 0
    assert "AS7146 the prediction was written after the run: 2027-01-01T00:00:00+00:00 against 2026-11-29" in err


def test_roles_that_the_trace_lacks(capsys, tmp_path):
    budget = forward(H200, AttentionTile(128, 128, 128), Roles(softmax="softmax"))
    file = prediction(tmp_path, ATTENTION, budget)
    status, _, err = run(capsys, "reconcile", ATTENTION, file)
    assert status == 2
    assert "AS7140 the budget names roles that FlashAttentionForwardSm90.kernel lacks: softmax" in err
    status, out, _ = run(capsys, "reconcile", ATTENTION, file, "--role", "softmax=mma")
    assert status == 0
    assert "the model is incomplete: it explains 73 % of the period" in out
    assert run(capsys, "reconcile", ATTENTION, file, "--role", "softmax")[0] == 2


def test_a_lesson_is_kept_and_shown_when_its_resource_comes_up_again(capsys, tmp_path, lessons):
    wrong = prediction(tmp_path, GEMM, tile(share=1))
    add = ("lessons", "add", GEMM, wrong, "--cause", "writes take no port time", "--resource")
    status, _, err = run(capsys, *add, "MUFU")
    assert status == 2
    assert "the prediction has shared memory, tensor core" in err
    assert not lessons.exists()
    assert run(capsys, *add, "shared memory")[0] == 0
    status, out, _ = run(capsys, "lessons", "list")
    assert status == 0
    assert "shared memory: writes take no port time (GemmWarpSpecialized.kernel; 640 predicted, 512 measured" in out
    again = run(capsys, "reconcile", CUDA_GEMM, prediction(tmp_path, CUDA_GEMM, tile(ctas=1)))[1]
    assert "writes take no port time" in " ".join(again.split())
    listed = json.loads(run(capsys, "lessons", "list", "--resource", "L2", "--json")[1])
    assert listed == {"schema_version": 1, "lessons": []}


def test_no_lesson_yet(capsys):
    status, out, err = run(capsys, "lessons", "list")
    assert (status, out) == (0, "")
    assert "no lesson in" in err
