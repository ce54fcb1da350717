# SPDX-License-Identifier: Apache-2.0
"""`autostamp launch` on a GPU: every kind of argument arrives, both copies get fresh inputs, and differences are seen."""

from __future__ import annotations

import ctypes
import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from autostamp.diagnostics import AutostampError
from autostamp.hooks.launch import LaunchResult, launch
from autostamp.hooks.launch_plan import LaunchPlan, read_prototype
from autostamp.model.manifest import MANIFEST_VERSION, Manifest
from autostamp.runtime.cuda.arguments import bind
from autostamp.runtime.cuda.device import Device, Shape
from autostamp.runtime.cuda.nvcc import Flags
from tests.builds import ROOT

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed"),
]

RING = ROOT / "kernels" / "cuda" / "ring.cu"
RING_THREADS = 96

MIXED = """\
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
enum class Mode : short { SLOW = 2, FAST = 7 };
struct Inner { char c; double d; };
struct Params { const float* in; double* out; int n; Inner inner[2]; alignas(32) float4 v; Mode mode; };

__global__ void scalars(double* out, bool b, char c, unsigned char uc, short s, unsigned u, long long ll, float f, double d,
                        __half h, __nv_bfloat16 bf, __nv_fp8_e4m3 e4, __nv_fp8_e5m2 e5, float2 v, dim3 g, Mode m, int last = -9) {
    const double values[] = {double(b), double(c), double(uc), double(s), double(u), double(ll), double(f), d,
                             double(float(h)), double(float(bf)), double(float(e4)), double(float(e5)), double(v.x), double(v.y),
                             double(g.x), double(g.y), double(g.z), double(short(m)), double(last)};
    for (int i = 0; i < 19; ++i) out[i] = values[i];
}

__global__ void by_value(const __grid_constant__ Params p) {
    const double values[] = {double(p.n), double(p.inner[0].c), p.inner[0].d, double(p.inner[1].c), p.inner[1].d,
                             double(p.v.x), double(p.v.w), double(short(p.mode)), double(p.in[p.n - 1])};
    for (int i = 0; i < 9; ++i) p.out[i] = values[i];
}

__global__ void widen(const __half* h, const __nv_bfloat16* b, const __nv_fp8_e4m3* e, const signed char* i, float* out,
                      void* none) {
    const int at = threadIdx.x;
    out[at] = none == nullptr ? float(h[at]) + float(b[at]) + float(e[at]) + float(i[at]) : -1.0f;
}

namespace ns { template <typename T, int N> __global__ void shifted(T* x) { x[threadIdx.x] += N; } }

extern "C" __global__ void shared_sum(const int* in, int* out, int n) {
    extern __shared__ int staged[];
    for (int i = threadIdx.x; i < n; i += blockDim.x) staged[n - 1 - i] = in[i];
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = staged[i];
}

__global__ void cluster_size(unsigned* out) {
    unsigned size, rank;
    asm volatile("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(size));
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (threadIdx.x == 0) out[blockIdx.x] = size * 100 + rank;
}

__global__ void now(long long* out) { out[threadIdx.x] = clock64(); }
"""


@dataclass
class SameUnit:
    """A `stamped` copy that this test wrote: `text` is its own, and its kernel may write to a region."""

    text: bytes
    region_bytes: int = 64

    def nvcc_flags(self) -> list[str]:
        return ["-DSTAMPED=1"]

    def bind(self, module, kernel, memory) -> int:
        address = memory.allocate(self.region_bytes)
        if b"autostamp_slots" in self.text:
            value = ctypes.c_uint64(address)
            module.get_global("autostamp_slots").copy_from_host(ctypes.addressof(value), 8)
        return address

    def manifest(self, kernel, records) -> Manifest:
        return Manifest(MANIFEST_VERSION, "a test", ())


@pytest.fixture(scope="module")
def device() -> Device:
    return Device()


