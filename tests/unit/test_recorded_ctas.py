# SPDX-License-Identifier: Apache-2.0
"""Eight CTAs of one FlashAttention launch, recorded on an H200 with `run --block 0..7`."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from autostamp.analysis import analyse
from autostamp.analysis.alignment import aligned
from autostamp.analysis.steady import steady_state
from autostamp.model.timeline import Timeline
from autostamp.model.trace import Trace
from autostamp.runtime.decode import check
from autostamp.runtime.store import load_run

RUN = Path(__file__).parents[1] / "fixtures" / "runs" / "fa4_forward_8_ctas"
CTAS = 8
KEY_BLOCKS = 4096 // 128


@pytest.fixture(scope="module")
def traces() -> list[Trace]:
    return list(load_run(RUN).recorded)


@pytest.fixture(scope="module")
def timelines(traces) -> list[Timeline]:
    return aligned([analyse(trace) for trace in traces], traces)


def test_every_cta_is_there_and_sound(traces):
    assert [trace.block for trace in traces] == [(x, 0, 0) for x in range(CTAS)]
    assert all(check(trace) == [] for trace in traces)
    assert {len(trace.lanes) for trace in traces} == {12}


def test_ctas_that_run_together_are_on_sms_of_their_own(timelines):
    # 512 CTAs on 132 SMs with one CTA an SM: the first eight begin in the first wave.
    assert len({timeline.smid for timeline in timelines}) == CTAS


def test_the_axis_is_common_to_within_what_is_stated(timelines):
    assert min(timeline.offset + min(warp.start for warp in timeline.warps) for timeline in timelines) == 0
    starts = [timeline.offset for timeline in timelines]
    # CTAs of the first wave are started within a microsecond (1,768 cycles) of each other.
    assert max(starts) - min(starts) < 1768
    # The timer's step is 32 ns, 57 cycles: no error can be below it.
    assert all(57 <= timeline.alignment_error < 1000 for timeline in timelines)


def test_all_ctas_do_the_same_work(traces, timelines):
    found = [steady_state(trace, timeline)[0] for trace, timeline in zip(traces, timelines, strict=True)]
    assert all(steady is not None for steady in found)
    periods = [steady.period.median for steady in found if steady is not None]
    # The first block of keys is waited for before the main loop, and the last wait begins no iteration.
    assert {steady.fill + steady.iterations + steady.drain for steady in found if steady is not None} == {
        KEY_BLOCKS - 2
    }
    for first, second in itertools.combinations(periods, 2):
        assert first == pytest.approx(second, rel=0.05)
