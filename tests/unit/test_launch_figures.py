# SPDX-License-Identifier: Apache-2.0
"""Every figure of a report with its spread over launches, on the ring kernel whose schedule is worked out by hand.

Computing for 30 cycles the ring ends at 130 (tests/simulator/tables.py); for 40 the consumer waits 0-10 and then works at
10-50-90-130-170 without a stop. The consumer's one stall is those 10 cycles in both.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from autostamp.analysis import analyse
from autostamp.analysis.flow import explain
from autostamp.analysis.spreads import launch_figures
from autostamp.model.comparison import Figure, LaunchFigure
from autostamp.model.flow import Flow
from autostamp.model.timeline import Timeline
from autostamp.report.document import document
from autostamp.report.launches_text import launch_lines
from autostamp.report.places import places_of
from autostamp.runtime.decode import decode_region
from tests.simulator.tables import CONSUME, NO_PASS, ring_kernel, ring_manifest, ring_region


def launch(number: int, compute: int, uses: int = 4) -> tuple[Timeline, Flow]:
    kernel = ring_kernel(capacity=256)
    trace = decode_region(ring_region(kernel, compute=compute, uses=uses), kernel)
    timeline = replace(analyse(trace, latencies=NO_PASS), launch=number)
    return timeline, explain(trace, timeline, NO_PASS)


def figures(*launches: tuple[Timeline, Flow]) -> tuple[LaunchFigure, ...]:
    return launch_figures([timeline for timeline, _ in launches], [flow for _, flow in launches])


def test_one_launch_has_no_spread():
    assert figures(launch(0, 30)) == ()
    # Two CTAs of one launch are no two launches.
    assert figures(launch(0, 30), launch(0, 40)) == ()


def test_cycles_roles_and_waits():
    found = {(each.what, each.role, each.instance): each.figure for each in figures(launch(0, 30), launch(1, 40))}
    assert found["cycles", "", 0] == Figure(2, 150, 130, 170)
    assert found["span", "mma", 0] == Figure(2, 150, 130, 170)
    assert found["stall", "mma", 0] == Figure(2, 10, 10, 10)
    assert found["wait", "mma", CONSUME] == Figure(2, 10, 10, 10)


def test_periods():
    found = {
        each.what: each.figure for each in figures(launch(0, 30, uses=20), launch(1, 40, uses=20)) if not each.role
    }
    assert found["period"] == Figure(2, 35, 30, 40)


@pytest.mark.parametrize("count", [1, 2])
def test_the_page_says_it_for_several_launches_alone(count):
    pairs = [launch(number, 30 + 10 * number) for number in range(count)]
    manifest = ring_manifest(ring_kernel(capacity=256))
    found = document(pairs, manifest, launches={1: figures(*pairs)})
    lines = [line for line in found["timelines"][0]["verdict"]["lines"] if "launches, median" in line]
    if count == 1:
        assert lines == []
        return
    assert lines[0].startswith("over 2 launches, median [least - most]: cycles 150 [130 - 170]")
    expected = "mma over 2 launches, median [least - most], warp-cycles a CTA: span 150 [130 - 170], stall 10 [10 - 10]"
    assert any(line.startswith(expected) for line in lines)
    assert lines == list(launch_lines(figures(*pairs), places_of(manifest, 1)))
