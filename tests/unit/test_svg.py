# SPDX-License-Identifier: Apache-2.0
"""The picture of a timeline: read back as XML and checked against positions worked out by hand."""

from __future__ import annotations

import random
import subprocess
import sys
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from autostamp.analysis import analyse
from autostamp.cli import main
from autostamp.model.manifest import Barrier
from autostamp.model.run import MachineFacts
from autostamp.model.timeline import RoleTotals, Signal, Slice, State, Timeline, WarpTimeline
from autostamp.report.svg import timeline_svg
from autostamp.report.svg_elements import figure, fitted, mono_width_of, step_labels, steps, width_of
from autostamp.runtime.decode import decode_region
from autostamp.runtime.store import write_run
from tests.simulator.tables import NO_PASS, kernel_trace, ring_kernel, ring_manifest, ring_region, signal_row, wait_row

LEFT, RIGHT = 134, 1046
"""Of the chart, for roles whose names are short: its 912 pixels."""
STRIP = 16
FACTS = MachineFacts(gpu="Test GPU")
K_WAIT, K_RELEASE, V_WAIT, V_RELEASE = 1, 2, 3, 4
SPACE = "{http://www.w3.org/2000/svg}"


def manifest(names=("K", "V"), kernel="chart"):
    """Barrier number n has wait 2n - 1 and signal 2n; the first five instances have sites."""
    barriers = [Barrier(number, name, "PipelineTmaAsync", 2, False) for number, name in enumerate(names, 1)]
    rows = []
    for barrier in barriers:
        wait, signal = 2 * barrier.number - 1, 2 * barrier.number
        rows.append(wait_row(wait, 3 * barrier.number - 2, 3 * barrier.number - 1, barrier=barrier.number))
        rows.append(signal_row(signal, 3 * barrier.number, barrier=barrier.number))
    return ring_manifest(kernel_trace(rows, barriers, kernel=kernel))


def stall(start, end, instance=K_WAIT, **fields):
    return Slice(start, end, State.STALL, instance, fields.get("visit", 0), fields.get("stage", -1))


def hold(start, end, instance=K_WAIT, **fields):
    return Slice(start, end, State.ACTIVE, instance, fields.get("visit", 0), fields.get("stage", -1), instance + 1)


def warp(*slices, number=0, role="mma", start=0, end=912, **fields):
    """Sums are left at 0: the picture makes its own."""
    return WarpTimeline(number, role, tuple(slices), end - start, 0, 0, 0, 0, start, end, **fields)


def timeline(*warps, **fields):
    roles = {item.role: None for item in warps}
    totals = tuple(
        RoleTotals(role, tuple(item.warp for item in warps if item.role == role), 0, 0, 0, 0) for role in roles
    )
    row = {"kernel": "chart", "sites": (), "never_visited": (), "sm_mhz": 0.0, "trace": 1} | fields
    return Timeline(warps=tuple(warps), roles=totals, **row)


class Picture:
    """What is in the picture: rectangles with their class, box, fill and tooltip, and texts."""

    def __init__(self, *timelines, names=("K", "V"), facts=FACTS, window=(None, None), known=None):
        self.source = timeline_svg(timelines, known or manifest(names), facts, window)
        self.root = ET.fromstring(self.source)
        self.rects = []
        self._collect(self.root, 0.0, "")

    def _collect(self, element, down, title):
        own = element.find(f"{SPACE}title")
        title = own.text if own is not None else title
        down += _down(element)
        if element.tag == f"{SPACE}rect" and element.get("class"):
            x, y, width, height = (float(element.get(name)) for name in ("x", "y", "width", "height"))
            self.rects.append((element.get("class"), x, y + down, width, height, title))
        for child in element:
            if child.tag != f"{SPACE}defs":
                self._collect(child, down, title)

    def strips(self, *classes):
        """(x, width) of the states of rows, from left to right."""
        found = [item for item in self.rects if LEFT <= item[1] < RIGHT and 2 < item[4] <= STRIP and item[5]]
        return sorted((x, width) for style, x, _, width, _, _ in found if style in classes)

    def title(self, style, x):
        return next(item[5] for item in self.rects if item[0] == style and abs(item[1] - x) < 0.01)

    def texts(self):
        return ["".join(item.itertext()) for item in self.root.iter(f"{SPACE}text")]

    def text_boxes(self):
        """(left, top, right, bottom, text) of all texts, as wide as they can be."""
        boxes = []
        moved = [group for group in self.root.iter(f"{SPACE}g") if group.get("transform")]
        for group in (self.root, *moved):
            boxes += [_box(item, _down(group)) for item in group.findall(f"{SPACE}text")]
        return boxes


