# SPDX-License-Identifier: Apache-2.0
"""A warp-specialized GEMM out of CUTLASS's own headers, compiled for sm_90a with no GPU: clean, off and stamped.

Everything is stamped through `autostamp nvcc`: the kernels, pipelines, barriers and collectives are CUTLASS's, unedited.
"""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest

from autostamp.hooks.state import Outcome
from autostamp.passes.safety import Limits
from tests.builds import build_once
from tests.cuda_builds import Builds, Kernel
from tests.cutlass.headers import include_folder

if shutil.which("nvcc") is None:
    pytest.skip("nvcc is not installed", allow_module_level=True)

SCHEDULES = ("Pingpong", "Cooperative")

COLLECTIVE = "cutlass/gemm/collective/sm90_mma_tma_gmma_ss_warpspecialized.hpp"
EPILOGUE = "cutlass/epilogue/collective/sm90_epilogue_tma_warpspecialized.hpp"

MAINLOOP = {
    "CollectiveMma::load": {"pipeline.producer_acquire(smem_pipe_write)"},
    "CollectiveMma::load_tail": {"pipeline.producer_tail(smem_pipe_write)"},
    "CollectiveMma::mma": {
        "pipeline.consumer_wait(smem_pipe_read, barrier_token)",
        "warpgroup_commit_batch()",
        "warpgroup_wait<K_PIPE_MMAS>()",
        "pipeline.consumer_release(smem_pipe_release)",
    },
    "CollectiveMma::mma_tail": {"warpgroup_wait<0>()", "pipeline.consumer_release(smem_pipe_release)"},
}
"""What the producer warp and the consumer warpgroups call in their mainloops, as CUTLASS 4.2 writes it."""

FAMILIES = {
    *("BAR.SYNC", "DEPBAR", "HGMMA", "SYNCS.ARRIVE", "SYNCS.EXCH", "SYNCS.PHASECHK", "UTMALDG", "UTMASTG"),
    *("WARPGROUP.ARRIVE", "WARPGROUP.DEPBAR"),
}


@pytest.fixture(scope="module")
def all_builds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Builds]:
    include = include_folder()

    def make(schedule: str) -> Builds:
        name = f"cutlass-{schedule}"
        return Builds(build_once(tmp_path_factory, name, "tests.cutlass.compile_gemm", schedule, include))

    with ThreadPoolExecutor(2) as pool:
        return dict(zip(SCHEDULES, pool.map(make, SCHEDULES), strict=True))


@pytest.fixture(params=SCHEDULES)
def builds(request, all_builds: dict[str, Builds]) -> Builds:
    return all_builds[request.param]


@pytest.fixture
def kernel(builds: Builds) -> Kernel:
    (kernel,) = builds.kernels
    return kernel


def test_off_is_the_clean_build(builds):
    assert builds.cubin("off") == builds.cubin("clean")


def test_copies_without_stamps_are_the_clean_build(builds):
    """What the stamped build compiled, without -DAUTOSTAMP: every byte of the cubin, but for the hash of the source's path.

    CCCL, which CUTLASS includes, defines internal symbols, and nvcc puts that hash into their names; the copy lies elsewhere.
    """
    assert builds.pathless("copies") == builds.pathless("clean")


def test_it_is_stamped(builds, kernel):
    assert builds.note.outcome is Outcome.STAMPED
    assert builds.cubin("stamped") != builds.cubin("clean")
    assert kernel.clean.clock_reads == 0
    assert kernel.written.lane == 2  # bind and release
    assert kernel.clock_reads > 50


def test_every_stamp_that_was_written_is_compiled(kernel):
    stamps = kernel.report.stamps
    assert stamps is not None
    assert (stamps.missing, stamps.unnamed) == ((), 0)
    assert kernel.clock_reads >= kernel.written.total


def test_both_mainloops_are_stamped(builds, kernel):
    written = set(kernel.written.events)
    found: dict[str, set[str]] = {}
    for site, events in builds.sites(COLLECTIVE):
        if events <= written:
            found.setdefault("::".join(site.function.split("::")[-2:]), set()).add(site.text)
    assert found == MAINLOOP


def test_epilogue_is_stamped(builds, kernel):
    written = set(kernel.written.events)
    functions = {site.function.split("::")[-1] for site, events in builds.sites(EPILOGUE) if events <= written}
    assert "store" in functions


def test_compiler_says_nothing_new_about_wgmma(builds):
    assert builds.added_messages() == []
    assert builds.note.warnings == ()


def test_stamps_spill_nothing(kernel):
    assert kernel.spills == (0, 0)


def test_number_of_sync_instructions_is_the_same(kernel):
    assert set(kernel.counts) >= FAMILIES
    assert kernel.changed == {}


def test_schedule_is_that_of_the_clean_build(kernel):
    assert kernel.report.schedule.distance <= Limits().distance
