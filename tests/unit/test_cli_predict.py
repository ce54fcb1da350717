# SPDX-License-Identifier: Apache-2.0
"""`autostamp predict` on recorded runs and on what it refuses. Cubins are in tests/compile."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from autostamp.analysis import analyse
from autostamp.analysis.steady import steady_state
from autostamp.cli import main
from autostamp.cli.predict_inputs import product_of, read_run
from autostamp.runtime.prediction_file import digest_of, read_prediction
from autostamp.runtime.store import load_run

ROOT = Path(__file__).parents[2]
CUDA = ROOT / "kernels/cuda/recorded/gemm_ws_h200"
CUTEDSL = ROOT / "kernels/cutedsl/recorded/gemm_ws_h200"
ATTENTION = ROOT / "tests/fixtures/runs/fa4_forward_one_cta"

# 128 x 128 x 64: 2 m n k FLOP; operands of 8 wgmma m64n128k16; the ring's credit (900 + 512 + 87) / 4.
BUDGET = """
iteration = "one k-tile"
smem_write_share = 0

[[rows]]
role = "mma"
resource = "tensor"
work = "2097152 FLOP"
constant = "tensor_bf16"

[[rows]]
role = "mma"
resource = "smem"
work = "49152 B"
constant = "smem"

[[rows]]
role = "load"
resource = "smem"
work = "32 KB"
constant = "smem"
is_write = true

