# SPDX-License-Identifier: Apache-2.0
"""`autostamp probe` on a GPU: every figure within bounds that physics or the data sheet set, wide enough for any healthy device.

The law of wgmma with both operands in shared memory is max(2 m n k / 4096, 32 (m + n) / 128) cycles; published measurements on an
H100 (revollllt/flash-vla, hardware/nvidia/h100/measured) are 18.9, 20.7, 24.7, 32.8, 48.7, 65.0, 97.1 and 129.3 for N = 8 to 256.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from typing import Any

import pytest

from autostamp.runtime.probes.registry import DERIVED, PROBES
from autostamp.runtime.probes.wgmma import SIZES

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed"),
]

SIGNED = {"smem_write_share", "smem_write_share_lds"}
"""Differences of two rates: near zero where writes do not disturb reads, so perhaps below."""

BOUNDS = {
    # CS2R issues at most once a cycle; a read that took a round trip to memory would be hundreds.
    "clock_read": (0.9, 40),
    "clock64_read": (0.9, 60),
    "clock_step": (1, 60),
    "globaltimer_read": (0.9, 2000),
    # 32 ns on recent parts, 1 us and some on older ones.
    "globaltimer_step": (1, 2000),
    # MUFU is 16 a cycle and SM, 32 on the newest; 8 would be half of what any has.
    "mufu_ex2": (8, 33),
    # 64 or 128 lanes; the loop's own instructions take 1 %.
    "fma_fp32": (55, 129),
    # Not more than the issue of four warps a cycle; not less than the slowest pipe.
    "cvt_bf16x2": (7, 129),
    "cvt_e4m3x2": (7, 129),
    "ex2_cvt_bf16x2": (8, 129),
    "ex2_cvt_e4m3x2": (8, 129),
    "fma_ex2": (32, 129),
    "ex2_latency": (8, 60),
    "ffma_latency": (3.9, 8),
    "alu_int32": (30, 129),
    "shuffle": (15, 65),
    "alu_latency": (3.9, 8),
    "shuffle_latency": (15, 60),
    "cvt_bf16x2_latency": (3, 40),
    "cvt_e4m3x2_latency": (3, 40),
    # Together is never faster than the slower alone, and never slower than one behind the other with some to spare.
    "ex2_beside_cvt_bf16x2": (0.95, 2.2),
    "ex2_beside_cvt_e4m3x2": (0.95, 2.2),
    "fma_beside_ex2": (0.95, 2.2),
    "mbarrier_round_trip": (20, 400),
    "mbarrier_round_trip_loaded": (20, 250),
    "mbarrier_handoff": (15, 400),
    "mbarrier_handoff_loaded": (15, 150),
    "named_barrier": (8, 200),
    "named_barrier_loaded": (8, 120),
    "named_handoff": (8, 300),
    "named_handoff_loaded": (8, 120),
}
HOPPER = {
    "tensor_bf16": (3900, 4100),
    "smem_wgmma": (115, 129),
    "smem_lds": (100, 129),
    "smem_lds_beside_tma": (30, 129),
    "wgmma_ss_n32_port": (23, 27),
    "wgmma_ss_n128_port": (63, 69),
    "wgmma_ss_n32_port_beside_tma": (23, 80),
    "wgmma_ss_n128_port_beside_tma": (63, 130),
    "tma_beside_lds": (4, 129),
    "tma_beside_wgmma_ss_n32": (4, 129),
    "tma_beside_wgmma_ss_n128": (4, 129),
    "mma_beside_tma": (0.98, 2.1),
    "tma_beside_mma": (0.8, 20),
    "tma_issue": (4, 400),
    "tma_latency_l2": (250, 1500),
    "tma_latency_hbm": (400, 3500),
    "tma_latency_l2_16k": (350, 2500),
    "tma_latency_hbm_16k": (500, 5000),
    "tma_bytes": (30, 140),
    "tma_bytes_hbm": (15, 140),
    "tma_box_issue": (4, 400),
    "tma_box_issue_16k": (4, 800),
    "tma_box_latency_l2": (300, 1800),
    "tma_box_latency_hbm": (450, 3500),
    "tma_box_latency_l2_16k": (350, 2500),
    "tma_box_latency_hbm_16k": (500, 5000),
    "tma_box_bytes": (30, 140),
    "tma_box_bytes_hbm": (15, 140),
    "l2_box": (20, 129),
    "l2_box_shared": (20, 129),
    "hbm_box": (7, 35),
    "l2": (20, 129),
    "l2_shared": (20, 129),
    # H100 PCIe to H200: 2.0 to 4.8 TB/s over 114 to 132 SMs at 1.0 to 1.98 GHz.
    "hbm": (7, 35),
    "clock_loaded": (0.9, 2.0),
}
PUBLISHED = dict(zip(SIZES, (18.9, 20.7, 24.7, 32.8, 48.7, 65.0, 97.1, 129.3), strict=True))


@dataclass
class Run:
    value: dict[str, Any]
    file: dict[str, Any]
    status: int
    errors: str

    def __getitem__(self, name: str) -> float:
        return float(self.value["constants"][name]["value"])

    def __contains__(self, name: str) -> bool:
        return name in self.value["constants"]

    @property
    def is_hopper(self) -> bool:
        return self.value["arch"] == "sm_90a"


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Run:
    path = tmp_path_factory.mktemp("probe") / "machine.toml"
    command = [sys.executable, "-m", "autostamp", "probe", "--json", "--out", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert done.returncode in (0, 1), done.stderr
    return Run(json.loads(done.stdout), tomllib.loads(path.read_text()), done.returncode, done.stderr)


def test_nothing_failed(run):
    assert run.value["findings"] == [], run.errors
    assert run.status == 0


def test_every_probe_of_this_architecture_has_a_figure(run):
    wanted = {row.name for probe in PROBES if probe.runs_on(run.value["arch"]) for row in probe.yields}
    assert wanted <= set(run.value["constants"])
    if run.is_hopper:
        assert {row.name for row in DERIVED} <= set(run.value["constants"])


@pytest.mark.parametrize("name", [*BOUNDS, *HOPPER])
def test_within_bounds(run, name):
    if name not in run or (name in HOPPER and not run.is_hopper):
        pytest.skip("not on this architecture")
    least, most = {**BOUNDS, **HOPPER}[name]
    assert least <= run[name] <= most


@pytest.mark.parametrize("n", SIZES)
def test_law_of_wgmma(run, n):
    if not run.is_hopper:
        pytest.skip("wgmma is sm_90a's")
    law = max(2 * 64 * n * 16 / 4096, 32 * (64 + n) / 128)
    assert law * 0.98 <= run[f"wgmma_ss_n{n}"] <= law * 1.08
    assert run[f"wgmma_ss_n{n}"] == pytest.approx(PUBLISHED[n], rel=0.06)
    # With A in registers only B is read, and the tensor core needs as long; the form may cost a little more to issue.
    assert n / 2 * 0.98 <= run[f"wgmma_rs_n{n}"] <= max(law * 1.3, 40)


def test_orders_that_must_hold(run):
    assert run["mbarrier_round_trip_loaded"] >= 0.95 * run["mbarrier_round_trip"]
    assert run["clock_step"] <= 2 * run["clock64_read"] + 20
    if run.is_hopper:
        assert run["tma_latency_l2"] < run["tma_latency_hbm"]
        assert run["tma_latency_l2"] < run["tma_latency_l2_16k"]
        assert run["hbm"] < run["l2"]
        assert run["hbm_box"] < run["l2_box"]
        assert run["tma_box_latency_l2"] < run["tma_box_latency_hbm"]
        # A box of 128 rows is no faster than one of 8.
        assert run["tma_box_latency_l2"] <= run["tma_box_latency_l2_16k"]
        assert run["hbm"] <= 1.05 * run["tma_bytes_hbm"]
        assert run["wgmma_ss_n32_port"] == pytest.approx(run["wgmma_ss_n32"], rel=0.05)
        assert run["wgmma_ss_n128_port"] == pytest.approx(run["wgmma_ss_n128"], rel=0.05)


def test_write_share_is_a_share(run):
    for name in SIGNED & set(run.value["constants"]):
        assert -0.15 <= run[name] <= 1.6


def test_repeats_agree(run):
    """Cycles of one SM alone hardly vary, a little more where warps meet. Other SMs, memories and clocks are not held to this."""
    loose = {
        "hbm",
        "l2",
        "l2_shared",
        "hbm_box",
        "l2_box",
        "l2_box_shared",
        "globaltimer_step",
        "globaltimer_read",
        "clock_step",
    }
    for name, row in run.value["constants"].items():
        if row["repeats"] > 1 and name not in loose and "tma" not in name and "loaded" not in name:
            allowed = 1.3 if "barrier" in name or "handoff" in name else 1.1
            assert row["most"] <= allowed * row["least"], (name, row)


def test_machine_file(run):
    assert run.file["arch"] == run.value["arch"]
    assert run.file["constants"]["sms"]["value"] > 0
    assert run.value["machine"]["gpu"] in run.file["sources"]["autostamp probe"]
    kept = {name for name, row in run.value["constants"].items() if row["value"] and row["value"] > 0}
    assert set(run.file["constants"]) == kept
    for row in run.file["constants"].values():
        assert row["source"] == "autostamp probe"
        assert row["kind"] in ("measured", "derived")
