# SPDX-License-Identifier: Apache-2.0
"""The report's page in Chromium: verdict, timeline, source, keyboard. Documents are built by hand in documents.py.

Expected positions follow from the document: a view of n cycles over a canvas of w pixels shows cycle c at (c - start) / n * w.
"""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.browser import documents
from tests.browser.conftest import Open

pytestmark = pytest.mark.browser

MMA_WAIT = (4, 2000)
"""Warp and a cycle inside its stall on K."""
HELD = (4, 6200)
UNTRACKED = (4, 9500)
"""Both clear of labels and of iteration marks."""


def look(page: Page, name: str) -> Any:
    return page.evaluate(f"window.autostamp.{name}")


def settle(page: Page) -> None:
    """Two frames: input asks for one, which may be drawn in the next."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def size(page: Page) -> float:
    seen = look(page, "range")
    return seen["end"] - seen["start"]


def place(page: Page, warp: int, cycles: float) -> tuple[float, float]:
    """Where a warp's cycle is on the screen."""
    page.locator("#canvas").scroll_into_view_if_needed()
    found = page.evaluate(f"window.autostamp.place({warp}, {cycles})")
    box = page.locator("#canvas").bounding_box()
    assert box is not None
    return box["x"] + found["x"], box["y"] + found["y"]


def click(page: Page, warp: int, cycles: float) -> None:
    page.mouse.click(*place(page, warp, cycles))
    settle(page)


def pixels(
    page: Page, warp: int, cycles: float, width: int = 10, height: int = 10, is_predicted: bool = False
) -> np.ndarray:
    """Colours around a warp's cycle, as (height, width, 3)."""
    settle(page)
    data = page.evaluate(
        """([warp, cycles, width, height, isPredicted]) => {
            const { x, y } = window.autostamp.place(warp, cycles, undefined, isPredicted);
            const pen = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
            pen.drawImage(document.getElementById("canvas"), Math.round(width / 2 - x), Math.round(height / 2 - y));
            return Array.from(pen.getImageData(0, 0, width, height).data);
        }""",
        [warp, cycles, width, height, is_predicted],
    )
    return np.array(data, dtype=np.int16).reshape(height, width, 4)[..., :3]


def colors(patch: np.ndarray) -> set[tuple[int, ...]]:
    return {tuple(map(int, color)) for color in patch.reshape(-1, 3)}


def test_verdict_comes_first_and_holds_every_table(open_page: Open) -> None:
    page = open_page(documents.small())
    assert page.title() == "Timeline of ring"
    expect(page.locator(".headline")).to_have_text("mma waits for K")
    expect(page.locator(".lines li")).to_have_text(["one line", "another line"])
    cost = page.locator(".cost")
    for text in ("1.130", "168 \u2192 168", "0 \u2192 0", "12"):
        expect(cost).to_contain_text(text)
    roles = page.locator("table", has_text="Where each role")
    # load stalls for 2000 + 4 of 10,000 cycles, mma for 3600 of each 10,000.
    expect(roles.locator("tr", has_text="load")).to_contain_text("20.0%")
    expect(roles.locator("tr", has_text="mma")).to_contain_text("36.0%")
    blamed = page.locator("table", has_text="Who kept whom waiting").locator("tbody tr")
    expect(blamed).to_have_count(1)
    expect(blamed).to_contain_text("load, by a transfer")
    sites = page.locator("table", has_text="Stalls by source line").locator("tbody tr")
    expect(sites).to_have_count(3)
    expect(sites.first).to_contain_text("12,400")
    positions = [page.locator(name).bounding_box()["y"] for name in (".headline", ".cost", "#canvas", "#source")]
    assert positions == sorted(positions)


