# SPDX-License-Identifier: Apache-2.0
"""A program that launches one kernel on two devices, built through the launcher with either carrier."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from autostamp.model.manifest import EventKind
from autostamp.runtime.decode import check
from autostamp.runtime.devices import find_gpus
from autostamp.runtime.store import load_run

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on PATH"),
    pytest.mark.skipif(len(find_gpus()[0]) < 2, reason="fewer than two GPUs"),
]

ROOT = Path(__file__).parents[2]
PROGRAM = """\
#include <cstdio>
__global__ void meet(int* out, int n) {
  for (int i = 0; i < n; ++i) __syncthreads();
  out[threadIdx.x] = n;
}
int main() {
  for (int device = 0; device < 2; ++device) {
    int* out;
    if (cudaSetDevice(device) || cudaMalloc(&out, 256)) return 1;
    meet<<<1, 64>>>(out, 3 + device);
    int value = 0;
    if (cudaMemcpy(&value, out, 4, cudaMemcpyDeviceToHost) || value != 3 + device) return 2;
  }
  return 0;
}
"""


@pytest.mark.parametrize("carrier", ["param", "symbol"])
def test_each_device_has_its_records(carrier, tmp_path):
    (tmp_path / "two.cu").write_text(PROGRAM)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AUTOSTAMP")}
    paths = os.pathsep.join(filter(None, [str(ROOT), kept.get("PYTHONPATH")]))
    environment = {
        **kept,
        "AUTOSTAMP_STATE": str(tmp_path / "state"),
        "AUTOSTAMP_CARRIER": carrier,
        "PYTHONPATH": paths,
    }
    autostamp = (sys.executable, "-m", "autostamp")
    for words in (
        (*autostamp, "nvcc", "--strict", "--", "nvcc", "-arch=native", "-o", "two", "two.cu"),
        (*autostamp, "run", "-o", "RUN", "--", "./two"),
    ):
        done = subprocess.run(words, env=environment, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    traces = {trace.kernel.kernel: trace for trace in load_run(tmp_path / "RUN").traces.values()}
    assert set(traces) == {"meet on device 0", "meet on device 1"}
    for device in range(2):
        trace = traces[f"meet on device {device}"]
        assert check(trace) == []
        enters = [sum(event.kind is EventKind.ENTER for event in lane.events) for lane in trace.lanes]
        assert enters == [3 + device, 3 + device]
