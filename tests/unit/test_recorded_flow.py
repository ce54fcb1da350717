# SPDX-License-Identifier: Apache-2.0
"""Who waited for whom in FlashAttention's forward kernel and in our GEMMs, as recorded on an H200.

Counts follow from the kernels (tests/unit/test_recorded_runs.py): 32 blocks of keys, rings of two stages for K and for V, one
stage for Q, eight mma warps that each release every stage. Every wait counts as a stall here, however short.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from autostamp.analysis import analyse
from autostamp.analysis.arrows import by_address
from autostamp.analysis.flow import explain
from autostamp.analysis.latencies import Latencies
from autostamp.model.flow import Ending, Flow, PathKind
from autostamp.model.manifest import EventKind
from autostamp.model.trace import Trace
from autostamp.runtime.store import load_run
from tests.simulator.tables import KINDS

ROOT = Path(__file__).parents[2]
ONE_CTA = ROOT / "tests/fixtures/runs/fa4_forward_one_cta"
FULL_GRID = ROOT / "tests/fixtures/runs/fa4_forward_full_grid"
GEMM = ROOT / "kernels/cutedsl/recorded/gemm_ws_h200"
CUDA_GEMM = ROOT / "kernels/cuda/recorded/gemm_ws_h200"
FLASH = pytest.mark.parametrize("run", [ONE_CTA, FULL_GRID], ids=lambda run: run.name)
LATENCIES = Latencies(ready={}, hand_off=dict.fromkeys(KINDS, 200), late=50)
BLOCKS, STAGES, CONSUMERS = 32, 2, 8


def read(run: Path) -> tuple[Trace, Flow]:
    (trace,) = load_run(run).traces.values()
    return trace, explain(trace, analyse(trace, latencies=LATENCIES), LATENCIES)


def by_label(trace: Trace, flow: Flow, role: str) -> Counter[tuple[str, str, str, Ending]]:
    """Causes of a role's stalls by barrier, side, arriving role and ending."""
    labels = {barrier.number: barrier.label for barrier in trace.kernel.barriers}
    return Counter(
        {
            (labels[row.barrier], row.side, row.by, row.ending): row.count
            for row in flow.blame
            if row.role == role and labels[row.barrier] != "cluster"
        }
    )


@FLASH
def test_the_load_warp_waits_for_the_consumers_releases_of_k_and_v(run):
    """Two rounds of K, V and one of Q are granted; the 30 others of K and V, and the tail of V, end with a release."""
    trace, flow = read(run)
    assert by_label(trace, flow, "load") == {
        ("pipeline_k", "empty", "mma", Ending.SIGNAL): BLOCKS - STAGES,
        ("pipeline_v", "empty", "mma", Ending.SIGNAL): BLOCKS - STAGES + 1,
        ("pipeline_k", "empty", "", Ending.GRANTED): STAGES,
        ("pipeline_v", "empty", "", Ending.GRANTED): STAGES,
        ("pipeline_q", "empty", "", Ending.GRANTED): 1,
    }
    released = [arrow for arrow in flow.arrows if arrow.side == "empty"]
    assert all(len(arrow.others) == CONSUMERS - 1 and not arrow.is_inferred for arrow in released)
    assert {end.warp for arrow in released for end in (arrow.signal, *arrow.others)} == set(range(4, 12))
    # Nearly all of it: what the granted waits cost is five ready waits of about 100 cycles in 78 thousand.
    explained = sum(row.share for row in flow.blame if row.role == "load" and row.by == "mma")
    assert 0.98 < explained < 1