def test_notes_are_shown_before_the_verdict(open_page: Open) -> None:
    lossy = documents.row(0, "load", 0, 100, [(10, 60, documents.STALL, 1, 1, 0, -1)], lost=1234)
    page = open_page(documents.document([documents.timeline([lossy])], notes=["Clocks of warp 3 run backwards."]))
    notes = page.locator(".note")
    expect(notes).to_have_count(2)
    expect(notes.nth(0)).to_contain_text("1,234 records were lost")
    expect(notes.nth(1)).to_contain_text("Clocks of warp 3 run backwards.")
    assert notes.nth(1).bounding_box()["y"] < page.locator(".headline").bounding_box()["y"]
    expect(page.locator("#gutter")).to_contain_text("lost 1,234")


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (documents.document([], notes=["No kernel was launched."]), "holds no timeline"),
        (documents.document([], notes=["No kernel was launched."]), "No kernel was launched."),
        (documents.document([documents.timeline([])]), "no warp of this CTA left a record"),
        (documents.document([documents.timeline([documents.row(0, "load", 0, 9)])]), "1 warps ran, and none of them"),
        (documents.document([documents.timeline([documents.row(0, "load", 0, 9, lost=7)])]), "7 records were lost"),
    ],
)
def test_nothing_to_draw_is_said_with_its_reason(open_page: Open, document: dict[str, Any], reason: str) -> None:
    page = open_page(document)
    expect(page.locator("#empty")).to_be_visible()
    expect(page.locator("#empty")).to_contain_text("Nothing to draw")
    expect(page.locator("#empty")).to_contain_text(reason)
    expect(page.locator("#canvas")).to_be_hidden()


def test_what_was_predicted_is_drawn_above_what_was_measured_and_named(open_page: Open) -> None:
    page = open_page(documents.with_prediction())
    section = page.get_by_role("region", name="Prediction against measurement")
    expect(section).to_contain_text("the model is incomplete")
    expect(section.locator("p", has_text="period: predicted 1,000")).to_be_visible()
    expect(section.locator("pre div")).to_have_text(["role  busy", "mma    500"])
    headings = page.locator("#gutter .row.group")
    expect(headings).to_have_text(["predicted1,000 an iteration", "measured1,235 an iteration"])
    # mma waits 500 of 2000 cycles; of load, which waits for nothing that is known, nothing is said.
    gutter = page.locator("#gutter .row")
    expect(gutter.nth(1)).to_have_text("load")
    expect(gutter.nth(2)).to_have_text("mma25.0% stall")
    assert section.bounding_box()["y"] > page.locator(".headline").bounding_box()["y"]
    rows = look(page, "rows")
    assert [(row["kind"], row["role"], row["isPredicted"]) for row in rows] == [
        ("group", "", True), ("folded", "load", True), ("folded", "mma", True),
        ("group", "", False), ("folded", "load", False), ("folded", "spare", False), ("folded", "mma", False),
    ]  # fmt: skip
    page.locator("#canvas").scroll_into_view_if_needed()
    box = page.locator("#canvas").bounding_box()
    # The same axis: a predicted cycle is drawn right above the same measured one.
    spots = page.evaluate("[[1, 3800, true], [1, 4400, true], [4, 3800, false]].map(([warp, at, is]) => "
                          "window.autostamp.place(warp, at, undefined, is))")  # fmt: skip
    assert spots[0]["x"] == spots[2]["x"]
    assert spots[0]["y"] < spots[2]["y"]
    for spot, said in ((spots[0], "predicted \u00b7 stall \u00b7 P full \u00b7 500 cycles"), (spots[1], "work of mma")):
        page.mouse.move(box["x"] + spot["x"], box["y"] + spot["y"])
        settle(page)
        expect(page.locator("#tip .title")).to_contain_text("predicted")
        expect(page.locator("#tip .title")).to_contain_text(said)
    expect(page.locator("#legend")).to_contain_text("stall on P")
    # Work is the role's colour in both groups, a predicted stall is hatched. The end of a span is clear of its label.
    page.mouse.move(0, 0)
    work, stall = pixels(page, 1, 5585, 2, 2, is_predicted=True), pixels(page, 1, 3850, is_predicted=True)
    page.click("#unfold")
    assert colors(work) == colors(pixels(page, *HELD, 2, 2))
    assert len(colors(stall)) > 1


