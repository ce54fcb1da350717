# SPDX-License-Identifier: Apache-2.0
"""A joined run that an H200 recorded: FlashAttention's backward, 1x4096x4096x1x128, one CTA, two sets; 2 of 16 launches are kept.

What the run itself says is held against what can be counted in its records.
"""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import jsonschema
import pytest

from autostamp.cli import main
from autostamp.model.placement import site_key
from autostamp.runtime.store import RunData, load_run

RUN = Path(__file__).parents[1] / "fixtures/runs/fa4_backward_joined"
REFERENCE, PLACED = 2, 1


@pytest.fixture(scope="module")
def run() -> RunData:
    return load_run(RUN)


def test_each_record_is_of_a_set_that_stamps_its_site(run):
    sites = {(file.key, site.number): site_key(file, site) for file in run.manifest.files for site in file.sites}
    stamped = {made.number: dict(made.sites) for made in run.replays.sets}
    for trace in run.recorded:
        key = {row.number: sites[row.file, row.site] for row in trace.kernel.instances}
        for lane in trace.lanes:
            for event, replay in zip(lane.events, lane.replays, strict=True):
                assert key[event.instance] in stamped[replay]


def test_the_reference_is_exact_and_the_rest_is_not(run):
    assert run.replays.reference == REFERENCE
    (fit,) = run.replays.fits
    for trace in run.recorded:
        errors = [pair for lane in trace.lanes for pair in zip(lane.replays, lane.errors, strict=True)]
        assert all(error == 0 for replay, error in errors if replay == REFERENCE)
        assert sum(replay == PLACED for replay, _ in errors) == fit.events
        assert max(error for _, error in errors) <= fit.error_most


def test_what_is_covered_and_what_is_missing_do_not_overlap(run):
    covered = {key for made in run.replays.sets for key, _ in made.sites}
    missing = {each.key for each in run.replays.uncovered}
    assert not covered & missing
    assert len(covered) + len(missing) == 28  # sites of the kernel


def test_the_face_of_the_summary(capsys):
    assert main(["summary", str(RUN)]) == 0
    lines = capsys.readouterr().out.splitlines()
    # 127.3355 and 125.8905 us against 125.333 us of the clean kernel.
    assert lines[0] == "joined from 2 replays, each at most 1.016 of the clean time; the bar was 1.020"
    assert "1.004 of the clean time" in lines[1]
    assert "9 warps have no anchor and lie where another warp's put them, by up to" in lines[1]
    assert lines[2].endswith("the reference: its records are where they were")
    assert "  7 sites are not covered:" in lines
    assert any("1.016 times the clean time" in line for line in lines)


def test_the_document_fits_its_schema(tmp_path, capsys):
    assert main(["report", str(RUN), "-q", "--json", str(tmp_path / "r.json")]) == 0
    schema = resources.files("autostamp.report").joinpath("assets", "report.schema.json").read_text("utf-8")
    found = json.loads((tmp_path / "r.json").read_text())
    jsonschema.Draft202012Validator(json.loads(schema)).validate(found)
    assert {number for row in found["timelines"][0]["rows"] for number in row["spans"].get("replay", [])} == {1, 2}


def test_it_compares_with_itself(capsys):
    assert main(["diff", str(RUN), str(RUN)]) == 0


def test_the_picture_of_the_documents_is_this_run(tmp_path):
    made = tmp_path / "picture.svg"
    assert main(["export", str(RUN), "--svg", str(made), "--from", "20000", "--to", "30000", "-q"]) == 0
    shown = RUN.parents[3] / "docs/pictures/fa4_backward_joined.svg"
    assert made.read_text("utf-8") == shown.read_text("utf-8")
    # The wait at PdS_barrier has both stamps in a set; five others have none, and the picture says so.
    assert "note: 5 waits without both stamps" in made.read_text("utf-8")
