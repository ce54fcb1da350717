# SPDX-License-Identifier: Apache-2.0
"""Several CTAs and launches of the GEMM of kernels/cuda on a GPU, with both carriers.

256 rows and columns in tiles of 128 are a grid of 2 by 2; K of 1024 is 16 tiles; the program launches it five times.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from autostamp.analysis.alignment import align
from autostamp.model.manifest import EventKind
from autostamp.runtime.decode import check
from autostamp.runtime.store import RunData, load_run

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on PATH"),
]

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "kernels" / "cuda" / "gemm_ws.cu"
AUTOSTAMP = (sys.executable, "-m", "autostamp")
FLAGS = ("-gencode", "arch=compute_90a,code=sm_90a", "-std=c++17", "-O3")
TILES, PRODUCER = 16, 8
LAUNCHES = 5
WORDS = ("256", "256", "1024", "--repeat", str(LAUNCHES))
BLOCKS = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)]


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AUTOSTAMP")}
    paths = os.pathsep.join(filter(None, [str(ROOT), kept.get("PYTHONPATH")]))
    return {**kept, "AUTOSTAMP_STATE": str(tmp_path_factory.mktemp("state")), "PYTHONPATH": paths}


def execute(environment: dict[str, str], *words: str | Path) -> str:
    done = subprocess.run([str(word) for word in words], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stderr


@pytest.fixture(scope="module")
def clean(tmp_path_factory, environment) -> bytes:
    folder = tmp_path_factory.mktemp("clean")
    execute(environment, "nvcc", *FLAGS, "-o", folder / "gemm", SOURCE)
    execute(environment, folder / "gemm", *WORDS, "--dump", folder / "c.bin")
    return (folder / "c.bin").read_bytes()


@pytest.fixture(scope="module", params=["param", "symbol"])
def program(request, tmp_path_factory, environment) -> Path:
    path = tmp_path_factory.mktemp(request.param) / "gemm_ws"
    carrier = {**environment, "AUTOSTAMP_CARRIER": request.param}
    execute(carrier, *AUTOSTAMP, "nvcc", "--strict", "--", "nvcc", *FLAGS, "-o", path, SOURCE)
    return path


@pytest.fixture
def record(program, environment, clean, tmp_path):
    """Records with the options given; the result must be the clean one bit for bit."""

    def record(*options: str) -> tuple[RunData, str]:
        out = tmp_path / "c.bin"
        command = (*AUTOSTAMP, "run", "-o", tmp_path / "RUN", *options, "--", program, *WORDS, "--dump", out)
        said = execute(environment, *command)
        assert out.read_bytes() == clean
        run = load_run(tmp_path / "RUN")
        for trace in run.recorded:
            assert_complete(trace)
        return run, said

    return record


def assert_complete(trace) -> None:
    assert check(trace) == []
    assert trace.warnings == ()
    assert trace.grid == (2, 2, 1)
    assert [lane.warp for lane in trace.lanes] == list(range(12))
    assert all(lane.lost == 0 and lane.exit_cycles > lane.entry_cycles for lane in trace.lanes)
    assert len({lane.smid for lane in trace.lanes}) == 1
    sides = {instance.number: (instance.side, instance.is_async) for instance in trace.kernel.instances}
    producer = [(event.kind, *sides[event.instance]) for event in trace.lanes[PRODUCER].events]
    assert producer.count((EventKind.EXIT, "empty", False)) == TILES


def test_all_ctas_record(record):
    run, _ = record("--block", "all")
    assert [(trace.launch, trace.block) for trace in run.recorded] == [(0, block) for block in BLOCKS]
    assert len({trace.lanes[0].smid for trace in run.recorded}) == len(BLOCKS)
    found = align(run.recorded)
    assert [each.wave for each in found] == [0] * len(BLOCKS)
    assert all(0 < each.error < 1000 for each in found)


def test_listed_ctas_record(record):
    run, _ = record("--block", "1,1,0;9,0,0;0,0,0")
    assert [trace.block for trace in run.recorded] == [(1, 1, 0), (0, 0, 0)]


def test_the_last_launches_are_kept(record):
    run, _ = record("--block", "1..2", "--repeat", "3")
    assert [(trace.launch, trace.block) for trace in run.recorded] == [
        (launch, block) for launch in range(3) for block in BLOCKS[1:3]
    ]
    ends = [max(lane.exit_ns for lane in trace.lanes) for trace in run.recorded]
    starts = [min(lane.entry_ns for lane in trace.lanes) for trace in run.recorded]
    assert all(max(ends[at : at + 2]) <= min(starts[at + 2 : at + 4]) for at in (0, 2))


def test_more_launches_than_there_were_is_a_note(record):
    run, said = record("--repeat", "9")
    assert [trace.launch for trace in run.recorded] == list(range(LAUNCHES))
    assert f"was launched {LAUNCHES} times, and 9 launches" in said
