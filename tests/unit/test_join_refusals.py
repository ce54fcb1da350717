# SPDX-License-Identifier: Apache-2.0
"""Sets that cannot be joined: each is refused with its code and its reason, and the others are joined all the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from autostamp.analysis.join import join
from autostamp.model.replay import Recording
from tests.simulator.replays import LOAD_SITES, MMA_SITES, Schedule, recordings

LAUNCHES = 4


def made(*sets: set[int]) -> tuple[Recording, ...]:
    schedule = Schedule()
    runs = [[schedule.launch(100 * number + launch) for launch in range(LAUNCHES)] for number in range(len(sets))]
    return recordings(runs, sets)


def refused(*recorded: Recording) -> list[tuple[int, str, str]]:
    found = join(recorded)
    assert len(found.traces) == LAUNCHES
    return [(refusal.number, refusal.code, refusal.detail) for refusal in found.refusals]


def with_records_lost(recording: Recording) -> Recording:
    first, *others = recording.launches
    lanes = (replace(first.lanes[0], lost=3), *first.lanes[1:])
    return replace(recording, launches=(replace(first, lanes=lanes), *others))


def on_another_cta(recording: Recording) -> Recording:
    return replace(recording, launches=tuple(replace(each, block=(7, 0, 0)) for each in recording.launches))


@pytest.mark.parametrize(
    ("broken", "code", "reason"),
    [
        (lambda each: replace(each, launches=()), "AS8123", "it recorded nothing"),
        (with_records_lost, "AS8123", "3 records were lost: give a larger --capacity"),
        (on_another_cta, "AS8123", "it ran on another CTA than the reference"),
        (
            lambda each: replace(each, launches=each.launches[:2]),
            "AS8124",
            "2 launches were recorded, and what varies ",
        ),
    ],
)
def test_the_third_set_is_refused(broken: Callable[[Recording], Recording], code: str, reason: str) -> None:
    first, second, third = made(
        {*LOAD_SITES, *MMA_SITES[:2]}, {*LOAD_SITES, *MMA_SITES[2:]}, {*LOAD_SITES, MMA_SITES[0]}
    )
    ((number, said, detail),) = refused(first, second, broken(third))
    assert (number, said) == (3, code)
    assert detail.startswith(reason)


def test_a_set_without_an_anchor_in_any_warp_is_refused() -> None:
    assert refused(*made({*LOAD_SITES, *MMA_SITES[:2]}, set(MMA_SITES[2:]))) == [
        (2, "AS8120", "it shares no site with the reference, in any warp")
    ]