def _down(element):
    """Pixels that an element's transform moves it down."""
    return float(element.get("transform", "translate(0 0)").removeprefix("translate(0 ").removesuffix(")"))


def _box(item, down):
    content = "".join(item.itertext())
    classes = item.get("class", "").split()
    size = 10 if "in" in classes else 11 if "m" in classes else 12
    width = mono_width_of(content, size) if {"m", "in"} & set(classes) else width_of(content, size)
    spans = item.findall(f"{SPACE}tspan")
    if spans:
        width = width_of(spans[0].text, 15) + 14 + width_of(spans[1].text, 12)
    x, y = float(item.get("x")), float(item.get("y")) + down
    x -= {"end": width, "middle": width / 2}.get(item.get("text-anchor"), 0)
    return x, y - size * 0.75, x + width, y + size * 0.2, content


def assert_no_text_overlaps(picture):
    for one, other in combinations(picture.text_boxes(), 2):
        apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
        assert apart, (one, other)
    for box in picture.text_boxes():
        assert box[0] >= 0, box
        assert box[2] <= 1280, box


def test_spans_stand_where_their_cycles_are():
    # 912 cycles on 912 pixels.
    picture = Picture(timeline(warp(stall(100, 140), hold(140, 300), stall(400, 450, V_WAIT))))
    assert picture.strips("s1") == [(LEFT + 100, 40)]
    assert picture.strips("s0") == [(LEFT + 400, 50)]
    assert picture.strips("r0") == [(LEFT + 140, 160)]
    assert picture.strips("u") == [(LEFT, 912)]


def test_scale_follows_the_kernel_and_not_the_clock_zero():
    picture = Picture(timeline(warp(stall(1100, 1200), start=1000, end=2824)))
    assert picture.strips("s0") == [(LEFT + 50, 50)]


def test_a_stall_inside_a_hold_is_a_stall_only():
    picture = Picture(timeline(warp(hold(100, 500), stall(200, 300, V_WAIT))))
    assert picture.strips("r0") == [(LEFT + 100, 100), (LEFT + 300, 200)]
    assert picture.strips("s0") == [(LEFT + 200, 100)]


def test_of_two_stalls_at_once_the_inner_one_is_named():
    picture = Picture(timeline(warp(stall(100, 400), stall(200, 300, V_WAIT))))
    assert picture.strips("s0") == [(LEFT + 100, 100), (LEFT + 300, 100)]
    assert picture.strips("s1") == [(LEFT + 200, 100)]


def test_a_span_of_no_length_is_not_drawn():
    assert Picture(timeline(warp(stall(100, 100), hold(100, 200)))).strips("s0") == []


def test_three_states_are_three_kinds_of_fill():
    picture = Picture(timeline(warp(stall(100, 200), hold(200, 300))))
    sheet = picture.root.find(f"{SPACE}style").text
    assert ".s0{fill:url(#autostamp-s0)}" in sheet
    assert ".r0{fill:#" in sheet
    assert ".u{fill:#" in sheet
    colors = {rule.split("fill:")[1] for rule in sheet.split("}") if rule.startswith((".r", ".t", ".u"))}
    assert len(colors) == len([rule for rule in sheet.split("}") if rule.startswith((".r", ".t", ".u"))])


