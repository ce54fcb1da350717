# SPDX-License-Identifier: Apache-2.0
"""Tensor maps as arguments of `autostamp launch`: GEMMs that take no other way to their operands, and what boxes hold."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from autostamp.hooks.launch import launch
from autostamp.hooks.launch_plan import LaunchPlan, read_prototype
from autostamp.runtime.cuda.arguments import bind
from autostamp.runtime.cuda.device import Device, Shape
from autostamp.runtime.cuda.elements import decode_bfloat16
from autostamp.runtime.cuda.nvcc import Flags
from autostamp.runtime.cuda.tensor_map import encode
from autostamp.runtime.store import load_run
from tests.builds import ROOT
from tests.gpu.lanes import assert_sound
from tests.tensor_maps import BAD, GOOD

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed"),
]

KERNELS = ROOT / "kernels" / "cuda"
M, N, K = 256, 512, 1024


@dataclass(frozen=True)
class Gemm:
    """A GEMM of `kernels/cuda` and how its host code launches it; boxes of A and B are rows of a CTA by 128 bytes."""

    file: str
    kernel: str
    smem: int
    grid: str
    size: tuple[str, ...]
    boxes: tuple[int, int]
    has_map_of_c: bool = True

    @property
    def is_tf32(self) -> bool:
        return "float>" in self.kernel


# Shared memory: gemm_ws has 4 stages of 32 KiB and 8 barriers, pingpong 6 of 32 KiB, cooperative 4 of 48 KiB, both with 32 KiB on
# the way out and their barriers; all in whole KiB. Tiles are 128 x 128, cooperative's 128 x 256; a cluster of two shares B.
GEMMS = {
    "ws": Gemm("gemm_ws.cu", "gemm_ws", 129 << 10, "4,2", (f"n={N}", f"k={K}"), (128, 128), False),
    "pingpong": Gemm("gemm/gemm_pingpong.cu", "gemm_pingpong<__nv_bfloat16>", 225 << 10, "8", ("shape={1,4,16}",), (128, 64)),
    "cooperative": Gemm("gemm/gemm_cooperative.cu", "gemm_cooperative<float>", 225 << 10, "4", ("shape={1,2,32}",), (128, 128)),
}  # fmt: skip


def options(gemm: Gemm, folder: Path) -> list[str]:
    """What is given with --arg. A and B of TF32 hold integers, which it holds exactly."""
    number, row, kind = ("f32", 32, ",type=tf32") if gemm.is_tf32 else ("bf16", 64, "")
    texts = [*gemm.size]
    for name, rows, box in (("a", M, gemm.boxes[0]), ("b", N, gemm.boxes[1])):
        content = "random"
        if gemm.is_tf32:
            content = str(folder / f"{name}.npy")
            np.save(content, np.random.default_rng(rows).integers(-8, 8, (rows, K)).astype(np.float32))
        texts += [
            f"{name}={number}[{rows},{K}]:{content}",
            f"map_{name}=map({name},box=[{box},{row}],swizzle=128B{kind})",
        ]
    texts.append(f"c=f32[{M},{N}]:const(nan)")
    return [*texts, "map_c=map(c,box=[16,32],swizzle=128B)"] if gemm.has_map_of_c else texts


@pytest.mark.parametrize("name", GEMMS)
def test_gemms_that_take_maps(name, tmp_path):
    gemm = GEMMS[name]
    arguments = [word for text in options(gemm, tmp_path) for word in ("--arg", text)]
    line = [
        sys.executable,
        "-m",
        "autostamp",
        "launch",
        KERNELS / gemm.file,
        "--kernel",
        gemm.kernel,
        "--grid",
        gemm.grid,
    ]
    line += [
        "--block",
        384,
        "--smem",
        gemm.smem,
        *arguments,
        "--save",
        tmp_path / "c.npz",
        "-o",
        tmp_path / "RUN",
        "--json",
    ]
    done = subprocess.run([*map(str, line)], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["findings"] == []
    arrays = {array["name"]: array for array in found["arrays"]}
    assert {name: (array["is_changed"], array["is_equal"]) for name, array in arrays.items()} == {
        "a": (False, True), "b": (False, True), "c": (True, True),
    }  # fmt: skip
    (trace,) = load_run(tmp_path / "RUN").traces.values()
    assert_sound(trace)
    assert [lane.warp for lane in trace.lanes] == list(range(12))
    with np.load(tmp_path / "c.npz") as saved:
        a, b = (saved[name] if gemm.is_tf32 else decode_bfloat16(saved[name]) for name in "ab")
        a, b = a.astype(np.float64), b.astype(np.float64)
        error = np.abs(saved["c"] - a @ b.T)
    # Integers below 2^24 are exact in binary32; else four roundings to nearest for every 16 of K, as gemm_ws.cu allows.
    allowed = 0 if gemm.is_tf32 else K / 16 / 2**22 * (np.abs(a) @ np.abs(b).T)
    assert (error <= allowed).all()


BOX = """\
#include <cuda.h>
#include <cstdint>
struct Both { CUtensorMap in; int z, y, x; CUtensorMap out; };
constexpr int WORDS = 2 * 3 * 4;