def run(
    device: Device,
    folder: Path,
    kernel: str,
    *texts: str,
    source: str = MIXED,
    block: int = 1,
    grid: int = 1,
    smem: int = 0,
    cluster: int = 0,
    stamped: SameUnit | None = None,
    repeat: int = 0,
) -> LaunchResult:
    path = folder / "mixed.cu"
    path.write_text(source)
    prototype = read_prototype(path, source.encode(), kernel, (), {})
    shape = Shape((grid, 1, 1), (block, 1, 1), smem, (cluster, 1, 1) if cluster else None)
    arguments = bind(prototype, texts)
    plan = LaunchPlan(path, source.encode(), prototype, arguments, shape, Flags(device.arch), repeat=repeat)
    return launch(plan, stamped, device)


def codes(result: LaunchResult) -> list[str]:
    return [finding.code for finding in result.findings]


def test_scalars_arrive(device, tmp_path):
    given = {
        "b": ("true", 1), "c": ("-5", -5), "uc": ("250", 250), "s": ("-300", -300), "u": ("4000000000", 4e9),
        "ll": ("-1099511627776", -(2**40)), "f": ("0.5", 0.5), "d": ("0.1", 0.1), "h": ("1.5", 1.5), "bf": ("-2.5", -2.5),
        "e4": ("448", 448), "e5": ("0.375", 0.375),
    }  # fmt: skip
    texts = [f"{name}={text}" for name, (text, _) in given.items()]
    result = run(device, tmp_path, "scalars", "out=[19]", *texts, "v={1.25,-2}", "g={7,8,9}", "m=FAST")
    expected = [value for _, value in given.values()] + [1.25, -2, 7, 8, 9, 7, -9]
    assert result.outputs[0].tolist() == expected
    assert codes(result) == ["AS8009"]


def test_a_struct_arrives(device, tmp_path):
    texts = [
        "p.n=4",
        "p.in=[p.n]:arange",
        "p.out=[9]",
        "p.inner={{3,0.25},{-4,1e300}}",
        "p.v={1,2,3,4}",
        "p.mode=Mode::FAST",
    ]
    result = run(device, tmp_path, "by_value", *texts)
    assert result.outputs[1].tolist() == [4, 3, 0.25, -4, 1e300, 1, 4, 7, 3]


def test_narrow_types_arrive(device, tmp_path):
    texts = ["h=[32]:arange", "b=[32]:const(-0.5)", "e=[32]:const(1.125)", "i=[32]:const(-3)", "out=[32]", "none=null"]
    result = run(device, tmp_path, "widen", *texts, block=32)
    assert result.outputs[-1].tolist() == [at - 0.5 + 1.125 - 3 for at in range(32)]


def test_an_instance_of_a_template(device, tmp_path):
    result = run(device, tmp_path, "ns::shifted<int, 5>", "x=[8]:arange", block=8)
    assert result.outputs[0].tolist() == list(range(5, 13))


def test_much_shared_memory(device, tmp_path):
    count = 25_600  # 100 KiB
    result = run(device, tmp_path, "shared_sum", f"n={count}", "in=[n]:arange", "out=[n]", block=256, smem=4 * count)
    assert result.outputs[1].tolist() == list(range(count - 1, -1, -1))


@pytest.mark.parametrize("cluster", [2, 8, 16])
def test_clusters(device, tmp_path, cluster):
    result = run(device, tmp_path, "cluster_size", "out=[32]", block=32, grid=32, cluster=cluster)
    # Ranks of the CTAs of a cluster follow their indices where the cluster is one-dimensional (PTX ISA, %cluster_ctarank).
    assert result.outputs[0].tolist() == [100 * cluster + at % cluster for at in range(32)]


def test_both_copies_start_from_the_same_inputs(device, tmp_path):
    unit = SameUnit(MIXED.encode() + b"\n// another text\n")
    result = run(device, tmp_path, "ns::shifted<int, 1>", "x=[8]:arange", block=8, stamped=unit, repeat=3)
    assert result.clean is not None
    assert result.stamped is not None
    assert result.clean.outputs[0].tolist() == result.stamped.outputs[0].tolist() == list(range(1, 9))
    assert [array.is_equal for array in result.arrays] == [True]
    assert codes(result) == []
    assert result.clean.microseconds
    assert result.stamped.microseconds
    assert result.clean.registers > 0