[rings.RING]
fill = "900 cycles"
"""


@pytest.fixture
def budget(tmp_path: Path) -> Path:
    path = tmp_path / "b.toml"
    path.write_text(BUDGET.replace("RING", '"full/empty"'))
    return path


def test_a_run_with_rows_by_hand(budget, tmp_path, capsys):
    out = tmp_path / "p.json"
    before = datetime.now(UTC)
    assert main(["predict", str(CUDA), "--budget", str(budget), "-o", str(out)]) == 0
    shown = capsys.readouterr()
    assert str(out) in shown.err
    assert "gemm_ws on NVIDIA H200 SXM" in shown.out
    assert "Prediction: tensor core is the ceiling at ~512 cycles/iteration" in shown.out
    assert "role mma idles ~0 %" in shown.out
    assert "the run has no cubin (--cubin gives one)" in shown.out
    found = read_prediction(out)
    assert (found.machine, found.kernel, found.prediction.period) == ("h200", "gemm_ws", 512)
    assert before <= found.written_at <= datetime.now(UTC)
    # The run has one source; its digest is in the manifest.
    (file,) = json.loads((CUDA / "manifest.json").read_text())["files"]
    assert found.source_sha256 == file["sha256"]
    assert found.budget_sha256 == digest_of(budget.read_bytes())
    # The run knows the ring: four stages between load and mma.
    (ring,) = found.budget.rings
    assert (ring.producer, ring.consumer, ring.stages) == ("load", "mma", 4)
    credit = next(each for each in found.prediction.bounds if each.kind == "credit")
    assert credit.cycles == pytest.approx((900 + 512 + 87) / 4)


def test_json_is_what_the_file_holds(budget, tmp_path, capsys):
    assert main(["predict", str(CUDA), "--budget", str(budget), "-o", str(tmp_path / "p.json"), "--json", "-q"]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert json.loads(shown.out) == json.loads((tmp_path / "p.json").read_text())


def test_the_predicted_timeline_is_drawn(budget, tmp_path, capsys):
    out = tmp_path / "p.svg"
    assert main(["predict", str(CUDA), "--budget", str(budget), "--svg", str(out)]) == 0
    assert f"wrote {out}: 32 iterations\n" in capsys.readouterr().err
    assert "gemm_ws (predicted)" in out.read_text()
    budget.write_text(BUDGET.replace("[rings.RING]", '[rings."full/empty"]\nleave_out = true'))
    assert main(["predict", str(CUDA), "--budget", str(budget), "--svg", str(out)]) == 0
    assert "no ring is known" in capsys.readouterr().err
    assert main(["predict", str(CUDA), "--budget", str(budget), "--svg", str(out), "-o", str(out)]) == 2


def test_rings_of_a_run_are_those_of_its_main_loop(tmp_path, capsys):
    path = tmp_path / "b.toml"
    path.write_text('[[rows]]\nrole = "mma"\nresource = "tensor"\nwork = "8388608 FLOP"\nconstant = "tensor_fp16"\n')
    assert main(["predict", str(ATTENTION), "--budget", str(path), "--json"]) == 0
    spots = " ".join(json.loads(capsys.readouterr().out)["budget"]["blind_spots"])
    # Keys and values go round each tile, queries come once.
    assert "ring pipeline_k" in spots
    assert "ring pipeline_v" in spots
    assert "pipeline_q" not in spots


# Recorded: 512 cycles for a k-tile of the CuTe-DSL GEMM, which is the bound, and 621 for that of the CUDA C++ one.
@pytest.mark.parametrize(("run", "ring", "recorded"), [(CUTEDSL, "ab_pipeline", 512), (CUDA, '"full/empty"', 621)])
def test_no_recorded_period_is_below_the_bound(run, ring, recorded, capsys, budget):
    (trace,) = load_run(run).traces.values()
    steady, _ = steady_state(trace, analyse(trace))
    assert steady is not None
    assert steady.period.median == pytest.approx(recorded, abs=1)
    budget.write_text(BUDGET.replace("RING", ring))
    assert main(["predict", str(run), "--budget", str(budget), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["prediction"]["period"] <= steady.period.median


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ('[roles.producer]\ntma_bytes = "1 KB"', "AS7122", ["roles.producer", "mma"]),
        (
            '[[rows]]\nrole = "softmax"\nresource = "mufu"\nwork = "1 thread-instr"\nconstant = "mufu_ex2"',
            "AS7122",
            ["softmax"],
        ),
        ('[rings.x]\nproducer = "loader"', "AS7122", ["rings.x", "loader"]),
        ('machine = "h300"', "AS7101", ["h300"]),
        (
            '[[rows]]\nrole = "mma"\nresource = "tensor"\nwork = "1 FLOP"\nconstant = "tensor_fp4"',
            "AS7103",
            ["tensor_fp4"],
        ),
        ("", "AS7124", ["--cubin"]),
    ],
)
def test_what_a_run_refuses(text, code, words, tmp_path, capsys):
    path, out = tmp_path / "b.toml", tmp_path / "p.json"
    path.write_text(text)
    assert main(["predict", str(CUDA), "--budget", str(path), "-o", str(out)]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert code in shown.err
    assert all(word in shown.err for word in words)
    assert not out.exists()


def test_what_is_no_kernel(tmp_path, capsys):
    (tmp_path / "k.cubin").write_bytes(b"\x7fELF")
    assert main(["predict", str(tmp_path), "--machine", "h200"]) == 1
    assert "AS6004" in capsys.readouterr().err
    assert main(["predict", str(tmp_path / "k.cubin"), "--machine", "h200"]) == 2
    assert "AS4030" in capsys.readouterr().err
    assert main(["predict", str(tmp_path / "k.cubin")]) == 2
    assert "which machine?" in capsys.readouterr().err
    assert main(["predict", str(tmp_path / "k.cubin"), "--machine", "h200", "--trace", "1"]) == 2
    assert main(["predict", str(tmp_path / "k.cubin"), "--machine", "h200", "--cubin", str(tmp_path / "k.cubin")]) == 2
    assert "--cubin goes with a run folder" in capsys.readouterr().err
    assert main(["predict", str(CUDA), "--kernel", "other*"]) == 2
    assert "0 kernel traces fit" in capsys.readouterr().err


def test_what_a_run_says_of_its_kernel():
    found = read_run(ATTENTION, "*", None)
    # Warp 0 loads, 4 to 11 multiply; 1 to 3 have no role. Keys and values have two stages each.
    assert found.warps == {"load": 1, "mma": 8}
    assert [(ring.name, ring.producer, ring.consumer, ring.stages) for ring in found.rings] == [
        ("pipeline_k", "load", "mma", 2),
        ("pipeline_v", "load", "mma", 2),
    ]
    cuda = read_run(CUDA, "gemm*", 1)
    # CUDA C++ says nowhere how deep a ring is: the run shows four addresses. It was one CTA.
    assert (cuda.name, cuda.warps, cuda.ctas) == ("gemm_ws", {"mma": 8, "load": 1}, 1)
    assert [(ring.name, ring.stages) for ring in cuda.rings] == [("full/empty", 4)]


@pytest.mark.parametrize(
    ("gpu", "product"),
    [
        ("NVIDIA H200", "h200"),
        ("NVIDIA H100 80GB HBM3", "h100_sxm"),
        ("NVIDIA H100 PCIe", ""),
        ("NVIDIA H200 NVL", ""),
        ("NVIDIA B200", "b200"),
        ("NVIDIA GeForce RTX 5090", "rtx_5090"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx_pro_6000"),
        ("NVIDIA L40S", "l40s"),
        ("NVIDIA A100-SXM4-80GB", "a100"),
        ("NVIDIA T4", ""),
        ("", ""),
    ],
)
def test_the_table_of_a_gpu(gpu, product):
    assert product_of(gpu) == product
