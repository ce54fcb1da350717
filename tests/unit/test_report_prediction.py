# SPDX-License-Identifier: Apache-2.0
"""A prediction in the report document: a ring's by hand, and FlashAttention's through the command line."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path

import jsonschema
import pytest

from autostamp.cli import main
from autostamp.model.budget import Budget, Origin, Resource, ResourceRow, Ring, Step
from autostamp.predict.bounds import predict
from autostamp.predict.gemm import GemmTile, gemm
from autostamp.predict.machines import load_machine
from autostamp.predict.simulate import simulate
from autostamp.predict.simulated_manifest import manifest_of
from autostamp.report.columns import packed, plain
from autostamp.report.document import document
from autostamp.report.document_prediction import Predicted
from autostamp.runtime.prediction_file import digest_of_sources, made, write_prediction
from autostamp.runtime.store import load_run
from tests.simulator.ring_report import ring_flow, ring_timeline
from tests.simulator.tables import ring_manifest

GEMM = Path(__file__).parents[2] / "kernels/cutedsl/recorded/gemm_ws_h200"
CASE = Path(__file__).parents[2] / "tests/fixtures/predicted/hdim128"
SCHEMA = json.loads(resources.files("autostamp.report").joinpath("assets", "report.schema.json").read_text("utf-8"))
PAIR = (ring_timeline(), ring_flow())
BEGIN = 1000


@pytest.fixture(autouse=True)
def no_lessons(monkeypatch, tmp_path):
    monkeypatch.setenv("AUTOSTAMP_LESSONS", str(tmp_path / "lessons.toml"))


def check(found):
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(json.dumps(found, allow_nan=False)))


def predicted() -> Predicted:
    """Two iterations of one stage: load works 10 cycles, a stage is full 10 after that began, mma works 20."""
    rows = (
        ResourceRow("load", Resource.L2, "copies", 10, "B", "", 1, 10, Origin.GIVEN, "", ""),
        ResourceRow("mma", Resource.TENSOR, "products", 20, "FLOP", "", 1, 20, Origin.GIVEN, "", ""),
    )
    rings = (Ring("K", "load", "mma", 1, (Step("copy", 10),), (Step("mma", 20),)),)
    budget = Budget("ring", "h200", "one tile", rows, rings=rings)
    played = simulate(budget, 2)
    return Predicted("it fits", ("a line",), 30.0, 33.5, 2, BEGIN, played.timeline, manifest_of(budget, played))


@pytest.mark.parametrize("columns", [packed, plain])
def test_it_fits_the_schema(columns):
    check(document([PAIR], ring_manifest(), columns=columns, predicted={0: predicted()}))


def test_rows_begin_where_the_prediction_was_laid_and_name_what_they_wait_for():
    found = document([PAIR], ring_manifest(), columns=plain, predicted={0: predicted()})
    prediction = found["timelines"][0]["prediction"]
    assert (prediction["headline"], prediction["lines"]) == ("it fits", ["a line"])
    assert prediction["period"] == {"predicted": 30.0, "measured": 33.5}
    played = prediction["timeline"]
    # load 0-10, mma waits 0-10 and works 10-30; the stage is empty at 30: load waits 10-30, works 30-40; mma 30-40, 40-60.
    assert (played["iterations"], played["start"], played["end"]) == (2, 1000, 1060)
    load, mma = played["rows"]
    barriers = {row["number"]: row for row in found["barriers"]}
    instances = {row["number"]: row for row in found["instances"]}
    assert (load["spans"]["start"], load["spans"]["end"]) == ([1000, 1010, 1030], [1010, 1030, 1040])
    assert load["spans"]["state"] == [0, 1, 0]
    assert (mma["spans"]["start"], mma["spans"]["end"]) == ([1000, 1010, 1030, 1040], [1010, 1030, 1040, 1060])
    assert mma["spans"]["state"] == [1, 0, 1, 0]
    assert (load["start"], load["end"], load["stall"], load["active"]) == (1000, 1040, 20, 20)
    # An iteration that waited for nothing names no instance.
    assert load["spans"]["instance"][0] == 0
    for row, side in ((load, "empty"), (mma, "full")):
        instance = instances[row["spans"]["instance"][1]]
        assert (instance["side"], instance["trace"], instance["site"]) == (side, 0, None)
        barrier = barriers[instance["barrier"]]
        assert (barrier["label"], barrier["type"], barrier["stages"], barrier["trace"]) == ("K", "predicted", 1, 0)
    measured = [row["number"] for row in found["instances"] if row["trace"]]
    assert min(row["number"] for row in found["instances"] if not row["trace"]) == max(measured) + 1
    assert len(instances) == len(found["instances"])


def test_all_else_is_the_measured_document_and_without_a_prediction_there_is_a_null():
    without = document([PAIR], ring_manifest())
    assert without["timelines"][0]["prediction"] is None
    stripped = copy.deepcopy(document([PAIR], ring_manifest(), predicted={0: predicted()}))
    stripped["timelines"][0]["prediction"] = None
    for table in ("instances", "barriers"):
        stripped[table] = [row for row in stripped[table] if row["trace"]]
    assert json.dumps(stripped) == json.dumps(without)
    assert list(without["timelines"][0])[-1] == "prediction"
    del without["timelines"][0]["prediction"]
    check(without)


def report(capsys, *options: object) -> tuple[int, str]:
    status = main(["report", str(CASE / "RUN"), *map(str, options)])
    return status, capsys.readouterr().err


def test_flash_attention_lies_at_its_steady_state(capsys, tmp_path):
    file = tmp_path / "report.json"
    given = ("--prediction", CASE / "prediction.json", "--cubin", CASE / "clean.cubin")
    assert report(capsys, *given, "--json", file)[0] == 0
    found = json.loads(file.read_text("utf-8"))
    check(found)
    (timeline,) = found["timelines"]
    steady, prediction = timeline["steady"], timeline["prediction"]
    # 4 m n d flops of a 128 x 128 x 128 tile at 4096 a cycle: 2048 cycles.
    assert prediction["period"]["predicted"] == 2048
    assert prediction["period"]["measured"] == pytest.approx((steady["end"] - steady["start"]) / steady["iterations"])
    played = prediction["timeline"]
    assert (played["iterations"], played["start"]) == (steady["iterations"], steady["start"])
    assert played["end"] == steady["start"] + 2048 * steady["iterations"]
    assert [row["role"] for row in played["rows"]] == ["load", "mma"]
    assert "model is incomplete" in prediction["headline"]
    assert not any(prediction["headline"] in line for line in prediction["lines"])
    assert any(line.startswith("period: predicted 2,048 cycles (tensor core)") for line in prediction["lines"])
    assert any("drawn without waiting for each other" in line for line in prediction["lines"])


def test_a_role_may_be_called_otherwise_and_a_late_prediction_says_so(capsys, tmp_path):
    data = load_run(GEMM)
    budget = gemm(load_machine("h200"), GemmTile(128, 128, 64, 64, 128), smem_write_share=0, active_sms=4)
    rows = tuple(replace(row, role="compute" if row.role == "mma" else row.role) for row in budget.rows)
    late = datetime(2027, 1, 1, tzinfo=UTC)
    renamed = replace(budget, rows=rows)
    source = digest_of_sources(data.manifest)
    write_prediction(tmp_path / "p.json", made(renamed, predict(renamed), source=source, given=None, written_at=late))
    options = ("report", GEMM, "--prediction", tmp_path / "p.json", "--json", tmp_path / "report.json")
    assert main([*map(str, options)]) == 2
    assert "AS7140" in capsys.readouterr().err
    assert not (tmp_path / "report.json").exists()
    assert main([*map(str, options), "--role", "compute=mma"]) == 0
    assert "AS7146" in capsys.readouterr().err
    prediction = json.loads((tmp_path / "report.json").read_text("utf-8"))["timelines"][0]["prediction"]
    # Named and ordered as the trace's: mma is its warps 0 to 7, load warp 8.
    assert [(row["warp"], row["role"]) for row in prediction["timeline"]["rows"]] == [(0, "mma"), (1, "load")]
    assert prediction["lines"][-2].startswith("note: the budget holds no ring")
    assert prediction["lines"][-1].startswith("AS7146 ")


def test_a_prediction_of_another_source_writes_nothing(capsys, tmp_path):
    file = tmp_path / "report.json"
    status, err = report(capsys, "--prediction", CASE.parent / "hdim64" / "prediction.json", "--json", file)
    assert status == 2
    assert "AS7142" in err
    assert not file.exists()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--cubin", CASE / "clean.cubin"), "--cubin, --role and --clean-us need --prediction"),
        (("--role", "mma=compute"), "--cubin, --role and --clean-us need --prediction"),
        (("--clean-us", "3"), "--cubin, --role and --clean-us need --prediction"),
        (
            ("--prediction", CASE / "prediction.json", "--spec", "x.json", "--npz", "x.npz"),
            "needs a form that shows it",
        ),
        (
            ("--prediction", CASE / "prediction.json", "--clean-us", "3", "--overhead", CASE / "prediction.json"),
            "--clean-us and --overhead both say",
        ),
        (("--prediction", CASE / "prediction.json", "--role", "mma"), "BUDGET=TRACE"),
    ],
)
def test_options_that_do_not_go_together(capsys, options, why):
    status, err = report(capsys, *options)
    assert status == 2
    assert why in err


def test_a_prediction_needs_a_run(capsys):
    iket = CASE / "prediction.json"
    assert main(["report", "--iket", str(iket), "--prediction", str(CASE / "prediction.json")]) == 2
    assert "--prediction needs RUN" in capsys.readouterr().err
