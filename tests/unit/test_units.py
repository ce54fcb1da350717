# SPDX-License-Identifier: Apache-2.0
"""A trace that was stamped with a nanosecond timer is told in nanoseconds, in every form of the report."""

from __future__ import annotations

import json
import re
from importlib import resources
from pathlib import Path

import jsonschema

from autostamp.cli import main
from autostamp.report.units import in_unit

IKET = Path(__file__).parents[1] / "fixtures/iket/fa4_forward_one_cta.json.gz"
NOTE = "every figure given as cycles is in nanoseconds"


def test_the_unit_takes_the_place_of_cycles():
    assert in_unit("1 cycle, 2 cycles, 3 warp-cycles, bicycles", "ns") == "1 ns, 2 ns, 3 warp-ns, bicycles"
    assert in_unit("2 cycles", "cycles") == "2 cycles"


def test_an_iket_trace_names_no_cycles(tmp_path):
    made = tmp_path / "r.json", tmp_path / "r.svg"
    assert main(["report", "--iket", str(IKET), "-q", "--json", str(made[0]), "--svg", str(made[1])]) == 0
    document, picture = json.loads(made[0].read_text()), made[1].read_text()
    schema = resources.files("autostamp.report").joinpath("assets", "report.schema.json").read_text("utf-8")
    jsonschema.Draft202012Validator(json.loads(schema)).validate(document)
    assert document["unit"] == "ns"
    (timeline,) = document["timelines"]
    said = [
        timeline["verdict"]["headline"],
        *timeline["verdict"]["lines"],
        *re.findall(r"<text[^>]*>([^<]*)<", picture),
    ]
    assert [line for line in said if re.search(r"\bcycles?\b", line)] == []
    assert any(" ns an iteration" in line for line in said)
    assert [note for note in document["notes"] if "cycles" in note] == [
        note for note in document["notes"] if NOTE in note
    ]
