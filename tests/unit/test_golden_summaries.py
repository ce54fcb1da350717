# SPDX-License-Identifier: Apache-2.0
"""What `autostamp summary` prints of the recorded runs is what it printed before (tests/golden/README.md)."""

from __future__ import annotations

from pathlib import Path

import pytest

from autostamp import cli

ROOT = Path(__file__).parents[2]
RUNS = {
    "fa4_forward_one_cta": "tests/fixtures/runs/fa4_forward_one_cta",
    "fa4_forward_full_grid": "tests/fixtures/runs/fa4_forward_full_grid",
    "cutedsl_gemm_ws_h200": "kernels/cutedsl/recorded/gemm_ws_h200",
    "cuda_gemm_ws_h200": "kernels/cuda/recorded/gemm_ws_h200",
}


@pytest.mark.parametrize(("name", "run"), RUNS.items(), ids=RUNS.keys())
def test_the_summary_of_a_recorded_run(name, run, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert cli.main(["summary", run]) == 0
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 120
    assert printed == (ROOT / f"tests/golden/summary_{name}.txt").read_text("utf-8")


def test_every_golden_has_its_run():
    assert {path.name for path in (ROOT / "tests/golden").glob("*.txt")} == {f"summary_{name}.txt" for name in RUNS}
