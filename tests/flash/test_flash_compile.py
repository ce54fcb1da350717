# SPDX-License-Identifier: Apache-2.0
"""FlashAttention as published, compiled through its own interface with no GPU: clean, off and stamped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

from autostamp.model.cubin import CubinFacts, StampCheck
from autostamp.model.manifest import Instance, KernelTrace, Manifest
from autostamp.model.site import Site
from autostamp.passes import safety, schedule
from autostamp.passes.loop_report import KernelLoops
from autostamp.passes.stamp_check import PtxStamps, check, ptx_stamps
from autostamp.runtime import cubin
from autostamp.runtime.manifest_file import read_manifest
from tests.builds import build_once
from tests.flash.compile_flash import MASKS

pytestmark = pytest.mark.flash

MODES = ("clean", "off", "stamped")
BUILDS = [(arch, direction) for direction in ("forward", "backward") for arch in ("sm_90", "sm_100")]

ROLES = {
    ("sm_90", "forward"): {"load", "mma"},
    ("sm_90", "backward"): {"load", "mma", "dQaccum_store"},
    ("sm_100", "forward"): {"load", "mma", "softmax1", "correction", "epilogue"},
    ("sm_100", "backward"): {"load", "mma", "compute", "reduce", "relay"},
}
"""Role branches of the main kernels as their sources write them, by warp id, else by the helper that the branch calls.

The softmax warps of sm_100 share a branch, whose test compares with the last of them: `warp_idx <= self.softmax1_warp_ids[-1]`.
"""

UNREACHABLE = {("sm_100", "backward"): ("cute.arch.cp_async_bulk_wait_group(0, read=read_flag)", "is_tma_warp")}
"""A wait in a branch that only block-sparse masks can take: traced all the same, and dropped by the compiler."""


@dataclass(frozen=True)
class Build:
    """One architecture and direction, causal and not, in three modes. Kernels of both masks may have equal names."""

    arch: str
    direction: str
    folders: dict[str, Path]

    @cached_property
    def manifest(self) -> Manifest:
        return read_manifest(self.folders["stamped"] / "manifest.json")

    @cached_property
    def _sites(self) -> dict[tuple[str, int], Site]:
        return {(file.key, site.number): site for file in self.manifest.files for site in file.sites}

    def site(self, row: Instance) -> Site:
        return self._sites[row.file, row.site]

    def folder(self, mode: str, mask: str) -> Path:
        return self.folders[mode] / f"{self.direction}-{mask}"

    def files(self, mode: str, mask: str) -> dict[str, bytes]:
        return {file.name: file.read_bytes() for file in sorted(self.folder(mode, mask).iterdir())}

    def kernels(self, mask: str) -> Iterator[Kernel]:
        """Every kernel with its trace; a kernel without a trace or a trace without a kernel is an error."""
        numbers = json.loads((self.folders["stamped"] / "traces.json").read_text())[f"{self.direction}-{mask}"]
        traces = {trace.symbol: trace for trace in self.manifest.traces if trace.number in numbers}
        for file in sorted(self.folder("stamped", mask).glob("*.cubin")):
            (clean,), (stamped,) = (
                cubin.read_file(self.folder(mode, mask) / file.name) for mode in ("clean", "stamped")
            )
            yield Kernel(clean, stamped, file.with_suffix(".ptx").read_text(), traces.pop(stamped.kernel))
        assert not traces

    @cached_property
    def all_kernels(self) -> dict[str, list[Kernel]]:
        return {mask: list(self.kernels(mask)) for mask in MASKS}

    def main_kernel(self, mask: str) -> Kernel:
        """The attention kernel itself: preprocessing and postprocessing have fewer sync calls."""
        return max(self.all_kernels[mask], key=lambda kernel: len(kernel.trace.instances))


@dataclass(frozen=True)
class Kernel:
    """Both builds of one kernel, the stamped one's PTX, and its trace."""

    clean: CubinFacts
    stamped: CubinFacts
    ptx: str
    trace: KernelTrace

    @cached_property
    def written(self) -> PtxStamps:
        return ptx_stamps(self.ptx, self.stamped.kernel)

    @cached_property
    def checked(self) -> StampCheck:
        found = check(self.clean, self.stamped, self.ptx, self.trace)
        assert found is not None
        return found


def events(row: Instance) -> list[int]:
    return [event for event in (row.enter, row.exit, row.signal) if event]


@pytest.fixture(scope="module", params=BUILDS, ids="-".join)
def build(request, tmp_path_factory: pytest.TempPathFactory) -> Build:
    arch, direction = request.param

    def make(mode: str) -> Path:
        return build_once(tmp_path_factory, f"flash-{arch}-{mode}", "tests.flash.compile_flash", arch, mode)

    with ThreadPoolExecutor(2) as pool:
        return Build(arch, direction, dict(zip(MODES, pool.map(make, MODES), strict=True)))


@pytest.fixture(params=MASKS)
def mask(request) -> str:
    return request.param


