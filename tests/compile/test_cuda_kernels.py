# SPDX-License-Identifier: Apache-2.0
"""The bundled CUDA C++ kernels: what nvcc makes of them and, on a GPU, what they compute."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from autostamp.diagnostics import AutostampError
from autostamp.runtime import toolchain

if shutil.which("nvcc") is None:
    pytest.skip("nvcc is not installed", allow_module_level=True)

KERNELS = Path(__file__).parents[2] / "kernels" / "cuda"
GEMM, RING = KERNELS / "gemm_ws.cu", KERNELS / "ring.cu"
GEMM_TARGET = ("-gencode", "arch=compute_90a,code=sm_90a")
RING_THREADS, RING_CHUNK, RING_STAGES = 96, 64, 3


def run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300)


def nvcc(*options: object) -> subprocess.CompletedProcess[str]:
    return run("nvcc", "-std=c++17", "-O3", "-Xcompiler=-Wall,-Wextra", *options)


def compiled(source: Path, target: str, kind: str, folder: Path) -> tuple[Path, str]:
    """The file of this kind (cubin or ptx), and what nvcc said."""
    out = folder / f"{source.stem}.{kind}"
    done = nvcc(f"-arch={target}", f"-{kind}", "-Xptxas=-v,-warn-spills", "-o", out, source)
    assert done.returncode == 0, done.stderr
    return out, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("source", "target", "kernels"),
    [(GEMM, "sm_90a", 1), (RING, "sm_80", 2), (RING, "sm_90a", 2), (RING, "sm_100a", 2)],
    ids=lambda value: getattr(value, "stem", str(value)),
)
def test_compiles_without_warnings_or_spills(source, target, kernels, tmp_path):
    # ptxas says with C7510 to C7515 that it had to serialise wgmma.
    _, said = compiled(source, target, "cubin", tmp_path)
    assert not re.search(r"warning|C75\d\d", said, re.IGNORECASE), said
    assert said.count("0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads") == kernels


def test_gemm_has_the_instructions_that_its_source_asks_for(tmp_path):
    cubin, _ = compiled(GEMM, "sm_90a", "cubin", tmp_path)
    try:
        sass = toolchain.run("nvdisasm", "-c", cubin)
    except AutostampError as error:
        pytest.skip(str(error))
    names = Counter(re.findall(r"^\s+/\*\w{4,}\*/\s+(?:@!?U?P\w+\s+)?(\w+(?:\.[A-Z]\w*)?)", sass, re.MULTILINE))
    assert (
        names["HGMMA"] == 64 // 16
    )  # a stage is 64 columns deep, a wgmma 16, and the loop over stages is not unrolled
    assert sum(count for name, count in names.items() if name.startswith("UTMALDG")) == 2  # A and B
    assert names["SYNCS.EXCH"] == 2 * 4  # mbarrier.init: full and empty of four stages
    assert names["SYNCS.ARRIVE"] == 2  # the producer's arrive.expect_tx, the consumers' arrive
    assert names["BAR.SYNC"] == 2  # __syncthreads and the epilogue's named barrier
    assert names["WARPGROUP.DEPBAR"] == 2  # wait_group 1 and 0
    assert {name for name in names if name.startswith("USETMAXREG")} == {"USETMAXREG.TRY_ALLOC", "USETMAXREG.DEALLOC"}


@pytest.mark.parametrize("target", ["sm_90", "sm_100a"])
def test_gemm_says_which_target_it_needs(target, tmp_path):
    done = nvcc(f"-arch={target}", "-cubin", "-o", tmp_path / "gemm_ws.cubin", GEMM)
    assert done.returncode != 0
    assert "compile gemm_ws.cu with -gencode arch=compute_90a,code=sm_90a" in done.stderr


@pytest.mark.parametrize(("target", "waits"), [("sm_80", {"test_wait"}), ("sm_90a", {"try_wait"})])
def test_ring_polls_as_the_target_can(target, waits, tmp_path):
    ptx, _ = compiled(RING, target, "ptx", tmp_path)
    assert set(re.findall(r"mbarrier\.(\w+_wait)", ptx.read_text())) == waits


def test_ring_kernels_keep_their_names_and_parameters(tmp_path):
    ptx, _ = compiled(RING, "sm_90a", "ptx", tmp_path)
    entries = re.findall(r"\.entry (\w+)\((.*?)\)", ptx.read_text(), re.DOTALL)
    sizes = {name: re.findall(r"\.(u64|u32|b8)\b.*?(\[\d+\])?,?$", text, re.MULTILINE) for name, text in entries}
    assert sizes["ring"] == [("u64", ""), ("u64", ""), ("u32", "")]
    assert sizes["ring_params"] == [("b8", "[24]")]  # two pointers and an int, padded to eight bytes


@pytest.fixture(scope="module")
def gemm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("gemm_ws") / "gemm_ws"
    done = nvcc(*GEMM_TARGET, "-o", program, GEMM)
    assert done.returncode == 0, done.stderr
    return program


@pytest.mark.parametrize(
    "arguments", ["100 128 64", "128 128 32", "128 -128 64", "128 128", "1 2 3 4", "--repeat 0", "--repeat", "x"]
)
def test_gemm_refuses_what_it_cannot_compute(arguments, gemm):
    done = run(gemm, *arguments.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert "M, N and K are multiples of 128, 128 and 64" in done.stderr


@pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed")
def test_cmake_project_builds(tmp_path):
    build = tmp_path / "build"
    for command in (("-S", KERNELS, "-B", build, "-DCMAKE_CUDA_ARCHITECTURES=90a"), ("--build", build)):
        done = run("cmake", *command)
        assert done.returncode == 0, done.stdout + done.stderr
    assert run(build / "gemm_ws", "--help").returncode == 2


def test_cmake_project_is_one_that_anyone_could_have():
    assert "autostamp" not in (KERNELS / "CMakeLists.txt").read_text().lower()


def gemm_operand(rows: int, columns: int, seed: int) -> NDArray[np.float64]:
    """What gemm_ws.cu's make_matrix makes: splitmix64's finalizer on a counter, 24 bits of it, rounded to bf16."""
    x = np.arange(rows * columns, dtype=np.uint64) + (np.uint64(seed) << np.uint64(48))
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    x ^= x >> np.uint64(31)
    values = (x >> np.uint64(40)).astype(np.float32) / np.float32(2**23) - np.float32(1)
    bits = values.view(np.uint32).astype(np.uint64)
    bits = bits + 0x7FFF + ((bits >> np.uint64(16)) & np.uint64(1))  # to nearest, ties to even
    rounded = (bits & np.uint64(0xFFFF0000)).astype(np.uint32).view(np.float32)
    return rounded.astype(np.float64).reshape(rows, columns)


# One stage, fewer stages than the ring has, and many rounds over several tiles that differ in M and N.
@pytest.mark.gpu
@pytest.mark.parametrize(("m", "n", "k"), [(128, 128, 64), (128, 256, 192), (384, 256, 2048)])
def test_gemm_is_right(m, n, k, gemm, tmp_path):
    done = run(gemm, m, n, k, "--repeat", 3, "--dump", tmp_path / "c")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "checked outputs are wrong: ok" in done.stdout
    a, b = gemm_operand(m, k, 1), gemm_operand(n, k, 2)
    error = np.abs(np.fromfile(tmp_path / "c", np.float32).reshape(m, n) - a @ b.T)
    # As in gemm_ws.cu: for every 16 columns, 2^-22 of the sum of the magnitudes.
    assert (error <= k / 16 * 2.0**-22 * (np.abs(a) @ np.abs(b).T)).all()


@pytest.mark.gpu
def test_gemm_is_the_same_in_every_bit_each_time(gemm, tmp_path):
    for name in ("first", "second"):
        assert run(gemm, 256, 256, 1024, "--dump", tmp_path / name).returncode == 0
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


class RingParams(ctypes.Structure):
    """As in ring.cu."""

    _fields_ = (("in_", ctypes.c_void_p), ("out", ctypes.c_void_p), ("n", ctypes.c_int))


def launch(cubin: Path, kernel: str, blocks: int, *values: object) -> None:
    """Launch with these parameters (ctypes values) and wait. Needs a current context."""
    from cuda.bindings import driver

    def call(status: object, *results: object) -> object:
        assert status == driver.CUresult.CUDA_SUCCESS, status
        return results[0] if results else None

    module = call(*driver.cuModuleLoadData(cubin.read_bytes()))
    function = call(*driver.cuModuleGetFunction(module, kernel.encode()))
    addresses = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
    parameters = ctypes.addressof(addresses)
    call(*driver.cuLaunchKernel(function, blocks, 1, 1, RING_THREADS, 1, 1, 0, 0, parameters, 0))
    call(*driver.cuCtxSynchronize())
    call(*driver.cuModuleUnload(module))


# A part of one chunk, whole chunks in several rounds over the ring, and blocks with unequal numbers of chunks.
@pytest.mark.gpu
@pytest.mark.parametrize(("n", "blocks"), [(5, 1), (RING_CHUNK * RING_STAGES * 4, 1), (RING_CHUNK * 50 + 7, 8)])
@pytest.mark.parametrize("kernel", ["ring", "ring_params"])
def test_ring_is_right(kernel, n, blocks, tmp_path):
    import cupy

    major, minor = divmod(int(cupy.cuda.Device().compute_capability), 10)
    cubin, _ = compiled(RING, f"sm_{major}{minor}", "cubin", tmp_path)
    numbers = np.arange(n) % 1000 - 500
    given = cupy.asarray(numbers, np.float32)
    out = cupy.full(n + 1, -1, np.float32)
    plain = (ctypes.c_void_p(given.data.ptr), ctypes.c_void_p(out.data.ptr), ctypes.c_int(n))
    cupy.cuda.Device().synchronize()
    launch(cubin, kernel, blocks, *(plain if kernel == "ring" else [RingParams(*plain)]))
    # Eight times x -> 2 x + 1 is 2^8 x + (2^8 - 1); the largest, 500 * 256, is exact in fp32.
    assert cupy.asnumpy(out).tolist() == [*(256.0 * numbers + 255).tolist(), -1.0]
