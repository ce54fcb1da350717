# SPDX-License-Identifier: Apache-2.0
"""`autostamp sass` on kernels that are compiled here with no GPU. Expected counts come from the kernels' sources, and the
extent of loops from nvdisasm's text listing, which autostamp does not read.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from autostamp import cli
from autostamp.diagnostics import AutostampError
from autostamp.model.cubin import CubinFacts
from autostamp.model.kernel_loops import LoopReport
from autostamp.model.loop import MmaShape
from autostamp.passes import schedule
from autostamp.passes.loop_report import KernelLoops, compare
from autostamp.runtime import cubin, toolchain
from tests.builds import build_once

ROOT = Path(__file__).parents[2]
KERNELS = ROOT / "kernels"

TILE_K, WGMMA_K, STAGES = 64, 16, 4
"""Of both GEMMs: a tile of 128 by 128 by 64, and wgmma of 64 by 128 by 16 in each of two warpgroups."""


@pytest.fixture(scope="module", autouse=True)
def tools() -> None:
    try:
        toolchain.find("nvdisasm"), toolchain.find("cuobjdump")
    except AutostampError as error:
        pytest.skip(str(error))


def nvcc(source: Path, arch: str, out: Path, *options: str) -> Path:
    if shutil.which("nvcc") is None:
        pytest.skip("nvcc is not installed")
    command = ["nvcc", "-std=c++17", "-O3", f"-arch={arch}", "-cubin", *options, "-o", str(out), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def cuda_gemm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return nvcc(KERNELS / "cuda" / "gemm_ws.cu", "sm_90a", tmp_path_factory.mktemp("sass") / "gemm_ws.cubin")


@pytest.fixture(scope="module")
def dsl_folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    pytest.importorskip("cutlass", reason="CuTe-DSL is not installed")
    return {
        mode: build_once(tmp_path_factory, f"kernels-sm_90a-{mode}", "tests.compile.compile_kernels", "sm_90a", mode)
        for mode in ("clean", "stamped")
    }


@pytest.fixture(params=["cuda", "cutedsl"])
def gemm(request) -> CubinFacts:
    if request.param == "cuda":
        (facts,) = cubin.read_file(request.getfixturevalue("cuda_gemm"))
    else:
        (facts,) = cubin.read_file(request.getfixturevalue("dsl_folders")["clean"] / "gemm_ws.cubin")
    return facts


def main_loops(facts: CubinFacts) -> dict[str, LoopReport]:
    loops = KernelLoops(facts).report().main_loops
    assert len({loop.role for loop in loops}) == len(loops)
    return {loop.role: loop for loop in loops}


def test_mma_loop_does_one_tile_a_trip(gemm):
    loop = main_loops(gemm)["mma"]
    dtype = (
        "bf16" if "CUtensorMap" in gemm.kernel else "f16"
    )  # __nv_bfloat16 in gemm_ws.cu, cutlass.Float16 in gemm_ws.py
    (shape,) = loop.facts.mma
    assert shape == MmaShape(shape.opcode, 64, 128, WGMMA_K, dtype, "smem", TILE_K // WGMMA_K)
    counts = loop.facts.counts
    assert counts["HGMMA"] == 4
    assert counts["WARPGROUP.ARRIVE"] == 1  # wgmma.fence
    assert counts["WARPGROUP.DEPBAR"] == 1  # wait_group 1
    assert counts["SYNCS"] == 2  # the wait for the stage and the release of the one before
    assert (loop.copies, loop.inside, loop.facts.local_bytes) == (1, (), 0)
    assert {each.pattern.name for each in loop.patterns}.isdisjoint(
        {"local memory", "serialized wgmma", "wgmma drained at once"}
    )


def test_wait_is_for_the_group_of_the_trip_before(gemm):
    # wait_group 1 behind this trip's commit: the four wgmmas of this trip stay in flight.
    (wait,) = main_loops(gemm)["mma"].waits
    assert (wait.allowed, wait.trips, wait.mma, wait.mufu) == (1, 1, TILE_K // WGMMA_K, 0)
    # The DEPBAR stands behind its own trip's HGMMAs, so at least a trip lies between.
    assert wait.distance >= main_loops(gemm)["mma"].facts.instructions


def test_load_loop_copies_both_tiles_a_trip(gemm):
    loop = main_loops(gemm)["load"]
    assert loop.facts.counts["UTMALDG"] == 2  # A and B
    assert loop.facts.counts["SYNCS"] == 2  # the wait for the empty stage, arrive.expect_tx
    assert loop.facts.mma == ()
    assert loop.copies == 1


def test_the_kernel_has_no_other_roles_in_loops(gemm):
    assert {"mma", "load"} <= set(main_loops(gemm)) <= {"mma", "load", "store"}


def text_loop(path: Path, *opcodes: str) -> tuple[int, int, Counter[str]]:
    """Of the intervals in nvdisasm's text from a label to a conditional jump back to it, the shortest that holds all these
    opcodes: addresses of its first and last instruction, and how often each opcode stands in it, modifiers left out.
    """
    labels: dict[str, int] = {}
    lines: list[tuple[int, str]] = []
    guarded: set[int] = set()
    waiting: list[str] = []
    for line in toolchain.run("nvdisasm", "-c", path).splitlines():
        if match := re.match(r"(\.L_x_\d+):", line.strip()):
            waiting.append(match[1])
        elif match := re.match(r"\s+/\*([0-9a-f]{4,})\*/\s+(@!?U?P\w+\s+)?(.*?)\s*;", line):
            lines.append((int(match[1], 16), match[3]))
            guarded |= {lines[-1][0]} if match[2] else set()
            labels |= dict.fromkeys(waiting, lines[-1][0])
            waiting.clear()
    found = []
    for end, instruction in lines:
        match = re.match(r"BRA.*\((\.L_x_\d+)\)", instruction)
        if match and end in guarded and labels[match[1]] < end:
            inside = Counter(each.split()[0].split(".")[0] for at, each in lines if labels[match[1]] <= at <= end)
            if set(opcodes) <= set(inside):
                found.append((labels[match[1]], end, inside))
    return min(found, key=lambda each: each[1] - each[0])


@pytest.mark.parametrize(("role", "opcode"), [("mma", "HGMMA"), ("load", "UTMALDG")])
def test_extent_and_mix_are_those_of_the_text_listing(role, opcode, cuda_gemm):
    (facts,) = cubin.read_file(cuda_gemm)
    loop = main_loops(facts)[role].facts
    begin, end, inside = text_loop(cuda_gemm, opcode, "SYNCS")
    assert (loop.start, loop.end) == (begin, end)
    # Of a wait that is tried again, the listing may hold more in line or elsewhere; all else is the same.
    retried = {"BRA", "IMAD", "NANOSLEEP", "SYNCS"}
    counted = Counter()
    for name, count in loop.counts.items():
        counted[name.split(".")[0]] += count
    assert {name: counted[name] for name in counted if name not in retried} == {
        name: inside[name] for name in inside if name not in retried
    }


def test_a_wait_for_all_groups_shows(cuda_gemm, tmp_path):
    source = tmp_path / "drained.cu"
    text = (KERNELS / "cuda" / "gemm_ws.cu").read_text()
    assert text.count("wgmma_wait_group<1>();") == 1
    source.write_text(text.replace("wgmma_wait_group<1>();", "wgmma_wait_group<0>();"))
    ((first,), (second,)) = (
        cubin.read_file(each) for each in (cuda_gemm, nvcc(source, "sm_90a", tmp_path / "b.cubin"))
    )
    found = compare(first, second)
    (pair,) = [each for each in found.loops if each.first is not None and each.first.role == "mma"]
    assert pair.second is not None
    (before,), (after,) = pair.first.waits, pair.second.waits
    assert (before.allowed, before.trips, after.allowed, after.trips) == (1, 1, 0, 0)
    assert after.distance < before.distance
    assert after.mma == 0
    assert "wgmma drained at once" not in {each.pattern.name for each in pair.first.patterns}
    assert "wgmma drained at once" in {each.pattern.name for each in pair.second.patterns}


def test_stamps_left_out_leave_the_clean_kernels_work(dsl_folders):
    (clean,), (stamped,) = (cubin.read_file(dsl_folders[mode] / "gemm_ws.cubin") for mode in ("clean", "stamped"))
    found = compare(clean, stamped, without_stamps=True)
    stamps = KernelLoops(stamped).stamps
    assert {index for index, each in enumerate(stamped.instructions) if each.is_clock_read} <= stamps
    assert all(schedule.family(stamped.instructions[index].opcode) not in schedule.CORE for index in stamps)
    for pair in found.loops:
        assert pair.first is not None
        assert pair.second is not None
        assert pair.first.role == pair.second.role
        core = [
            {name: count for name, count in loop.facts.counts.items() if name in schedule.CORE}
            for loop in (pair.first, pair.second)
        ]
        assert core[0] == core[1]
        assert "STG" not in pair.second.facts.counts


SMALL = r"""
extern "C" __global__ void tiles(const unsigned* a, float* d, int n) {
    float c[4] = {};
    #pragma unroll 1
    for (int i = 0; i < n; ++i) {
        const unsigned* p = a + 6 * i;
        #pragma unroll
        for (int step = 0; step < 2; ++step)
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                         "{%0,%1,%2,%3};" : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                         : "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]), "r"(p[4]), "r"(p[5]));
    }
    for (int i = 0; i < 4; ++i) d[4 * threadIdx.x + i] = c[i];
}
extern "C" __global__ void unrolled(float* d, int n) {
    __shared__ volatile float box;
    float x = d[threadIdx.x];
    #pragma unroll 4
    for (int i = 0; i < n; ++i) { __syncthreads(); x = x * box + 1.0f; }
    d[threadIdx.x] = x;
}
extern "C" __global__ void local_array(float* d, const int* at, int n) {
    float box[64];
    for (int i = 0; i < 64; ++i) box[i] = d[i];
    #pragma unroll 1
    for (int i = 0; i < n; ++i) box[at[i]] += 1.0f;
    #pragma unroll 1
    for (int i = 0; i < n; ++i) d[i] = box[at[n + i]];
}
extern "C" __global__ void divides(unsigned* d, unsigned n) {
    #pragma unroll 1
    for (unsigned i = 0; i < n; ++i) d[i] = (n + 7 * i) / (d[i] + 1);
}
extern "C" __global__ void straight(float* d) { d[threadIdx.x] += 1.0f; }
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small")
    (folder / "small.cu").write_text(SMALL)
    return nvcc(folder / "small.cu", "sm_80", folder / "small.cubin")


