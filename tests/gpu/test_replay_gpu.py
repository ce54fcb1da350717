# SPDX-License-Identifier: Apache-2.0
"""`autostamp run --replay` on a GPU: the bundled GEMM's sites split over two sets, run, joined and reported."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from autostamp.model.placement import PLACEMENT_SCHEMA, Form, Placement, ReplaySet, ScheduleFeatures, site_key
from autostamp.passes.cutedsl import instrument
from autostamp.runtime.placement_file import write_placement
from autostamp.runtime.store import RunData, load_run
from tests.builds import run_module

pytestmark = pytest.mark.gpu

TARGET = "autostamp.kernels.cutedsl.gemm_ws"
SIZE = ("--m", "256", "--n", "256", "--k", "2048", "--repeat", "8")
PROGRAM = ("-m", "autostamp.kernels.cutedsl.gemm_ws_reference", *SIZE)
ROOT = Path(__file__).resolve().parents[2]
FEATURES = ScheduleFeatures(1.0, {}, (1.0, 1.0), (0, 0), (0, 0), 0.0)


def placement() -> Placement:
    """The producer's sites in both sets, the others by turns."""
    path = ROOT / "kernels/cutedsl/gemm_ws.py"
    file = instrument(path.read_bytes(), str(path)).file
    keys = {site.number: site_key(file, site) for site in file.sites}
    anchors = tuple(keys[site.number] for site in file.sites if site.method.startswith("producer_"))
    others = [key for key in keys.values() if key not in anchors]
    sets = tuple(
        ReplaySet(number, tuple((key, Form.BOTH) for key in (*anchors, *others[number - 1 :: 2])), anchors, FEATURES)
        for number in (1, 2)
    )
    return Placement(
        PLACEMENT_SCHEMA, "GemmWarpSpecialized.kernel", "", (), sets, (), 0, complete=True, files=(file.key,)
    )


@pytest.fixture(scope="module")
def joined(tmp_path_factory: pytest.TempPathFactory) -> RunData:
    folder = tmp_path_factory.mktemp("replays")
    write_placement(folder / "p.json", placement())
    # A kernel of a few microseconds: what is tested is the joining, not what stamps cost it.
    words = (
        "run",
        "--replay",
        "--jobs",
        "3",
        "--as-placed",
        "--bar",
        "2",
        "--placement",
        folder / "p.json",
        "--instrument",
        TARGET,
    )
    done = run_module("autostamp", *words, "-o", folder / "RUN", "--", sys.executable, *PROGRAM)
    assert done.returncode == 0, done.stderr
    return load_run(folder / "RUN")


def test_every_site_is_there_and_every_set_was_timed(joined):
    assert joined.replays is not None
    assert not joined.replays.dropped
    assert not joined.replays.uncovered
    assert all(made.times.rounds for made in joined.replays.sets)
    assert all(made.launches == 4 for made in joined.replays.sets)


def test_records_of_both_sets_are_on_one_axis(joined):
    for trace in joined.recorded:
        assert {number for lane in trace.lanes for number in lane.replays} == {1, 2}
        for lane in trace.lanes:
            times = [event.cycles for event in lane.events]
            assert times == sorted(times)
            assert all(lane.entry_cycles <= time <= lane.exit_cycles for time in times)


def test_it_reports_like_any_other_run(joined):
    done = run_module("autostamp", "summary", "--json", joined.path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    # Three warps of the load group come to no site but the CTA's barrier.
    assert {role["role"] for role in found["kernels"][0]["roles"]} >= {"load", "mma"}
    assert len(found["replays"]["sets"]) == 2
