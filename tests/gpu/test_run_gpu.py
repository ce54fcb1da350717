# SPDX-License-Identifier: Apache-2.0
"""`autostamp run` on a GPU, end to end, on the bundled GEMM's own program."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from autostamp.diagnostics import ExitStatus
from autostamp.runtime.store import load_run
from tests.builds import run_module
from tests.gpu import lanes

pytestmark = pytest.mark.gpu

TARGET = "autostamp.kernels.cutedsl.gemm_ws"
PROGRAM = ("-m", "autostamp.kernels.cutedsl.gemm_ws_reference", "--m", "256", "--n", "256", "--k", "512")
STATUS = 7


def run(out: Path, *options: str, program: tuple[str, ...] = PROGRAM) -> subprocess.CompletedProcess[str]:
    return run_module("autostamp", "run", "--instrument", TARGET, "-o", out, *options, "--", sys.executable, *program)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    folder = tmp_path_factory.mktemp("recorded") / "RUN"
    return folder, run(folder)


def test_the_program_runs_as_it_would_without_us(recorded):
    _, done = recorded
    assert done.returncode == 0, done.stderr
    assert "m=256 n=256 k=512 max abs error 0: ok" in done.stdout


def test_the_run_folder_is_complete(recorded):
    folder, done = recorded
    assert {"manifest.json", "records.npz", "machine.json", "sources"} <= {each.name for each in folder.iterdir()}
    assert f"wrote {folder}" in done.stderr
    data = load_run(folder)
    assert data.facts.gpu
    assert data.facts.compute_capability
    assert data.facts.sm_mhz > 0
    assert [trace.kernel for trace in data.manifest.traces] == ["GemmWarpSpecialized.kernel"]
    (file,) = data.manifest.files
    for kind in ("original", "stamped"):
        source = folder / "sources" / kind / file.key / Path(file.path).name
        assert ("_as.bind(" in source.read_text()) == (kind == "stamped")


def test_the_records_are_sound(recorded):
    (trace,) = load_run(recorded[0]).traces.values()
    lanes.assert_sound(trace)
    assert set().union(*lanes.roles(trace).values()) == {"load", "mma"}


def test_the_run_can_be_read(recorded, tmp_path):
    summary = run_module("autostamp", "summary", recorded[0], "--json")
    assert summary.returncode == 0, summary.stderr
    assert json.loads(summary.stdout)["schema_version"]
    out = tmp_path / "out.pftrace"
    exported = run_module("autostamp", "export", recorded[0], "--perfetto", out)
    assert exported.returncode == 0, exported.stderr
    assert out.stat().st_size > 0


def test_another_block_can_be_chosen(tmp_path):
    folder = tmp_path / "RUN"
    done = run(folder, "--block", "1,1,0")  # 256 rows and columns in tiles of 128: a grid of 2 by 2
    assert done.returncode == 0, done.stderr
    (trace,) = load_run(folder).traces.values()
    assert trace.kernel.block == (1, 1, 0)
    lanes.assert_sound(trace)


def test_no_record_is_an_error_that_says_so(tmp_path):
    folder = tmp_path / "RUN"
    done = run(folder, "--block", "99")
    assert done.returncode == ExitStatus.FINDINGS
    assert ": ok" in done.stdout  # the program itself was right
    assert "AS5003" in done.stderr
    assert "CTA 99,0,0" in done.stderr
    assert (folder / "manifest.json").is_file()


def test_the_status_is_the_programs(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(
        "import sys\n"
        "from autostamp.kernels.cutedsl.gemm_ws_reference import run_on_gpu\n"
        "run_on_gpu(128, 128, 64)\n"
        f"sys.exit({STATUS})\n"
    )
    folder = tmp_path / "RUN"
    done = run(folder, program=(str(script),))
    assert done.returncode == STATUS, done.stderr
    (trace,) = load_run(folder).traces.values()
    assert trace.lanes
