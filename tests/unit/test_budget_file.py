# SPDX-License-Identifier: Apache-2.0
"""Budget files: what each key means, and how every fault is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from autostamp.diagnostics import AutostampError
from autostamp.model.budget import Origin, Resource
from autostamp.predict.budget_file import (
    _DEPENDENCY,
    _OVERRIDE,
    _RING,
    _ROLE,
    _ROW,
    _STEP,
    _TOP,
    given,
    overridden,
    parse_budget,
    read_budget,
)
from autostamp.predict.given import Given
from autostamp.predict.machines import load_machine

H200 = load_machine("h200")

WHOLE = """
machine = "h200"
iteration = "one k-tile (128 x 128 x 64)"
active_sms = 4
smem_write_share = 0.5

[roles.mma]
warps = 8
trips = 2
loop = 0x05a0

[roles.load]
tma_bytes = "32 KB"
l2_bytes = "16384 B"
hbm_bytes = "0.5 KiB"

[[rows]]
role = "softmax"
resource = "mufu"
what = "exponentials"
work = "16384 thread-instr"
constant = "mufu_ex2"
source = "128 x 128 scores"
replaces = true

[[rows]]
role = "load"
resource = "issue"
work = 3
constant = "mbarrier_arrive"

[rings.ab]
stages = 4
producer = "load"
consumer = "mma"
fill = "700 cycles"
consume = [{ what = "MMA", work = "2.097152 MFLOP", constant = "tensor_bf16" }]
hand_off = [{ what = "round trip", constant = "mbarrier_round_trip" }]

[rings.q]
leave_out = true

[[dependencies]]
start = "QK"
end = "softmax"
steps = [{ what = "QK", cycles = "512 cycles" }, { what = "barrier", cycles = "100 ns" }]

[[dependencies]]
start = "softmax"
end = "QK"
distance = 1

