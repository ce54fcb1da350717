# SPDX-License-Identifier: Apache-2.0
"""The verdict as text: the ring kernel's by hand, and what it says where something is missing or unknown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from autostamp.analysis import analyse
from autostamp.analysis.flow import explain
from autostamp.model.flow import Blame, CriticalPath, Ending, Flow, PathKind, PathPart
from autostamp.model.run import MachineFacts
from autostamp.model.timeline import RoleTotals
from autostamp.report.cost import Cost
from autostamp.report.verdict import MOST_LINES, WIDTH, verdict
from autostamp.report.verdict_words import Words
from autostamp.runtime.store import load_run
from tests.simulator.ring_report import MMA, ring_flow, ring_timeline
from tests.simulator.tables import ring_manifest

ROOT = Path(__file__).parents[2]
NO_FLOW = Flow((), (), (), None, None, (), (), ())


def ring_verdict(flow=None, timeline=None, facts=None, **options):
    return verdict(timeline or ring_timeline(), flow or ring_flow(), ring_manifest(), facts, **options)


def line(found, begin):
    (only,) = [text for text in found.lines if text.startswith(begin)]
    return only


def test_the_headline_names_role_barrier_and_period():
    # 1000 MHz: a cycle is a nanosecond.
    assert ring_verdict(facts=MachineFacts(sm_mhz=1000.0)).headline == (
        "mma is the constraint: 100% of the critical path; load waits for K empty; 30 cycles (30 ns) an iteration"
    )


def test_a_role_with_waits_that_were_not_recorded_is_not_called_the_constraint_for_sure():
    assert ring_verdict(caveat="2 waits not recorded").headline == (
        "mma, or a wait in it that was not recorded, is the constraint: 100% of the critical path; load waits for K empty; "
        "30 cycles an iteration (2 waits not recorded)"
    )


def test_without_a_clock_there_are_no_nanoseconds():
    assert " ns" not in ring_verdict().text
    assert ring_verdict().headline.endswith("; 30 cycles an iteration")


def test_period_shares_slack_overlap_and_depth():
    found = ring_verdict()
    assert line(found, "period") == "period: median 30 cycles, p10-p90 30-30 cycles, longest 30"
    assert line(found, "critical path") == "critical path (60 cycles): mma 100.0%"
    assert line(found, "slack").endswith("load median 20, least 20 (3 arrows)")
    # 20 cycles of 60 in which either was busy.
    assert line(found, "overlap").endswith("load and mma 33.3%")
    assert line(found, "stages in use") == "stages in use: K median 1.0, most 2 of 2"
    assert line(found, "early signals") == "early signals: none of 4 arrows"
    assert "2 iterations of mma (warp 1), each from K consumer_wait at ring.py:31" in found.text


def test_the_table_is_of_the_steady_window():
    found = ring_verdict()
    rows = {text.split()[0]: text.split()[1:] for text in found.lines if text.startswith(("role ", "load  ", "mma  "))}
    assert rows["role"] == ["warps", "stall", "pass", "active", "untracked", "(steady", "state)"]
    assert rows["load"] == ["0", "50.0%", "0.0%", "50.0%", "0.0%"]
    assert rows["mma"] == ["1", "0.0%", "0.0%", "100.0%", "0.0%"]


def test_each_role_says_what_it_waits_for():
    found = ring_verdict()
    assert line(found, "load waits") == (
        "load waits for (of its 40 warp-cycles of stall): 100.0% K empty, signalled by mma"
    )
    assert line(found, "mma waits").endswith("100.0% K full, signalled by load")


def test_a_transfer_is_in_flight_and_not_its_issuers_fault():
    blame = (Blame("mma", 1, "full", "load", Ending.TRANSFER, 9, 900, 1.0),)
    text = line(ring_verdict(replace(ring_flow(), blame=blame)), "mma waits")
    assert text.endswith("100.0% K full, in flight (issued by load)")
    assert "signalled" not in text


@pytest.mark.parametrize(
    ("ending", "words"),
    [
        (Ending.GROUP, "its own asynchronous group"),
        (Ending.UNSEEN, "not recorded (another CTA, or a call without a stamp)"),
        (Ending.LOST, "records of a warp that may have arrived were lost"),
        (Ending.GRANTED, "granted without an arrival"),
    ],
)
def test_other_endings_are_named(ending, words):
    blame = (Blame("mma", 1, "full", "", ending, 9, 900, 1.0),)
    assert words in ring_verdict(replace(ring_flow(), blame=blame)).text.replace("\n  ", " ")


def test_a_path_of_transfers_names_the_barrier_and_who_waits():
    parts = (
        PathPart(MMA, "mma", PathKind.ACTIVE, 0, "", 40, 55),
        PathPart(0, "load", PathKind.TRANSFER, 1, "full", 55, 100),
    )
    # 15 and 45 of 60 cycles.
    path = CriticalPath(parts, (("mma", 0.25),), ((1, "full", 0.75),), ())
    found = ring_verdict(replace(ring_flow(), path=path))
    assert found.headline.startswith(
        "K full is the constraint: 75% of the critical path is bytes or instructions in flight; mma waits for it;"
    )
    assert line(found, "  of it") == "  of it 25.0% active, 75.0% in flight"
    # A barrier's share is of stalls that were recorded.
    doubted = ring_verdict(replace(ring_flow(), path=path), caveat="1 wait not recorded").headline
    assert doubted == f"{found.headline} (1 wait not recorded)"


def test_what_is_unexplained_is_said_with_its_reason():
    flow = ring_flow()
    first, second, third = flow.causes
    causes = (
        first._replace(ending=Ending.UNSEEN, arrow=None, role="", awaited=0, unexplained=10),
        second._replace(awaited=15, unexplained=5),
        third,
    )
    found = ring_verdict(replace(flow, causes=causes))
    # 35 of 50 cycles awaited, 15 unexplained: 10 of no record, 5 after the arrival.
    assert line(found, "all stall") == "all stall: 70.0% awaited, 0.0% in flight, 0.0% handed over, 30.0% unexplained"
    text = found.text.replace("\n    ", " ")
    assert "unexplained: 20.0% ended by an arrival that was not recorded" in text
    assert "10.0% longer after the arrival than a hand-off takes" in text


def test_without_an_iteration_it_says_so_and_why():
    flow = replace(ring_flow(("no wait repeats often enough",)), steady=None, path=None)
    found = ring_verdict(flow)
    assert found.headline == "no critical path; the longest wait is load's for K empty, signalled by mma"
    assert "steady state: none found" in found.text
    assert "critical path: none, since no iteration repeats" in found.text
    assert found.lines[-1] == "note: no wait repeats often enough"
    assert "(whole run)" in found.text


def test_without_any_flow_the_longest_wait_is_named():
    assert ring_verdict(NO_FLOW).headline == (
        "no critical path; the longest wait is load's: K producer_acquire at ring.py:12"
    )


def test_cost_is_measured_or_said_not_to_be():
    found = ring_verdict(cost=Cost(1.184, (168, 176), (0, 16), 0.04))
    told = "1.184 times the clean time; registers 168 to 176; spilled bytes 0 to 16; schedule distance 0.040"
    assert f"cost of measuring: {told}" in found.text.replace("\n  ", " ")
    assert "not measured" not in found.text
    bare = ring_verdict().text.replace("\n  ", " ")
    assert "time not measured (`autostamp launch --repeat N`, or benchmarks/overhead.py --json FILE" in bare
    assert "registers, spills and schedule not measured" in bare


def test_lost_records_are_counted():
    timeline = ring_timeline()
    lossy = replace(timeline, warps=(replace(timeline.warps[0], lost=7), timeline.warps[1]))
    assert line(ring_verdict(timeline=lossy), "records lost") == "records lost: 7 in 1 of 2 warps"
    assert line(ring_verdict(), "records lost") == "records lost: none"


def test_it_fits_on_one_screen_whatever_there_is():
    role = [f"role_with_a_long_name_{number}" for number in range(30)]
    totals = tuple(RoleTotals(name, (number,), 100, 50, 25, 25) for number, name in enumerate(role))
    blame = tuple(
        Blame(name, barrier, "full", name, Ending.SIGNAL, 1, 10, 0.1) for name in role for barrier in range(10)
    )
    flow = replace(ring_flow(tuple(f"note {number} " * 30 for number in range(20))), blame=blame)
    found = ring_verdict(flow, replace(ring_timeline(), roles=totals))
    lines = found.text.split("\n")
    assert len(lines) <= MOST_LINES == 40
    assert max(map(len, lines)) <= WIDTH == 100
    assert "more lines: `autostamp report` shows all" in found.text
    assert "note: note 0" in found.text


RECORDED = [
    "tests/fixtures/runs/fa4_forward_one_cta",
    "kernels/cutedsl/recorded/gemm_ws_h200",
    "kernels/cuda/recorded/gemm_ws_h200",
]


@pytest.mark.parametrize("run", RECORDED)
def test_verdicts_of_recorded_runs_fit_on_one_screen(run):
    data = load_run(ROOT / run)
    (trace,) = data.traces.values()
    timeline = analyse(trace)
    found = verdict(timeline, explain(trace, timeline), data.manifest, data.facts)
    lines = found.text.split("\n")
    assert len(lines) <= MOST_LINES
    assert max(map(len, lines)) <= WIDTH
    assert "records lost: none" in lines


def test_a_side_that_the_name_says_is_not_said_again():
    words = Words({}, {1: "full", 2: "smem.full", 3: "full/empty", 4: "K", 5: "fullness", 6: "full_bar"}, 0.0)
    said = [words.barrier(number, "full") for number in range(7)]
    assert said == ["full", "full", "smem.full", "full/empty full", "K full", "fullness full", "full_bar"]
    assert words.barrier(1, "empty") == "full empty"
    assert words.barrier(3, "empty") == "full/empty empty"
