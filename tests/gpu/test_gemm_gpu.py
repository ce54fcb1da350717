# SPDX-License-Identifier: Apache-2.0
"""The bundled GEMM on a GPU: the stamped result is the clean one, and the records are those that arithmetic asks for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from autostamp.model.manifest import EventKind
from autostamp.model.trace import Trace
from autostamp.runtime.store import RunData, load_run
from tests.builds import build_once
from tests.gpu import lanes
from tests.gpu.run_gemm import K

pytestmark = pytest.mark.gpu

TILE_K, TILE_N, EPILOGUE_N, STAGES = 64, 128, 32, 4
K_TILES = K // TILE_K
MMA_WARPS, LOAD_WARP, WARPS = 8, 8, 12
"""Two consumer warpgroups of four warps for 128 rows, and the producer's warpgroup, whose first warp loads."""

RELATIVE_TOLERANCE = 2.0**-11


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {
        mode: build_once(tmp_path_factory, f"gemm-{mode}", "tests.gpu.run_gemm", mode) for mode in ("clean", "stamped")
    }


@pytest.fixture(scope="module")
def run(folders) -> RunData:
    return load_run(folders["stamped"] / "run")


@pytest.fixture(scope="module")
def trace(run) -> Trace:
    (found,) = run.traces.values()
    return found


def test_the_result_is_bit_equal_and_right(folders):
    clean, stamped = (np.load(folders[mode] / "result.npz") for mode in ("clean", "stamped"))
    assert clean["result"].tobytes() == stamped["result"].tobytes()
    error = np.abs(stamped["result"].astype(np.float32) - stamped["reference"])
    assert np.all(error <= RELATIVE_TOLERANCE * np.abs(stamped["reference"]))


def test_records_are_sound(trace):
    lanes.assert_sound(trace)
    assert [lane.warp for lane in trace.lanes] == list(range(WARPS))


def test_machine_facts(run, trace):
    assert run.facts.gpu
    assert 300 < trace.sm_mhz < 3000
    assert run.facts.sm_mhz == pytest.approx(trace.sm_mhz)


def test_roles_are_those_of_the_source(trace):
    expected = {warp: {"mma"} for warp in range(MMA_WARPS)} | {LOAD_WARP: {"load"}}
    assert lanes.roles(trace) == expected | {warp: set() for warp in range(LOAD_WARP + 1, WARPS)}


def test_the_producer_visits_every_k_tile(trace):
    lane = trace.lanes[LOAD_WARP]
    acquires = [row for row in lanes.rows(trace, role="load", side="empty") if row.signals == ("full",)]
    commits = lanes.rows(trace, role="load", side="full")
    (tail,) = [row for row in lanes.rows(trace, role="load", side="empty") if not row.signals]
    for kind in (EventKind.ENTER, EventKind.EXIT):
        assert len(lanes.events(lane, acquires, kind)) == K_TILES
        assert len(lanes.events(lane, [tail], kind)) == 1
    assert len(lanes.events(lane, commits, EventKind.SIGNAL)) == K_TILES
    assert [event.payload for event in lanes.events(lane, acquires, EventKind.ENTER)] == [
        tile % STAGES for tile in range(K_TILES)
    ]


@pytest.mark.parametrize("warp", range(MMA_WARPS))
def test_every_consumer_visits_every_k_tile(trace, warp):
    lane = trace.lanes[warp]
    waits = lanes.rows(trace, barrier="ab_pipeline", side="full", kind="wait")
    releases = lanes.rows(trace, barrier="ab_pipeline", side="empty", kind="signal")
    groups = lanes.rows(trace, barrier="wgmma", kind="wait")
    for kind in (EventKind.ENTER, EventKind.EXIT):
        assert len(lanes.events(lane, waits, kind)) == K_TILES
        assert (
            len(lanes.events(lane, groups, kind)) == K_TILES
        )  # wait_group(1) for all tiles but one, wait_group(0) at the end
    assert len(lanes.events(lane, releases, EventKind.SIGNAL)) == K_TILES
    stages = [tile % STAGES for tile in range(K_TILES)]
    assert [event.payload for event in lanes.events(lane, waits, EventKind.ENTER)] == stages
    assert [event.payload for event in lanes.events(lane, releases, EventKind.SIGNAL)] == stages


@pytest.mark.parametrize("warp", range(MMA_WARPS))
def test_the_epilogue_visits_every_slice(trace, warp):
    lane = trace.lanes[warp]
    slices = TILE_N // EPILOGUE_N
    meetings = lanes.rows(trace, side="named", kind="wait")
    stores = lanes.rows(trace, barrier="store_pipeline", kind="signal")
    assert len(lanes.events(lane, meetings, EventKind.EXIT)) == 2 * slices
    assert len(lanes.events(lane, stores, EventKind.SIGNAL)) == (slices if warp == 0 else 0)


def test_no_stage_is_full_before_it_was_acquired(trace):
    # The copies of a tile are issued after its acquire, so no consumer leaves its wait before that.
    acquires = [row for row in lanes.rows(trace, role="load", side="empty") if row.signals == ("full",)]
    waits = lanes.rows(trace, barrier="ab_pipeline", side="full", kind="wait")
    acquired = lanes.events(trace.lanes[LOAD_WARP], acquires, EventKind.EXIT)
    for warp in range(MMA_WARPS):
        full = lanes.events(trace.lanes[warp], waits, EventKind.EXIT)
        assert all(before.cycles < after.cycles for before, after in zip(acquired, full, strict=True))


def test_no_stage_is_acquired_again_before_it_was_waited_for(trace):
    acquires = [row for row in lanes.rows(trace, role="load", side="empty") if row.signals == ("full",)]
    waits = lanes.rows(trace, barrier="ab_pipeline", side="full", kind="wait")
    acquired = lanes.events(trace.lanes[LOAD_WARP], acquires, EventKind.EXIT)
    for warp in range(MMA_WARPS):
        full = lanes.events(trace.lanes[warp], waits, EventKind.EXIT)
        assert all(full[tile].cycles < acquired[tile + STAGES].cycles for tile in range(K_TILES - STAGES))