def test_shares_are_those_of_the_analysis():
    kernel = ring_kernel()
    found = analyse(decode_region(ring_region(kernel, uses=9), kernel), latencies=NO_PASS)
    picture = Picture(found, known=ring_manifest(kernel))
    for role in found.roles:
        shares = [f"{100 * part / role.span:.1f}%" for part in (role.stall, role.passed, role.active, role.untracked)]
        where = picture.texts().index(role.role)
        assert [item for item in picture.texts()[where:] if item.endswith("%")][:4] == shares
        assert f"stall {role.stall:,}" in picture.title("u", RIGHT + 14) or role.role != "load"


def test_bar_of_a_role_is_stacked_by_its_shares():
    # Of 912: 228 stall on K, 114 on V, 456 active; the bar is 204 pixels wide and begins 14 beyond the chart.
    found = timeline(warp(stall(0, 228), stall(228, 342, V_WAIT), hold(342, 798)))
    bar = [(style, x, width) for style, x, _, width, height, _ in Picture(found).rects if x >= RIGHT and height == 8]
    left = RIGHT + 14
    assert bar == [("u", left, 204), ("s0", left, 51), ("s1", left + 51, 25.5), ("r0", left + 76.5, 102)]


def test_tooltip_of_a_stall_has_everything():
    part = Slice(1100, 1312, State.STALL, 3, 4, 1)
    title = Picture(
        timeline(warp(part, number=5, end=1824), sm_mhz=2000.0),
        known=ring_manifest(ring_kernel()),
    ).title("s0", LEFT + 550)
    assert title.splitlines() == [
        "stall 212 cycles (106 ns)",
        "K[1] full, visit 4",
        "ring.py:31 consumer_wait",
        "warp 5, cycles 1,100 to 1,312",
    ]


def test_tooltip_of_active_time_names_all_holds():
    title = Picture(timeline(warp(hold(100, 300, visit=2, stage=1), hold(200, 400, V_WAIT)))).title("r0", LEFT + 200)
    assert title.splitlines() == [
        "active 100 cycles",
        "holds K[1], visit 2, 100 to 300: ring.py:12 producer_acquire",
        "holds V, visit 0, 200 to 400: ring.py:31 consumer_wait",
        "warp 0, cycles 200 to 300",
    ]


def test_signals_are_ticks_below_the_strip():
    signals = (Signal(200, K_RELEASE, 0, 1), Signal(300, V_RELEASE, 0, -1), Signal(300, V_RELEASE, 1, -1))
    picture = Picture(timeline(warp(stall(0, 100), signals=signals)))
    (strip,) = [item for item in picture.rects if item[0] == "u" and item[1] == LEFT]
    ticks = [item for item in picture.rects if item[0] in ("t0", "tx") and LEFT < item[1] < RIGHT and item[5]]
    assert [(style, x, y) for style, x, y, _, _, _ in ticks] == [
        ("t0", LEFT + 199.5, strip[2] + 16.5),
        ("tx", LEFT + 299.5, strip[2] + 16.5),
    ]
    assert ticks[0][5] == "signals K[1] empty, visit 0\nring.py:15 producer_commit\nwarp 0, cycle 200"
    assert ticks[1][5] == "2 signals of V\nwarp 0, cycles 300 to 300"


def test_a_signal_at_the_very_end_is_drawn():
    picture = Picture(timeline(warp(stall(0, 100), signals=(Signal(912, K_RELEASE, 0, -1),))))
    assert [item[1] for item in picture.rects if item[0] == "t0" and item[5]] == [RIGHT - 1]


def test_rows_are_in_hardware_order_within_roles():
    warps = [warp(stall(0, 50), number=number, role=role) for number, role in ((5, "b"), (2, "a"), (7, "a"), (1, "b"))]
    shown = [item for item in Picture(timeline(*warps)).texts() if item in ("a", "b") or item.startswith("warp ")]
    assert shown == ["b", "warp 1", "warp 5", "a", "warp 2", "warp 7"]


def test_idle_warps_are_thin_and_share_a_label():
    idle = [warp(number=number, role="warps 1-3") for number in (1, 2, 3)]
    picture = Picture(timeline(warp(stall(0, 100)), *idle, warp(hold(0, 100), number=4, role="epi")))
    lanes = [item for item in picture.rects if item[0] == "u" and str(item[5]).startswith("untracked\nwarp")]
    assert [height for _, _, _, _, height, _ in lanes] == [16, 4, 4, 4, 16]
    assert "idle" in picture.texts()
    # They take no colour from the roles that do something.
    assert picture.title("r1", lanes[0][1]).startswith("active 100 cycles")


