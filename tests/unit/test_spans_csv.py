# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import csv
import io
from dataclasses import replace

from autostamp.report.spans_csv import COLUMNS, spans_csv
from tests.simulator.ring_report import ring_flow, ring_timeline
from tests.simulator.tables import ring_manifest


def rows(flow=None, manifest=None):
    text = spans_csv([(ring_timeline(), flow or ring_flow())], manifest or ring_manifest())
    return list(csv.DictReader(io.StringIO(text)))


def test_there_is_a_row_for_each_span():
    found = rows()
    assert [row["warp"] for row in found] == ["0"] * 8 + ["1"] * 8
    states = ["pass", "active", "pass", "active", "stall", "active", "stall", "active"]
    assert [row["state"] for row in found[:8]] == states


def test_a_stall_says_where_and_why():
    assert rows()[4] == dict.fromkeys(COLUMNS, "") | {
        "kernel": "ring",
        "trace": "1",
        "launch": "0",
        "block": "0 0 0",
        "role": "load",
        "warp": "0",
        "state": "stall",
        "start": "20",
        "end": "40",
        "cycles": "20",
        "file": "src/ring.py",
        "line": "12",
        "text": "pipeline_k.producer_acquire(state)",
        "barrier": "K",
        "side": "empty",
        "stage": "0",
        "visit": "2",
        "instance": "1",
        "ending": "signal",
        "awaited": "20",
        "in_flight": "0",
        "handed_over": "0",
        "unexplained": "0",
        "signal_role": "mma",
        "signal_warp": "1",
        "signal_cycles": "40",
        "inferred": "0",
        "async": "0",
    }


def test_what_is_no_stall_has_no_cause():
    for row in (row for row in rows() if row["state"] != "stall"):
        assert {row[name] for name in COLUMNS[18:]} == {""}


def test_a_stall_without_an_arrow_keeps_its_parts():
    causes = tuple(cause._replace(arrow=None, role="", awaited=0, unexplained=20) for cause in ring_flow().causes)
    row = rows(replace(ring_flow(), causes=causes))[4]
    assert (row["unexplained"], row["signal_warp"], row["inferred"]) == ("20", "", "")


def test_unknown_places_and_stages_are_empty():
    row = rows(manifest=replace(ring_manifest(), traces=()))[0]
    assert (row["file"], row["line"], row["barrier"]) == ("", "", "")


def test_texts_with_commas_come_back():
    manifest = ring_manifest()
    sites = tuple(replace(site, text='wait(a, "b",\n c)') for site in manifest.files[0].sites)
    found = rows(manifest=replace(manifest, files=(replace(manifest.files[0], sites=sites),)))
    assert found[0]["text"] == 'wait(a, "b", c)'


def test_a_joined_run_says_which_replay_and_how_far_off():
    timeline, flow = ring_timeline(), ring_flow()
    warps = tuple(
        replace(warp, slices=tuple(replace(part, replay=2, error=9, length_error=3) for part in warp.slices))
        for warp in timeline.warps
    )
    causes = tuple(
        cause._replace(arrow=cause.arrow._replace(error=7, is_uncertain=True)) if cause.arrow else cause
        for cause in flow.causes
    )
    text = spans_csv([(replace(timeline, warps=warps), replace(flow, causes=causes))], ring_manifest())
    found = list(csv.DictReader(io.StringIO(text)))
    assert {(row["replay"], row["error"], row["length_error"]) for row in found} == {("2", "9", "3")}
    of_arrow = {(row["signal_role"] != "", row["arrow_error"], row["uncertain"]) for row in found}
    assert of_arrow == {(True, "7", "1"), (False, "", "")}