def test_a_document_of_another_version_is_refused_aloud(open_page: Open) -> None:
    page = open_page(documents.small() | {"schema_version": 99})
    expect(page.locator("#title")).to_have_text("This report cannot be shown")
    expect(page.get_by_role("alert")).to_contain_text("version 99")


def test_states_look_like_nothing_else(open_page: Open) -> None:
    page = open_page(documents.small())
    page.click("#unfold")
    stall, held, untracked = (pixels(page, *where) for where in (MMA_WAIT, HELD, UNTRACKED))
    assert len(colors(held)) == 1, "active is one solid colour"
    assert len(colors(untracked)) == 1, "untracked is one faint colour"
    assert len(colors(stall)) > 1, "a stall is hatched"
    assert not colors(stall) & (colors(held) | colors(untracked))
    # Against the sheet, work stands out and the underlay hardly does.
    assert np.abs(untracked.astype(int) - 255).max() < 40
    assert np.abs(held.astype(int) - 255).max() > 150
    other = pixels(page, 4, 4250)
    assert not colors(other) & colors(stall), "a stall on another barrier has its own look"
    elsewhere = pixels(page, 0, 3200)
    assert colors(elsewhere) != colors(held), "another role has another colour"


def test_a_stall_of_a_fraction_of_a_pixel_is_seen(open_page: Open) -> None:
    page = open_page(documents.small())
    assert 4 / size(page) * page.locator("#canvas").bounding_box()["width"] < 0.6
    ground = colors(pixels(page, 0, 5500))
    assert colors(pixels(page, 0, 5002, width=4)) - ground, "4 cycles among 10,000"


def test_a_pass_is_a_tick_and_no_stall(open_page: Open) -> None:
    page = open_page(documents.small())
    page.click("#unfold")
    passed = pixels(page, 4, 7212, width=16, height=16)
    ground = colors(pixels(page, *UNTRACKED))
    columns = [bool(colors(passed[:, x : x + 1]) - ground) for x in range(16)]
    assert 1 <= sum(columns) <= 8, "a dot on the underlay"
    ends = [bool(colors(passed[2:4, x : x + 1]) - ground) for x in range(16)]
    assert 1 <= sum(ends) <= 2, "with a thin line through it"


def test_the_wheel_zooms_around_the_pointer(open_page: Open) -> None:
    page = open_page(documents.small())
    before = size(page)
    x, y = place(page, 4, 4000)
    page.mouse.move(x, y)
    page.mouse.wheel(0, -300)
    settle(page)
    assert size(page) < before
    assert place(page, 4, 4000)[0] == pytest.approx(x, abs=1)
    page.mouse.wheel(0, 5000)
    for _ in range(8):
        page.mouse.wheel(0, 240)
    settle(page)
    assert size(page) == pytest.approx(before)


def test_keys_zoom_move_and_fit(open_page: Open) -> None:
    page = open_page(documents.small())
    whole = look(page, "range")
    page.keyboard.press("w")
    page.keyboard.press("w")
    near = look(page, "range")
    assert near["end"] - near["start"] == pytest.approx(0.49 * (whole["end"] - whole["start"]))
    page.keyboard.press("d")
    right = look(page, "range")
    assert right["start"] - near["start"] == pytest.approx(0.2 * (near["end"] - near["start"]))
    page.keyboard.press("a")
    assert look(page, "range")["start"] == pytest.approx(near["start"])
    page.keyboard.press("s")
    assert size(page) == pytest.approx((near["end"] - near["start"]) / 0.7)
    page.keyboard.press("f")
    assert look(page, "range") == pytest.approx(whole)


