# SPDX-License-Identifier: Apache-2.0
"""FlashAttention on a Hopper GPU: results equal to the clean kernels', sound records, as many visits as there are blocks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from autostamp.model.manifest import EventKind
from autostamp.model.trace import Trace
from autostamp.runtime.store import load_run
from tests.builds import build_once
from tests.gpu import lanes
from tests.gpu.run_flash import CASES

pytestmark = [pytest.mark.gpu, pytest.mark.flash]

TILE_N = 128
"""Keys of a block in the sm_90 forward kernel for head dimension 128 (`_tile_size_fwd_sm90` of its interface)."""

FORWARD = [name for name, case in CASES.items() if case.direction == "forward"]
BACKWARD = [name for name, case in CASES.items() if case.direction == "backward"]
LOAD_WARP, MMA_WARPS = 0, range(4, 12)
"""The first warpgroup loads (its first warp does the work), the other two compute 64 rows each."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {
        mode: build_once(tmp_path_factory, f"flash-run-{mode}", "tests.gpu.run_flash", mode)
        for mode in ("clean", "stamped")
    }


def arrays(folder: Path, name: str) -> dict[str, bytes]:
    with np.load(folder / f"{name}.npz") as archive:
        return {key: archive[key].tobytes() for key in archive.files}


def main_trace(folder: Path, name: str) -> Trace:
    """The trace of the attention kernel itself that was launched in this case."""
    kernel = f"FlashAttention{CASES[name].direction.capitalize()}Sm90.kernel"
    found = [
        trace for trace in load_run(folder / name).traces.values() if trace.kernel.kernel == kernel and trace.lanes
    ]
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("name", FORWARD)
def test_forward_is_bit_equal(folders, name):
    clean, stamped = (arrays(folders[mode], name) for mode in ("clean", "stamped"))
    assert clean.keys() == {"out", "lse"}
    assert stamped == clean


@pytest.mark.parametrize("name", BACKWARD)
def test_backward_is_bit_equal_where_it_is_deterministic(folders, name):
    clean, again = arrays(folders["clean"], name), arrays(folders["clean"], f"{name}.again")
    stamped = arrays(folders["stamped"], name)
    fixed = {"out", "lse", "dk", "dv"}
    if CASES[name].is_deterministic:
        # Without that option dq is summed by atomic additions in any order: two clean runs may agree and a third differ.
        fixed.add("dq")
    assert {key for key in fixed if clean[key] != again[key]} == set()
    assert {key for key in fixed if stamped[key] != clean[key]} == set()


@pytest.mark.parametrize("name", CASES)
def test_records_are_sound(folders, name):
    launched = [trace for trace in load_run(folders["stamped"] / name).traces.values() if trace.lanes]
    kernels = {"forward": 1, "backward": 4}  # backward: forward, preprocessing, backward, postprocessing
    assert len(launched) >= kernels[CASES[name].direction]
    for trace in launched:
        lanes.assert_sound(trace)


@pytest.mark.parametrize("name", FORWARD)
def test_roles_are_those_of_the_source(folders, name):
    found = lanes.roles(main_trace(folders["stamped"], name))
    assert found.pop(LOAD_WARP) == {"load"}
    assert {warp for warp, names in found.items() if names == {"mma"}} == set(MMA_WARPS)
    assert all(names <= {"load"} for warp, names in found.items() if warp not in MMA_WARPS)


@pytest.mark.parametrize("name", BACKWARD)
def test_roles_of_backward(folders, name):
    named = [names for names in lanes.roles(main_trace(folders["stamped"], name)).values() if names]
    assert all(len(names) == 1 for names in named)
    assert set().union(*named) == {"load", "mma", "dQaccum_store"}


@pytest.mark.parametrize("name", FORWARD)
def test_every_block_of_keys_is_visited_once(folders, name):
    # One CTA is one block of queries. Causal CTAs are launched longest first, so the first one sees all keys as well.
    trace = main_trace(folders["stamped"], name)
    blocks = CASES[name].keys // TILE_N
    by_warp = {lane.warp: lane for lane in trace.lanes}
    for ring in ("pipeline_k", "pipeline_v"):
        acquires = [row for row in lanes.rows(trace, barrier=ring, side="empty", kind="wait") if row.signals]
        waits = lanes.rows(trace, barrier=ring, side="full", kind="wait")
        assert len(lanes.events(by_warp[LOAD_WARP], acquires, EventKind.ENTER)) == blocks
        for warp in MMA_WARPS:
            assert len(lanes.events(by_warp[warp], waits, EventKind.EXIT)) == blocks


@pytest.mark.parametrize("name", FORWARD)
def test_no_block_arrives_before_it_was_asked_for(folders, name):
    trace = main_trace(folders["stamped"], name)
    by_warp = {lane.warp: lane for lane in trace.lanes}
    acquires = [row for row in lanes.rows(trace, barrier="pipeline_k", side="empty", kind="wait") if row.signals]
    waits = lanes.rows(trace, barrier="pipeline_k", side="full", kind="wait")
    asked = lanes.events(by_warp[LOAD_WARP], acquires, EventKind.EXIT)
    for warp in MMA_WARPS:
        arrived = lanes.events(by_warp[warp], waits, EventKind.EXIT)
        assert all(before.cycles < after.cycles for before, after in zip(asked, arrived, strict=True))
        stages = [event.payload for event in lanes.events(by_warp[warp], waits, EventKind.ENTER)]
        assert stages == [event.payload for event in lanes.events(by_warp[LOAD_WARP], acquires, EventKind.ENTER)]
