# SPDX-License-Identifier: Apache-2.0
"""What a report learns from the run folder of a launch about the cost of measuring."""

from __future__ import annotations

import json

import pytest

from autostamp.cli.costs import read_costs
from autostamp.report.cost import Cost
from tests.simulator.tables import ring_kernel


def costs(run) -> Cost:
    return read_costs([ring_kernel()], None, None, run=run)[1]


def test_times_of_a_launch(tmp_path):
    (tmp_path / "times.json").write_text(json.dumps({"clean": 20.0, "stamped": 23.0}))
    assert costs(tmp_path) == Cost(time_ratio=23.0 / 20.0)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"clean": 0, "stamped": 1}', '{"clean": "x", "stamped": 1}'])
def test_times_that_say_nothing(tmp_path, text):
    (tmp_path / "times.json").write_text(text)
    assert costs(tmp_path) == Cost()


def test_without_a_run_folder():
    assert costs(None) == Cost()


def test_cubins_that_cannot_be_read_cost_nothing(tmp_path):
    for name in ("clean", "stamped"):
        (tmp_path / f"{name}.cubin").write_bytes(b"no cubin")
    assert costs(tmp_path) == Cost()
