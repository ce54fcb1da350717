# SPDX-License-Identifier: Apache-2.0
"""The NVFP4 ladder: its kernels compiled clean and stamped, and the tables of its number format."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cuda_builds import ROOT, SM_90A, SM_100A, Builds, build
from tests.deferred_waits import early_clocks

if shutil.which("nvcc") is None:
    pytest.skip("nvcc is not installed", allow_module_level=True)

SOURCE = ROOT / "kernels" / "cuda" / "gemv" / "gemv.cu"
RUNGS = {"naive", "coalesced", "wide", "integer", "cached", "registers", "ring"}

E2M1 = (0, 0.5, 1, 1.5, 2, 3, 4, 6)
"""Magnitudes by the three low bits: OCP Microscaling Formats, "FP4 (E2M1)"; the top bit is the sign."""


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Builds:
    words = [*SM_90A, "-std=c++17", "-O3", "-Xcompiler=-Wall,-Wextra", str(SOURCE)]
    return build(tmp_path_factory.mktemp("gemv") / "builds", words)


def test_off_is_the_clean_build(builds):
    assert builds.cubin("off") == builds.cubin("clean")
    assert builds.cubin("copies") == builds.cubin("clean")


def test_the_compiler_warns_of_nothing_and_spills_nothing(builds):
    assert "warning" not in builds.log("clean").lower()
    assert builds.added_messages() == []
    assert all(kernel.spills == (0, 0) for kernel in builds.kernels)


def test_every_rung_is_compiled_once(builds):
    names = {match[1] for kernel in builds.kernels if (match := re.search(r"gemv_([a-z]+)", kernel.clean.kernel))}
    assert names == RUNGS


def test_stamps_change_no_sync_instruction(builds):
    for kernel in builds.kernels:
        assert kernel.changed == {}
        # Products of several rows hang on nothing of each other, and where a thread has 8 rows it has hardly a register to spare:
        # 16 of 145 core instructions change places there, 4 of 71 with two rows.
        assert kernel.report.schedule.distance < (0.12 if "ILi8E" in kernel.clean.kernel else 0.06)
        assert early_clocks(kernel.stamped.instructions) == []


def test_blackwell_too(tmp_path):
    words = [*SM_100A, "-std=c++17", "-O3", str(SOURCE)]
    found = build(tmp_path / "builds", words, ("clean", "off", "stamped"))
    assert found.cubin("off") == found.cubin("clean")
    assert found.added_messages() == []
    for kernel in found.kernels:
        assert kernel.changed == {}
        assert kernel.spills == (0, 0)


def test_sites_and_roles(builds):
    found = {(site.kind.value, site.side.value): 0 for site, _ in builds.sites("ring.cuh")}
    for site, _ in builds.sites("ring.cuh"):
        found[site.kind.value, site.side.value] += 1
    # Waits: empty, full, __syncthreads, __syncwarp twice. Signals: expect_tx, two bulk copies, the release.
    assert sum(count for (kind, _), count in found.items() if kind == "wait") == 5
    assert sum(count for (kind, _), count in found.items() if kind == "signal") == 4


def test_bulk_copies_and_cache_hints_are_in_the_machine_code(builds):
    opcodes = {
        match[1]: {each.opcode for each in kernel.clean.instructions}
        for kernel in builds.kernels
        if (match := re.search(r"gemv_([a-z]+)", kernel.clean.kernel))
    }
    assert any(opcode.startswith("UBLKCP") for opcode in opcodes["ring"])
    assert "LDG.E.128.CONSTANT" in opcodes["wide"]
    assert {"LDG.E.128.CONSTANT", "LDG.E.NA.128.CONSTANT", "LDG.E.EL.128.CONSTANT"} & opcodes["cached"] == {
        "LDG.E.NA.128.CONSTANT",  # L1::no_allocate
        "LDG.E.EL.128.CONSTANT",  # L1::evict_last
    }
    assert "IDP.4A.S8.S8" in opcodes["integer"]
    assert "IDP.4A.S8.S8" not in opcodes["wide"]


def prmt(low: int, high: int, selectors: int) -> list[int]:
    """PTX ISA, "prmt", default mode: four bytes."""
    table = [*low.to_bytes(4, "little"), *high.to_bytes(4, "little")]
    found = []
    for place in range(4):
        selector = selectors >> 4 * place & 15
        byte = table[selector & 7]
        found.append((0xFF if byte & 0x80 else 0) if selector & 8 else byte)
    return found


def table() -> tuple[int, int]:
    """The lower and the upper word of the look-up in nvfp4.cuh."""
    text = (SOURCE.parent / "nvfp4.cuh").read_text()
    lower = re.search(r"lower\(unknown\(0x(\w+)\)\)", text)
    upper = re.search(r"prmt\(lower, 0x(\w+), ", text)
    assert lower is not None
    assert upper is not None
    return int(lower[1], 16), int(upper[1], 16)


def test_the_look_up_gives_twice_the_magnitude_of_one_sign():
    for nibble in range(16):
        positive, negative = (prmt(*table(), nibbles) for nibbles in (nibble * 0x1111, nibble * 0x1111 ^ 0x8888))
        magnitude, other = (negative, positive) if nibble & 8 else (positive, negative)
        assert magnitude == [2 * E2M1[nibble & 7]] * 4
        assert other == [0] * 4


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gemv") / "gemv"
    subprocess.run(["nvcc", *SM_90A, "-std=c++17", "-O3", "-o", str(path), str(SOURCE)], check=True, timeout=300)
    return path


@pytest.mark.parametrize(
    "arguments", ["128 1000 1", "128 17408 1", "0 1024 1", "128 1024", "--rung fast", "--repeat 0"]
)
def test_refuses_what_it_cannot_compute(arguments, program):
    done = subprocess.run([program, *arguments.split()], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert "K is a multiple of 1024 up to 16384" in done.stderr


# One row, rows that do not divide among CTAs, teams of every number of warps, several vectors.
@pytest.mark.gpu
@pytest.mark.parametrize("shape", ["1 1024 1", "7 2048 3", "1000 3072 1", "333 7168 5", "257 16384 2"])
def test_every_rung_is_right(shape, program):
    done = subprocess.run([program, *shape.split()], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(re.findall(r"^(\w+) us_per_launch", done.stdout, re.MULTILINE)) == RUNGS | {"empty", "floor"}
    assert set(re.findall(r"wrong (\d+)", done.stdout)) == {"0"}
