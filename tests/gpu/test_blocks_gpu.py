# SPDX-License-Identifier: Apache-2.0
"""Several CTAs and several launches of the bundled GEMM of CuTe-DSL on a GPU.

256 rows and columns in tiles of 128 are a grid of 2 by 2; the program launches it five times.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from autostamp.analysis import analyse
from autostamp.analysis.alignment import align, aligned
from autostamp.model.manifest import EventKind
from autostamp.runtime.store import RunData, load_run
from tests.builds import run_module
from tests.gpu import lanes

pytestmark = pytest.mark.gpu

TARGET = "autostamp.kernels.cutedsl.gemm_ws"
REFERENCE = "autostamp.kernels.cutedsl.gemm_ws_reference"
K_TILES, LOAD_WARP = 8, 8
LAUNCHES = 5
PROGRAM = (sys.executable, "-m", REFERENCE, "--m", "256", "--n", "256", "--k", "512", "--repeat", str(LAUNCHES))
BLOCKS = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)]


def record(out: Path, *options: str) -> tuple[RunData, subprocess.CompletedProcess[str]]:
    """A run whose program compared the stamped kernel's result with the reference, bit for bit where it says so."""
    done = run_module("autostamp", "run", "--instrument", TARGET, "-o", out, *options, "--", *PROGRAM)
    assert done.returncode == 0, done.stderr
    assert "max abs error 0: ok" in done.stdout
    return load_run(out), done


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> RunData:
    return record(tmp_path_factory.mktemp("all") / "RUN", "--block", "all")[0]


@pytest.fixture(scope="module")
def repeated(tmp_path_factory: pytest.TempPathFactory) -> RunData:
    return record(tmp_path_factory.mktemp("repeated") / "RUN", "--block", "0..3", "--repeat", "3")[0]


def assert_complete(run: RunData) -> None:
    for trace in run.recorded:
        lanes.assert_sound(trace)
        assert trace.grid == (2, 2, 1)
        assert [lane.warp for lane in trace.lanes] == list(range(12))
        acquires = [row for row in lanes.rows(trace, role="load", side="empty") if row.signals == ("full",)]
        assert len(lanes.events(trace.lanes[LOAD_WARP], acquires, EventKind.EXIT)) == K_TILES


def test_all_ctas_record(everything):
    assert [trace.block for trace in everything.recorded] == BLOCKS
    assert {trace.launch for trace in everything.recorded} == {0}
    assert_complete(everything)


def test_ctas_of_one_launch_overlap_on_one_axis(everything):
    """Four CTAs on four SMs begin within some microseconds, and each runs for longer than its alignment is wrong."""
    found = align(everything.recorded)
    assert len({trace.lanes[0].smid for trace in everything.recorded}) == len(BLOCKS)
    assert [each.wave for each in found] == [0] * len(BLOCKS)
    assert min(each.offset for each in found) == 0
    for each, trace in zip(found, everything.recorded, strict=True):
        assert 0 < each.error < 1000
        assert each.offset < max(lane.exit_cycles for lane in trace.lanes)


def test_the_global_timer_agrees_with_the_axis(everything):
    """CTAs in the order of their offsets are in the order of their global timers, where these are further apart than a tick."""
    timelines = aligned([analyse(trace) for trace in everything.recorded], everything.recorded)
    entries = [min(lane.entry_ns for lane in trace.lanes) for trace in everything.recorded]
    mhz = everything.facts.sm_mhz
    for first, ns in zip(timelines, entries, strict=True):
        for second, other_ns in zip(timelines, entries, strict=True):
            expected = (other_ns - ns) * mhz / 1000
            assert abs(second.offset - first.offset - expected) <= first.alignment_error + second.alignment_error


def test_the_last_launches_are_kept(repeated):
    assert [(trace.launch, trace.block) for trace in repeated.recorded] == [
        (launch, block) for launch in range(3) for block in BLOCKS
    ]
    assert_complete(repeated)
    ends = [max(lane.exit_ns for lane in trace.lanes) for trace in repeated.recorded]
    starts = [min(lane.entry_ns for lane in trace.lanes) for trace in repeated.recorded]
    for launch in (1, 2):
        assert max(ends[4 * launch - 4 : 4 * launch]) <= min(starts[4 * launch : 4 * launch + 4])


def test_listed_ctas_record(tmp_path):
    run, _ = record(tmp_path / "RUN", "--block", "1,0,0;0,1,0;7,0,0")
    assert [trace.block for trace in run.recorded] == [(1, 0, 0), (0, 1, 0)]
    assert_complete(run)


def test_more_launches_than_there_were_is_a_note(tmp_path):
    run, done = record(tmp_path / "RUN", "--repeat", "9")
    assert [trace.launch for trace in run.recorded] == list(range(LAUNCHES))
    assert f"AS5022 GemmWarpSpecialized.kernel was launched {LAUNCHES} times, and 9 launches" in done.stderr


def test_more_ctas_than_there_is_memory_for_is_a_finding(tmp_path):
    # 2^20 records in each of 64 lanes are 512 MiB and a header each: not one region fits.
    done = run_module(
        "autostamp", "run", "-o", tmp_path / "R", "--block", "all", "--capacity", str(1 << 20), "--", *PROGRAM
    )
    assert done.returncode == 2
    assert "AS5020" in done.stderr


def test_runs_are_compared_with_their_noise(repeated, tmp_path):
    other, _ = record(tmp_path / "RUN", "--block", "0..3", "--repeat", "3")
    done = run_module("autostamp", "diff", repeated.path, other.path, "--json")
    assert done.returncode == 0, done.stderr
    (kernel,) = json.loads(done.stdout)["kernels"]
    assert kernel["launches"] == [3, 3]
    assert kernel["blocks"] == len(BLOCKS)
    assert kernel["cycles"]["noise"] is not None
    assert kernel["only_first"] == kernel["only_second"] == []
