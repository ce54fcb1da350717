# SPDX-License-Identifier: Apache-2.0
"""FlashAttention forward predicted from its clean cubin before it was recorded on an H200: what came true, and what did not."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest

from autostamp.cli import main

CASES = Path(__file__).parents[1] / "fixtures" / "predicted"

# Head dimension 128: a tile of 128 queries by 128 keys is two products of 128^3 multiply-adds, at 4,096 FLOP a cycle.
TENSOR_128 = 2 * 2 * 128**3 / 4096
# Head dimension 64: tiles of 192 keys, an exponential for each element, 16 a cycle; those of the running maximum come on top.
MUFU_64 = 128 * 192 / 16

PREDICTED = {"hdim128": TENSOR_128, "hdim128_causal": TENSOR_128, "hdim64": MUFU_64, "hdim64_causal": MUFU_64}


def reconciled(case: str, capsys: pytest.CaptureFixture[str]) -> tuple[dict, str]:
    folder = CASES / case
    words = [str(folder / "RUN"), str(folder / "prediction.json"), "--cubin", str(folder / "clean.cubin"), "--json"]
    assert main(["reconcile", *words]) == 0
    out, err = capsys.readouterr()
    return json.loads(out), err


@pytest.mark.parametrize("case", PREDICTED)
def test_it_was_written_before_the_run(case, capsys):
    _, said = reconciled(case, capsys)
    assert "AS7146" not in said
    written = json.loads((CASES / case / "prediction.json").read_bytes())["written_at"]
    recorded = json.loads((CASES / case / "RUN" / "machine.json").read_bytes())["recorded_at"]
    assert datetime.fromisoformat(written) < datetime.fromisoformat(recorded)


@pytest.mark.parametrize(("case", "least"), PREDICTED.items())
def test_the_predicted_period_is_what_hand_arithmetic_says(case, least):
    period = json.loads((CASES / case / "prediction.json").read_bytes())["prediction"]["period"]
    assert least <= period <= 1.05 * least


@pytest.mark.parametrize("case", PREDICTED)
def test_direction_and_ranking_came_true_and_the_length_did_not(case, capsys):
    main(
        [
            "reconcile",
            *(str(CASES / case / name) for name in ("RUN", "prediction.json")),
            "--cubin",
            str(CASES / case / "clean.cubin"),
        ]
    )
    text = " ".join(capsys.readouterr().out.split())
    assert "direction holds" in text
    assert "ranking by idle holds, most first: predicted load, mma; measured load, mma" in text
    # The chain of softmax and products, which the cubin's counts do not show, is missing from the budget.
    assert "the model is incomplete" in text