[overrides.mbarrier_round_trip]
value = 140
unit = "cycles"
source = "loaded"
"""


def read(text: str | bytes) -> Given:
    content = parse_budget(text if isinstance(text, bytes) else text.encode(), "b.toml")
    return given(content, overridden(content, H200))


def test_every_key():
    content = parse_budget(WHOLE.encode(), "b.toml")
    assert content.machine == "h200"
    found = read(WHOLE)
    assert (found.iteration, found.active_sms, found.smem_write_share) == ("one k-tile (128 x 128 x 64)", 4, 0.5)
    assert (found.roles["mma"].warps, found.roles["mma"].trips, found.roles["mma"].loop) == (8, 2, 0x5A0)
    load = found.roles["load"]
    assert (load.tma_bytes, load.l2_bytes, load.hbm_bytes) == (32768, 16384, 512)
    exp, arrive = found.rows
    assert exp.replaces
    assert (exp.row.resource, exp.row.work, exp.row.unit, exp.row.cycles) == (
        Resource.MUFU,
        16384,
        "thread-instr",
        1024,
    )
    assert (exp.row.origin, exp.row.source) == (Origin.GIVEN, "128 x 128 scores")
    # A duration: 14 cycles, three times.
    assert (arrive.row.cycles, arrive.row.source, arrive.row.what) == (42, "b.toml", "issue")
    ring = found.rings["ab"]
    assert ring.fill is not None
    assert ring.consume is not None
    assert ring.hand_off is not None
    assert [step.cycles for step in (*ring.fill, *ring.consume, *ring.hand_off)] == [700, 512, 140]
    assert found.rings["q"].is_left_out
    first, second = found.dependencies
    # 100 ns at 1.83 GHz.
    assert [step.cycles for step in first.steps] == [512, pytest.approx(183)]
    assert (second.start, second.end, second.distance, second.steps) == ("softmax", "QK", 1, ())
    assert found.named_roles() == {
        "mma": "roles.mma",
        "load": "roles.load",
        "softmax": "rows[0]",
    }


def test_an_empty_file_says_nothing():
    found = read("")
    assert found.has_chains
    assert not read("chains = false").has_chains
    assert (found.roles, found.rows, found.rings, found.smem_write_share, found.active_sms) == ({}, (), {}, -1, 0)


ROW = '[[rows]]\nrole = "mma"\nresource = "tensor"\nconstant = "tensor_bf16"\n'

FAULTS = {
    "not TOML": ("machine = ", "AS7120", "not TOML"),
    "not text": (b"\xff\xfe", "AS7120", "not TOML"),
    "unknown key": ('iterations = "x"', "AS7120", "did you mean iteration?"),
    "unknown key of a role": ("[roles.mma]\nwarp = 4", "AS7120", "roles.mma: unknown key warp; did you mean warps?"),
    "role is no table": ("[roles]\nmma = 4", "AS7120", "roles.mma: must be a table"),
    "roles are no table": ("roles = 4", "AS7120", "roles: must be a table"),
    "rows are no list": ("rows = 4", "AS7120", "rows: must be a list"),
    "no unit": ('[roles.load]\ntma_bytes = "32768"', "AS7121", '"1 B"'),
    "a bare number": ("[roles.load]\ntma_bytes = 32768", "AS7121", "roles.load.tma_bytes is 32768"),
    "wrong unit": ('[roles.load]\ntma_bytes = "512 cycles"', "AS7121", "512 cycles"),
    "unit of another case": ('[roles.load]\ntma_bytes = "32 kb"', "AS7121", "32 kb"),
    "wrong unit of work": (ROW + 'work = "32768 B"', "AS7121", '"1 FLOP"'),
    "zero work": (ROW + 'work = "0 FLOP"', "AS7106", "must be above zero"),
    "negative work": (ROW + 'work = "-5 FLOP"', "AS7106", "must be above zero"),
    "infinite work": (ROW + 'work = "1e999 FLOP"', "AS7106", "must be above zero"),
    "no work": (ROW, "AS7121", "rows[0].work"),
    "unknown resource": (ROW.replace('"tensor"', '"tensors"'), "AS7120", "tensors is none of tensor, smem"),
    "constant that the machine lacks": (
        ROW.replace("tensor_bf16", "tensor_fp4") + 'work = "1 FLOP"',
        "AS7103",
        "tensor_fp4",
    ),
    "constant that is no rate": (ROW.replace("tensor_bf16", "clock") + 'work = "1 FLOP"', "AS7120", "neither a rate"),
    "times of a duration": (ROW.replace("tensor_bf16", "named_barrier") + 'work = "3"', "AS7120", "how often"),
    "times below zero": (ROW.replace("tensor_bf16", "named_barrier") + "work = -3", "AS7106", "above zero"),
    "no warps": ("[roles.mma]\nwarps = 0", "AS7106", "roles.mma.warps"),
    "half a warp": ("[roles.mma]\nwarps = 4.5", "AS7120", "no whole number"),
    "no trips": ("[roles.mma]\ntrips = 0", "AS7106", "roles.mma.trips"),
    "loop as text": ('[roles.mma]\nloop = "0x05a0"', "AS7120", "without quotes"),
    "no stages": ("[rings.ab]\nstages = 0", "AS7106", "rings.ab.stages"),
    "negative latency": ('[rings.ab]\nfill = "-1 cycles"', "AS7106", "must not be below zero"),
    "latency in bytes": ('[rings.ab]\nfill = "700 B"', "AS7121", '"1 ns"'),
    "share above one": ("smem_write_share = 1.5", "AS7120", "no share from 0 to 1"),
    "share as a truth": ("smem_write_share = true", "AS7120", "no share from 0 to 1"),
    "active SMs": ("active_sms = 0", "AS7106", "active_sms"),
    "negative distance": ('[[dependencies]]\nstart = "a"\nend = "b"\ndistance = -1', "AS7120", "distance"),
    "no end": ('[[dependencies]]\nstart = "a"', "AS7120", "dependencies[0].end"),
    "rate as a latency": (
        '[[dependencies]]\nstart = "a"\nend = "b"\nsteps = [{ what = "x", constant = "smem" }]',
        "AS7121",
        "smem (B/clk/SM)",
    ),
    "cycles and a constant": (
        '[[dependencies]]\nstart = "a"\nend = "b"\nsteps = [{ what = "x", cycles = "1 cycles", constant = "smem" }]',
        "AS7120",
        "not both",
    ),
    "override of nothing": ("[overrides.l3]\nvalue = 1\nunit = 'bytes'", "AS7120", "overrides.l3: no constant"),
    "override with another unit": ("[overrides.l2]\nvalue = 9.2\nunit = 'ns'", "AS7121", "B/clk/SM"),
    "override of zero": ("[overrides.l2]\nvalue = 0\nunit = 'B/clk/SM'", "AS7106", "overrides.l2"),
    "override as a truth": ("[overrides.l2]\nvalue = true\nunit = 'B/clk/SM'", "AS7106", "overrides.l2"),
    "chains as a number": ("chains = 1", "AS7120", "chains: must be true or false"),
    "flag as text": (ROW + 'work = "1 FLOP"\nreplaces = "yes"', "AS7120", "must be true or false"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults(fault):
    text, code, words = FAULTS[fault]
    with pytest.raises(AutostampError) as caught:
        read(text)
    assert caught.value.diagnostic.code == code
    assert words in f"{caught.value.diagnostic.message} {caught.value.diagnostic.help}"


def test_a_file_that_is_not_there(tmp_path: Path):
    with pytest.raises(AutostampError) as caught:
        read_budget(tmp_path / "b.toml")
    assert caught.value.diagnostic.code == "AS7120"


def test_the_file_that_the_manual_shows():
    manual = (Path(__file__).parents[2] / "docs" / "predict.md").read_text(encoding="utf-8")
    text = manual.partition("```toml\n")[2].partition("```")[0]
    found = read(text)
    assert found.roles["mma"].loop == 0x5A0
    # It names every key that is read.
    for keys in (_TOP, _ROLE, _ROW, _RING, _DEPENDENCY, _STEP, _OVERRIDE):
        assert [key for key in keys if key not in text and key != "condition"] == []