def test_idle_warps_of_a_named_role_say_which():
    picture = Picture(timeline(*(warp(number=number, role="spare") for number in (4, 5))))
    assert "4-5 idle" in picture.texts()


def test_a_warp_that_waits_for_ever_is_not_idle():
    picture = Picture(timeline(warp(open_waits=(K_WAIT,)), warp(stall(0, 50), number=1)))
    assert {height for style, x, _, _, height, _ in picture.rects if style == "u" and x == LEFT} == {16}
    assert "warning: warp 0 entered ring.py:12 producer_acquire; never came out" in picture.texts()


def test_lost_records_are_marked_where_they_begin():
    lossy = replace(warp(stall(0, 100), hold(100, 500)), lost=1234)
    picture = Picture(timeline(lossy, warnings=("a lane was full",)))
    assert picture.title("w", LEFT + 500).startswith("warp 0 lost 1,234 records from here on")
    assert "warning: warp 0 lost 1,234 records: its last part is not shown" in picture.texts()
    assert "warning: a lane was full" in picture.texts()


def test_head_names_kernel_block_gpu_and_cycles():
    found = timeline(warp(stall(0, 228)), block=(1, 2, 3), smid=17, sm_mhz=1000.0)
    head, verdict = Picture(found).texts()[:2]
    assert head == "chartCTA (1, 2, 3) on SM 17 · Test GPU · 912 cycles = 0.91 µs at 1,000 MHz"
    assert verdict == "of all warp time: 25.0% stall, 0.0% active, 75.0% untracked"


def test_axis_is_in_cycles_and_in_microseconds_where_the_clock_is_known():
    with_clock = Picture(timeline(warp(stall(0, 100)), sm_mhz=1000.0)).texts()
    assert [item for item in with_clock if item in ("0", "200", "400", "600", "800")] == [
        "0",
        "200",
        "400",
        "600",
        "800",
    ]
    assert "µs at 1,000 MHz" in with_clock
    assert [item for item in with_clock if item.startswith("0.")][-5:] == ["0.0", "0.2", "0.4", "0.6", "0.8"]
    assert not [item for item in Picture(timeline(warp(stall(0, 100)))).texts() if "µs" in item]


def test_grid_lines_stand_at_the_labels():
    picture = Picture(timeline(warp(stall(0, 100))))
    lines = [float(item.get("x1")) for item in picture.root.iter(f"{SPACE}line") if item.get("class") == "grid"]
    assert lines == [LEFT, LEFT + 200, LEFT + 400, LEFT + 600, LEFT + 800]


def test_legend_names_barriers_by_what_they_cost():
    picture = Picture(timeline(warp(stall(0, 57), stall(57, 171, V_WAIT), hold(171, 300))))
    named = [item for item in picture.texts() if item.startswith("stall on")]
    assert named == ["stall on V 12.5%", "stall on K 6.2%"]
    assert picture.strips("s0") == [(LEFT + 57, 114)]


def test_barriers_without_a_colour_left_share_one():
    names = tuple(f"b{number:02}" for number in range(1, 13))
    waits = [stall(70 * rank, 70 * rank + 60 - rank, 2 * rank + 1) for rank in range(12)]
    picture = Picture(timeline(warp(*waits)), names=names)
    assert len(picture.strips("sx")) == 4
    named = [item for item in picture.texts() if item.startswith("stall on")]
    assert named[0] == "stall on b01 6.6%"
    assert len(named) == 9
    assert named[-1].startswith("stall on 4 other barriers")
    assert "b12" in picture.title("sx", LEFT + 70 * 11)