@pytest.mark.parametrize("how", ["shift", "middle"])
def test_shift_or_the_middle_button_drags_the_view(open_page: Open, how: str) -> None:
    page = open_page(documents.small())
    for _ in range(3):
        page.keyboard.press("w")
    before = look(page, "range")
    width = page.locator("#canvas").bounding_box()["width"]
    x, y = place(page, 4, (before["start"] + before["end"]) / 2)
    if how == "shift":
        page.keyboard.down("Shift")
    button = "middle" if how == "middle" else "left"
    page.mouse.move(x, y)
    page.mouse.down(button=button)
    page.mouse.move(x - 40, y, steps=4)
    page.mouse.move(x - 80, y, steps=4)
    page.mouse.up(button=button)
    page.keyboard.up("Shift")
    after = look(page, "range")
    assert after["start"] - before["start"] == pytest.approx(80 / width * (before["end"] - before["start"]), rel=0.01)
    assert look(page, "measure") is None


def test_a_drag_measures_cycles_and_time(open_page: Open) -> None:
    page = open_page(documents.small())
    x, y = place(page, 4, 1000)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(place(page, 4, 3000)[0], y, steps=5)
    page.mouse.up()
    settle(page)
    measured = look(page, "measure")
    pixel = size(page) / page.locator("#canvas").bounding_box()["width"]
    assert measured["start"] == pytest.approx(1000, abs=2 * pixel)
    assert measured["end"] == pytest.approx(3000, abs=2 * pixel)
    page.keyboard.press("Escape")
    assert look(page, "measure") is None


def test_search_highlights_and_enter_goes_from_match_to_match(open_page: Open) -> None:
    page = open_page(documents.small())
    page.keyboard.press("/")
    expect(page.locator("#search")).to_be_focused()
    page.keyboard.type("block")
    settle(page)
    # One stall on the named barrier in each of four warps.
    assert look(page, "highlight") == {"label": "block", "count": 4}
    expect(page.locator("#found")).to_have_text("4 spans")
    seen = []
    for _ in range(5):
        page.keyboard.press("Enter")
        seen.append((look(page, "selection")["warp"], look(page, "selection")["start"]))
    assert seen == [(4, 4000), (5, 4000), (6, 4000), (7, 4000), (4, 4000)]
    page.keyboard.press("Shift+Enter")
    assert look(page, "selection")["warp"] == 7
    page.keyboard.press("Escape")
    assert look(page, "highlight") is None


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("load", 3),  # the role: two stalls and a hold
        ("consumer_wait(tile)", 12),  # the source text: a stall, a hold and a pass in each of four warps
        ("ring.py:4", 3),  # the place
        ("#5", 4),  # the instance
        ("mma k consumer", 12),  # every word
        ("nothing like it", 0),
    ],
)
def test_search_knows_roles_source_places_and_instances(open_page: Open, query: str, count: int) -> None:
    page = open_page(documents.small())
    page.fill("#search", query)
    assert look(page, "highlight")["count"] == count


def test_a_highlight_dims_the_rest(open_page: Open) -> None:
    page = open_page(documents.small())
    page.click("#unfold")
    held, stall = pixels(page, *HELD), pixels(page, *MMA_WAIT)
    page.fill("#search", "block")
    assert (pixels(page, *HELD).mean(axis=(0, 1)) > held.mean(axis=(0, 1))).all()
    assert colors(pixels(page, *MMA_WAIT)) != colors(stall)


def test_a_click_tells_all_about_a_span_and_finds_its_line(open_page: Open) -> None:
    page = open_page(documents.small())
    click(page, *MMA_WAIT)
    assert look(page, "selection") == {"timeline": 0, "warp": 4, "span": 0, "start": 500, "end": 3600}
    details = page.locator("#details")
    for text in (
        "stall \u00b7 K[0] consumer_wait \u00b7 3,100 cycles (1.55 \u00b5s)",  # 3100 cycles at 2000 MHz
        "500 to 3,600",
        "0 of 2",
        "visit 1",
        "a transfer that load (warp 0) issued at 3,400: K[0] producer_commit: it was binding",
        "2,900 awaited, 200 in flight",
        "src/ring.py:8  k_pipe.consumer_wait(tile)",
    ):
        expect(details).to_contain_text(text)
    expect(page.locator("#source .marked")).to_have_attribute("data-line", "8")
    expect(page.locator("#spoken")).to_contain_text("stall \u00b7 K[0] consumer_wait")
    click(page, *UNTRACKED)
    assert look(page, "selection") is None


