# SPDX-License-Identifier: Apache-2.0
"""Joins of launches that an H200 recorded: the sites of one set are split in two, so that the truth is known.

The run is six launches of kernels/cuda/gemm_ws.cu at 1024x1024x4096, one CTA, ten sites stamped. Three launches play the
reference, of which only the anchors are kept, and three the other replay.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from autostamp.analysis.join import join
from autostamp.model.replay import Joined, Recording
from autostamp.model.trace import Trace
from autostamp.runtime.decode import decode_region
from autostamp.runtime.encode import encode_region
from autostamp.runtime.store import load_run

RUN = Path(__file__).parents[1] / "fixtures/runs/gemm_ws_six_launches"
LOAD = {211, 213, 214, 215}
FULL_WAIT = 228


@pytest.fixture(scope="module")
def launches() -> tuple[Trace, ...]:
    return load_run(RUN).recorded


def lines() -> dict[int, int]:
    """The source line of each instance."""
    manifest = load_run(RUN).manifest
    of_site = {(file.key, site.number): site.span.line for file in manifest.files for site in file.sites}
    return {row.number: of_site[row.file, row.site] for row in manifest.traces[0].instances}


def joined(launches: tuple[Trace, ...], anchors: Collection[int]) -> Joined:
    line = lines()

    def only(trace: Trace) -> Trace:
        kept = tuple(
            replace(lane, events=tuple(event for event in lane.events if line[event.instance] in anchors))
            for lane in trace.lanes
        )
        return replace(trace, lanes=kept)

    return join([Recording(1, tuple(map(only, launches[:3]))), Recording(2, launches[3:])])


def sites_of(trace: Trace) -> dict[int, int]:
    return {row.number: row.site for row in trace.kernel.instances}


def misplaced(launches: tuple[Trace, ...], found: Joined) -> np.ndarray:
    """(how far off, what is stated) of every record that the second replay gave, one row each."""
    rows = []
    for truth, trace in zip(launches, found.traces, strict=False):
        # A joined table numbers its instances anew.
        right = {
            (lane.warp, site[event.instance], event.kind, event.visit): event.cycles
            for site in (sites_of(truth),)
            for lane in truth.lanes
            for event in lane.events
        }
        site = sites_of(trace)
        for lane in trace.lanes:
            for event, replay, error in zip(lane.events, lane.replays, lane.errors, strict=True):
                if replay == 2:
                    key = (lane.warp, site[event.instance], event.kind, event.visit)
                    rows.append((abs(event.cycles - right[key]), error))
    return np.array(rows)


def test_records_with_anchors_are_within_their_errors(launches):
    found = joined(launches, {*LOAD, 201, FULL_WAIT})
    assert not found.refusals
    off = misplaced(launches, found)
    assert len(off) == 3 * found.fits[0].events
    assert (off[:, 0] <= off[:, 1]).all()
    # An iteration takes 560 cycles: records are off by a few hundredths of one.
    assert np.median(off[:, 0]) < 30
    assert np.median(off[:, 1]) < 300
    assert found.fits[0].guided == 0


def test_warps_that_another_guides_are_further_off_and_say_so(launches):
    found = joined(launches, LOAD)
    assert not found.refusals
    off = misplaced(launches, found)
    assert (off[:, 0] <= off[:, 1]).all()
    assert np.median(off[:, 1]) > 300
    # Eight MMA warps, and three that only come to the CTA's barrier.
    assert found.fits[0].guided == 11


def test_a_trace_survives_its_region(launches):
    for trace in launches:
        again = decode_region(encode_region(trace), trace.kernel)
        assert again.lanes == trace.lanes
        assert (again.grid, again.clock) == (trace.grid, trace.clock)
