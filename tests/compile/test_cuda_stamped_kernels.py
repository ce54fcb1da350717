# SPDX-License-Identifier: Apache-2.0
"""The bundled CUDA C++ kernels through `autostamp nvcc`: off they are the clean ones, on they are those plus stamps."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cuda_builds import ROOT, SM_90A, Builds, build

if shutil.which("nvcc") is None:
    pytest.skip("nvcc is not installed", allow_module_level=True)

SYNCS = {
    "gemm_ws": {"HGMMA", "UTMALDG", "BAR.SYNC", "SYNCS.ARRIVE", "SYNCS.EXCH", "SYNCS.PHASECHK", "WARPGROUP.DEPBAR"},
    "ring": {"BAR.SYNC", "SYNCS.ARRIVE", "SYNCS.EXCH", "SYNCS.PHASECHK"},
}
"""What the sources ask for on sm_90a, and so what a stamp must leave as it is."""

KERNELS = {"gemm_ws": ["gemm_ws"], "ring": ["ring", "ring_params"]}


@pytest.fixture(scope="module", params=KERNELS)
def name(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def builds(name: str, tmp_path_factory: pytest.TempPathFactory) -> Builds:
    source = ROOT / "kernels" / "cuda" / f"{name}.cu"
    return build(tmp_path_factory.mktemp(name) / "builds", [*SM_90A, "-std=c++17", "-O3", str(source)])