def test_the_line_of_a_selected_span_is_scrolled_into_sight(open_page: Open) -> None:
    document = documents.small()
    document["sources"][0]["text"] = "pad()\n" * 400 + documents.SOURCE
    for site in document["sites"]:
        site["line"] += 400
    page = open_page(document)
    page.locator("#source").evaluate("pane => { pane.scrollTop = 0; }")
    click(page, *MMA_WAIT)
    pane, line = page.locator("#source").bounding_box(), page.locator("#source [data-line='408']").bounding_box()
    assert pane["y"] < line["y"] < pane["y"] + pane["height"] - line["height"]
    page.mouse.move(*place(page, *MMA_WAIT))
    expect(page.locator("#tip")).to_be_hidden()


def test_the_tooltip_says_what_is_under_the_pointer(open_page: Open) -> None:
    page = open_page(documents.small())
    page.mouse.move(*place(page, 0, 2000))
    tip = page.locator("#tip")
    expect(tip).to_be_visible()
    expect(tip).to_contain_text("stall \u00b7 K[0] producer_acquire \u00b7 2,000 cycles (1.00 \u00b5s)")
    expect(tip).to_contain_text("src/ring.py:4  k_pipe.producer_acquire(tile)")
    page.mouse.move(5, 5)
    expect(tip).to_be_hidden()


def test_a_click_on_a_line_highlights_its_spans(open_page: Open) -> None:
    page = open_page(documents.small())
    line = page.locator("#source [data-line='8']")
    # Four warps stall here for 3100 cycles each.
    expect(line).to_contain_text("12,400 in 4")
    line.click()
    assert look(page, "highlight")["count"] == 12
    expect(line).to_have_attribute("aria-pressed", "true")
    line.click()
    assert look(page, "highlight") is None
    expect(line).to_have_attribute("aria-pressed", "false")
    page.locator("button.link", has_text="ring.py:10").click()
    assert look(page, "highlight")["count"] == 4
    expect(page.locator("#source .marked")).to_have_attribute("data-line", "10")


def test_lines_of_a_source_that_was_not_kept_are_listed(open_page: Open) -> None:
    document = documents.small()
    document["sources"][0]["text"] = ""
    page = open_page(document)
    expect(page.locator("#source")).to_contain_text("was not kept")
    expect(page.locator("#source .line")).to_have_count(5)
    expect(page.locator("#source [data-line='8']")).to_contain_text("k_pipe.consumer_wait(tile)")


def test_a_role_folds_and_unfolds(open_page: Open) -> None:
    page = open_page(documents.small())
    assert [(row["role"], row["warps"]) for row in look(page, "rows")] == [
        ("load", [0]), ("spare", [1]), ("mma", [4, 5, 6, 7]),
    ]  # fmt: skip
    button = page.locator("#gutter button", has_text="mma")
    button.click()
    expect(button).to_have_attribute("aria-expanded", "true")
    assert [row["warps"] for row in look(page, "rows") if row["kind"] == "warp"] == [[4], [5], [6], [7]]
    page.keyboard.press("Enter")
    expect(button).to_have_attribute("aria-expanded", "false")
    expect(button).to_be_focused()


