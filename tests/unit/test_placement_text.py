# SPDX-License-Identifier: Apache-2.0
"""A placement as text."""

from __future__ import annotations

from autostamp.model.placement import Effect, Form, PlacedSite, Placement, ReplaySet, ScheduleFeatures
from autostamp.report.placement_text import as_text

CLEAN = ScheduleFeatures(1.0, {}, (1.0, 1.0), (168, 168), (0, 0), 0.0)
MOVED = ScheduleFeatures(0.75, {"mma wait_group(0)": (10, 66)}, (1.0, 2.0), (168, 170), (0, 8), 0.09)
A, B, C = (f"k.py:{line}:5@0123456789abcdef" for line in (10, 20, 30))
PLACEMENT = Placement(
    1,
    "kernel",
    "d",
    (
        PlacedSite(A, Form.BOTH, Effect.FREE, CLEAN),
        PlacedSite(B, Form.ENTER, Effect.NEAR_CLEAN, CLEAN),
        PlacedSite(C, Form.BOTH, Effect.PERTURBING, MOVED),
    ),
    (
        ReplaySet(1, ((A, Form.ENTER), (B, Form.ENTER)), (A,), CLEAN),
        ReplaySet(2, ((A, Form.BOTH),), (A,), CLEAN),
    ),
    (C,),
    5,
    True,
)
TEXTS = {A: "p.wait(s)", B: "q.wait(s)", C: "warpgroup.wait_group(0)"}


def test_every_site_has_its_row():
    lines = as_text(PLACEMENT, TEXTS).splitlines()
    rows = {line.split()[0]: line for line in lines if line.startswith("k.py:")}
    assert rows.keys() == {"k.py:10", "k.py:20", "k.py:30"}
    assert " both " in rows["k.py:10"]
    assert rows["k.py:10"].endswith("free        p.wait(s)")
    assert " enter only " in rows["k.py:20"]
    assert "mma wait_group(0) 10→66 unrolled 1→2" in rows["k.py:30"]
    assert "168→170" in rows["k.py:30"]
    assert "0→8 B" in rows["k.py:30"]


def test_sets_what_is_in_none_and_what_is_a_mark():
    lines = as_text(PLACEMENT, TEXTS).splitlines()
    assert "2 sites in 2 sets, 5 variants compiled" in lines
    assert "in no set: k.py:30 warpgroup.wait_group(0), distance 0.090 alone" in lines
    # B has one stamp everywhere; A has both in set 2.
    assert [line for line in lines if "a mark in time" in line] == [
        "enter only: k.py:20 q.wait(s), a mark in time, no stall"
    ]


def test_a_long_call_is_cut_to_the_same_length_everywhere():
    long = 'asm volatile("' + 9 * "mbarrier.arrive " + '")'
    lines = as_text(PLACEMENT, TEXTS | {C: long}).splitlines()
    told = [line for line in lines if "asm volatile" in line]
    assert len(told) == 2
    assert all(long[:47] + "…" in line and long[:48] not in line for line in told)