def test_off_is_the_clean_build(build, mask):
    clean = build.files("clean", mask)
    assert {Path(name).suffix for name in clean} == {".ptx", ".cubin"}
    assert build.files("off", mask) == clean


def test_stamped_kernels_keep_their_names(build, mask):
    clean, stamped = build.files("clean", mask), build.files("stamped", mask)
    assert list(stamped) == list(clean)
    assert all(stamped[name] != clean[name] for name in clean)
    assert all(kernel.clean.kernel == kernel.stamped.kernel for kernel in build.all_kernels[mask])


def test_main_kernel_is_that_of_the_direction(build, mask):
    name = f"FlashAttention{build.direction.capitalize()}{build.arch.replace('_', '').capitalize()}.kernel"
    assert build.main_kernel(mask).trace.kernel == name


def test_every_wait_has_two_stamps_and_every_signal_one(build, mask):
    for kernel in build.all_kernels[mask]:
        rows = kernel.trace.instances
        assert {(row.kind, bool(row.enter), bool(row.exit), bool(row.signal)) for row in rows} <= {
            ("wait", True, True, False),
            ("signal", False, False, True),
        }
        numbers = [event for row in rows for event in events(row)]
        assert sorted(numbers) == list(range(1, len(numbers) + 1))


def test_every_stamp_is_written_in_the_ptx(build, mask):
    for kernel in build.all_kernels[mask]:
        absent = {row for row in kernel.trace.instances if not set(events(row)) <= set(kernel.written.events)}
        allowed = {(build.site(row).text, build.site(row).guard.removeprefix("not ").strip("()")) for row in absent}
        assert allowed <= {UNREACHABLE.get((build.arch, build.direction))}
        assert all(set(events(row)).isdisjoint(kernel.written.events) for row in absent)


@pytest.mark.parametrize("build", UNREACHABLE, indirect=True, ids="-".join)
def test_what_the_compiler_dropped_is_in_no_build(build, mask):
    kernel = build.main_kernel(mask)
    text, _ = UNREACHABLE[build.arch, build.direction]
    written = set(kernel.written.events)
    traced = [row for row in kernel.trace.instances if build.site(row).text.startswith(text.split("read=")[0])]
    reached = sum(row.enter in written for row in traced)
    assert 0 < reached < len(traced)
    name = next(name for name in build.files("clean", mask) if "bwd_sm100" in name and name.endswith(".ptx"))
    for mode in ("clean", "stamped"):
        assert build.files(mode, mask)[name].decode().count("cp.async.bulk.wait_group.read \t0;") == reached


def test_every_stamp_is_compiled(build, mask):
    for kernel in build.all_kernels[mask]:
        dropped = {row.number for row in kernel.trace.instances if not set(events(row)) <= set(kernel.written.events)}
        assert set(kernel.checked.missing) == dropped
        assert kernel.checked.unnamed == 0
        assert kernel.stamped.clock_reads - kernel.clean.clock_reads >= kernel.written.total


@pytest.mark.parametrize("build", [each for each in BUILDS if each[1] == "forward"], indirect=True, ids="-".join)
def test_no_stamp_stands_on_the_wrong_side(build, mask):
    for kernel in build.all_kernels[mask]:
        assert kernel.checked.misplaced == ()
        waits = sum(row.kind == "wait" for row in kernel.trace.instances)
        assert len(kernel.checked.around) > waits * 0.9  # the rest are warp barriers, which leave no instruction


def test_roles_are_those_of_the_source(build, mask):
    trace = build.main_kernel(mask).trace
    assert {row.role for row in trace.instances} - {""} == ROLES[build.arch, build.direction]
    # What has no role is what all warps run: no helper is reached from there.
    assert {len(row.call_path) for row in trace.instances if not row.role} <= {1}


def test_pipelines_have_the_names_that_the_kernel_gives_them(build, mask):
    trace = build.main_kernel(mask).trace
    rings = {barrier.label: barrier.stages for barrier in trace.barriers if barrier.type.startswith("Pipeline")}
    expected = {"forward": {"pipeline_q", "pipeline_k", "pipeline_v"}, "backward": {"pipeline_Q", "pipeline_dO"}}
    if build.arch == "sm_100":
        expected["forward"] = {"pipeline_q", "pipeline_kv", "pipeline_s_p_o"}
    assert expected[build.direction] <= rings.keys()
    assert all(stages > 0 for stages in rings.values())


