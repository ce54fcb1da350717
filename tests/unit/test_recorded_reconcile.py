# SPDX-License-Identifier: Apache-2.0
"""Predictions of runs that were recorded on an H200: period, order of the roles, split of the residual and verdict.

Measured figures are those of the verdict (`autostamp summary`); predicted ones follow from the tile (docs/reconcile.md).
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from autostamp.analysis import analyse
from autostamp.analysis.flow import explain
from autostamp.model.budget import Budget
from autostamp.model.reconciliation import Finding, PartKind, Reconciliation
from autostamp.predict.attention import AttentionTile, Roles, forward
from autostamp.predict.bounds import predict
from autostamp.predict.gemm import GemmTile, gemm
from autostamp.predict.machines import load_machine
from autostamp.predict.reconcile import reconcile
from autostamp.report.places import barriers_of, places_of
from autostamp.report.reconcile_text import as_text
from autostamp.report.verdict_words import Words
from autostamp.runtime.prediction_file import digest_of_sources, made
from autostamp.runtime.store import load_run

ROOT = Path(__file__).parents[2]
H200 = load_machine("h200")
TILE = GemmTile(128, 128, 64, 64, 128)
GEMM = "kernels/cutedsl/recorded/gemm_ws_h200"
CUDA_GEMM = "kernels/cuda/recorded/gemm_ws_h200"
ATTENTION = "tests/fixtures/runs/fa4_forward_one_cta"
FULL_GRID = "tests/fixtures/runs/fa4_forward_full_grid"
MOST_LINES = 45


def attention(softmax: str = "mma") -> Budget:
    return forward(H200, AttentionTile(128, 128, 128), Roles(softmax=softmax))


def against(run: str, budget: Budget, **options) -> Reconciliation:
    data = load_run(ROOT / run)
    (trace,) = data.traces.values()
    timeline = analyse(trace)
    file = made(
        budget,
        predict(budget),
        source=digest_of_sources(data.manifest),
        given=None,
        written_at=datetime(2026, 11, 1, tzinfo=UTC),
    )
    return reconcile(
        timeline,
        explain(trace, timeline),
        file,
        recorded_at=data.facts.recorded_at,
        places={number: Words.wait(place) for number, place in places_of(data.manifest, timeline.trace).items()},
        barriers=barriers_of(data.manifest, timeline.trace),
        **options,
    )


def parts(found: Reconciliation) -> dict[PartKind, float]:
    return {part.kind: part.cycles for part in found.parts}


RUNS = (
    (GEMM, gemm(H200, TILE, active_sms=4)),
    (CUDA_GEMM, gemm(H200, TILE, active_sms=1)),
    (ATTENTION, attention()),
    (FULL_GRID, attention()),
)


@pytest.mark.parametrize(("run", "budget"), RUNS, ids=[Path(run).parent.parent.name + run[-9:] for run, _ in RUNS])
def test_direction_and_order_of_the_roles_come_out_right(run, budget):
    found = against(run, budget)
    assert found.direction.holds
    assert found.direction.measured == "mma"
    assert found.ranking.predicted == found.ranking.measured == ("load", "mma")
    assert found.ranking.swapped == ()
    assert found.over == ()
    assert not found.is_written_after
    assert sum(part.cycles for part in found.parts) == pytest.approx(found.residual)
    assert len(as_text(found).splitlines()) <= MOST_LINES


def test_our_gemm_runs_at_the_rate_of_the_tensor_core():
    # 2 x 128 x 128 x 64 / 4096 = 512; measured 13299 / 26 iterations.
    found = against(GEMM, RUNS[0][1])
    assert (found.predicted, found.period.mean, found.period.median) == (512, 13299 / 26, 512)
    assert found.finding is Finding.AT_BOUND
    assert found.residual == pytest.approx(-0.5)
    assert found.trials == ()


def test_our_gemm_refutes_that_writes_take_turns_with_reads():
    # Reads 384 and writes 256 are 640 of 511.5: (511.5 - 384) / 256 is as much as the run allows.
    found = against(GEMM, gemm(H200, TILE, smem_write_share=1, active_sms=4))
    assert (found.predicted, found.finding) == (640, Finding.MODEL_ERROR)
    assert found.over == (("shared memory", 640),)
    assert found.correction == "smem_write_share 0 (the run allows 0.50 at most)"
    assert found.corrected is not None
    assert (found.corrected.predicted, found.corrected.finding) == (512, Finding.AT_BOUND)


def test_an_l2_rate_of_all_sms_is_refuted_by_a_run_of_four_ctas():
    found = against(GEMM, gemm(H200, TILE, smem_write_share=0))
    assert [name for name, _ in found.over] == ["L2"]
    # A and B of a stage, 32768 bytes, in 511.5 cycles.
    assert f"the run needs l2 {32768 / 511.5:.4g} or more" in found.correction


def test_the_cuda_gemm_is_slower_by_its_ready_waits_and_by_its_stamps():
    # Measured 6837 / 11; 512 is 82 % of it. Ready waits take 116 cycles of an iteration on the path; the residual is 110.
    found = against(CUDA_GEMM, RUNS[1][1])
    assert found.period.mean == pytest.approx(6837 / 11)
    assert found.finding is Finding.INCOMPLETE
    assert parts(found)[PartKind.HAND_OFF] == pytest.approx(found.residual)
    # benchmarks/results/overhead_cuda_h200.json: one CTA, of 64 k-tiles, takes 1.24 times as long with stamps.
    clean = against(CUDA_GEMM, RUNS[1][1], ratio=1.2408711399595245)
    assert clean.period.clean == pytest.approx(501, abs=0.5)
    assert clean.finding is Finding.AT_BOUND
    assert parts(clean)[PartKind.STAMPS] == pytest.approx(clean.residual)


def test_attention_lacks_the_softmax_beside_its_exponentials():
    # 4 x 128^3 / 4096 = 2048 of 81412 / 29. The loop's longest span without a record in between is the softmax, from the
    # release of K to the wait for P V.
    found = against(ATTENTION, attention())
    assert (found.predicted, found.bottleneck) == (2048, "tensor core")
    assert found.period.mean == pytest.approx(81412 / 29)
    assert found.explained == pytest.approx(2048 * 29 / 81412)
    assert found.finding is Finding.INCOMPLETE
    (term,) = found.trials
    assert "pipeline_k consumer_release" in term.what
    assert "wgmma wait_group" in term.what
    assert term.explained > 0.9
    assert any("softmax beside exponentials" in spot for spot in found.blind_spots)
    # With the cost of stamps that was measured of this launch (benchmarks/results/overhead_h200.json), more is explained and
    # less is missing, and the model still lacks it.
    clean = against(ATTENTION, attention(), ratio=1.1955478271151927)
    assert clean.finding is Finding.INCOMPLETE
    assert found.explained < clean.explained < 0.9
    assert parts(clean)[PartKind.STAMPS] == pytest.approx(found.period.mean * (1 - 1 / 1.1955478271151927))
    assert clean.trials[0].cycles < term.cycles
    assert parts(clean)[PartKind.UNEXPLAINED] < parts(found)[PartKind.UNEXPLAINED]


def test_a_role_that_the_trace_calls_otherwise_is_renamed():
    found = against(ATTENTION, attention("softmax"), roles={"softmax": "mma"})
    assert found.roles == against(ATTENTION, attention()).roles
