# SPDX-License-Identifier: Apache-2.0
"""A fixed-slot buffer that an H200 filled: its stalls and holds are those that arithmetic on its clocks gives."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import numpy as np

from autostamp.analysis import analyse
from autostamp.model.timeline import Slice, State
from autostamp.runtime.decode import check
from autostamp.runtime.spec_file import read_spec
from tests.unit.test_spec_file import waits

FIXTURE = Path(__file__).parents[2] / "tests/fixtures/spec/fa4_forward_one_cta.json"


def direct(row):
    """Waits of one row of the recorded buffer by plain arithmetic on its clocks modulo 2^32, from the events' names."""
    spec = json.loads(FIXTURE.read_text(encoding="utf-8"))
    names = [event["name"] for event in spec["events"]]
    slots = np.load(FIXTURE.with_suffix(".npz"))["slots"][row].astype(object)
    return sorted(
        (int(exit_) - int(enter)) % 2**32
        for at, name in enumerate(names)
        if name.endswith(".enter")
        for enter, exit_ in zip(slots[at], slots[at + 1], strict=True)
        if enter
    )


# By warp: waits and their sum, added up over the recorder's log before it was made a fixed-slot buffer (README beside it).
IN_THE_LOG = {
    0: (66, 83080),
    4: (161, 12167),
    5: (159, 17427),
    6: (159, 17193),
    7: (159, 16406),
    8: (159, 10574),
    9: (159, 14442),
    10: (159, 14467),
    11: (159, 14011),
}


def test_recorded_slots_give_the_stalls_that_arithmetic_on_the_log_gives():
    run = read_spec(FIXTURE, FIXTURE.with_suffix(".npz"))
    assert check(run.trace) == []
    assert run.trace.warnings == ()
    timeline = analyse(run.trace)
    assert {
        warp.warp: (len(waits(warp)), sum(end - start for start, end in waits(warp))) for warp in timeline.warps
    } == (IN_THE_LOG)
    for row, warp in enumerate(timeline.warps):
        assert sorted(end - start for start, end in waits(warp)) == direct(row)
        assert warp.role == ("load" if warp.warp == 0 else "mma")
    facts = msgspec.to_builtins(run.facts)
    assert (facts["gpu"], facts["driver"], facts["recorded_at"]) == ("NVIDIA H200", "580.159.04", "2026-11-29")


def test_recorded_slots_give_one_hold_for_every_block_of_keys():
    """4096 keys in blocks of 128 are 32 uses of K and of V by every mma warp; 31 softmax regions lie between the products."""
    run = read_spec(FIXTURE, FIXTURE.with_suffix(".npz"))
    labels = {barrier.number: barrier.label for barrier in run.trace.kernel.barriers}
    rows = {row.number: row for row in run.trace.kernel.instances}

    def holds(warp, label):
        return [
            part
            for part in warp.slices
            if part.state is State.ACTIVE and labels.get(rows[part.instance].barrier) == label
        ]

    for warp in analyse(run.trace).warps[1:]:
        assert (len(holds(warp, "K")), len(holds(warp, "V")), len(holds(warp, "Q"))) == (32, 32, 1)
        work = [part for part in warp.slices if rows[part.instance].kind == "work"]
        assert len(work) == 31
        assert isinstance(work[0], Slice)
        assert all(part.signal == 0 for part in work)