def test_names_are_escaped():
    nasty = '<b a="1">&\x07\ud800'
    picture = Picture(
        timeline(warp(stall(0, 400), role=nasty), kernel=nasty), names=(nasty, "V"), facts=MachineFacts(gpu="<&>")
    )
    shown = '<b a="1">&\ufffd\ufffd'
    assert picture.root.get("aria-label") == f"Timeline of {shown}"
    assert shown in picture.texts()
    assert any(f"{shown} full" in (item[5] or "") for item in picture.rects)
    assert not list(picture.root.iter(f"{SPACE}b"))


def test_zoom_cuts_spans_and_keeps_their_cycles():
    found = timeline(warp(stall(100, 400), hold(400, 900)))
    picture = Picture(found, window=(300, 756))
    # 456 cycles on 912 pixels.
    assert picture.strips("s0") == [(LEFT, 200)]
    assert picture.strips("r0") == [(LEFT + 200, 712)]
    assert "stall 300 cycles" in picture.title("s0", LEFT)
    assert picture.texts()[1].startswith("showing cycles 300 to 756; of all warp time: 21.9% stall, 78.1% active")


def test_zoom_keeps_the_colours_of_the_whole():
    found = timeline(warp(stall(0, 300), stall(400, 450, V_WAIT)))
    assert Picture(found, window=(380, 912)).strips("s1") != []


def test_zoom_may_be_open_at_either_end():
    found = timeline(warp(stall(100, 400)))
    assert Picture(found, window=(456, None)).texts()[1].startswith("showing cycles 456 to 912;")
    assert Picture(found, window=(None, 456)).texts()[1].startswith("showing cycles 0 to 456;")


def test_zoom_beyond_a_kernel_leaves_it_out():
    short = timeline(warp(stall(0, 50), end=100), kernel="short")
    long = timeline(warp(stall(0, 50)), kernel="long")
    assert Picture(short, long, window=(200, 400)).root.get("aria-label") == "Timeline of long"
    with pytest.raises(ValueError, match="no timeline has a warp"):
        timeline_svg([short, long], manifest(), FACTS, (2000, 3000))
    with pytest.raises(ValueError, match="no timeline has a warp"):
        timeline_svg([short], manifest(), FACTS, (50, 50))


def test_panels_of_several_ctas_and_launches_say_which_they_are_and_when_they_began():
    parts = warp(stall(100, 400))
    first = timeline(parts, block=(0, 0, 0), alignment_error=32)
    second = timeline(parts, block=(1, 0, 0), offset=1500, alignment_error=32)
    later = timeline(parts, block=(0, 0, 0), launch=1)
    titles = [text for text in Picture(first, second).texts() if "CTA (" in text]
    assert "starts at 0 ± 32 cycles of its launch" in titles[0]
    assert "starts at 1,500 ± 32 cycles of its launch" in titles[1]
    titles = [text for text in Picture(first, later).texts() if "CTA (" in text]
    assert ["launch 0 ·" in titles[0], "launch 1 ·" in titles[1], "starts at" in "".join(titles)] == [True, True, False]
    assert not any("launch" in text for text in Picture(first).texts())


def test_a_lone_tiny_span_is_widened():
    # 2 cycles a pixel: a stall of one cycle would be half a pixel wide.
    picture = Picture(timeline(warp(hold(0, 1000), stall(1000, 1001), hold(1001, 1824), end=1824)))
    assert picture.strips("s0") == [(LEFT + 500, 1)]
    assert not [item for item in picture.texts() if item.startswith("Spans under")]


def test_a_tiny_span_at_the_end_stays_inside():
    picture = Picture(timeline(warp(hold(0, 1823), stall(1823, 1824), end=1824)))
    assert picture.strips("s0") == [(RIGHT - 1, 1)]