def test_arrows_of_the_hovered_and_the_selected_span_and_all(open_page: Open) -> None:
    page = open_page(documents.small())
    assert look(page, "frame.arrows.drawn") == 0
    page.mouse.move(*place(page, *MMA_WAIT))
    settle(page)
    assert look(page, "frame.arrows.drawn") == 1
    page.mouse.move(5, 5)
    settle(page)
    assert look(page, "frame.arrows.drawn") == 0
    click(page, 0, 3200)
    page.mouse.move(5, 5)
    settle(page)
    assert look(page, "frame.arrows.drawn") == 4, "the commit at the hold's end freed all four warps"
    page.keyboard.press("Escape")
    page.click("#arrows")
    settle(page)
    assert look(page, "frame.arrows") == {"drawn": 5, "all": 5, "isSampled": False}
    page.keyboard.press("r")
    settle(page)
    assert look(page, "frame.arrows.drawn") == 0


def test_the_critical_path_is_switched_on_and_off(open_page: Open) -> None:
    page = open_page(documents.small())
    page.keyboard.press("c")
    settle(page)
    assert look(page, "frame.path") == 3
    expect(page.locator("#path")).to_have_attribute("aria-pressed", "true")
    page.click("#path")
    settle(page)
    assert look(page, "frame.path") == 0


def test_the_keyboard_goes_from_span_to_span(open_page: Open) -> None:
    page = open_page(documents.small())
    page.focus("#canvas")
    steps = []
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp"):
        page.keyboard.press(key)
        selected = look(page, "selection")
        steps.append((selected["warp"], selected["start"]))
    # The first span of load; its hold; down to the first warp of mma, that stalls at the hold's middle (3200); its hold; the
    # next warp at that hold's middle (5300); its stall; up again.
    assert steps == [(0, 1000), (0, 3000), (4, 500), (4, 3600), (5, 3600), (5, 500), (4, 500)]
    page.keyboard.press("Enter")
    assert size(page) == pytest.approx(3 * 3100)
    page.keyboard.press("Escape")
    assert look(page, "selection") is None


def test_tab_reaches_the_tools_the_roles_and_the_timeline(open_page: Open) -> None:
    page = open_page(documents.small())
    page.focus("#search")
    reached = []
    for _ in range(9):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.dataset.key"))
    assert reached[:7] == ["fit", "unfold", "arrows", "path", "help", "0/mma", "canvas"]
    canvas = page.locator("#canvas")
    expect(canvas).to_have_attribute("role", "application")
    assert "arrow keys" in str(canvas.get_attribute("aria-label"))


@pytest.mark.parametrize(("scheme", "first", "second"), [("light", "light", "dark"), ("dark", "dark", "light")])
def test_the_theme_follows_the_system_until_it_is_switched(
    open_page: Open, scheme: str, first: str, second: str
) -> None:
    page = open_page(documents.small(), color_scheme=scheme)
    assert look(page, "theme") == first
    before = pixels(page, *UNTRACKED)
    page.click("#theme")
    assert look(page, "theme") == second
    after = pixels(page, *UNTRACKED)
    assert np.abs(before - after).min() > 100


def test_ctas_of_one_launch_share_an_axis(open_page: Open) -> None:
    def cta(x: int, offset: int) -> dict[str, Any]:
        row = documents.row(0, "load", 0, 1000, [(100, 400, documents.STALL, 1, 1, 0, -1)])
        return documents.timeline([row], block=[x, 0, 0], smid=x, wave=0, offset=offset, alignment_error=12)

    other = documents.timeline([documents.row(0, "mma", 0, 50, [(10, 20, 1, 3, 1, 0, -1)])], launch=1)
    page = open_page(documents.document([cta(0, 0), cta(1, 2500), other]))
    options = page.locator("#scene option")
    expect(options).to_have_count(4)
    expect(options.first).to_contain_text("2 CTAs on one axis")
    expect(page.locator("#verdict")).to_contain_text("aligned to within 12 cycles")
    assert look(page, "whole")["end"] == pytest.approx(3500, rel=0.02)
    first, second = (page.evaluate(f"window.autostamp.place(0, 100, {number})") for number in (0, 1))
    width = page.locator("#canvas").bounding_box()["width"]
    assert second["x"] - first["x"] == pytest.approx(2500 / size(page) * width, abs=0.01)
    page.locator("button.link", has_text="(1, 0, 0) on SM 1").click()
    assert look(page, "whole")["end"] == pytest.approx(1000, rel=0.02)
    assert [row["kind"] for row in look(page, "rows")] == ["folded"]
    page.select_option("#scene", index=3)
    assert look(page, "whole")["end"] == pytest.approx(50, rel=0.05)


