# SPDX-License-Identifier: Apache-2.0
"""The sample kernels of the tests on a GPU, above all what one elected thread records in a lane of its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from autostamp.model.manifest import EventKind
from autostamp.model.trace import Trace
from autostamp.runtime.store import RunData, load_run
from tests.builds import build_once
from tests.gpu import lanes
from tests.gpu.run_kernels import COUNT, WARP, arguments

pytestmark = pytest.mark.gpu

STAGES = 4


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {
        mode: build_once(tmp_path_factory, f"samples-{mode}", "tests.gpu.run_kernels", mode)
        for mode in ("clean", "stamped")
    }


@pytest.fixture(scope="module")
def run(folders) -> RunData:
    return load_run(folders["stamped"] / "run")


def trace_of(run: RunData, name: str) -> Trace:
    file = next(file for file in run.manifest.files if Path(file.path).stem == name)
    return next(trace for trace in run.traces.values() if trace.kernel.file == file.key)


def expected(name: str) -> list[np.ndarray]:
    """The arrays after the launch, from what the kernel's source says."""
    arrays = [array.copy() for array in arguments()[name][0]]
    if name == "conditions":
        arrays[1][:WARP] = COUNT - 1
    elif name == "named_barriers":
        arrays[0][: 8 * 4 * WARP] = 1
    elif name == "polling":
        arrays[0][: COUNT * 2 * WARP] = 1
    elif name == "raw_mbarriers":
        arrays[1][:COUNT] = arrays[0][:COUNT] + 1
    elif name == "two_kernels":
        scaled = 2 * arrays[0][::-1]
        arrays[0] = (scaled + 1)[::-1] + scaled
    else:
        half = len(arrays) // 2
        for source, out in zip(arrays[:half], arrays[half:], strict=True):
            out[: COUNT * WARP] = source[: COUNT * WARP]
    return arrays


@pytest.mark.parametrize("mode", ["clean", "stamped"])
@pytest.mark.parametrize("name", arguments())
def test_results_are_right(folders, name, mode):
    with np.load(folders[mode] / f"{name}.npz") as archive:
        found = [archive[key] for key in archive.files]
    for array, wanted in zip(found, expected(name), strict=True):
        np.testing.assert_array_equal(array, wanted)


@pytest.mark.parametrize("name", arguments())
def test_records_are_sound(run, name):
    lanes.assert_sound(trace_of(run, name))


def test_what_the_elected_thread_recorded_stands_between_the_warps_own_records(run):
    trace = trace_of(run, "raw_mbarriers")
    (wait,) = lanes.rows(trace, barrier="empty + stage", kind="wait")
    (signal,) = lanes.rows(trace, barrier="full + stage", kind="signal")
    lane = trace.lanes[0]
    own = [(event.instance, event.kind) for event in lane.events if event.instance in (wait.number, signal.number)]
    once = [(wait.number, EventKind.ENTER), (wait.number, EventKind.EXIT), (signal.number, EventKind.SIGNAL)]
    assert own == once * COUNT


def test_both_sides_recorded_the_same_mbarriers(run):
    trace = trace_of(run, "raw_mbarriers")
    (signal,) = lanes.rows(trace, barrier="full + stage", kind="signal")
    (wait,) = lanes.rows(trace, barrier="full + stage", kind="wait")
    armed = [event.payload for event in lanes.events(trace.lanes[0], [signal], EventKind.SIGNAL)]
    waited = [event.payload for event in lanes.events(trace.lanes[1], [wait], EventKind.EXIT)]
    assert armed == waited
    # Mbarriers lie 8 bytes apart, and an address is recorded divided by 8.
    assert armed == [armed[0] + visit % STAGES for visit in range(COUNT)]


def test_a_barrier_is_armed_before_its_wait_ends(run):
    # The arrival is earlier than the stamp after it, so the wait may end before that stamp, but not before the enter of the
    # elected thread's iteration; the stage it waited for is what orders them.
    trace = trace_of(run, "raw_mbarriers")
    (empty,) = lanes.rows(trace, barrier="empty + stage", kind="wait")
    (full,) = lanes.rows(trace, barrier="full + stage", kind="wait")
    free = lanes.events(trace.lanes[0], [empty], EventKind.EXIT)
    ready = lanes.events(trace.lanes[1], [full], EventKind.EXIT)
    assert all(before.cycles < after.cycles for before, after in zip(free, ready, strict=True))


def test_a_barrier_number_computed_at_run_time_is_recorded(run):
    trace = trace_of(run, "named_barriers")
    (row,) = lanes.rows(trace, barrier="Group+")
    for lane in trace.lanes:
        assert {event.payload for event in lanes.events(lane, [row], EventKind.EXIT)} == {2 + lane.warp // 2}


def test_rings_are_visited_once_for_every_item(run):
    trace = trace_of(run, "two_pipelines")
    for ring, stages in (("ring_k", 2), ("ring_v", 3)):
        for warp, side in ((0, "empty"), (1, "full")):
            first = lanes.rows(trace, barrier=ring, side=side, kind="wait")[0]
            visits = lanes.events(trace.lanes[warp], [first], EventKind.ENTER)
            assert [event.payload for event in visits] == [item % stages for item in range(COUNT)]