def loops_of(path: Path, kernel: str) -> tuple[LoopReport, ...]:
    (facts,) = (each for each in cubin.read_file(path) if each.kernel == kernel)
    return KernelLoops(facts).report().loops


def test_warp_mma(small):
    (loop,) = loops_of(small, "tiles")
    assert loop.role == "mma"
    assert loop.facts.mma == (MmaShape("HMMA.16816.F32.BF16", 16, 8, 16, "bf16", "registers", 2),)


def test_an_unrolled_loop_is_four_alike_parts_and_its_rest_one(small):
    unrolled = {
        loop.facts.counts["BAR.SYNC"]: loop for loop in loops_of(small, "unrolled") if "BAR.SYNC" in loop.facts.counts
    }
    assert 4 in unrolled
    assert all(loop.copies == barriers for barriers, loop in unrolled.items())
    assert unrolled[4].facts.counts["FFMA"] == 4


def test_local_memory_is_counted_by_the_trip(small):
    adds, copies = (loop for loop in loops_of(small, "local_array") if loop.facts.local_bytes)
    assert (adds.facts.local_bytes, copies.facts.local_bytes) == (4 + 4, 4)  # a float read and written; one read
    assert "local memory" in {each.pattern.name for each in adds.patterns}


def test_a_division_is_seen(small):
    (loop,) = loops_of(small, "divides")
    assert "integer division" in {each.pattern.name for each in loop.patterns}


def test_command_on_a_real_cubin(small, capsys):
    assert cli.main(["sass", "--json", "--kernel", "t*", str(small)]) == 0
    (kernel,) = json.loads(capsys.readouterr().out)["kernels"]
    assert kernel["kernel"] == "tiles"
    assert cli.main(["sass", "--kernel", "straight", str(small)]) == 1
    assert "AS4031 no loop found in straight" in capsys.readouterr().err
    assert cli.main(["sass", str(small), str(small), "--fail-over", "0"]) == 0
