# SPDX-License-Identifier: Apache-2.0
"""The cost of measuring that a report finds in the run folder of a launch is what `autostamp safety` says of the two cubins."""

from __future__ import annotations

import json
import shutil

import pytest

from autostamp.cli.costs import read_costs
from tests.builds import run_module
from tests.cuda_builds import ROOT
from tests.simulator.tables import kernel_trace

if shutil.which("nvcc") is None:
    pytest.skip("nvcc is not installed", allow_module_level=True)


def test_cubins_of_a_launch(tmp_path):
    arguments = ["--arg", "in=f32[4096]:random", "--arg", "out=f32[4096]", "--arg", "n=4096"]
    source = ROOT / "kernels" / "cuda" / "ring.cu"
    shape = ["--kernel", "ring", "--grid", "2", "--block", "96", "--arch", "sm_90a"]
    made = run_module("autostamp", "launch", source, *shape, *arguments, "--compile-only", "-o", tmp_path)
    assert made.returncode == 0, made.stderr
    files = [f"--{name}={tmp_path / f'{name}.cubin'}" for name in ("clean", "stamped")]
    said = json.loads(run_module("autostamp", "safety", *files, "--json").stdout)
    (kernel,) = [row for row in said["kernels"] if row["kernel"] == "ring"]
    registers = next(row for row in kernel["resources"] if row["name"] == "registers")
    cost = read_costs([kernel_trace((), symbol="ring")], None, None, run=tmp_path)[1]
    assert cost.registers == (registers["clean"], registers["stamped"])
    assert cost.spills == (0, 0)
    assert cost.schedule_distance == kernel["schedule_distance"]
    assert cost.time_ratio is None