def test_tiny_neighbours_become_one_column_of_shares():
    # 10 cycles a pixel: 2 stall + 1 untracked + 5 active are less than one pixel; what follows is not.
    spans = (hold(0, 1000), stall(1000, 1002), hold(1003, 1008, V_WAIT), stall(1008, 5000, V_WAIT))
    picture = Picture(timeline(warp(*spans, end=9120)))
    column = [item for item in picture.rects if abs(item[1] - (LEFT + 100)) < 0.01 and item[3] == 1]
    top = next(item[2] for item in picture.rects if item[0] == "u" and item[1] == LEFT)
    assert [(style, y - top, height) for style, _, y, _, height, _ in column] == [("r0", 6, 10), ("s1", 2, 4)]
    assert column[0][5].splitlines() == [
        "3 spans merged",
        "stall 2 (K 2)",
        "active 5, untracked 1",
        "warp 0, cycles 1,000 to 1,008",
    ]
    (note,) = [item for item in picture.texts() if item.startswith("Spans under")]
    assert note.startswith("Spans under 10 cycles (1 px)")


def test_merging_keeps_every_cycle():
    chance = random.Random(7)
    found = timeline(crowded_warp(chance, 3000))
    picture = Picture(found)
    (lane,) = found.warps
    titles = {item[5] for item in picture.rects if item[5] and "spans merged" in item[5]}
    assert titles
    spans = sorted(
        tuple(int(part.replace(",", "")) for part in title.rsplit("cycles ", 1)[1].split(" to ")) for title in titles
    )
    assert all(left[1] <= right[0] for left, right in pairwise(spans))
    assert (
        f"{100 * sum(part.cycles for part in lane.slices if part.state is State.STALL) / lane.span:.1f}%"
        in picture.texts()
    )


def crowded_warp(chance, uses, number=0):
    """Stall, hold, gap and signal, over and over, each of 1 to some thousand cycles."""
    clock, slices, signals = 0, [], []
    for visit in range(uses):
        instance = chance.choice((K_WAIT, V_WAIT))
        waited, held = (int(chance.paretovariate(1.1) * 20) % 3000 + 1 for _ in range(2))
        slices.append(stall(clock, clock + waited, instance, visit=visit))
        slices.append(hold(clock + waited, clock + waited + held, instance, visit=visit))
        clock += waited + held
        signals.append(Signal(clock, instance + 1, visit, 0))
        clock += chance.randrange(60)
    return warp(*slices, number=number, end=clock, signals=tuple(signals))


@pytest.mark.parametrize("lanes", [1, 3])
def test_a_hundred_thousand_spans_a_lane_stay_below_two_megabytes(lanes):
    chance = random.Random(1)
    found = timeline(*(crowded_warp(chance, 50_000, number) for number in range(lanes)))
    source = timeline_svg([found], manifest(), FACTS)
    assert len(source.encode()) < 2_000_000
    assert "neighbours are merged" in source


def test_wide_spans_are_named():
    picture = Picture(timeline(warp(stall(0, 100, stage=1), hold(100, 400), stall(400, 420, V_WAIT))))
    assert [item for item in picture.texts() if item in ("K[1]", "K", "V")] == ["K[1]", "K"]


def test_several_timelines_stand_below_each_other():
    picture = Picture(timeline(warp(stall(0, 100))), timeline(warp(stall(0, 200))))
    tops = [item[2] for item in picture.rects if item[0] == "u" and item[1] == LEFT]
    assert len(tops) == 2
    assert tops[1] - tops[0] > 100
    assert float(picture.root.get("height")) > tops[1] + 60
    assert_no_text_overlaps(picture)


