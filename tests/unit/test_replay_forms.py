# SPDX-License-Identifier: Apache-2.0
"""The face of a joined run says where the stamps of its sites stood, where that was not the usual place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from autostamp.model.manifest import Manifest
from autostamp.model.placement import Form
from autostamp.report.replays_text import replay_lines, replays_object
from autostamp.runtime.store import load_run

RUN = Path(__file__).parents[1] / "fixtures/runs/fa4_backward_joined"
EMPTY = Manifest(1, "autostamp", ())
SITES = (("k.py:9:5@0", Form.BOTH), ("k.py:10:5@0", Form.BEFORE), ("k.py:12:3@0", Form.CARRIED))


def test_forms_are_named_with_their_sites():
    replays = load_run(RUN).replays
    assert replays is not None
    first, *rest = (replace(each, sites=SITES[:1], anchors=()) for each in replays.sets)
    plain = replace(replays, sets=(first, *rest))
    mixed = replace(replays, sets=(replace(first, sites=SITES), *rest))
    added = [line for line in replay_lines(mixed, EMPTY) if "k.py:" in line]
    assert [line.rpartition(": ")[2] for line in added] == ["k.py:12", "k.py:10"]
    assert "written later" in added[0]
    assert "before the call" in added[1]
    assert not [line for line in replay_lines(plain, EMPTY) if "k.py:" in line]


def test_a_wait_with_its_stamps_in_two_sets_has_a_stall():
    replays = load_run(RUN).replays
    assert replays is not None
    enters, exits = (("k.py:9:5@0", Form.ENTER), ("k.py:30:5@0", Form.ENTER)), (("k.py:9:5@0", Form.EXIT),)
    split = replace(
        replays,
        sets=tuple(
            replace(each, sites=sites, anchors=()) for each, sites in zip(replays.sets, (enters, exits), strict=True)
        ),
    )
    lines = {
        line.rpartition(": ")[2]: line for line in replay_lines(split, EMPTY) if line.rpartition(": ")[2][:2] == "k."
    }
    assert set(lines) == {"k.py:9", "k.py:30"}
    assert "stalls with the errors of both" in lines["k.py:9"]
    assert "no stall" in lines["k.py:30"]


def test_the_object_has_the_same_by_meaning():
    replays = load_run(RUN).replays
    assert replays is not None
    first, *rest = (replace(each, sites=SITES[:1], anchors=()) for each in replays.sets)
    found = replays_object(replace(replays, sets=(replace(first, sites=SITES), *rest)), EMPTY)
    assert [each["sites"] for each in found["forms"]] == [["k.py:12"], ["k.py:10"]]
    assert "before the call" in found["forms"][1]["meaning"]
