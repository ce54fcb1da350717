# SPDX-License-Identifier: Apache-2.0
"""The gallery's CuTe-DSL kernels, compiled clean, off and stamped for sm_90a with no GPU."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("cutlass", reason="CuTe-DSL is not installed")

from autostamp.diagnostics import AutostampError
from autostamp.passes import safety
from autostamp.passes.stamp_check import ptx_stamps
from autostamp.runtime import cubin, toolchain
from autostamp.runtime.manifest_file import read_manifest
from tests.builds import build_once
from tests.compile.compile_gallery import MODES
from tests.deferred_waits import early_clocks, waits
from tests.gallery import read_case, sites_of

WGMMAS = {
    # A stage is 64 columns of K deep, a wgmma 16; 128 rows are two of them. First K tile and loop.
    "gemm_plain": 2 * 2 * 4,
    "gemm_pingpong": 2 * 2 * 4,
    "gemm_cooperative": 2 * 4,
    # S: head width 64 is 4 deep. P V: 128 keys are 8 deep. Each is traced twice, for two halves.
    **dict.fromkeys((f"attention_split_{split}" for split in (2, 4, 6, 8)), 2 * 2 * (4 + 8)),
    "attention_serial": 2 * (4 + 8),
}
NAMES = tuple(WGMMAS)
CASES = tuple(name for name in NAMES if name != "attention_serial")
# The loads of A and B; of Q for each half, K and V.
LOADS = {name: 2 if name.startswith("gemm") else 3 if name == "attention_serial" else 4 for name in NAMES}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {
        mode: build_once(tmp_path_factory, f"gallery-{mode}", "tests.compile.compile_gallery", mode) for mode in MODES
    }


@pytest.fixture(scope="module")
def manifest(folders):
    return read_manifest(folders["stamped"] / "manifest.json")


@pytest.fixture(scope="module")
def kernels(folders, manifest):
    numbers = json.loads((folders["stamped"] / "builds.json").read_text())
    assert len(set(numbers.values())) == len(NAMES)
    traces = {trace.number: trace for trace in manifest.traces}
    return {name: traces[number] for name, number in numbers.items()}


@pytest.fixture(scope="module")
def tools() -> None:
    try:
        toolchain.find("nvdisasm"), toolchain.find("cuobjdump")
    except AutostampError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", NAMES)
def test_off_is_the_clean_build(folders, name):
    for suffix in ("ptx", "cubin"):
        clean, off = ((folders[mode] / f"{name}.{suffix}").read_bytes() for mode in ("clean", "off"))
        assert off == clean


@pytest.mark.parametrize("name", CASES)
def test_sites_are_those_of_the_case_file(manifest, kernels, name):
    assert sites_of(manifest, kernels[name]) == read_case(name).sites


@pytest.mark.parametrize("name", NAMES)
def test_every_event_is_written_in_the_ptx(folders, kernels, name):
    kernel = kernels[name]
    written = ptx_stamps((folders["stamped"] / f"{name}.ptx").read_text(), kernel.symbol)
    events = {event for row in kernel.instances for event in (row.enter, row.exit, row.signal) if event}
    assert set(written.events) == events


@pytest.mark.parametrize("name", NAMES)
def test_stamps_add_no_barrier(folders, name):
    clean, stamped = ((folders[mode] / f"{name}.ptx").read_text() for mode in ("clean", "stamped"))
    for instruction in ("elect.sync", "bar.sync", "barrier", "bar.warp.sync", "mbarrier.arrive", "mbarrier.init"):
        assert len(re.findall(rf"\b{re.escape(instruction)}\b", clean)) == len(
            re.findall(rf"\b{re.escape(instruction)}\b", stamped)
        ), instruction


@pytest.mark.usefixtures("tools")
@pytest.mark.parametrize("name", NAMES)
def test_instructions_are_those_that_the_source_asks_for(folders, name):
    for mode in ("clean", "stamped"):
        (found,) = cubin.read_file(folders[mode] / f"{name}.cubin")
        opcodes = Counter(instruction.opcode.split(".")[0] for instruction in found.instructions)
        assert opcodes["HGMMA"] == WGMMAS[name]
        assert opcodes["UTMALDG"] == LOADS[name]
        # ptxas serialises wgmma by fencing each one: then there is an arrive for every HGMMA.
        arrives = sum(instruction.opcode == "WARPGROUP.ARRIVE" for instruction in found.instructions)
        assert arrives <= WGMMAS[name] // 4


@pytest.mark.usefixtures("tools")
@pytest.mark.parametrize("name", NAMES)
def test_stamps_stay_on_their_side_and_cost_no_spill(folders, kernels, name):
    clean, stamped = (cubin.read_file(folders[mode] / f"{name}.cubin")[0] for mode in ("clean", "stamped"))
    report = safety.compare(clean, stamped, (folders["stamped"] / f"{name}.ptx").read_text(), kernels[name])
    assert report.stamps is not None
    assert (report.stamps.missing, report.stamps.unnamed, report.stamps.misplaced) == ((), 0, ())
    assert {(each.stack_bytes, each.spill_store_bytes, each.spill_load_bytes) for each in (clean, stamped)} == {
        (0, 0, 0)
    }
    assert waits(stamped.instructions)
    assert early_clocks(stamped.instructions) == []
