# SPDX-License-Identifier: Apache-2.0
"""A joined run that an H200 recorded: FlashAttention's forward, 1x128x4096x1x128, one CTA, six sets; 2 of 4 launches are kept.

4096 keys are 32 blocks of 128, of which the first is before the main loop: each of the eight MMA warps comes 31 times to a
site in it.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from autostamp.cli import main
from autostamp.model.manifest import EventKind
from autostamp.model.placement import site_key
from autostamp.runtime.store import RunData, load_run

RUN = Path(__file__).parents[1] / "fixtures/runs/fa4_forward_joined"
WARPS, TRIPS = 8, 32 - 1
K_WAIT, V_WAIT, GROUP, K_RELEASE, FIRST_K_RELEASE, SCHEDULER = 1438, 1445, 1449, 1450, 1297, 1533
MEDIANS = {1: 46.988, 2: 47.144, 4: 46.8285, 6: 46.9905, 8: 47.376, 10: 47.355}
CLEAN = 46.608
"""Of what the program printed, in microseconds: of four runs of each set, and of six clean ones."""


@pytest.fixture(scope="module")
def run() -> RunData:
    return load_run(RUN)


def lines(run: RunData) -> dict[int, int]:
    """The source line of each instance."""
    of_site = {(file.key, site.number): site.span.line for file in run.manifest.files for site in file.sites}
    return {row.number: of_site[row.file, row.site] for row in run.recorded[0].kernel.instances}


def test_each_set_is_within_the_bar(run):
    assert run.replays.bar == 1.02
    assert len(run.replays.sets) == 6
    for made in run.replays.sets:
        assert made.times.ratio == pytest.approx(MEDIANS[made.number] / CLEAN)
        assert made.times.ratio < 1.02
        assert made.results_equal


def test_all_sites_but_two_are_covered(run):
    covered = {key for made in run.replays.sets for key, _ in made.sites}
    missing = [each.key for each in run.replays.uncovered]
    assert len(covered) == 27
    # wait_group(0) and V's release.
    assert [key.split(":")[1] for key in missing] == ["1460", "1461"]
    assert covered <= {site_key(file, site) for file in run.manifest.files for site in file.sites}


@pytest.mark.parametrize(
    ("line", "records"),
    [
        (K_WAIT, {EventKind.ENTER: TRIPS}),
        (V_WAIT, {EventKind.ENTER: TRIPS, EventKind.EXIT: TRIPS}),
        (GROUP, {EventKind.EXIT: TRIPS}),
        (SCHEDULER, {EventKind.ENTER: TRIPS, EventKind.EXIT: TRIPS}),
        (K_RELEASE, {EventKind.SIGNAL: TRIPS}),
        (FIRST_K_RELEASE, {EventKind.SIGNAL: 1}),
    ],
)
def test_every_warp_has_the_records_of_its_trips(run, line, records):
    of = lines(run)
    for trace in run.recorded:
        found = {
            lane.warp: dict(Counter(event.kind for event in lane.events if of[event.instance] == line))
            for lane in trace.lanes
        }
        assert [counts for counts in found.values() if counts] == [records] * WARPS


def test_a_wait_keeps_its_length_where_one_replay_recorded_it(run):
    of = lines(run)
    for trace in run.recorded:
        for lane in trace.lanes:
            rows = [
                (event, number)
                for event, number in zip(lane.events, lane.replays, strict=True)
                if of[event.instance] == V_WAIT
            ]
            enters = {event.visit: (event.cycles, number) for event, number in rows if event.kind is EventKind.ENTER}
            for event, number in rows:
                if event.kind is EventKind.EXIT:
                    assert number == enters[event.visit][1] == 2
                    assert event.cycles >= enters[event.visit][0]


def test_the_face_names_the_forms(capsys):
    assert main(["summary", str(RUN)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("joined from 6 replays, each at most 1.016 of the clean time; the bar was 1.020")
    assert "waits whose clock after the call was written later: flash_fwd_sm90.py:1445" in text
    assert "flash_fwd_sm90.py:1450" in text.partition("signals stamped before the call")[2].partition("\n")[0]
    assert "2 sites are not covered:" in text
