# SPDX-License-Identifier: Apache-2.0
"""The report document against its schema, the ring kernel's by hand, and those of recorded runs."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import resources
from pathlib import Path

import jsonschema
import pytest

from autostamp import __version__
from autostamp.analysis import analyse
from autostamp.analysis.flow import explain
from autostamp.model.flow import Ending, PathKind
from autostamp.model.manifest import Barrier
from autostamp.model.run import MachineFacts
from autostamp.model.timeline import State
from autostamp.report.columns import packed, plain, unpacked
from autostamp.report.cost import Cost
from autostamp.report.document import document
from autostamp.report.document_rows import STATES
from autostamp.report.document_timeline import ENDINGS, PATH_KINDS
from autostamp.runtime.store import load_run
from tests.simulator.ring_report import ring_flow, ring_timeline
from tests.simulator.tables import FILE_KEY, ring_kernel, ring_manifest

ROOT = Path(__file__).parents[2]
RUNS = [
    ROOT / "tests/fixtures/runs/fa4_forward_one_cta",
    ROOT / "tests/fixtures/runs/fa4_forward_full_grid",
    ROOT / "kernels/cutedsl/recorded/gemm_ws_h200",
    ROOT / "kernels/cuda/recorded/gemm_ws_h200",
]
SCHEMA = json.loads(resources.files("autostamp.report").joinpath("assets", "report.schema.json").read_text("utf-8"))
PAIR = (ring_timeline(), ring_flow())
TEXTS = {FILE_KEY: "the file\n"}


def check(found):
    """Through JSON, as a reader gets it."""
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(json.dumps(found, allow_nan=False)))


def ring_document(**options):
    return document([PAIR], ring_manifest(), MachineFacts(), TEXTS, columns=plain, **options)


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("columns", [packed, plain])
def test_the_ring_fits_the_schema(columns):
    check(document([PAIR], ring_manifest(), columns=columns))
    check(document([PAIR], ring_manifest(), MachineFacts(gpu="Test GPU", command=("x",)), TEXTS, columns=columns))


@pytest.mark.parametrize("run", RUNS, ids=lambda run: f"{run.parts[-3]}-{run.name}")
def test_documents_of_recorded_runs_fit_the_schema_and_keep_every_span(run):
    data = load_run(run)
    (trace,) = data.traces.values()
    timeline = analyse(trace)
    found = document([(timeline, explain(trace, timeline))], data.manifest, data.facts)
    check(found)
    (shown,) = found["timelines"]
    warps = {warp.warp: warp for warp in timeline.warps}
    assert [row["warp"] for row in shown["rows"]] == sorted(warps, key=lambda number: _place(timeline, number))
    for row in shown["rows"]:
        warp = warps[row["warp"]]
        spans = row["spans"]
        assert unpacked(spans["start"]) == [part.start for part in warp.slices]
        assert unpacked(spans["end"]) == [part.end for part in warp.slices]
        assert unpacked(spans["instance"]) == [part.instance for part in warp.slices]
        assert unpacked(row["signals"]["at"]) == [signal.cycles for signal in warp.signals]
        assert row["stall"] + row["passed"] + row["active"] + row["untracked"] == row["end"] - row["start"]
    assert shown["sm_mhz"] == timeline.sm_mhz


def _place(timeline, number):
    role = next(role for role in timeline.roles if number in role.warps)
    return min(role.warps), number


def test_a_document_that_lacks_a_key_does_not_fit():
    found = ring_document()
    del found["timelines"][0]["rows"][0]["spans"]["stage"]
    with pytest.raises(jsonschema.ValidationError):
        check(found)


def test_head_of_the_document():
    found = ring_document()
    assert found["schema_version"] == 1
    assert found["tool"] == f"autostamp {__version__}"
    assert found["title"] == "ring"
    assert found["sources"] == [{"path": "src/ring.py", "language": "cutedsl", "text": "the file\n"}]
    assert found["machine"]["gpu"] is None
    assert found["machine"]["sm_mhz"] is None


def test_instances_lead_to_sites_and_sites_to_lines():
    found = ring_document()
    wait = found["instances"][2]
    assert (wait["number"], wait["barrier"], wait["label"], wait["side"]) == (3, 1, "K consumer_wait", "full")
    site = found["sites"][wait["site"]]
    assert (site["line"], site["column"], site["method"], site["kind"]) == (31, 9, "consumer_wait", "wait")
    assert found["sources"][site["source"]]["path"] == "src/ring.py"
    assert found["barriers"][0] == {
        "number": 1,
        "trace": 1,
        "own": 1,
        "label": "K",
        "type": "PipelineTmaAsync",
        "stages": 2,
        "is_inferred": False,
    }


def test_rows_hold_spans_signals_and_their_causes():
    load, mma = ring_document()["timelines"][0]["rows"]
    assert (load["warp"], load["role"], load["start"], load["end"]) == (0, "load", 0, 80)
    # Acquire 0-0 and 10-10 pass, holds between, then stalls of 20 cycles each, which are causes 1 and 2.
    assert load["spans"] == {
        "start": [0, 0, 10, 10, 20, 40, 50, 70],
        "end": [0, 10, 10, 20, 40, 50, 70, 80],
        "state": [2, 0, 2, 0, 1, 0, 1, 0],
        "instance": [1] * 8,
        "visit": [0, 0, 1, 1, 2, 2, 3, 3],
        "stage": [0, 0, 1, 1, 0, 0, 1, 1],
        "cause": [-1, -1, -1, -1, 1, -1, 2, -1],
    }
    assert mma["signals"] == {
        "at": [40, 70, 100, 130],
        "instance": [4] * 4,
        "visit": [0, 1, 2, 3],
        "stage": [0, 1, 0, 1],
    }


def test_arrows_and_causes_refer_to_each_other():
    found = ring_document()["timelines"][0]
    arrows, causes = found["arrows"], found["causes"]
    assert arrows["from_row"] == [0, 0, 1, 0, 1, 0]
    assert arrows["to_row"] == [1, 1, 0, 1, 0, 1]
    assert arrows["from"] == [10, 20, 40, 50, 70, 80]
    assert arrows["to"] == [10, 40, 40, 70, 70, 100]
    assert causes["arrow"] == [0, 2, 4]
    assert causes["awaited"] == [10, 20, 20]
    assert causes["ending"] == [0, 0, 0]
    assert causes["binding"] == [1, 1, 1]


def test_flags_of_arrows_are_bits():
    flow = ring_flow()
    marked = flow.arrows[0]._replace(is_async=True), flow.arrows[1]._replace(is_inferred=True)
    flow = replace(flow, arrows=(*marked, flow.arrows[2]._replace(is_async=True, is_inferred=True)))
    found = document([(ring_timeline(), flow)], ring_manifest(), columns=plain)
    assert found["timelines"][0]["arrows"]["flags"] == [1, 2, 3]


def test_steady_window_and_path():
    found = ring_document()["timelines"][0]
    assert found["steady"]["marks"] == [40, 70, 100]
    assert found["steady"]["period"]["median"] == 30
    assert found["path"]["parts"] == {"row": [1], "kind": [0], "barrier": [0], "start": [40], "end": [100]}
    assert found["path"]["by_role"] == [["mma", 1.0]]
    assert found["overlaps"] == [{"first": "load", "second": "mma", "common": 20, "busy": 60, "share": 1 / 3}]


def test_without_an_iteration_steady_and_path_are_null():
    flow = replace(ring_flow(("no wait repeats",)), steady=None, path=None)
    found = document([(ring_timeline(), flow)], ring_manifest(), columns=plain)
    check(found)
    assert found["timelines"][0]["steady"] is None
    assert found["timelines"][0]["path"] is None
    assert "no wait repeats" in found["notes"]


def test_numbers_are_those_that_the_format_says():
    assert [STATES[state] for state in (State.ACTIVE, State.STALL, State.PASS)] == [0, 1, 2]
    endings = (Ending.SIGNAL, Ending.TRANSFER, Ending.GROUP, Ending.GRANTED, Ending.UNSEEN, Ending.LOST)
    assert [ENDINGS[ending] for ending in endings] == [0, 1, 2, 3, 4, 5]
    kinds = (PathKind.ACTIVE, PathKind.UNTRACKED, PathKind.TRANSFER, PathKind.HAND_OFF, PathKind.STALL)
    assert [PATH_KINDS[kind] for kind in kinds] == [0, 1, 2, 3, 4]


def test_unknown_is_null():
    bare = replace(ring_timeline(), smid=-1)
    (found,) = document([(bare, ring_flow())], ring_manifest(), columns=plain)["timelines"]
    assert (found["smid"], found["wave"], found["alignment_error"], found["sm_mhz"]) == (None, None, None, None)
    assert found["cost"] == {
        "time_ratio": None,
        "registers": None,
        "spills": None,
        "schedule_distance": None,
        "lost": 0,
    }


def test_cost_is_given_in_pairs():
    cost = Cost(1.18, (168, 176), (0, 16), 0.04)
    (found,) = ring_document(costs={1: cost})["timelines"]
    assert found["cost"] == {
        "time_ratio": 1.18,
        "registers": [168, 176],
        "spills": [0, 16],
        "schedule_distance": 0.04,
        "lost": 0,
    }


def test_a_second_kernel_is_numbered_past_the_first():
    other = ring_kernel(number=2, kernel="other")
    manifest = ring_manifest(ring_kernel(), other)
    second = replace(ring_timeline(), trace=2, kernel="other")
    found = document([PAIR, (second, ring_flow())], manifest, columns=plain)
    check(found)
    assert [row["number"] for row in found["instances"]] == list(range(1, 11))
    assert [(row["trace"], row["own"]) for row in found["instances"][5:7]] == [(2, 1), (2, 2)]
    assert [row["number"] for row in found["barriers"]] == [1, 2, 3, 4]
    # Both kernels stand in one file: its sites are listed once.
    assert len(found["sites"]) == 5
    assert found["instances"][5]["site"] == found["instances"][0]["site"]
    last = found["timelines"][1]
    assert last["rows"][0]["spans"]["instance"] == [6] * 8
    assert last["arrows"]["barrier"] == [3] * 6
    assert last["path"]["parts"]["barrier"] == [0]
    assert last["steady"]["instance"] == 8
    assert last["blame"][0]["barrier"] == 3
    assert found["title"] == "ring, other"


def test_a_kernel_that_the_manifest_lacks_still_has_its_rows():
    found = document([PAIR], replace(ring_manifest(), traces=()), columns=plain)
    check(found)
    assert found["instances"] == []
    assert len(found["timelines"][0]["rows"]) == 2


def test_a_barrier_may_be_inferred():
    kernel = replace(ring_kernel(), barriers=(Barrier(1, "K", "PipelineTmaAsync", 2, True),))
    found = document([PAIR], ring_manifest(kernel), columns=plain)
    assert found["barriers"][0]["is_inferred"] is True


def test_the_same_input_gives_the_same_text():
    one, other = (json.dumps(document([PAIR], ring_manifest(), sources=TEXTS)) for _ in range(2))
    assert one == other


def test_a_source_that_was_not_kept_is_noted():
    found = document([PAIR], ring_manifest(), columns=plain)
    assert found["sources"][0]["text"] == ""
    assert "the original source was not kept, so no lines are shown of: src/ring.py" in found["notes"]
    assert not [note for note in ring_document()["notes"] if "source" in note]


def test_findings_and_notes_stand_on_the_face():
    notes = ring_document(findings=[["AS6006 lane 1: its clock goes backwards"]])["notes"]
    assert notes[0] == "AS6006 lane 1: its clock goes backwards"
    assert any(note.startswith("1 stamped instance never visited") for note in notes)


def test_progress_is_told_after_each_timeline():
    told = []
    document([PAIR, PAIR], ring_manifest(), progress=lambda: told.append(1))
    assert len(told) == 2
