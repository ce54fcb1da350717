# SPDX-License-Identifier: Apache-2.0
"""Several CTAs against one prediction: which one is shown, and how far the others are from it."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from autostamp.analysis import analyse
from autostamp.analysis.flow import explain
from autostamp.cli import main
from autostamp.diagnostics import AutostampError
from autostamp.model.flow import Flow
from autostamp.model.timeline import Timeline
from autostamp.predict.ctas import chosen, reconcile_ctas
from autostamp.predict.reconcile import reconcile
from autostamp.report.reconcile_text import as_text
from autostamp.runtime.store import load_run
from tests.simulator.ring_flow import simulate_ring
from tests.unit.test_cli_reconcile import GEMM, prediction, run, tile
from tests.unit.test_reconcile import NAMES, PLACES, USES, Resource, budget, predicted, row

EIGHT = Path(__file__).parents[1] / "fixtures" / "runs" / "fa4_forward_8_ctas"


def cta(compute: int) -> tuple[Timeline, Flow]:
    """A CTA of the ring whose consumer takes so many units: that is its period."""
    trace, timeline = simulate_ring([20] * USES, [[compute] * USES], 3)
    return timeline, explain(trace, timeline)


def compare(timeline: Timeline, flow: Flow):
    of = budget(row("load", Resource.L2, 20), row("mma", Resource.TENSOR, 50))
    return reconcile(timeline, flow, predicted(of), places=PLACES, barriers=NAMES)


def test_the_cta_with_the_median_period_is_shown():
    place, found = reconcile_ctas([cta(90), cta(50), cta(60)], compare)
    assert place == 2
    assert found.period.mean == pytest.approx(60_000, rel=0.01)
    spread = found.ctas
    assert (spread.recorded, spread.compared, spread.unsteady, spread.launches) == (3, 3, 0, 1)
    assert [spread.period.least, spread.period.median, spread.period.most] == pytest.approx(
        [50_000, 60_000, 90_000], rel=0.01
    )
    # The producer works 20 of 50, 60 and 90.
    load = next(role for role in spread.roles if role.role == "load")
    assert [load.idle.least, load.idle.median, load.idle.most] == pytest.approx([0.6, 2 / 3, 7 / 9], abs=0.01)
    assert (spread.direction_holds, spread.ranking_holds) == (3, 3)
    text = as_text(found)
    assert "3 CTAs compared: period median" in text
    assert "below is CTA 0,0,0, whose period is the median" in text


def test_of_two_the_shorter_is_shown_and_one_alone_has_no_spread():
    assert reconcile_ctas([cta(90), cta(50)], compare)[0] == 1
    assert reconcile_ctas([cta(50)], compare)[1].ctas is None


def test_ctas_without_a_steady_state_are_left_out():
    flat = cta(50)
    still = Flow((), (), (), None, None, (), (), ())
    place, found = reconcile_ctas([(flat[0], still), flat], compare)
    assert (place, found.ctas.compared, found.ctas.unsteady) == (1, 1, 1)
    assert "1 without a steady state are left out" in as_text(found)
    with pytest.raises(AutostampError, match="AS7141"):
        reconcile_ctas([(flat[0], still)], compare)


def test_other_errors_are_not_swallowed():
    def refuse(timeline: Timeline, flow: Flow):
        raise AutostampError.of("AS7140", roles="x", kernel="k", there="y")

    with pytest.raises(AutostampError, match="AS7140"):
        reconcile_ctas([cta(50)], refuse)


def test_of_many_ctas_some_are_taken_evenly():
    assert chosen(3) == [0, 1, 2]
    taken = chosen(1000, 64)
    assert (len(taken), taken[0], taken[-1]) == (64, 0, 999)
    assert {after - before for before, after in pairwise(taken)} <= {15, 16}


def test_all_recorded_ctas_of_a_run_are_compared(capsys, tmp_path):
    # Four CTAs of the GEMM, each 32 k-tiles long.
    status, out, _ = run(capsys, "reconcile", GEMM, prediction(tmp_path, GEMM, tile()), "--json")
    assert status == 0
    found = json.loads(out)
    data = load_run(GEMM)
    timelines = [analyse(trace) for trace in data.recorded if trace.lanes]
    assert found["ctas"] is None if len(timelines) == 1 else found["ctas"]["compared"] == len(timelines)


def test_one_cta_may_be_chosen(capsys, tmp_path):
    data = load_run(EIGHT)
    traces = [trace for trace in data.recorded if trace.lanes]
    blocks = [trace.block for trace in traces]
    assert len(blocks) == 8
    from autostamp.predict.attention import AttentionTile, Roles, forward
    from autostamp.predict.machines import load_machine

    roles = Roles(mma="mma", softmax="mma", load="load")
    budget_of = forward(load_machine("h200"), AttentionTile(128, 128, 128), smem_write_share=0, roles=roles)
    file = prediction(tmp_path, EIGHT, budget_of)
    status, out, err = run(capsys, "reconcile", EIGHT, file, "--json")
    assert status in (0, 1), err
    all_of_them = json.loads(out)["ctas"]
    assert (all_of_them["recorded"], all_of_them["compared"] + all_of_them["unsteady"]) == (8, 8)
    chosen_block = ",".join(map(str, blocks[3]))
    status, out, err = run(capsys, "reconcile", EIGHT, file, "--block", chosen_block, "--json")
    assert status in (0, 1), err
    timeline = analyse(traces[3])
    flow = explain(traces[3], timeline)
    alone = json.loads(out)
    assert alone["ctas"] is None
    assert alone["period"]["mean"] == pytest.approx((flow.steady.end - flow.steady.start) / flow.steady.iterations)


@pytest.mark.parametrize(
    ("block", "says"), [("9,9,9", "the run has"), ("x", "is not a block index"), ("0..3", "give one CTA")]
)
def test_a_block_that_is_not_there(block, says, capsys, tmp_path):
    status, _, err = run(capsys, "reconcile", GEMM, prediction(tmp_path, GEMM, tile()), "--block", block)
    assert status == 2
    assert "AS9001" in err
    assert says in err


CASE = Path(__file__).parents[1] / "fixtures" / "predicted" / "hdim64"
WORDS = (str(CASE / "RUN"), "--prediction", str(CASE / "prediction.json"), "--cubin", str(CASE / "clean.cubin"))


def test_exports_show_the_prediction_above_the_measured_timeline(capsys, tmp_path):
    svg, csv, trace = tmp_path / "a.svg", tmp_path / "a.csv", tmp_path / "a.pftrace"
    assert main(["report", *WORDS, "--svg", str(svg), "--csv", str(csv), "--perfetto", str(trace)]) == 0
    text = svg.read_text()
    first, second = text.index("predicted: FlashAttentionForwardSm90"), text.rindex("FlashAttentionForwardSm90.kernel")
    assert first < second
    rows = [line.split(",") for line in csv.read_text().splitlines()]
    names = {row[0] for row in rows[1:]}
    assert names == {"predicted: FlashAttentionForwardSm90.kernel", "FlashAttentionForwardSm90.kernel"}
    # The predicted timeline begins where the steady window of the measured one does, on the same clock.
    data = load_run(CASE / "RUN")
    (measured,) = [trace for trace in data.recorded if trace.lanes]
    steady = explain(measured, analyse(measured)).steady
    starts = [int(row[7]) for row in rows[1:] if row[0].startswith("predicted")]
    assert min(starts) == steady.start
    assert b"predicted: FlashAttentionForwardSm90" in trace.read_bytes()
    again = tmp_path / "b.svg"
    assert main(["export", *WORDS, "--svg", str(again)]) == 0
    assert again.read_text() == text


def test_the_clean_time_of_a_report_is_that_of_reconcile(capsys, tmp_path):
    file = tmp_path / "r.json"
    data = load_run(CASE / "RUN")
    (measured,) = [trace for trace in data.recorded if trace.lanes]
    timeline = analyse(measured)
    mhz = timeline.sm_mhz or data.facts.sm_mhz
    clean = timeline.cycles / mhz / 1.25
    assert main(["report", *WORDS, "--json", str(file), "--clean-us", str(clean)]) == 0
    (shown,) = json.loads(file.read_text())["timelines"]
    assert shown["cost"]["time_ratio"] == pytest.approx(1.25)
    assert any("by the ratio 1.250" in line for line in shown["prediction"]["lines"])


def test_blind_spots_stand_on_the_report_and_on_what_reconcile_prints(capsys, tmp_path):
    file = tmp_path / "r.json"
    spots = json.loads((CASE / "prediction.json").read_bytes())["prediction"]["blind_spots"]
    assert len(spots) > 3
    assert main(["report", *WORDS, "--json", str(file)]) == 0
    (shown,) = json.loads(file.read_text())["timelines"]
    lines = shown["prediction"]["lines"]
    assert [line for line in lines if line.startswith("not in the model: ")][:3] == [
        f"not in the model: {spot}" for spot in spots[:3]
    ]
    assert f"not in the model: {len(spots) - 3} more, in the prediction file (blind_spots)" in lines
    capsys.readouterr()
    run_folder, _, path, _, cubin = WORDS
    assert main(["reconcile", run_folder, path, "--cubin", cubin]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert all(f"not in the model: {spot}" in printed for spot in spots[:3])