def test_a_difference_is_seen(device, tmp_path):
    changed = MIXED.replace("x[threadIdx.x] += N;", "x[threadIdx.x] += N + (threadIdx.x == 3);")
    result = run(device, tmp_path, "ns::shifted<int, 1>", "x=[8]:arange", block=8, stamped=SameUnit(changed.encode()))
    (array,) = result.arrays
    assert array.difference is not None
    assert (array.difference.count, array.difference.first) == (1, (3,))
    assert codes(result) == ["AS8006"]


def test_chance_is_told_from_stamps(device, tmp_path):
    result = run(device, tmp_path, "now", "out=[32]", block=32, stamped=SameUnit(MIXED.encode()))
    assert codes(result) == ["AS8007"]


def test_a_bound_region_is_read(device, tmp_path):
    source = 'extern "C" __global__ void k(int* out) { out[0] = 1; }\n'
    recording = (
        'extern "C" { __device__ unsigned* autostamp_slots; }\n'
        'extern "C" __global__ void k(int* out) { out[0] = 1; autostamp_slots[3] = 0xC0FFEE; }\n'
    )
    result = run(device, tmp_path, "k", "out=[1]", source=source, stamped=SameUnit(recording.encode()))
    assert result.records is not None
    assert result.records.view(np.uint32).tolist() == [0, 0, 0, 0xC0FFEE, *[0] * 12]
    assert codes(result) == []


def test_a_block_beyond_the_launch_bounds(device, tmp_path):
    source = "__global__ void __launch_bounds__(64) k(int* out) { out[threadIdx.x] = 1; }\n"
    with pytest.raises(AutostampError, match=r"AS8005 .*at most 64"):
        run(device, tmp_path, "k", "out=[128]", source=source, block=128)


def command(*words: object) -> subprocess.CompletedProcess[str]:
    """`autostamp launch` in a process of its own: a kernel's fault ends the device for the process."""
    line = [sys.executable, "-m", "autostamp", "launch", *(str(word) for word in words)]
    return subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=300)


def test_a_kernel_that_faults(tmp_path):
    source = tmp_path / "bad.cu"
    source.write_text("__global__ void bad(int* out, long long at) { out[at] = 1; }\n")
    words = ("--arg", "out=[1]", "--arg", f"at={2**40}", "-o", tmp_path / "RUN")
    done = command(source, "--kernel", "bad", "--grid", "1", "--block", "1", *words)
    assert done.returncode == 1
    assert "AS8008 the clean kernel failed" in done.stderr
    assert not (tmp_path / "RUN").exists()


@pytest.mark.parametrize(("kernel", "prefix"), [("ring", ""), ("ring_params", "p.")])
def test_the_ring_kernel(tmp_path, kernel, prefix):
    if not RING.is_file():
        pytest.fail(f"{RING} is missing")
    count, grid = 4096, 4
    words = [f"{prefix}n={count}", f"{prefix}in=[{prefix}n]:arange", f"{prefix}out=[{prefix}n]"]
    arguments = [word for text in words for word in ("--arg", text)]
    saved = tmp_path / "arrays.npz"
    done = command(
        RING, "--kernel", kernel, "--grid", grid, "--block", RING_THREADS, *arguments, "--save", saved, "--json",
        "-o", tmp_path / "RUN",
    )  # fmt: skip
    found = json.loads(done.stdout)
    assert [array["name"] for array in found["arrays"]] == [f"{prefix}in", f"{prefix}out"]
    assert {finding["code"] for finding in found["findings"]} <= {"AS8009"}, done.stderr
    assert [array["is_equal"] for array in found["arrays"]] == [None if found["findings"] else True] * 2
    with np.load(saved) as archive:
        # Doubling and adding one eight times; these numbers are exact in binary32.
        assert archive[f"{prefix}out"].tolist() == [256 * at + 255 for at in range(count)]
        assert archive[f"{prefix}in"].tolist() == list(range(count))
