# SPDX-License-Identifier: Apache-2.0
"""What a joined timeline says of waits whose stall is not known, or not well, in sentences and in the picture."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from autostamp.analysis import analyse
from autostamp.analysis.flow import explain
from autostamp.model.placement import key_at
from autostamp.model.replay import Uncovered
from autostamp.model.sync import Kind
from autostamp.model.timeline import State, Timeline
from autostamp.report.joined_notes import caveat, site_errors, split_waits, unrecorded_waits
from autostamp.report.places import places_of
from autostamp.report.summary import as_text
from autostamp.report.svg import timeline_svg
from autostamp.runtime.store import RunData, load_run

RUN = Path(__file__).parents[1] / "fixtures/runs/fa4_backward_joined"


def split(data: RunData, length: int, error: int) -> tuple[Timeline, int]:
    """The first timeline with one stall of `length` cycles whose length may be off by `error`, and the wait's instance."""
    timeline = analyse(data.recorded[0])
    warp = next(each for each in timeline.warps if any(part.state is State.STALL for part in each.slices))
    part = next(part for part in warp.slices if part.state is State.STALL)
    made = replace(part, end=part.start + length, length_error=error)
    others = tuple(made if each is part else replace(each, length_error=0) for each in warp.slices)
    warps = tuple(
        replace(each, slices=others if each is warp else tuple(replace(one, length_error=0) for one in each.slices))
        for each in timeline.warps
    )
    return replace(timeline, warps=warps), part.instance


def test_a_stall_of_two_replays_says_what_its_length_is_right_to():
    data = load_run(RUN)
    places = places_of(data.manifest, data.recorded[0].kernel.number)
    timeline, instance = split(data, 40, 30)
    (said,) = split_waits([timeline, timeline], places)
    assert said.startswith(f"{places[instance].label()} at {places[instance].where}: ")
    assert said.endswith("its 2 visits (median 40 cycles) are right to 30 cycles in the median")
    (said,) = split_waits([split(data, 40, 41)[0]], places)
    assert said.endswith("its 1 visit (median 40 cycles) are right to 41 cycles in the median; 1 are no longer than"
                         " their own error, and may be none")  # fmt: skip


def test_a_stall_of_one_replay_is_said_to_be_nothing():
    data = load_run(RUN)
    assert list(split_waits([split(data, 40, 0)[0]], places_of(data.manifest, 1))) == []


def test_a_stall_that_may_be_none_is_faint_in_the_picture():
    data = load_run(RUN)
    drawn = []
    for error in (3999, 4000):
        timeline = split(data, 4000, error)[0]
        drawn.append(timeline_svg([timeline], data.manifest, remarks={timeline.trace: ["joined from 2 replays"]}))
    assert ["<g opacity" in each for each in drawn] == [False, True]
    assert ["may be off by" in each for each in drawn] == [False, True]
    assert all("note: joined from 2 replays" in each and "length to " in each for each in drawn)


def test_waits_without_a_stall_are_named_and_signals_are_not():
    data = load_run(RUN)
    assert data.replays is not None
    file = data.manifest.files[0]
    wait, signal = (next(each for each in file.skips if each.kind is kind) for kind in (Kind.WAIT, Kind.SIGNAL))
    left = tuple(Uncovered(key_at(file.path, file.key, each), "", "AS8126") for each in (wait, signal))
    (said,) = unrecorded_waits(replace(data.replays, uncovered=left), data.manifest, 0)
    assert said.startswith("1 wait without both stamps: ")
    assert said.endswith(f"(flash_bwd_sm90.py:{wait.span.line})")
    assert caveat(replace(data.replays, uncovered=left), data.manifest, 0) == "1 wait not recorded"
    none = replace(data.replays, uncovered=left[1:])
    assert unrecorded_waits(none, data.manifest, 0) == ()
    assert caveat(none, data.manifest, 0) == caveat(None, data.manifest, 0) == ""


def test_an_arrow_whose_ends_are_closer_than_their_error_is_faint():
    data = load_run(RUN)
    timeline = analyse(data.recorded[0])
    flow = explain(data.recorded[0], timeline)
    arrow = next(each for each in flow.arrows if each.wait.cycles > each.signal.cycles + 1)
    apart = arrow.wait.cycles - arrow.signal.cycles
    window = (arrow.signal.cycles - 10, arrow.wait.cycles + 10)
    for error, is_uncertain, is_faint in (
        (0, False, False),
        (apart - 1, False, False),
        (apart, False, True),
        (0, True, True),
    ):
        one = replace(flow, arrows=(arrow._replace(error=error, is_uncertain=is_uncertain),))
        drawn = timeline_svg([replace(timeline)], data.manifest, None, window, [one])
        assert ('<g opacity="0.4"><title>' in drawn and "Faint: another arrival" in drawn) is is_faint


def test_the_tables_say_what_the_lengths_are_right_to():
    data = load_run(RUN)
    plain = analyse(data.recorded[0])
    assert site_errors(plain) == {}
    site = next(each for each in plain.sites if each.spread.count > 2)
    held = {(number, each) for number in site.warps for each in site.instances}
    # The first stall of the site is off by 10, all others by 30: the median is 30 where there are more than two.
    left = [10]
    warps = tuple(
        replace(
            warp,
            slices=tuple(
                replace(part, length_error=left.pop() if left else 30)
                if part.state is State.STALL and (warp.warp, part.instance) in held
                else part
                for part in warp.slices
            ),
        )
        for warp in plain.warps
    )
    marked = replace(plain, warps=warps)
    assert site_errors(marked) == {(site.role, site.instance): 30}
    assert f"{site.spread.median:,.0f} ± 30" in as_text(marked, data.manifest, data.facts, width=200)
    assert "± 30" not in as_text(plain, data.manifest, data.facts, width=200)
