# SPDX-License-Identifier: Apache-2.0
"""The four GEMMs of kernels/cuda/gemm: what nvcc makes of them, clean and through `autostamp nvcc`, with no GPU."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.cuda_builds import ROOT, SM_90A, Builds, build
from tests.deferred_waits import early_clocks, waits

if shutil.which("nvcc") is None:
    pytest.skip("nvcc is not installed", allow_module_level=True)

FOLDER = ROOT / "kernels" / "cuda" / "gemm"
VARIANTS = ("serial", "plain", "pingpong", "cooperative")

WGMMAS = {"serial": 4 * 2, "plain": 4 * 2, "pingpong": 4 * 2, "cooperative": 4}
"""A stage is 128 bytes of K deep, a wgmma 32; and a warpgroup has 128 rows of the tile, or 64. The loop is not unrolled."""

LOADS = {"serial": 4, "plain": 2, "pingpong": 2, "cooperative": 2}
"""A and B; serial also fills its ring before the loop."""

STORES = {"serial": 8, "plain": 8, "pingpong": 8, "cooperative": 8}
"""Boxes of 16 rows by 32 columns of a warp: (128 rows / 64) * (128 columns / 32), or 1 * (256 / 32)."""


@pytest.fixture(scope="module", params=VARIANTS)
def variant(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def builds(variant: str, tmp_path_factory: pytest.TempPathFactory) -> Builds:
    words = [*SM_90A, "-std=c++17", "-O3", "-Xcompiler=-Wall,-Wextra", str(FOLDER / f"gemm_{variant}.cu")]
    return build(tmp_path_factory.mktemp(variant) / "builds", words)


def test_off_is_the_clean_build(builds):
    assert builds.cubin("off") == builds.cubin("clean")
    # What the stamped build compiled, without -DAUTOSTAMP.
    assert builds.cubin("copies") == builds.cubin("clean")


def test_both_types_have_a_kernel_under_the_same_name_in_both_builds(builds, variant):
    assert all(kernel.stamped.kernel == kernel.clean.kernel for kernel in builds.kernels)
    names = {kernel.clean.kernel for kernel in builds.kernels}
    assert {kind for name in names for kind in re.findall(rf"gemm_{variant}I(f|13__nv_bfloat16)E", name)} == {
        "f",
        "13__nv_bfloat16",
    }


def test_compiler_has_nothing_to_say(builds):
    # ptxas says with C7510 to C7515 that it had to serialise wgmma, and with C7508 that it ignores setmaxnreg.
    assert not re.search(r"warning|C75\d\d", builds.log("clean"), re.IGNORECASE)
    assert builds.added_messages() == []
    assert all(kernel.spills == (0, 0) for kernel in builds.kernels)


def test_two_ctas_fit_on_an_sm_where_the_kernel_counts_on_it(builds, variant):
    if variant in {"serial", "plain"}:
        threads = {"serial": 128, "plain": 160}[variant]
        for kernel in builds.kernels:
            assert 2 * threads * max(kernel.clean.registers, kernel.stamped.registers) <= 65536


def test_instructions_are_those_that_the_source_asks_for(builds, variant):
    for kernel in builds.kernels:
        names = Counter(instruction.opcode.split(".")[0] for instruction in kernel.clean.instructions)
        assert names["HGMMA"] == WGMMAS[variant]
        assert names["UTMALDG"] == LOADS[variant]
        assert names["UTMASTG"] == STORES[variant]


def test_sync_instructions_are_the_same_in_the_same_order(builds):
    for kernel in builds.kernels:
        assert {"HGMMA", "UTMALDG", "SYNCS.EXCH", "SYNCS.PHASECHK", "WARPGROUP.DEPBAR"} <= set(kernel.counts)
        assert kernel.changed == {}
        assert kernel.report.schedule.distance == 0


def test_no_clock_runs_ahead_of_a_barrier(builds):
    for kernel in builds.kernels:
        assert waits(kernel.stamped.instructions)
        assert early_clocks(kernel.stamped.instructions) == []


def test_every_site_of_the_unit_is_in_the_ptx(builds):
    expected = {event for _, events in builds.sites() for event in events}
    for kernel in builds.kernels:
        assert set(kernel.written.events) == expected  # those of store_rows, which is unrolled, more than once
        stamps = kernel.report.stamps
        assert stamps is not None
        assert (stamps.missing, stamps.unnamed) == ((), 0)


def run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def program(variant: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp(variant) / f"gemm_{variant}"
    done = run("nvcc", *SM_90A, "-std=c++17", "-O1", "-o", out, FOLDER / f"gemm_{variant}.cu")
    assert done.returncode == 0, done.stderr
    return out


@pytest.mark.parametrize(
    "arguments",
    ["100 256 64", "256 100 64", "256 256 16", "256 256 32 --dtype bf16", "256 256", "1 2 3 4", "--dtype fp8", "x"],
)
def test_what_cannot_be_computed_is_refused(arguments, program):
    done = run(program, *arguments.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert re.search(r"M, N and K are multiples of \d+, \d+ and 32 \(bf16: 64\)", done.stderr)


@pytest.mark.parametrize("target", ["sm_90", "sm_100a"])
def test_another_target_is_refused(target, tmp_path):
    done = run("nvcc", "-std=c++17", f"-arch={target}", "-cubin", "-o", tmp_path / "x", FOLDER / "gemm_plain.cu")
    assert done.returncode != 0
    assert "compile with -gencode arch=compute_90a,code=sm_90a" in done.stderr
