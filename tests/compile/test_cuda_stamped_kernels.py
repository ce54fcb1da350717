# SPDX-License-Identifier: Apache-2.0
"""The bundled CUDA C++ kernels through `autostamp nvcc`: off they are the clean ones, on they are those plus stamps."""

from __future__ import annotations

import shutil

import pytest

from tests.cuda_builds import ROOT, SM_90A, Builds, build
from tests.deferred_waits import early_clocks, waits

if shutil.which("nvcc") is None:
    pytest.skip("nvcc is not installed", allow_module_level=True)

SYNCS = {
    "gemm_ws": {"HGMMA", "UTMALDG", "BAR.SYNC", "SYNCS.ARRIVE", "SYNCS.EXCH", "SYNCS.PHASECHK", "WARPGROUP.DEPBAR"},
    "ring": {"BAR.SYNC", "SYNCS.ARRIVE", "SYNCS.EXCH", "SYNCS.PHASECHK"},
}
"""What the sources ask for on sm_90a, and so what a stamp must leave as it is."""

KERNELS = {"gemm_ws": 1, "ring": 2}


@pytest.fixture(scope="module", params=KERNELS)
def name(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def builds(name: str, tmp_path_factory: pytest.TempPathFactory) -> Builds:
    source = ROOT / "kernels" / "cuda" / f"{name}.cu"
    return build(tmp_path_factory.mktemp(name) / "builds", [*SM_90A, "-std=c++17", "-O3", str(source)])


def test_off_is_the_clean_build(builds):
    assert builds.cubin("off") == builds.cubin("clean")
    # What the stamped build compiled, without -DAUTOSTAMP.
    assert builds.cubin("copies") == builds.cubin("clean")


def test_symbols_are_the_same(builds, name):
    assert len(builds.kernels) == KERNELS[name]
    assert all(kernel.stamped.kernel == kernel.clean.kernel for kernel in builds.kernels)


def test_compiler_has_no_more_to_say(builds):
    assert builds.added_messages() == []
    assert all(kernel.spills == (0, 0) for kernel in builds.kernels)


def test_sync_instructions_are_the_same_in_the_same_order(builds, name):
    for kernel in builds.kernels:
        assert set(kernel.counts) >= SYNCS[name]
        assert kernel.changed == {}
        assert kernel.report.schedule.distance == 0


def test_no_clock_runs_ahead_of_a_barrier(builds):
    for kernel in builds.kernels:
        assert waits(kernel.stamped.instructions)
        assert early_clocks(kernel.stamped.instructions) == []


def test_every_site_of_the_unit_is_in_the_ptx(builds):
    expected = [event for _, events in builds.sites() for event in events]
    assert len(expected) == len(set(expected)) > 0
    for kernel in builds.kernels:
        # Nothing here is unrolled or written twice, and both kernels of ring.cu inline the same function.
        assert sorted(kernel.written.events) == sorted(expected)
        assert kernel.written.lane == 2  # bind and release


def test_every_stamp_reads_the_clock_once(builds):
    for kernel in builds.kernels:
        assert kernel.clean.clock_reads == 0
        assert kernel.clock_reads == len(kernel.written.events) + kernel.written.lane
        stamps = kernel.report.stamps
        assert stamps is not None
        assert (stamps.missing, stamps.unnamed, stamps.identified) == ((), 0, stamps.expected)