__device__ uint32_t address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__global__ void box(const __grid_constant__ Both both) {
    __shared__ alignas(128) int words[WORDS];
    __shared__ alignas(8) uint64_t full;
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address(&full)) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(&full)), "r"(4 * WORDS) : "memory");
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];"
        ::"r"(address(words)), "l"(&both.in), "r"(both.x), "r"(both.y), "r"(both.z), "r"(address(&full)) : "memory");
    asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra again; }"
                 ::"r"(address(&full)) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {0, 0, 0}], [%1];"
                 ::"l"(&both.out), "r"(address(words)) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
"""


@pytest.fixture(scope="module")
def device() -> Device:
    return Device()


def boxed(device: Device, folder: Path, at: tuple[int, int, int], number: str, box: str) -> np.ndarray:
    """What a box at (z, y, x) of an array [5, 6, 8] of 0, 1, 2, … holds, as [2, 3, 4]."""
    path = folder / "box.cu"
    path.write_text(BOX)
    prototype = read_prototype(path, BOX.encode(), "box", (), {})
    texts = [
        f"both.in=map({number}[5,6,8]:arange,{box})",
        *(f"both.{axis}={value}" for axis, value in zip("zyx", at, strict=True)),
    ]
    arguments = bind(prototype, [*texts, f"both.out=map({number}[2,3,4]:const(7),box=[2,3,4])"])
    plan = LaunchPlan(path, BOX.encode(), prototype, arguments, Shape((1, 1, 1), (1, 1, 1)), Flags(device.arch))
    return launch(plan, None, device).outputs[1]


def test_a_box_inside(device, tmp_path):
    found = boxed(device, tmp_path, (1, 2, 4), "i32", "box=[2,3,4]")
    assert found.tolist() == np.arange(5 * 6 * 8).reshape(5, 6, 8)[1:3, 2:5, 4:8].tolist()


ADDRESS = 1 << 32
"""A multiple of every granule. The driver looks at no memory."""


@pytest.mark.parametrize("name", GOOD)
def test_the_driver_takes_what_the_checks_take(name, device):
    assert len(encode(GOOD[name], ADDRESS)) == 128


@pytest.mark.parametrize("name", BAD)
def test_the_driver_refuses_what_the_checks_refuse(name, device):
    with pytest.raises(RuntimeError, match="CUDA_ERROR_INVALID_VALUE"):
        encode(BAD[name][0], ADDRESS)


def test_the_driver_refuses_an_address_between_granules(device):
    with pytest.raises(RuntimeError, match="CUDA_ERROR_INVALID_VALUE"):
        encode(GOOD["rows of 16 bytes"], ADDRESS + 8)
