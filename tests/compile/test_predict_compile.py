# SPDX-License-Identifier: Apache-2.0
"""`autostamp predict` on the bundled GEMM, compiled here: every row by hand."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from autostamp.cli import main
from autostamp.runtime.prediction_file import digest_of, read_prediction

if shutil.which("nvcc") is None:
    pytest.skip("nvcc is not installed", allow_module_level=True)

KERNELS = Path(__file__).parents[2] / "kernels" / "cuda"
RUN = KERNELS / "recorded" / "gemm_ws_h200"
SM_90A = ("-gencode", "arch=compute_90a,code=sm_90a")


def compiled(source: Path, folder: Path) -> Path:
    out = folder / f"{source.stem}.cubin"
    command = ["nvcc", "-std=c++17", "-O3", *SM_90A, "-cubin", "-o", str(out), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def gemm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(KERNELS / "gemm_ws.cu", tmp_path_factory.mktemp("predict"))


def rows(printed: str) -> dict[tuple[str, str], dict[str, object]]:
    found = {}
    for row in json.loads(printed)["budget"]["rows"]:
        found[row["role"], row["resource"]] = row
    return found


def test_every_row_of_the_gemm(gemm, capsys, tmp_path):
    out = tmp_path / "p.json"
    assert main(["predict", str(gemm), "--machine", "h200", "--json", "-o", str(out)]) == 0
    printed = capsys.readouterr().out
    found = rows(printed)
    tensor = found["mma", "tensor core"]
    # Eight wgmma m64n128k16 make a tile of 128 x 128 x 64, 2 FLOP each; 4096 FLOP a cycle and SM. The recorded runs took 512
    # cycles a k-tile in CuTe-DSL and 621 in CUDA C++.
    assert (tensor["work"], tensor["rate"], tensor["cycles"]) == (128 * 128 * 64 * 2, 4096, 512)
    assert tensor["origin"] == "cubin"
    # 64 rows of A and 128 of B for each, 16 bf16 of 2 bytes deep, at 128 B a cycle.
    assert (found["mma", "shared memory"]["work"], found["mma", "shared memory"]["cycles"]) == (8 * 192 * 16 * 2, 384)
    # expect_tx is sizeof(Stage) = (128 + 128) x 64 x 2 bytes.
    written = found["load", "shared memory"]
    assert (written["work"], written["cycles"], written["is_write"]) == (32768, 256, True)
    assert found["load", "L2"]["work"] == 32768
    counts = {key: row for key, row in found.items() if key[1] == "issue slots"}
    for (role, _), row in counts.items():
        # Eight warps multiply and one loads; four schedulers issue an instruction each.
        assert row["work"] % (8 if role == "mma" else 1) == 0
        assert row["cycles"] == row["work"] / 4 < 512
    spots = json.loads(printed)["budget"]["blind_spots"]
    assert "warps of mma: 8, the 12 of its launch bounds less one warpgroup that loads" in spots
    assert read_prediction(out).source_sha256 == digest_of(gemm.read_bytes())


def test_the_run_knows_warps_ring_and_how_many_sms_load(gemm, capsys, tmp_path):
    budget = tmp_path / "b.toml"
    budget.write_text('smem_write_share = 0\n[rings."full/empty"]\nfill = "900 cycles"\n')
    assert main(["predict", str(RUN), "--cubin", str(gemm), "--budget", str(budget), "--json"]) == 0
    printed = capsys.readouterr().out
    found, prediction = rows(printed), json.loads(printed)["prediction"]
    # One CTA of 132 SMs.
    assert found["load", "L2"]["work"] == pytest.approx(32768 / 132)
    assert (prediction["period"], prediction["bottleneck"]["name"]) == (512, "tensor core")
    bounds = {(bound["kind"], bound["name"]): bound["cycles"] for bound in prediction["bounds"]}
    assert bounds["credit", "full/empty"] == pytest.approx((900 + 512 + 87) / 4)
    idle = {role["role"]: role["idle"] for role in prediction["roles"]}
    assert idle["mma"] == 0
    # 32768 B at the 107.7 B a cycle that one SM's TMA engine was probed at, in boxes: 304 of 512 cycles.
    assert idle["load"] == pytest.approx(1 - 304.25 / 512, abs=0.0005)
    assert not [spot for spot in prediction["blind_spots"] if spot.startswith("warps of")]


def test_a_loop_that_the_user_names(gemm, capsys, tmp_path):
    budget = tmp_path / "b.toml"
    assert main(["sass", str(gemm), "--json"]) == 0
    (kernel,) = json.loads(capsys.readouterr().out)["kernels"]
    (loop,) = [loop for loop in kernel["loops"] if loop["role"] == "mma"]
    budget.write_text(f"[roles.consumer]\nloop = {loop['facts']['start']:#x}\nwarps = 8\n")
    assert main(["predict", str(gemm), "--machine", "h200", "--budget", str(budget), "--json"]) == 0
    found = rows(capsys.readouterr().out)
    assert found["consumer", "tensor core"]["cycles"] == 512
    assert ("mma", "tensor core") not in found
    budget.write_text("[roles.mma]\nloop = 0x10\n")
    assert main(["predict", str(gemm), "--machine", "h200", "--budget", str(budget)]) == 2
    assert "no loop at 0x0010" in capsys.readouterr().err


def test_a_kernel_of_another_machine(gemm, capsys):
    assert main(["predict", str(gemm), "--machine", "b200"]) == 2
    assert "AS7124" in capsys.readouterr().err


def test_a_cubin_without_a_loop(capsys, tmp_path):
    source = tmp_path / "flat.cu"
    source.write_text("__global__ void flat(int* out) { out[threadIdx.x] = 1; }\n")
    cubin = compiled(source, tmp_path)
    assert main(["predict", str(cubin), "--machine", "h200"]) == 2
    assert "AS7124" in (said := capsys.readouterr().err)
    assert "no main loop was found in flat.cubin" in said
    budget = tmp_path / "b.toml"
    budget.write_text('[[rows]]\nrole = "x"\nresource = "tensor"\nwork = "4096 FLOP"\nconstant = "tensor_bf16"\n')
    assert main(["predict", str(cubin), "--machine", "h200", "--budget", str(budget)]) == 0
    assert "tensor core is the ceiling at ~1 cycles/iteration" in capsys.readouterr().out


ATTENTION = Path(__file__).parents[1] / "fixtures" / "predicted"


def test_rings_and_chains_of_the_gemm_need_no_budget_file(gemm, capsys):
    assert main(["predict", str(gemm), "--machine", "h200", "--json"]) == 0
    value = json.loads(capsys.readouterr().out)
    (ring,) = value["budget"]["rings"]
    # gemm_ws.cu: STAGES = 4, a box out of L2 548.06, 512 of MMA, a round trip of 87.
    assert (ring["producer"], ring["consumer"], ring["stages"]) == ("load", "mma", 4)
    bounds = {bound["name"]: bound for bound in value["prediction"]["bounds"]}
    assert bounds[ring["name"]]["cycles"] == pytest.approx((548.06 + 512 + 87) / 4)
    # One warpgroup alone: 4 wgmma of 64 cycles, one group of which stays in flight.
    assert bounds["mma in order"]["cycles"] == pytest.approx(4 * 64)
    assert not [spot for spot in value["budget"]["blind_spots"] if "no recurrence bound" in spot]


@pytest.mark.parametrize("case", ["hdim128", "hdim128_causal", "hdim64", "hdim64_causal"])
def test_rings_of_flash_attention_are_those_that_its_run_names(case, capsys):
    folder = ATTENTION / case
    assert main(["predict", str(folder / "clean.cubin"), "--machine", "h200", "--json"]) == 0
    read = json.loads(capsys.readouterr().out)
    assert main(["predict", str(folder / "RUN"), "--cubin", str(folder / "clean.cubin"), "--json"]) == 0
    known = json.loads(capsys.readouterr().out)
    # The run's manifest has K and V, two stages each, from load to mma.
    shapes = [
        [(ring["producer"], ring["consumer"], ring["stages"]) for ring in value["budget"]["rings"]]
        for value in (read, known)
    ]
    assert shapes == [[("load", "mma", 2)] * 2] * 2
    assert {ring["name"] for ring in known["budget"]["rings"]} == {"pipeline_k", "pipeline_v"}


@pytest.mark.parametrize(("case", "measured"), [("hdim128", 2792), ("hdim64", 2824)])
def test_the_chain_of_flash_attention_is_longer_than_its_products_and_its_exponentials(case, measured, capsys):
    assert main(["predict", str(ATTENTION / case / "clean.cubin"), "--machine", "h200", "--json"]) == 0
    value = json.loads(capsys.readouterr().out)
    bounds = {bound["name"]: bound["cycles"] for bound in value["prediction"]["bounds"]}
    # Of one warpgroup: Q K' of 64 rows, 64 cycles for 16 of its columns, and 64 exponentials of 8 cycles behind it.
    products = {"hdim128": 8, "hdim64": 4}[case] * 64
    assert bounds["mma in order"] > products + 64 * 8 - 16 * 8  # the first of them may go beside the last maxima
    assert bounds["mma in turns"] >= bounds["mma in order"]
    # Nothing that was recorded, with stamps, is shorter than its bounds.
    assert max(bounds.values()) < measured