@FLASH
def test_a_release_frees_the_stage_that_the_block_two_later_takes(run):
    """Block n goes through stage n % 2. Its acquire waits for the release of block n - 2: use n // 2 - 1."""
    trace, flow = read(run)
    k = next(item.number for item in trace.kernel.barriers if item.label == "pipeline_k")
    acquires = [arrow for arrow in flow.arrows if (arrow.barrier, arrow.side) == (k, "empty")]
    assert [(arrow.stage, arrow.use) for arrow in acquires] == [(n % 2, n // 2 - 1) for n in range(2, BLOCKS)]
    # The release is of this ring, and after the wait of the block that it frees.
    rows = {item.number: item for item in trace.kernel.instances}
    assert all(rows[arrow.signal.instance].barrier == k for arrow in acquires)


@FLASH
def test_the_tail_waits_for_the_last_release_of_v(run):
    trace, flow = read(run)
    v = next(item.number for item in trace.kernel.barriers if item.label == "pipeline_v")
    releases = {
        item.number for item in trace.kernel.instances if (item.barrier, item.kind, item.side) == (v, "signal", "empty")
    }
    last = max(event.cycles for lane in trace.lanes for event in lane.events if event.instance in releases)
    arrow = max(
        (arrow for arrow in flow.arrows if arrow.barrier == v and arrow.side == "empty"), key=lambda a: a.wait.cycles
    )
    assert arrow.signal.cycles == last


@FLASH
def test_the_mma_warps_wait_for_copies_of_k_v_and_q(run):
    trace, flow = read(run)
    found = by_label(trace, flow, "mma")
    for label, uses in (("pipeline_k", BLOCKS), ("pipeline_v", BLOCKS), ("pipeline_q", 1)):
        assert found[label, "full", "load", Ending.TRANSFER] == CONSUMERS * uses
    copies = [arrow for arrow in flow.arrows if arrow.side == "full"]
    assert all(
        arrow.is_async and arrow.signal.warp == 0 and arrow.signal.cycles < arrow.wait.cycles for arrow in copies
    )
    # The copy of K and V has a commit for its mark, that of Q only the acquire which armed the barrier.
    assert Counter(len(arrow.others) for arrow in copies) == {1: 2 * CONSUMERS * BLOCKS, 0: CONSUMERS}


Arrived = tuple[int, int, int]
"""Cycle, warp and instance of an arrival."""


def line_of(run: Path, line: int) -> int:
    """The one instance of the kernel at this line of FlashAttention's source."""
    data = load_run(run)
    sites = {(file.key, site.number) for file in data.manifest.files for site in file.sites if site.span.line == line}
    (trace,) = data.traces.values()
    (number,) = (row.number for row in trace.kernel.instances if (row.file, row.site) in sites)
    return number


def turns(run: Path) -> dict[tuple[int, int], list[Arrived]]:
    """The eight arrivals of each turn of a warpgroup at its scheduler barrier, by the source alone, in order of time.

    Warps 4-7 and 8-11 take turns. A warp that wants its turn waits at line 1533, which is an arrival; one that had its turn
    arrives for the other warpgroup at line 1549. The first warpgroup begins: its first turn it gives itself, at line 1491.
    """
    kick_off, sync, give = (line_of(run, line) for line in (1491, 1533, 1549))
    (trace,) = load_run(run).traces.values()
    found: dict[tuple[int, int], list[Arrived]] = {}
    for lane in trace.lanes:
        own = lane.warp // 4
        for event in lane.events:
            turn = {
                (sync, EventKind.ENTER): (own, event.visit),
                (give, EventKind.SIGNAL): (3 - own, event.visit + (own == 2)),
                (kick_off, EventKind.SIGNAL): (own, 0),
            }.get((event.instance, event.kind))
            if turn is not None:
                found.setdefault(turn, []).append((event.cycles, lane.warp, event.instance))
    # The last turn that the second warpgroup gives is taken by nobody.
    return {turn: sorted(arrived) for turn, arrived in found.items() if turn[1] < BLOCKS - 1}


@FLASH
def test_a_warpgroup_waits_for_its_turn_until_all_eight_warps_have_arrived(run):
    """31 turns each, for every block but the first. The barrier takes 2 x 128 threads, so its own warps count as well."""
    _, flow = read(run)
    sync = line_of(run, 1533)
    expected = turns(run)
    assert sorted(expected) == [(group, turn) for group in (1, 2) for turn in range(BLOCKS - 1)]
    found = {}
    for arrow in flow.arrows:
        if arrow.wait.instance == sync:
            ends = [(end.cycles, end.warp, end.instance) for end in (*arrow.others, arrow.signal)]
            assert sorted(ends) == expected[arrow.wait.warp // 4, arrow.wait.visit]
            found[arrow.wait.warp, arrow.wait.visit] = (arrow.signal.cycles, arrow.wait.cycles)
    last = {turn: arrived[-1] for turn, arrived in expected.items()}
    # Who is the last to arrive waits for nobody; of all others an arrow says whom they waited for.
    assert found.keys() == {
        (warp, turn)
        for (group, turn), (_, by, instance) in last.items()
        for warp in range(4 * group, 4 * group + 4)
        if (warp, instance) != (by, sync)
    }
    assert all(found[warp, turn][0] == last[warp // 4, turn][0] for warp, turn in found)


@FLASH
def test_nobody_leaves_the_scheduler_barrier_before_its_last_arrival(run):
    """The exit follows within the hand-off: 64 cycles is a ready barrier (12 warps, benchmarks/results), the rest contention."""
    expected = turns(run)
    sync = line_of(run, 1533)
    (trace,) = load_run(run).traces.values()
    for lane in trace.lanes:
        exits = [event for event in lane.events if (event.instance, event.kind) == (sync, EventKind.EXIT)]
        assert len(exits) == (BLOCKS - 1 if lane.warp >= 4 else 0)
        for event in exits:
            assert 0 < event.cycles - expected[lane.warp // 4, event.visit][-1][0] < 150
    _, flow = read(run)
    assert all(cause.is_binding for cause in flow.causes if cause.stall.instance == sync and cause.arrow)


@FLASH
def test_the_other_warpgroup_gives_the_turn_in_time_and_a_late_warp_of_its_own_holds_it_up(run):
    """Who arrives last: at the second warpgroup's first turn the first one, which only then has its block; later its own."""
    sync, give = line_of(run, 1533), line_of(run, 1549)
    by = Counter((group, turn) for (group, turn), arrived in turns(run).items() if arrived[-1][2] == give)
    assert by == {(2, 0): 1}
    late = Counter(arrived[-1][1] for arrived in turns(run).values() if arrived[-1][2] == sync)
    # Mostly the first warp of the warpgroup.
    assert late[4] + late[8] > 0.8 * sum(late.values())
    assert sum(late.values()) == 2 * (BLOCKS - 1) - 1


@FLASH
def test_a_wait_that_arrives_is_no_early_signal(run):
    """The warps hold a stage of K while they wait for their turn, and that wait is what arrives. Line 1549 is within the work."""
    _, flow = read(run)
    found = {early.instance: (early.early, early.arrows) for early in flow.early}
    assert line_of(run, 1533) not in found
    # One arrival of the first warpgroup, that of its last warp, gives the other's four warps their first turn.
    assert found[line_of(run, 1549)] == (4, 4)


@FLASH
def test_the_critical_path_stays_with_the_warpgroup_and_goes_to_its_late_warp(run):
    """In the steady window the other warpgroup's arrivals lie before those of the own one: no hop leaves warps 4-7."""
    trace, _ = read(run)
    flow = explain(trace, analyse(trace))
    assert flow.path is not None
    assert flow.steady is not None
    barrier = next(row.barrier for row in trace.kernel.instances if row.number == line_of(run, 1533))
    last = {arrived[-1][0]: arrived[-1][1] for (group, _), arrived in turns(run).items() if group == 1}
    hops = [part for part in flow.path.parts if part.barrier == barrier and part.kind is PathKind.HAND_OFF]
    # At most one an iteration. Where the path is in the late warp already, whose wait is a pass, it goes through as through work.
    assert 0 < len(hops) <= flow.steady.iterations
    assert all(last[part.start] == part.warp for part in hops)
    assert {part.warp for part in flow.path.parts} <= {4, 5, 6, 7}


@FLASH
def test_what_the_mma_warps_wait_for_is_known_but_for_a_part_of_copies(run):
    """Their groups have no arrow, for they wait for themselves; all their other waits have one, or are the last to arrive.

    In blocks: the first waits for a product once, the last as well, the 30 between twice. Here every wait is a stall.
    """
    trace, flow = read(run)
    found = by_label(trace, flow, "mma")
    assert flow.notes == ()
    assert found["wgmma", "async-group", "", Ending.GROUP] == CONSUMERS * 2 * (BLOCKS - 1)
    assert found["cp.async.bulk", "async-group", "", Ending.GROUP] == 1
    assert {cause.ending for cause in flow.causes} == {Ending.SIGNAL, Ending.TRANSFER, Ending.GROUP, Ending.GRANTED}
    turn = [found["WarpSchedulerWG1+", "named", by, Ending.SIGNAL] for by in ("mma", "")]
    assert sum(turn) == CONSUMERS * (BLOCKS - 1)
    for cause in flow.causes:
        assert cause.stall.cycles == cause.awaited + cause.in_flight + cause.handed_over + cause.unexplained
    # Copies land a ring ahead: what a wait for one lasts beyond the first exit and a hand-off, no record explains.
    sides = {row.number: row.side for row in trace.kernel.instances}
    unexplained = Counter[str]()
    for cause in flow.causes:
        unexplained[sides[cause.stall.instance]] += cause.unexplained
    assert set(+unexplained) == {"full", "empty"}


@FLASH
def test_with_the_probed_figures_little_stall_is_left_unexplained(run):
    """Ready waits are passes now. Of the mma warps' stall the scheduler barrier is the largest part."""
    trace, _ = read(run)
    flow = explain(trace, analyse(trace))
    cycles, unexplained = Counter[str](), Counter[str]()
    for cause in flow.causes:
        role = "load" if cause.warp == 0 else "mma" if cause.warp >= 4 else "others"
        cycles[role] += cause.stall.cycles
        unexplained[role] += cause.unexplained
    # The rest is what a wait lasts beyond its arrival and a hand-off: a release of V takes up to 350 cycles to be seen.
    assert unexplained["mma"] < 0.1 * cycles["mma"]
    assert unexplained["load"] < 0.11 * cycles["load"]
    named = sum(row.share for row in flow.blame if row.role == "mma" and row.side == "named")
    assert 0.4 < named < 0.55
    assert max(row.cycles for row in flow.blame if row.role == "mma") == next(
        row.cycles for row in flow.blame if row.role == "mma" and row.side == "named" and row.by == "mma"
    )


def test_gemm_the_consumers_wait_for_copies_and_the_load_warp_for_all_their_releases():
    trace, flow = read(GEMM)
    found = by_label(trace, flow, "load")
    # 32 steps through four stages, and the tail.
    assert found["ab_pipeline", "empty", "mma", Ending.SIGNAL] == 32 - 4 + 1
    assert found["ab_pipeline", "empty", "", Ending.GRANTED] == 4
    assert by_label(trace, flow, "mma")["ab_pipeline", "full", "load", Ending.TRANSFER] == CONSUMERS * 32
    assert {len(arrow.others) for arrow in flow.arrows if arrow.side == "empty"} == {CONSUMERS - 1}


def test_cuda_gemm_arrows_are_those_by_address_and_start_at_the_later_copy():
    """By address knows neither counts nor copies: its arrival, the expect_tx, is the first record of the same use."""
    trace, flow = read(CUDA_GEMM)
    arrows = [arrow for arrow in flow.arrows if arrow.side in {"full", "empty"}]
    told = {arrow.wait: arrow.signal for arrow in by_address(trace)}
    assert len(arrows) == len(told) == 8 * 16 + 16 - 4
    for arrow in arrows:
        signal = arrow.signal if arrow.side == "empty" else arrow.others[0]
        assert told[arrow.wait] == signal
        assert len(arrow.others) == (CONSUMERS - 1 if arrow.side == "empty" else 2)