def test_the_page_scrolls_on_where_there_is_nothing_left_to_zoom_out(open_page: Open) -> None:
    page = open_page(documents.small(), viewport={"width": 1400, "height": 500})
    page.mouse.move(*place(page, 4, 5000))
    before = page.evaluate("window.scrollY")
    page.mouse.wheel(0, 200)
    page.wait_for_function(f"() => window.scrollY > {before}")


def test_text_of_a_document_is_never_markup(open_page: Open) -> None:
    document = documents.small()
    evil = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    document["notes"] = [evil]
    document["title"] = "t"
    document["timelines"][0]["verdict"]["headline"] = evil
    document["sites"][2]["text"] = evil
    document["barriers"][0]["label"] = evil
    page = open_page(document)
    click(page, *MMA_WAIT)
    expect(page.locator(".headline")).to_have_text(evil)
    assert page.locator("img").count() == 0


def test_a_million_spans_open_and_redraw(open_page: Open, record_property: Any) -> None:
    page = open_page(documents.many(1_000_000))
    assert [len(row["warps"]) for row in look(page, "rows")] == [1, 11]
    times = {}
    for name, key in (("all", "f"), ("nearer", "w"), ("unfolded", "u"), ("all arrows", "r")):
        page.keyboard.press(key)
        settle(page)
        times[name] = round(look(page, "frame.ms"), 1)
    assert look(page, "frame.isMerged")
    expect(page.locator("#status")).to_contain_text("arrows")
    expect(page.locator("#status")).to_contain_text("heights show shares")
    page.fill("#search", "block")
    settle(page)
    times["highlighted"] = round(look(page, "frame.ms"), 1)
    assert look(page, "highlight")["count"] == 12 * -(-(1_000_000 // 12) // 10)
    page.press("#search", "Enter")
    settle(page)
    times["one span"] = round(look(page, "frame.ms"), 1)
    record_property("milliseconds a frame", times)
    print(f"milliseconds a frame: {times}")
    page.keyboard.press("Escape")
    # Wherever in the run, stalls show in the far view: in the upper part of every strip.
    page.keyboard.press("f")
    end = look(page, "whole")["end"]
    for part in (0.1, 0.4, 0.6, 0.9):
        assert len(colors(pixels(page, 3, part * end, width=12, height=18))) >= 3


def test_the_page_loads_nothing_and_says_so_in_its_policy() -> None:
    text = documents.PAGE.read_text(encoding="utf-8")
    assert "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:" in text
    assert "http://" not in text
    assert "https://" not in text
    assert text.count("<!--AUTOSTAMP-DOCUMENT-->") == 1
    assert text.count("<title>AUTOSTAMP-TITLE</title>") == 1


def test_columns_are_stored_as_the_format_says() -> None:
    """The builder itself, against the format: little-endian 32-bit integers, the first value and then differences."""
    stored = documents.column([5, 7, 4], delta=True)
    assert base64.b64decode(stored["i32"]) == bytes([5, 0, 0, 0, 2, 0, 0, 0, 0xFD, 0xFF, 0xFF, 0xFF])
    assert json.loads(gzip.decompress(gzip.compress(json.dumps(stored).encode())))["n"] == 3


def test_a_long_name_without_a_space_widens_nothing(open_page: Open) -> None:
    built = documents.small()
    built["title"] = built["timelines"][0]["kernel"] = "kernel_" + "o1110121" * 40
    page = open_page(built)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
