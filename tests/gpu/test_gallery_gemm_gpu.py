# SPDX-License-Identifier: Apache-2.0
"""The four GEMMs of kernels/cuda/gemm on a GPU: right, equal to each other in every bit, and so when they are stamped."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from autostamp.runtime.decode import check
from autostamp.runtime.store import load_run

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on PATH"),
]

ROOT = Path(__file__).parents[2]
VARIANTS = ("serial", "plain", "pingpong", "cooperative")
AUTOSTAMP = (sys.executable, "-m", "autostamp")
FLAGS = ("-gencode", "arch=compute_90a,code=sm_90a", "-std=c++17", "-O3")
# One stage; fewer stages than a ring has, and fewer tiles than SMs; several rounds over ring and SMs, not in whole waves.
SHAPES = {
    "tf32": ("256 256 32", "768 1024 96", "2560 3328 1024"),
    "bf16": ("256 256 64", "768 1024 192", "2560 3328 2048"),
}
CASES = [(dtype, shape) for dtype, shapes in SHAPES.items() for shape in shapes]


def run(*words: str | Path) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AUTOSTAMP")}
    environment = {**kept, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), kept.get("PYTHONPATH")]))}
    done = subprocess.run([str(word) for word in words], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("clean")
    for name in VARIANTS:
        run("nvcc", *FLAGS, "-o", folder / name, ROOT / "kernels/cuda/gemm" / f"gemm_{name}.cu")
    return {name: folder / name for name in VARIANTS}


@pytest.mark.parametrize(("dtype", "shape"), CASES)
def test_all_variants_are_right_and_equal_in_every_bit(dtype, shape, programs, tmp_path):
    results = set()
    for name, program in programs.items():
        words = (*shape.split(), "--dtype", dtype, "--seed", "11", "--repeat", "3", "--dump", tmp_path / name)
        assert "checked outputs are wrong: ok" in run(program, *words)
        results.add((tmp_path / name).read_bytes())
    assert len(results) == 1


@pytest.mark.parametrize("variant", VARIANTS)
def test_stamps_change_no_bit(variant, programs, tmp_path):
    words = ("1024", "1024", "1024", "--seed", "11", "--dump")
    source = ROOT / "kernels/cuda/gemm" / f"gemm_{variant}.cu"
    run(*AUTOSTAMP, "nvcc", "--strict", "--", "nvcc", *FLAGS, "-o", tmp_path / "stamped", source)
    run(*AUTOSTAMP, "run", "-o", tmp_path / "RUN", "--", tmp_path / "stamped", *words, tmp_path / "s")
    run(programs[variant], *words, tmp_path / "c")
    assert (tmp_path / "s").read_bytes() == (tmp_path / "c").read_bytes()
    (trace,) = load_run(tmp_path / "RUN").traces.values()
    assert check(trace) == []
    assert all(lane.lost == 0 for lane in trace.lanes)
