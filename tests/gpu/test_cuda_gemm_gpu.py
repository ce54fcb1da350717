# SPDX-License-Identifier: Apache-2.0
"""The GEMM of kernels/cuda on a GPU: built through the launcher and through a plain CMake project, with both carriers.

Numbers are those of 128 x 128 x 1024: one CTA, 1024 / 64 = 16 tiles of K, 4 stages, 8 consumer warps.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from autostamp.analysis.arrows import by_address, by_declaration
from autostamp.model.manifest import EventKind
from autostamp.model.trace import Trace
from autostamp.runtime.decode import check
from autostamp.runtime.store import load_run

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on PATH"),
]

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "kernels" / "cuda" / "gemm_ws.cu"
AUTOSTAMP = (sys.executable, "-m", "autostamp")
FLAGS = ("-gencode", "arch=compute_90a,code=sm_90a", "-std=c++17", "-O3")
SHAPE = ("128", "128", "1024")
TILES, STAGES, CONSUMERS = 16, 4, 8


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AUTOSTAMP")}
    paths = os.pathsep.join(filter(None, [str(ROOT), kept.get("PYTHONPATH")]))
    return {**kept, "AUTOSTAMP_STATE": str(tmp_path_factory.mktemp("state")), "PYTHONPATH": paths}


def run(environment: dict[str, str], *words: str | Path) -> str:
    done = subprocess.run([str(word) for word in words], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def clean(tmp_path_factory, environment) -> bytes:
    folder = tmp_path_factory.mktemp("clean")
    run(environment, "nvcc", *FLAGS, "-o", folder / "gemm", SOURCE)
    run(environment, folder / "gemm", *SHAPE, "--dump", folder / "c.bin")
    return (folder / "c.bin").read_bytes()


@pytest.fixture(scope="module", params=["param", "symbol", "cmake"])
def recorded(request, tmp_path_factory, environment) -> tuple[Trace, bytes]:
    """One recorded launch and its result."""
    folder = tmp_path_factory.mktemp(request.param)
    program = folder / "gemm_ws"
    if request.param == "cmake":
        pytest.importorskip("cmake")
        launcher = ";".join((*AUTOSTAMP, "nvcc", "--strict", "--"))
        cmake = (sys.executable, "-m", "cmake")
        run(environment, *cmake, "-S", SOURCE.parent, "-B", folder, f"-DCMAKE_CUDA_COMPILER_LAUNCHER={launcher}")
        run(environment, *cmake, "--build", folder)
    else:
        carrier = {**environment, "AUTOSTAMP_CARRIER": request.param}
        run(carrier, *AUTOSTAMP, "nvcc", "--strict", "--", "nvcc", *FLAGS, "-o", program, SOURCE)
    run(environment, *AUTOSTAMP, "run", "-o", folder / "RUN", "--", program, *SHAPE, "--dump", folder / "c.bin")
    (trace,) = load_run(folder / "RUN").traces.values()
    return trace, (folder / "c.bin").read_bytes()


def test_the_result_is_the_clean_one_bit_for_bit(recorded, clean):
    assert recorded[1] == clean


def test_every_enter_has_its_exit_and_no_clock_runs_backwards(recorded):
    trace, _ = recorded
    assert check(trace) == []
    assert [lane.warp for lane in trace.lanes] == list(range(12))
    assert all(lane.lost == 0 and lane.exit_cycles > lane.entry_cycles for lane in trace.lanes)


def test_warps_record_what_their_loops_do(recorded):
    trace, _ = recorded
    sides = {instance.number: (instance.side, instance.is_async) for instance in trace.kernel.instances}
    for lane in trace.lanes[:CONSUMERS]:
        counts = Counter((event.kind, *sides[event.instance]) for event in lane.events)
        assert counts[EventKind.EXIT, "full", False] == TILES
        assert counts[EventKind.SIGNAL, "empty", False] == TILES - 1  # no one waits for the last release
    producer = Counter((event.kind, *sides[event.instance]) for event in trace.lanes[CONSUMERS].events)
    assert producer[EventKind.EXIT, "empty", False] == TILES
    assert producer[EventKind.SIGNAL, "full", False] == TILES
    assert producer[EventKind.SIGNAL, "full", True] == 2 * TILES  # the copies of A and B


def test_arrows_by_address_are_those_by_declaration(recorded):
    """Consumers wait for 16 tiles each; the producer's first four acquires are granted."""
    trace, _ = recorded
    arrows = by_address(trace)
    ring = {instance.number for instance in trace.kernel.instances if instance.side in ("full", "empty")}
    assert arrows == {arrow for arrow in by_declaration(trace) if arrow.wait.instance in ring}
    assert len(arrows) == CONSUMERS * TILES + TILES - STAGES
