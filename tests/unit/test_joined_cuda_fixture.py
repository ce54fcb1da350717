# SPDX-License-Identifier: Apache-2.0
"""A joined run of CUDA C++ that an H200 recorded: the gallery's pingpong GEMM, 4096x4096x4096 bf16, CTA 0, four sets, all sites.

`python -m benchmarks.replayed` made it; one of four launches is kept. How often each call is reached follows from the shape.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from autostamp.analysis import analyse
from autostamp.analysis.flow import explain
from autostamp.cli import main
from autostamp.model.placement import site_key
from autostamp.runtime.store import RunData, load_run

RUN = Path(__file__).parents[1] / "fixtures/runs/gemm_pingpong_joined"

# 32 x 32 tiles of 128 x 128 over 132 CTAs: CTA 0 has tiles 0, 132, ..., 924. Two consumers take turns; K is 64 steps of 64.
TILES, CONSUMERS, STEPS = 8, 2, 64
OWN = TILES // CONSUMERS
STAGES = 6
PARTS = 8
"""Stores of a warp in a tile: of two blocks of 64 rows, 128 columns as four boxes of 32."""
WHOLE_CTA = {"gemm_pingpong.cu:70": 1, "gemm_pingpong.cu:147": 1, "gemm_pingpong.cu:148": 1}
LOAD = {f"gemm_pingpong.cu:{line}": TILES * STEPS for line in (85, 86, 87, 88)}
CONSUMER = {
    "gemm_pingpong.cu:109": OWN,
    **{f"gemm_pingpong.cu:{line}": OWN * STEPS for line in (112, 115, 117)},
    "gemm_pingpong.cu:119": OWN * (STEPS - 1),  # the stage before the one that is multiplied
    **{f"gemm_pingpong.cu:{line}": OWN for line in (128, 130, 132)},
    "gemm_pingpong.cu:144": 1,
    **{f"tile.cuh:{line}": OWN * PARTS for line in (89, 91, 100, 103)},
}


@pytest.fixture(scope="module")
def run() -> RunData:
    return load_run(RUN)


def place_of(key: str) -> str:
    return ":".join(key.split(":")[:2])


def places(run: RunData) -> dict[int, str]:
    """Where the call of each instance of the launch stands."""
    sites = {
        (file.key, site.number): place_of(site_key(file, site)) for file in run.manifest.files for site in file.sites
    }
    return {row.number: sites[row.file, row.site] for row in run.recorded[0].kernel.instances}


def test_four_sets_within_the_bar_have_every_site(run):
    times = [made.times for made in run.replays.sets]
    assert [each.ratio for each in times] == pytest.approx([each.stamped / each.clean for each in times])
    assert all(1.0 < each.ratio <= run.replays.bar for each in times)
    assert all(made.results_equal for made in run.replays.sets)
    covered = {place_of(key) for made in run.replays.sets for key, _ in made.sites}
    assert covered == {*WHOLE_CTA, *LOAD, *CONSUMER}
    assert len(covered) == 20
    assert not run.replays.uncovered


def test_the_joined_launch_is_complete(run):
    (trace,) = run.recorded
    place = places(run)
    for lane in trace.lanes:
        # A wait has two records, a signal one.
        seen = Counter((place[event.instance], event.kind) for event in lane.events)
        expected = WHOLE_CTA | (CONSUMER if lane.warp < 8 else LOAD if lane.warp == 8 else {})
        assert {each for each, _ in seen} == set(expected)
        assert all(count == expected[each] for (each, _), count in seen.items())
    assert len(trace.lanes) == 12


def test_what_a_record_may_be_off_by_is_said_of_each_set_but_the_reference(run):
    (trace,) = run.recorded
    most = {fit.number: fit.error_most for fit in run.replays.fits}
    errors: dict[int, list[int]] = {}
    for lane in trace.lanes:
        for replay, error in zip(lane.replays, lane.errors, strict=True):
            errors.setdefault(replay, []).append(error)
    assert set(errors) == {*most, run.replays.reference}
    assert set(errors.pop(run.replays.reference)) == {0}
    assert all(max(found) <= most[replay] for replay, found in errors.items())
    assert all(min(found) > 0 for found in errors.values())


def test_the_summary_says_that_all_is_there_and_what_is_uncertain(capsys):
    assert main(["summary", str(RUN)]) == 0
    lines = capsys.readouterr().out.splitlines()
    # 186.40 of 183.16 us.
    assert lines[0] == "joined from 4 replays, each at most 1.018 of the clean time; the bar was 1.020"
    assert "  every site of the placement is covered" in lines
    assert any("arrows join records of two replays" in line for line in lines)


def test_arrows_join_the_visits_that_the_ring_gives(run):
    """Step p of all tiles fills stage p % 6; consumer c takes the steps of every other tile. No clock is needed to know this."""
    (trace,) = run.recorded
    place = places(run)
    seen: Counter[str] = Counter()
    for arrow in explain(trace, analyse(trace)).arrows:
        wait, signal = arrow.wait, arrow.signal
        if place[wait.instance] == "gemm_pingpong.cu:112":
            tile, step = divmod(wait.visit, STEPS)
            assert signal.visit == (CONSUMERS * tile + wait.warp // 4) * STEPS + step
            assert place[signal.instance] in ("gemm_pingpong.cu:87", "gemm_pingpong.cu:88")
        elif place[wait.instance] == "gemm_pingpong.cu:85":
            tile, step = divmod(wait.visit - STAGES, STEPS)  # of the step before in this stage
            released = ("gemm_pingpong.cu:119", tile // CONSUMERS * (STEPS - 1) + step)
            last = ("gemm_pingpong.cu:132", tile // CONSUMERS)
            assert (place[signal.instance], signal.visit) == (released if step < STEPS - 1 else last)
            assert signal.warp // 4 == tile % CONSUMERS
        elif place[wait.instance] == "gemm_pingpong.cu:109":
            # The turn of a tile comes from the consumer of the tile before.
            assert place[signal.instance] == "gemm_pingpong.cu:128"
            assert (signal.warp // 4, signal.visit) == (1 - wait.warp // 4, wait.visit - 1 + wait.warp // 4)
        else:
            continue
        assert not arrow.is_inferred
        seen[place[wait.instance]] += 1
    # Eight warps wait for full; the load warp finds its first six stages empty.
    assert seen == {
        "gemm_pingpong.cu:112": 8 * OWN * STEPS,
        "gemm_pingpong.cu:85": TILES * STEPS - STAGES,
        "gemm_pingpong.cu:109": 4 * (TILES - 1),
    }