def test_no_text_overlaps_another():
    roles = ["load", "a role with quite a long name of its own", "mma", "warps 9-12"]
    warps = [
        warp(stall(0, 100), hold(150, 700), number=number, role=roles[number // 3], signals=(Signal(700, 2, 0, 0),))
        for number in range(9)
    ]
    warps += [warp(number=number, role=roles[3]) for number in range(9, 13)]
    warps += [warp(number=13, role="tail"), replace(warp(stall(0, 5), number=14, role="tail"), lost=3)]
    kernel = "cutlass::gemm::kernel::GemmUniversal<" + "tuple<int, int>, " * 12 + ">"
    found = timeline(*warps, kernel=kernel, sm_mhz=1755.0, warnings=("w " * 200,))
    names = ("a_barrier_with_a_long_name_that_its_author_liked", "V")
    for window in ((None, None), (17, 901)):
        assert_no_text_overlaps(Picture(found, names=names, facts=MachineFacts(gpu="GPU " * 30), window=window))


def test_the_picture_needs_nothing_from_elsewhere():
    source = Picture(timeline(warp(stall(0, 100)))).source.replace("http://www.w3.org/2000/svg", "")
    assert "http" not in source
    assert "<image" not in source
    assert "<script" not in source


def test_the_same_timeline_gives_the_same_bytes_in_any_process():
    code = (
        "import hashlib; from tests.unit.test_svg import *\n"
        "found = timeline(*(crowded_warp(random.Random(3), 400, number) for number in range(3)))\n"
        "print(hashlib.sha256(timeline_svg([found], manifest(), FACTS).encode()).hexdigest())"
    )
    root = Path(__file__).parents[2]
    digests = {
        subprocess.run(
            [sys.executable, "-c", code], cwd=root, env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("0", "1")
    }
    assert len(digests) == 1


@pytest.mark.parametrize(
    ("low", "high", "most", "labels"),
    [
        (0, 100, 5, ["0", "20", "40", "60", "80", "100"]),
        (7, 31, 4, ["10", "20", "30"]),
        (0, 1.3, 9, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0", "1.2"]),
        (11.4, 15.4, 9, ["11.5", "12.0", "12.5", "13.0", "13.5", "14.0", "14.5", "15.0"]),
        (0, 2_000_000, 2, ["0", "1,000,000", "2,000,000"]),
        (5, 5, 4, []),
    ],
)
def test_steps_are_round(low, high, most, labels):
    assert step_labels(steps(low, high, most)) == labels


@pytest.mark.parametrize(
    ("value", "expected"), [(0, "0"), (-0.001, "0"), (1.5, "1.5"), (2.0, "2"), (3.14159, "3.14"), (100, "100")]
)
def test_figures_are_short(value, expected):
    assert figure(value) == expected


def test_text_is_cut_to_its_room():
    assert fitted("pipeline", 200, 12) == "pipeline"
    cut = fitted("pipeline_with_a_long_name", 80, 12)
    assert cut.endswith("…")
    assert width_of(cut, 12) <= 80
    assert fitted("pipeline", 5, 12) == ""


@pytest.fixture
def run(tmp_path):
    kernel, other = ring_kernel(), ring_kernel(number=2, kernel="other")
    regions = {1: ring_region(kernel), 2: ring_region(other, uses=2)}
    write_run(tmp_path / "run", ring_manifest(kernel, other), regions, FACTS, {})
    return str(tmp_path / "run")


def test_export_writes_a_picture(run, tmp_path, capsys):
    assert main(["export", run, "--svg", str(tmp_path / "a.svg")]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert f"wrote {tmp_path / 'a.svg'}: any browser" in err
    assert ET.parse(tmp_path / "a.svg").getroot().get("aria-label") == "Timeline of ring, other"


def test_export_writes_both(run, tmp_path, capsys):
    outputs = [tmp_path / "a.svg", tmp_path / "a.pftrace"]
    assert main(["export", run, "-q", "--svg", str(outputs[0]), "--perfetto", str(outputs[1])]) == 0
    assert all(path.stat().st_size for path in outputs)
    assert capsys.readouterr().err == ""


def test_export_zooms(run, tmp_path):
    assert main(["export", run, "--trace", "1", "--svg", str(tmp_path / "a.svg"), "--from", "40", "--to", "100"]) == 0
    assert "showing cycles 40 to 100; " in (tmp_path / "a.svg").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "Nothing to write"),
        (["--perfetto", "p", "--from", "3"], "need --svg"),
        (["--svg", "s", "--from", "-3"], "--from"),
        (["--svg", "s", "--perfetto", "p", "--from", "5000"], "the kernels end at 130, 70"),
        (["--svg", "s", "--from", "50", "--to", "40"], "AS9001"),
    ],
)
def test_export_refuses_what_cannot_be_drawn(run, tmp_path, monkeypatch, capsys, options, message):
    monkeypatch.chdir(tmp_path)
    assert main(["export", run, *options]) == 2
    assert message in capsys.readouterr().err
    assert not Path("s").exists()
    assert not Path("p").exists()
