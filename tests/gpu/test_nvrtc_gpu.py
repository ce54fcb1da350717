# SPDX-License-Identifier: Apache-2.0
"""Stamped text compiled by NVRTC, which has no host code and no standard headers, and loaded by hand."""

from __future__ import annotations

import pytest

from autostamp.hooks.stamped_unit import REGION, stamp
from autostamp.model.manifest import EventKind
from autostamp.model.options import InstrumentOptions
from autostamp.passes.cuda.lean import LaneForm
from autostamp.runtime import store
from autostamp.runtime.buffer import DeviceMemory
from autostamp.runtime.decode import check

pytestmark = pytest.mark.gpu

KERNEL = """\
__device__ void meet(int n) {
  for (int i = 0; i < n; ++i) __syncthreads();
}
extern "C" __global__ void k(int* out, int n) {
  meet(n);
  out[threadIdx.x] = n;
}
"""


@pytest.mark.parametrize("form", [LaneForm.USUAL, LaneForm.LEAN])
def test_a_kernel_compiled_at_run_time_records(tmp_path, form):
    cupy = pytest.importorskip("cupy")
    source = tmp_path / "k.cu"
    source.write_text(KERNEL)
    unit = stamp(source, KERNEL.encode(), InstrumentOptions(), form=form)
    assert unit is not None
    flags = ("-std=c++17", "-DAUTOSTAMP=1", f"-I{unit.folder.name}")
    module = cupy.RawModule(code=unit.text.decode(), options=flags, backend="nvrtc")
    memory = DeviceMemory()
    address = unit.bind(module, "k", memory)
    out = cupy.zeros(64, dtype=cupy.int32)
    module.get_function("k")((1,), (64,), (out, cupy.int32(5)))
    records = memory.read(address)
    assert out.get().tolist() == [5] * 64
    (trace,) = store.decode_all(unit.manifest("k", records), {REGION: records}).values()
    assert check(trace) == []
    kinds = [[event.kind for event in lane.events] for lane in trace.lanes]
    assert kinds == [[EventKind.ENTER, EventKind.EXIT] * 5] * 2
    unit.folder.cleanup()
