# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import replace

from autostamp.model.timeline import RoleTotals, WarpTimeline
from autostamp.report.notes import loud_notes, placed_notes
from tests.simulator.ring_report import ring_timeline
from tests.simulator.tables import CONSUME, ring_kernel, ring_manifest


def notes(timeline, manifest=None):
    return loud_notes(timeline, manifest or ring_manifest())


def warps(timeline, *changes):
    """The ring's timeline with one dict of changes for each of its warps."""
    changed = (replace(warp, **fields) for warp, fields in zip(timeline.warps, changes, strict=True))
    return replace(timeline, warps=tuple(changed))


def test_what_was_not_reached_is_listed():
    assert notes(ring_timeline()) == (
        "1 stamped instance never visited by the recorded CTA: epilogue arrive_and_wait at ring.py:40",
    )
    assert loud_notes(ring_timeline(), ring_manifest(), with_missed=False) == ()


def test_a_note_is_said_once_with_the_ctas_that_it_is_about():
    first, second = ring_timeline(), replace(ring_timeline(), block=(1, 0, 0))
    third = replace(first, launch=1)
    other = replace(first, kernel="other<" + "int, " * 100, trace=2)
    assert placed_notes([(first, "a"), (first, "b")], [first]) == ("a", "b")
    assert placed_notes([(first, "a"), (second, "b")], [first, second]) == (
        "CTA (0, 0, 0): a",
        "CTA (1, 0, 0): b",
    )
    assert placed_notes([(first, "a"), (third, "a"), (third, "b")], [first, third]) == (
        "all 2 timelines: a",
        "launch 1 CTA (0, 0, 0): b",
    )
    named = placed_notes([(first, "a"), (other, "b")], [first, other])
    assert named == (f"{first.kernel} CTA (0, 0, 0): a", f"{other.kernel[:95]}… CTA (0, 0, 0): b")
    six = [replace(first, block=(x, 0, 0)) for x in range(6)]
    (text,) = placed_notes([(each, "a") for each in six[:5]], six)
    assert text.endswith("CTA (2, 0, 0), CTA (3, 0, 0) and 1 more: a")


def test_many_that_were_not_reached_are_counted():
    (text,) = notes(replace(ring_timeline(), never_visited=(1, 2, 3, 4, 5)))
    assert text.startswith("5 stamped instances never visited by the recorded CTA: K producer_acquire at ring.py:12, ")
    assert text.endswith(" and 1 more")


def test_warnings_of_the_trace_come_first():
    assert notes(replace(ring_timeline(), warnings=("the clock stood still",)))[0] == "the clock stood still"


def test_a_lossy_lane_is_named():
    found = notes(warps(ring_timeline(), {"lost": 12}, {}))
    assert found[0] == "warp 0 lost 12 records: its lane was full, its last part is not shown"
    assert "(or only after a lane was full)" in found[-1]


def test_all_lanes_lossy_is_louder():
    found = notes(warps(ring_timeline(), {"lost": 12}, {"lost": 1000}))
    assert found[0].startswith("all 2 lanes were full: 1,012 records are lost")
    assert "--capacity" in found[0]
    assert len([note for note in found if "its lane was full" in note]) == 2


def test_a_wait_that_never_ended_is_named():
    found = notes(warps(ring_timeline(), {}, {"open_waits": (CONSUME,)}))
    assert found[0] == "warp 1 entered K consumer_wait at ring.py:31; never came out"


def test_many_open_waits_are_counted():
    found = notes(warps(ring_timeline(), {}, {"open_waits": (CONSUME,) * 9}))
    assert found[4] == "5 more waits were entered and have no exit"


def test_a_role_whose_warps_passed_no_stamp_is_named():
    silent = WarpTimeline(2, "epilogue", (), 50, 0, 0, 50, 0, 0, 50)
    roles = (*ring_timeline().roles, RoleTotals("epilogue", (2,), 50, 0, 0, 50))
    timeline = replace(ring_timeline(), warps=(*ring_timeline().warps, silent), roles=roles)
    assert notes(timeline)[0] == "epilogue (warps 2) passed no stamp: what it did is unknown, and drawn as untracked"


def test_a_role_of_the_source_that_no_warp_had_is_named():
    kernel = ring_kernel()
    rows = tuple(replace(row, role="store") if row.number == 5 else row for row in kernel.instances)
    found = notes(ring_timeline(), ring_manifest(replace(kernel, instances=rows)))
    assert found[0] == "no recorded warp reached a stamp of the role store (1 instance)"
