# SPDX-License-Identifier: Apache-2.0
"""A joined run of CUTLASS 4.7.0's pingpong GEMM that an H200 recorded: 4096x4096x4096 bf16, CTA 0, four sets, all 34 sites.

One of four launches is kept. Two waits of the main loop have one stamp each. Lines are those of CUTLASS's headers.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from autostamp.analysis import analyse
from autostamp.analysis.flow import explain
from autostamp.model.flow import Arrow
from autostamp.model.placement import site_key
from autostamp.runtime.store import RunData, load_run

RUN = Path(__file__).parents[1] / "fixtures/runs/cutlass_pingpong_joined"

# 32 x 32 tiles of 128 x 128 over 132 CTAs: CTA 0 has eight. Two consumers take turns; K is 64 steps of 64 in a ring of six.
TILES, STEPS, STAGES = 8, 64, 6
ACQUIRE, TAIL, FIRST_WAIT, RELEASE, LAST_RELEASE = "mma:374", "mma:407", "mma:487", "mma:551", "mma:574"
TURN, PASS_ON, EPILOGUE, PASS_ON_EPILOGUE = "gemm:851", "gemm:878", "gemm:900", "gemm:937"


@pytest.fixture(scope="module")
def run() -> RunData:
    return load_run(RUN)


def short(key: str) -> str:
    """`mma:374` of `sm90_mma_tma_gmma_ss_warpspecialized.hpp:374:9@...`."""
    name, line, _ = key.split(":", 2)
    return f"{name.split('_')[1]}:{line}"


@pytest.fixture(scope="module")
def arrows(run) -> list[tuple[str, str, Arrow]]:
    """Every arrow with the places of its wait and its signal."""
    sites = {(file.key, site.number): short(site_key(file, site)) for file in run.manifest.files for site in file.sites}
    (trace,) = run.recorded
    place = {row.number: sites[row.file, row.site] for row in trace.kernel.instances}
    found = explain(trace, analyse(trace)).arrows
    return [(place[arrow.wait.instance], place[arrow.signal.instance], arrow) for arrow in found]


def consumer(warp: int) -> int:
    """Warps 4 to 7 and 8 to 11 multiply."""
    return warp // 4 - 1


def test_four_sets_within_the_bar_have_every_site(run):
    times = [made.times for made in run.replays.sets]
    assert [each.ratio for each in times] == pytest.approx([each.stamped / each.clean for each in times])
    assert all(1.0 < each.ratio <= run.replays.bar for each in times)
    assert all(made.results_equal for made in run.replays.sets)
    assert len({key for made in run.replays.sets for key, _ in made.sites}) == 34
    assert not run.replays.uncovered


def test_a_stage_is_free_when_its_last_step_was_released(arrows):
    """The releases are of another replay than the acquires, off by 1,300 cycles at times; a round of the ring takes 3,100."""
    seen: Counter[str] = Counter()
    for wait, signal, arrow in arrows:
        if wait not in (ACQUIRE, TAIL):
            continue
        seen[wait] += 1
        position = (arrow.wait.visit if wait == ACQUIRE else TILES * STEPS + arrow.wait.visit) - STAGES
        tile, step = divmod(position, STEPS)
        released = (RELEASE, tile // 2 * (STEPS - 1) + step) if step < STEPS - 1 else (LAST_RELEASE, tile // 2)
        assert (signal, arrow.signal.visit, consumer(arrow.signal.warp)) == (*released, tile % 2)
    assert seen == {ACQUIRE: TILES * STEPS - STAGES, TAIL: 1}


def test_the_first_step_of_a_tile_is_filled_by_the_load_of_its_position(arrows):
    found = [(signal, arrow) for wait, signal, arrow in arrows if wait == FIRST_WAIT]
    assert len(found) == 4 * TILES
    for signal, arrow in found:
        tile = 2 * arrow.wait.visit + consumer(arrow.wait.warp)
        assert (signal, arrow.signal.visit) == (ACQUIRE, tile * STEPS)


@pytest.mark.parametrize(("wait", "signal"), [(TURN, PASS_ON), (EPILOGUE, PASS_ON_EPILOGUE)])
def test_turns_are_passed_on_by_the_other_consumer(arrows, wait, signal):
    """The first consumer's first turns at the main loop and at the epilogue come without waiting."""
    found = [(by, arrow) for at, by, arrow in arrows if at == wait]
    assert len(found) == 4 * (TILES - 1)
    for by, arrow in found:
        own = consumer(arrow.wait.warp)
        assert (by, consumer(arrow.signal.warp), arrow.signal.visit) == (signal, 1 - own, arrow.wait.visit - 1 + own)
