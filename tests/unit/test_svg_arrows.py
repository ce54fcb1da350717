# SPDX-License-Identifier: Apache-2.0
"""Arrows and passes of the picture, read back as XML; the ring kernel's, whose 130 cycles are drawn on 912 pixels."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from autostamp.model.flow import End
from autostamp.report.svg import timeline_svg
from autostamp.report.svg_arrows import MOST_ARROWS
from tests.simulator.ring_report import ring_flow, ring_timeline
from tests.simulator.tables import ring_manifest

LEFT = 134
SPACE = "{http://www.w3.org/2000/svg}"


def picture(flow=None, timeline=None, window=(None, None)):
    flows = () if flow is None else (flow,)
    return ET.fromstring(timeline_svg([timeline or ring_timeline()], ring_manifest(), None, window, flows))


def lines(root):
    return [item for item in root.iter(f"{SPACE}line") if "a" in item.get("class").split()]


def texts(root):
    return ["".join(item.itertext()) for item in root.iter(f"{SPACE}text")]


def titles(root):
    return [item.text for item in root.iter(f"{SPACE}title")]


def test_an_arrow_leads_from_the_arrival_to_the_exit_of_the_wait():
    root = picture(ring_flow())
    found = [(float(item.get("x1")) - LEFT, float(item.get("x2")) - LEFT) for item in lines(root)]
    cycles = [(10, 10), (20, 40), (40, 40), (50, 70), (70, 70), (80, 100)]
    assert found == [pytest.approx((start * 912 / 130, end * 912 / 130), abs=0.006) for start, end in cycles]
    # The first is from the load warp's ticks (16 + 2.5 below its top) down to the middle of the MMA warp's states.
    load, mma = (item for item in root.iter(f"{SPACE}rect") if item.get("class") == "u" and item.get("x") == str(LEFT))
    assert float(lines(root)[0].get("y1")) == float(load.get("y")) + 18.5
    assert float(lines(root)[0].get("y2")) == float(mma.get("y")) + 8


def test_arrowheads_point_at_the_exit():
    heads = [item.get("points").split()[0] for item in picture(ring_flow()).iter(f"{SPACE}polygon")]
    ends = [f"{item.get('x2')},{item.get('y2')}" for item in lines(picture(ring_flow()))]
    assert heads == ends


def test_the_title_names_both_ends():
    assert titles(picture(ring_flow()))[-6].splitlines() == [
        "K[0] full, use 0",
        "from warp 0 (load), cycle 10: ring.py:15 producer_commit",
        "to warp 1 (mma), cycle 10: ring.py:31 consumer_wait",
    ]


def test_inferred_is_dashed_and_asynchronous_has_a_circle():
    flow = ring_flow()
    arrows = (flow.arrows[0]._replace(is_inferred=True), flow.arrows[1]._replace(is_async=True), flow.arrows[2])
    root = picture(replace(flow, arrows=arrows))
    assert ["d" in item.get("class").split() for item in lines(root)] == [True, False, False]
    (circle,) = root.iter(f"{SPACE}circle")
    assert (circle.get("cx"), circle.get("cy")) == (lines(root)[1].get("x1"), lines(root)[1].get("y1"))
    assert "inferred from the source and from order" in titles(root)[-3]
    assert "asynchronous: the arrow starts at the issue" in titles(root)[-2]
    assert any("Dashed: inferred. Open circle: asynchronous" in text for text in texts(root))


def test_only_arrows_within_the_window_are_drawn():
    # Both ends from 35 to 75: the acquire freed at 40 and those of 50 to 70 and 70.
    assert len(lines(picture(ring_flow(), window=(35, 75)))) == 3


def test_too_many_are_left_out_and_counted():
    flow = ring_flow()
    enough = tuple(flow.arrows[0]._replace(use=number) for number in range(MOST_ARROWS))
    assert len(lines(picture(replace(flow, arrows=enough)))) == MOST_ARROWS
    root = picture(replace(flow, arrows=(*enough, flow.arrows[1])))
    assert lines(root) == []
    assert "201 arrows of this part are not drawn (more than 200): --from and --to zoom in." in texts(root)


def test_an_arrow_of_a_warp_that_is_not_drawn_is_left_out():
    flow = ring_flow()
    stray = flow.arrows[0]._replace(signal=End(9, 2, 0, 10))
    assert lines(picture(replace(flow, arrows=(stray,)))) == []


def test_without_a_flow_there_are_neither_arrows_nor_a_note():
    root = picture()
    assert lines(root) == []
    assert not [text for text in texts(root) if "rrow" in text]


def test_the_same_flow_gives_the_same_text():
    one, other = (timeline_svg([ring_timeline()], ring_manifest(), None, (None, None), [ring_flow()]) for _ in "ab")
    assert one == other


def passing():
    """The ring's timeline, whose first wait of the MMA warp is a pass of 10 cycles: 10 of 210 warp-cycles."""
    timeline = ring_timeline()
    load, mma = timeline.warps
    first = replace(mma.slices[0], state=ring_timeline().warps[0].slices[0].state)
    mma = replace(mma, slices=(first, *mma.slices[1:]), stall=0, passed=10)
    return replace(timeline, warps=(load, mma))


def test_a_pass_is_plain_and_has_no_hatching():
    root = picture(timeline=passing())
    (bar,) = [
        item
        for item in root.iter(f"{SPACE}rect")
        if item.get("class") == "p" and item.find(f"{SPACE}title") is not None
    ]
    assert (float(bar.get("x")), float(bar.get("height"))) == (LEFT, 16)
    assert float(bar.get("width")) == pytest.approx(10 * 912 / 130, abs=0.006)
    assert bar.find(f"{SPACE}title").text.splitlines() == [
        "pass 10 cycles: the barrier was complete already",
        "K[0] full, visit 0",
        "ring.py:31 consumer_wait",
        "warp 1, cycles 0 to 10",
    ]
    sheet = root.find(f"{SPACE}style").text
    assert ".p{fill:#" in sheet


def test_passes_have_a_share_of_their_own():
    found = texts(picture(timeline=passing()))
    where = found.index("mma")
    # 10 of 130 cycles pass, 120 are active.
    assert [text for text in found[where:] if text.endswith("%")][:4] == ["0.0%", "7.7%", "92.3%", "0.0%"]
    assert "pass: the barrier was complete already 4.8%" in found
    assert found[1] == "of all warp time: 19.0% stall, 4.8% pass, 76.2% active, 0.0% untracked"