@pytest.mark.parametrize("build", [("sm_90", "forward")], indirect=True, ids="-".join)
def test_registers_stay_and_nothing_spills(build, mask):
    for kernel in build.all_kernels[mask]:
        clean, stamped = (
            (each.stack_bytes, each.local_bytes, each.spill_store_bytes, each.spill_load_bytes, each.shared_bytes)
            for each in (kernel.clean, kernel.stamped)
        )
        assert stamped == clean
        unit = safety.REGISTER_UNIT
        assert kernel.stamped.registers <= -(-kernel.clean.registers // unit) * unit


TILE, HEAD_DIM, MMA_K, MMA_ROWS, THREADS = 128, 128, 16, 64, 128
"""Forward for heads of 128: tiles of 128 by 128 (`_tile_size_fwd_sm90`, sm_100's default); bf16 MMAs are 16 deep, a warpgroup
of 128 threads holds 64 rows.
"""


@pytest.mark.parametrize("build", [("sm_90", "forward")], indirect=True, ids="-".join)
def test_main_loops_of_sm_90_do_what_the_tile_asks_for(build, mask):
    for facts in (build.main_kernel(mask).clean, build.main_kernel(mask).stamped):
        loops = {loop.role: loop for loop in KernelLoops(facts).report().main_loops}
        assert loops.keys() == {"load", "mma"}
        counts = loops["mma"].facts.counts
        scores = MMA_ROWS * TILE // THREADS  # of a tile, to a thread: 64, in two rows
        # S = Q K^T over the head's depth, O += P V over the tile's columns, P in registers.
        assert [(each.m, each.n, each.k, each.operand_a, each.count) for each in loops["mma"].facts.mma] == [
            (MMA_ROWS, TILE, MMA_K, "smem", HEAD_DIM // MMA_K),
            (MMA_ROWS, HEAD_DIM, MMA_K, "registers", TILE // MMA_K),
        ]
        assert counts["MUFU.EX2"] == scores + 2  # and the factor that rescales each row
        assert counts["F2FP"] == scores // 2  # two to an instruction
        assert counts["SHFL"] == 2 * 2  # a row's maximum is that of four threads: two steps for each row
        assert loops["load"].facts.counts["UTMALDG"] == 2 * 2  # K and V, each in two boxes of 64 columns (128 bytes)
        assert [each.allowed for each in loops["mma"].waits] == [1, 0]  # S while O is in flight, then O


@pytest.mark.parametrize("build", [("sm_100", "forward")], indirect=True, ids="-".join)
def test_main_loops_of_sm_100_do_what_the_tile_asks_for(build, mask):
    for facts in (build.main_kernel(mask).clean, build.main_kernel(mask).stamped):
        loops = {loop.role: loop for loop in KernelLoops(facts).report().main_loops}
        assert {"load", "mma", "softmax", "correction"} <= loops.keys()
        # Two tiles of queries (q_stage) against one of keys; 2-CTA instructions have the rows of both CTAs.
        per_gemm = {"smem": 2 * HEAD_DIM // MMA_K, "tmem": 2 * TILE // MMA_K}
        assert {each.operand_a: each.count for each in loops["mma"].facts.mma} == per_gemm
        for each in loops["mma"].facts.mma:
            assert (each.m, each.n, each.k, each.dtype) == (
                TILE * (2 if ".2CTA" in each.opcode else 1),
                TILE,
                MMA_K,
                "bf16",
            )
        # A thread holds a row of 128 scores, packed in pairs. At most a quarter of the exponentials are polynomials
        # (FlashAttention-4, section 3.1); one more rescales the row.
        assert loops["softmax"].facts.counts["F2FP"] == TILE // 2
        assert 0.75 * TILE <= loops["softmax"].facts.counts["MUFU.EX2"] <= TILE + 1


def test_stamps_change_no_loop_but_by_their_own_instructions(build, mask):
    kernel = build.main_kernel(mask)
    clean, stamped = (KernelLoops(each, without_stamps=True) for each in (kernel.clean, kernel.stamped))
    assert len(clean.found.work) == len(stamped.found.work)
    assert clean.found.irregular == stamped.found.irregular == ()
    roles = [sorted(loop.role for loop in each.report().main_loops) for each in (clean, stamped)]
    assert roles[0] == roles[1]
    reads = {index for index, each in enumerate(kernel.stamped.instructions) if each.is_clock_read}
    assert reads <= stamped.stamps
    assert all(
        schedule.family(kernel.stamped.instructions[index].opcode) not in schedule.CORE for index in stamped.stamps
    )


def test_a_stamp_taken_out_of_the_ptx_is_missed(build, mask):
    kernel = build.main_kernel(mask)
    wait = next(row for row in kernel.trace.instances if row.kind == "wait" and row.role)
    assert f"// autostamp {wait.exit}\n" in kernel.ptx
    cut = kernel.ptx.replace(f"// autostamp {wait.exit}\n", "")
    found = check(kernel.clean, kernel.stamped, cut, kernel.trace)
    assert found is not None
    assert set(found.missing) - set(kernel.checked.missing) == {wait.number}


def test_a_clock_read_taken_out_of_the_sass_is_missed(build, mask):
    kernel = build.main_kernel(mask)
    first = next(at for at, each in enumerate(kernel.stamped.instructions) if each.is_clock_read)
    rest = kernel.stamped.instructions[:first] + kernel.stamped.instructions[first + 1 :]
    cut = CubinFacts(kernel.stamped.kernel, 0, 0, 0, 0, rest)
    found = check(kernel.clean, cut, kernel.ptx, kernel.trace)
    assert found is not None
    assert found.clock_reads == kernel.checked.clock_reads - 1 < kernel.written.total
