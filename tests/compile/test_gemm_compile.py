# SPDX-License-Identifier: Apache-2.0
"""The bundled GEMM: what a trace of it knows, and `autostamp safety` on its cubins."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("cutlass", reason="CuTe-DSL is not installed")

from autostamp.diagnostics import AutostampError
from autostamp.model.manifest import KernelTrace, Manifest
from autostamp.passes import safety
from autostamp.runtime import cubin, toolchain
from autostamp.runtime.manifest_file import read_manifest
from tests.builds import build_once, run_module
from tests.deferred_waits import early_clocks, waits

TILE_N, EPILOGUE_N, STAGES = 128, 32, 4


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {
        mode: build_once(tmp_path_factory, f"kernels-sm_90a-{mode}", "tests.compile.compile_kernels", "sm_90a", mode)
        for mode in ("clean", "off", "stamped")
    }


@pytest.fixture(scope="module")
def manifest(folders) -> Manifest:
    return read_manifest(folders["stamped"] / "manifest.json")


@pytest.fixture(scope="module")
def trace(manifest) -> KernelTrace:
    return next(trace for trace in manifest.traces if trace.kernel == "GemmWarpSpecialized.kernel")


@pytest.fixture(scope="module")
def tools() -> None:
    try:
        toolchain.find("nvdisasm"), toolchain.find("cuobjdump")
    except AutostampError as error:
        pytest.skip(str(error))


def methods(manifest: Manifest, trace: KernelTrace) -> list[str]:
    sites = {(file.key, site.number): site for file in manifest.files for site in file.sites}
    return [sites[row.file, row.site].method for row in trace.instances]


def test_pipeline_keeps_its_name_in_helpers_that_call_it_otherwise(manifest, trace):
    rows = [row for row in trace.instances if trace.barriers[row.barrier - 1].label == "ab_pipeline"]
    assert {trace.barriers[row.barrier - 1] for row in rows} == {
        barrier for barrier in trace.barriers if barrier.type == "PipelineTmaAsync"
    }
    assert {trace.barriers[row.barrier - 1].stages for row in rows} == {STAGES}
    # `producer` in load(), `consumer` in mma(): acquire, commit and tail; first wait, loop wait, two releases.
    assert sorted((row.role, row.side) for row in rows) == [
        ("load", "empty"),
        ("load", "empty"),
        ("load", "full"),
        ("mma", "empty"),
        ("mma", "empty"),
        ("mma", "full"),
        ("mma", "full"),
    ]


def test_what_tma_makes_of_acquire_and_commit(manifest, trace):
    rows = [
        (method, row.is_noop, row.signals)
        for method, row in zip(methods(manifest, trace), trace.instances, strict=True)
        if row.role == "load"
    ]
    assert rows == [("producer_acquire", False, ("full",)), ("producer_commit", True, ()), ("producer_tail", False, ())]


def test_an_unrolled_loop_gives_an_instance_for_each_step(manifest, trace):
    found = methods(manifest, trace)
    slices = TILE_N // EPILOGUE_N
    assert found.count("arrive_and_wait") == 2 * slices
    assert found.count("producer_acquire") == 1 + slices
    assert found.count("wait_group") == 2


def test_roles_are_those_of_the_source(trace):
    assert [row.role for row in trace.instances if not row.role] == [""]  # the barrier that all warps meet at first
    assert {row.role for row in trace.instances} == {"", "load", "mma"}


@pytest.mark.usefixtures("tools")
def test_every_stamp_is_in_the_sass_on_its_side(folders, trace):
    clean, stamped = (cubin.read_file(folders[mode] / "gemm_ws.cubin")[0] for mode in ("clean", "stamped"))
    report = safety.compare(clean, stamped, (folders["stamped"] / "gemm_ws.ptx").read_text(), trace)
    assert report.stamps is not None
    assert (report.stamps.missing, report.stamps.unnamed, report.stamps.misplaced) == ((), 0, ())
    assert report.stamps.clock_reads == report.stamps.ptx_comments
    assert set(report.stamps.around) == {row.number for row in trace.instances if row.kind == "wait"}
    assert stamped.registers <= -(-clean.registers // safety.REGISTER_UNIT) * safety.REGISTER_UNIT
    spills = [(each.stack_bytes, each.spill_store_bytes, each.spill_load_bytes) for each in (clean, stamped)]
    assert spills == [(0, 0, 0)] * 2


@pytest.mark.usefixtures("tools")
def test_no_clock_runs_ahead_of_a_barrier(folders):
    (stamped,) = cubin.read_file(folders["stamped"] / "gemm_ws.cubin")
    assert waits(stamped.instructions)
    assert early_clocks(stamped.instructions) == []


def run_safety(folders: dict[str, Path], mode: str, *more: object):
    files = [
        f"--{option}={folders[which] / 'gemm_ws.cubin'}" for option, which in (("clean", "clean"), ("stamped", mode))
    ]
    done = run_module("autostamp", "safety", *files, *more, "--json")
    return done.returncode, json.loads(done.stdout) if done.stdout else {}, done.stderr


@pytest.mark.usefixtures("tools")
def test_safety_command_finds_the_off_build_clean(folders):
    status, report, _ = run_safety(folders, "off")
    (kernel,) = report["kernels"]
    assert (status, kernel["findings"], kernel["schedule_distance"]) == (0, [], 0.0)
    assert kernel["stamps"] is None


@pytest.mark.usefixtures("tools")
def test_safety_command_on_the_stamped_build(folders, trace):
    folder = folders["stamped"]
    options = (f"--ptx={folder / 'gemm_ws.ptx'}", f"--manifest={folder / 'manifest.json'}")
    status, report, _ = run_safety(folders, "stamped", *options)
    (kernel,) = report["kernels"]
    assert kernel["kernel"] == trace.symbol
    assert kernel["stamps"]["expected"] == sum(
        bool(event) for row in trace.instances for event in (row.enter, row.exit, row.signal)
    )
    assert kernel["stamps"]["missing"] == []
    assert status == bool(kernel["findings"])


@pytest.mark.usefixtures("tools")
def test_safety_command_misses_a_stamp_that_was_taken_out(folders, trace, tmp_path):
    folder = folders["stamped"]
    wait = next(row for row in trace.instances if row.role == "load")
    text = (folder / "gemm_ws.ptx").read_text()
    (tmp_path / "cut.ptx").write_text(text.replace(f"// autostamp {wait.exit}\n", ""))
    options = (f"--ptx={tmp_path / 'cut.ptx'}", f"--manifest={folder / 'manifest.json'}")
    status, report, _ = run_safety(folders, "stamped", *options)
    assert status == 1
    assert report["kernels"][0]["stamps"]["missing"] == [wait.number]
    assert "AS3102" in {finding["code"] for finding in report["kernels"][0]["findings"]}
