# SPDX-License-Identifier: Apache-2.0
"""Slot specs: a hand-stamped buffer drawn, a decoded trace written, and what is refused with which place."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from autostamp.analysis import analyse
from autostamp.diagnostics import AutostampError
from autostamp.model.flow import Arrow, End
from autostamp.model.manifest import EventKind
from autostamp.model.timeline import State
from autostamp.runtime.decode import check, decode_region
from autostamp.runtime.iket import read_iket
from autostamp.runtime.spec_file import decode_spec, read_spec
from autostamp.runtime.spec_of_trace import encode_spec, spec_of, write_spec
from autostamp.runtime.spec_schema import schema
from autostamp.runtime.store import load_run
from tests.simulator.tables import ACQUIRE, COMMIT, CONSUME, RELEASE, ring_kernel, ring_manifest, ring_region

ROOT = Path(__file__).parents[2]
RUNS = [
    ROOT / "tests/fixtures/runs/fa4_forward_one_cta",
    ROOT / "tests/fixtures/runs/fa4_forward_full_grid",
    ROOT / "kernels/cutedsl/recorded/gemm_ws_h200",
    ROOT / "kernels/cuda/recorded/gemm_ws_h200",
]


def by_hand(**changes):
    """Two rows, five events, three iterations: a producer that waits and commits, a consumer that waits, works, releases."""
    spec = {
        "version": 1,
        "kernel": "ring",
        "shape": [2, 6, 3],
        "roles": [{"name": "load"}, {"name": "mma"}],
        "events": [{"name": name} for name in ("acq", "acq_end", "commit", "wait", "wait_end", "release")],
        "barriers": [{"number": 1, "label": "K", "stages": 2}],
        "spans": [
            {
                "role": 0,
                "name": "acquire",
                "state": "stall",
                "start_evt": 0,
                "end_evt": 1,
                "barrier": "K",
                "side": "empty",
            },
            {
                "role": "mma",
                "name": "K wait",
                "state": "stall",
                "start_evt": "wait",
                "end_evt": "wait_end",
                "barrier": "K",
                "side": "full",
                "file": "ring.py",
                "line": 31,
                "text": "k.wait()",
            },
            {"role": "mma", "name": "tile", "state": "active", "start_evt": "wait_end", "end_evt": "release"},
        ],
        "markers": [
            {"role": "load", "evt": "commit", "name": "commit", "barrier": "K", "side": "full"},
            {"role": "mma", "evt": "release", "name": "release", "barrier": 1, "side": "empty"},
        ],
    }
    return spec | changes


SLOTS = np.array(
    [
        # load: acquires 100-100, 110-110, 120-140; commits at 110, 120, 150
        [[100, 110, 120], [100, 110, 140], [110, 120, 150], [0, 0, 0], [0, 0, 0], [0, 0, 0]],
        # mma: waits 105-110, 140-140, 170-175; releases at 140, 170, 205
        [[0, 0, 0], [0, 0, 0], [0, 0, 0], [105, 140, 170], [110, 140, 175], [140, 170, 205]],
    ],
    np.int64,
)


def saved(folder, spec, slots=SLOTS, **arrays):
    (folder / "spec.json").write_text(spec if isinstance(spec, str) else json.dumps(spec), encoding="utf-8")
    np.savez(folder / "buffer.npz", **({} if slots is None else {"slots": slots}), **arrays)
    return folder / "spec.json", folder / "buffer.npz"


def read(folder, spec, slots=SLOTS, **arrays):
    return read_spec(*saved(folder, spec, slots, **arrays))


def refused(folder, spec, slots=SLOTS, **arrays):
    with pytest.raises(AutostampError) as error:
        read(folder, spec, slots, **arrays)
    return error.value.diagnostic


def waits(warp):
    """Start and end of every wait: those that were short may be passes."""
    return [(part.start, part.end) for part in warp.slices if part.state is not State.ACTIVE]


def worked(warp):
    return sorted((part.start, part.end) for part in warp.slices if part.state is State.ACTIVE)


def test_a_hand_stamped_buffer_becomes_waits_and_work(tmp_path):
    run = read(tmp_path, by_hand())
    load, mma = analyse(run.trace).warps
    assert (load.role, mma.role) == ("load", "mma")
    # Cycle 0 is the earliest clock, 100.
    assert waits(load) == [(0, 0), (10, 10), (20, 40)]
    assert waits(mma) == [(5, 10), (40, 40), (70, 75)]
    # Work from the end of each wait to its release, and for the two-sided barrier a hold over the same cycles.
    assert set(worked(mma)) == {(10, 40), (40, 70), (75, 105)}
    assert set(worked(load)) == {(0, 10), (10, 20), (40, 50)}
    assert (mma.start, mma.end) == (5, 105)
    assert mma.active == 30 + 30 + 30
    assert mma.untracked == 0
    assert check(run.trace) == []
    assert run.trace.warnings == ()


def test_places_and_barriers_come_from_the_spec(tmp_path):
    run = read(tmp_path, by_hand())
    (site,) = [site for file in run.manifest.files if file.path == "ring.py" for site in file.sites]
    assert (site.span.line, site.text, site.method, site.barrier) == (31, "k.wait()", "wait", "K")
    (wait,) = [row for row in run.trace.kernel.instances if row.kind == "wait" and row.side == "full"]
    assert (wait.barrier, wait.role) == (1, "mma")
    (work,) = [row for row in run.trace.kernel.instances if row.kind == "work"]
    assert work.barrier == 0
    assert {event.kind for event in run.trace.lanes[1].events if event.instance == work.number} == {
        EventKind.BEGIN,
        EventKind.END,
    }


def test_a_flat_buffer_of_32_bit_clocks_may_wrap(tmp_path):
    raw = np.where(SLOTS == 0, 0, SLOTS + (1 << 32) - 130).astype(np.uint32)  # the clock passes 2^32 at 130
    assert not raw.all()
    assert (raw[SLOTS == 130 + 10] == 10).all()
    same = read(tmp_path, by_hand(), raw.reshape(-1).view(np.int32)).trace
    assert same.lanes == read(tmp_path, by_hand()).trace.lanes


def test_an_offset_moves_the_end_by_iterations(tmp_path):
    """Work from the wait of iteration 1 to the release of iteration 2, and of no other."""
    span = {"role": 1, "name": "two tiles", "state": "active", "start_evt": 4, "end_evt": 5, "offset": 1, "its": [1]}
    spec = by_hand(markers=[])
    spec["spans"][2] = span
    _, mma = analyse(read(tmp_path, spec).trace).warps
    assert worked(mma) == [(40, 105)]


def test_an_arrow_gives_both_its_ends_the_barrier(tmp_path):
    spec = by_hand(arrows=[{"from": ["load", "commit"], "to": ["mma", "wait_end"], "barrier": "K", "side": "full"}])
    del spec["spans"][1]["barrier"], spec["markers"][0]["barrier"], spec["markers"][0]["side"]
    instances = read(tmp_path, spec).trace.kernel.instances
    assert {(row.kind, row.side, row.barrier) for row in instances if row.side == "full"} == {
        ("wait", "full", 1),
        ("signal", "full", 1),
    }


def test_an_arrow_may_begin_where_a_wait_arrives_itself(tmp_path):
    """Who takes part in a named barrier arrives when it enters."""
    spec = by_hand(arrows=[{"from": ["load", "acq"], "to": ["mma", "wait_end"], "barrier": "B"}])
    spec["barriers"].append({"number": 2, "label": "B"})
    for span in spec["spans"][:2]:
        span |= {"barrier": None, "side": "named"}
    spec["markers"] = []
    instances = read(tmp_path, spec).trace.kernel.instances
    assert {(row.side, row.barrier) for row in instances if row.kind == "wait"} == {("named", 2)}


def test_an_arrow_between_two_names_of_one_barrier_needs_records_that_say_which_it_is(tmp_path):
    arrow = {"from": ["load", "commit"], "to": ["mma", "wait_end"], "barrier": "K", "side": "full"}
    spec = by_hand(arrows=[arrow])
    spec["barriers"].append({"number": 2, "label": "WG1+"})
    spec["markers"][0] |= {"barrier": "WG1+"}
    assert "another barrier" in refused(tmp_path, spec).message
    spec["markers"][0] |= {"payload": "barrier-id"}
    (commit,) = [
        row for row in read(tmp_path, spec).trace.kernel.instances if row.role == "load" and row.kind == "signal"
    ]
    assert commit.barrier == 2


def test_several_roles_of_one_name_and_warps_as_given(tmp_path):
    spec = by_hand(
        shape=[3, 6, 3], roles=[{"name": "load", "warp": 8}, {"name": "mma", "warp": 1}, {"name": "mma", "warp": 0}]
    )
    run = read(tmp_path, spec, np.concatenate([SLOTS, SLOTS[1:]]))
    timeline = analyse(run.trace)
    assert [(warp.warp, warp.role) for warp in timeline.warps] == [(0, "mma"), (1, "mma"), (8, "load")]
    assert [(role.role, role.warps) for role in timeline.roles] == [("mma", (0, 1)), ("load", (8,))]
    assert waits(timeline.warps[0]) == waits(timeline.warps[1]) == [(5, 10), (40, 40), (70, 75)]


def test_nanoseconds_are_said(tmp_path):
    trace = read(tmp_path, by_hand(clock={"unit": "ns", "step": 32})).trace
    assert trace.unit == analyse(trace).unit == "ns"
    (note,) = trace.warnings
    assert "nanosecond" in note
    assert "32" in note


def test_slots_that_nothing_names_are_said(tmp_path):
    spec = by_hand()
    del spec["spans"][0]
    trace = read(tmp_path, spec).trace
    assert [note for note in trace.warnings if "(acq)" in note and "3 records are left out" in note]
    assert [note for note in trace.warnings if "(acq_end)" in note]


def test_spans_without_their_end_are_said_and_not_drawn(tmp_path):
    slots = SLOTS.copy()
    slots[1, 4, 2] = 0
    trace = read(tmp_path, by_hand(), slots).trace
    _, mma = analyse(trace).warps
    assert waits(mma) == [(5, 10), (40, 40)]
    assert any("'K wait' starts once without its end" in note for note in trace.warnings)


def test_a_row_without_records_is_said(tmp_path):
    slots = SLOTS.copy()
    slots[0] = 0
    trace = read(tmp_path, by_hand(), slots).trace
    assert [lane.warp for lane in trace.lanes] == [1]
    assert "row 0 (load) holds no record" in trace.warnings


def test_records_that_share_a_clock_keep_the_order_of_their_loop(tmp_path):
    """A release and the next wait on one clock: with one stage, the other order would lose the hold of the release."""
    slots = np.zeros((1, 3, 2), np.int64)
    slots[0] = [[10, 20], [20, 30], [30, 40]]  # wait 10-20, released at 30; wait 20-30, released at 40
    slots[0, 0, 1] = slots[0, 1, 1] = 30  # the second wait takes no time and stands on the clock of the release
    wait = {
        "role": 0,
        "name": "w",
        "state": "stall",
        "start_evt": 0,
        "end_evt": 1,
        "barrier": "K",
        "side": "full",
        "stage": 0,
    }
    release = {"role": 0, "evt": 2, "name": "r", "barrier": "K", "side": "empty", "stage": 0}
    spec = by_hand(
        shape=[1, 3, 2],
        roles=[{"name": "mma"}],
        events=[{"name": name} for name in "abc"],
        barriers=[{"number": 1, "label": "K", "stages": 1}],
        spans=[wait],
        markers=[release],
    )
    (mma,) = analyse(read(tmp_path, spec, slots).trace).warps
    assert worked(mma) == [(10, 20), (20, 30)]


@pytest.mark.parametrize(
    ("change", "place", "says"),
    [
        ({"version": 2}, "$.version", "version 2"),
        ({"shape": [2, 5, 3]}, "$.events", "6 entries, where shape[1] is 5"),
        ({"shape": [3, 6, 3]}, "$.roles", "2 entries"),
        ({"shape": [2, 6]}, "$.shape", "length 3"),
        ({"colour": "red"}, "", "unknown field `colour`"),
        ({"roles": [{"name": "load"}, {"name": "mma", "wrap": 1}]}, "$.roles[1]", "unknown field `wrap`"),
        ({"roles": [{"name": "load", "warp": 1}, {"name": "mma"}]}, "$.roles[1].warp", "twice"),
        ({"barriers": [{"number": 1, "label": "K"}, {"number": 1, "label": "V"}]}, "$.barriers[1].number", "twice"),
        ({"barriers": [{"number": 1, "label": "K"}, {"number": 2, "label": "K"}]}, "$.spans[0].barrier", "2 barriers"),
        ({"barriers": []}, "$.spans[0].barrier", "no barrier 'K'"),
        ({"events": [{"name": "x"}] * 6}, "$.events[1].name", "twice"),
        ({"clock": {"unit": "us"}}, "$.clock.unit", "us"),
        ({"clock": {"mhz": -1.0}}, "$.clock.mhz", "> 0"),
    ],
)
def test_a_spec_that_is_wrong_is_refused_with_its_place(tmp_path, change, place, says):
    found = refused(tmp_path, by_hand(**change))
    assert found.code == "AS6010"
    assert place in found.message
    assert says in found.message


def changed(group, index, **fields):
    spec = by_hand()
    spec[group][index] |= fields
    return spec


@pytest.mark.parametrize(
    ("spec", "place", "says"),
    [
        (changed("spans", 0, role=2), "$.spans[0].role", "no row 2: the buffer has 2"),
        (changed("spans", 0, role="loader"), "$.spans[0].role", "no role 'loader'; there are load, mma"),
        (changed("spans", 0, role=-1), "$.spans[0].role", ">= 0"),
        (changed("spans", 1, end_evt=6), "$.spans[1].end_evt", "no event 6: the buffer has 6"),
        (changed("spans", 1, start_evt="waiting"), "$.spans[1].start_evt", "no event 'waiting'"),
        (changed("spans", 1, start_evt="wait_end"), "$.spans[1].end_evt", "another slot"),
        (changed("spans", 1, its=[0, 3]), "$.spans[1].its[1]", "no iteration 3: the buffer has 3"),
        (changed("spans", 1, state="busy"), "$.spans[1].state", "busy"),
        (changed("spans", 1, side="left"), "$.spans[1].side", "left"),
        (changed("spans", 1, barrier=9), "$.spans[1].barrier", "number 9"),
        (changed("spans", 2, barrier="K", start_evt="wait"), "$.spans[2]", "leave the barrier out"),
        (
            changed("spans", 2, role="mma", state="stall", start_evt="wait"),
            "$.spans[2]",
            "$.spans[1] has the same slots",
        ),
        (changed("markers", 0, evt=17), "$.markers[0].evt", "no event 17"),
        (changed("markers", 1, role="load", evt="commit", side="full"), "$.markers[1]", "$.markers[0]"),
        (
            changed("markers", 0, instance=1) | {"spans": changed("spans", 0, instance=1)["spans"]},
            ".instance",
            "instance 1",
        ),
        (by_hand(arrows=[{"from": [0, 3], "to": [1, 4], "barrier": 1}]), "$.arrows[0].from", "no marker"),
        (by_hand(arrows=[{"from": [0, 2], "to": [1, 3], "barrier": 1}]), "$.arrows[0].to", "no stall span ends"),
        (by_hand(arrows=[{"from": [0, 2], "to": [1], "barrier": 1}]), "$.arrows[0].to", "length 2"),
        (
            by_hand(
                barriers=[{"number": 1, "label": "K"}, {"number": 2, "label": "V"}],
                arrows=[{"from": [0, 2], "to": [1, 4], "barrier": "V"}],
            ),
            "$.arrows[0].from",
            "another barrier",
        ),
    ],
)
def test_an_entry_that_is_wrong_is_refused_with_its_place(tmp_path, spec, place, says):
    found = refused(tmp_path, spec)
    assert found.code == "AS6010"
    assert place in found.message
    assert says in found.message


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 1}', "\ufffe", '"spec"'])
def test_what_is_no_spec_is_refused(tmp_path, text):
    assert refused(tmp_path, text).code == "AS6010"


def test_a_spec_of_other_bytes_is_refused(tmp_path):
    with pytest.raises(AutostampError) as error:
        decode_spec(b"\xff\xfe{}")
    assert error.value.diagnostic.code == "AS6010"


def test_files_that_are_not_there_are_named(tmp_path):
    spec, buffer = saved(tmp_path, by_hand())
    for missing in ((tmp_path / "no.json", buffer), (spec, tmp_path / "no.npz")):
        with pytest.raises(AutostampError) as error:
            read_spec(*missing)
        assert error.value.diagnostic.code == "AS9002"
        assert "no." in error.value.diagnostic.message


def test_a_folder_is_neither(tmp_path):
    spec, buffer = saved(tmp_path, by_hand())
    for pair, code in (((tmp_path, buffer), "AS6010"), ((spec, tmp_path), "AS6001")):
        with pytest.raises(AutostampError) as error:
            read_spec(*pair)
        assert error.value.diagnostic.code == code


def test_an_archive_that_is_none_is_refused(tmp_path):
    spec, buffer = saved(tmp_path, by_hand())
    for data in (b"", b"noise", buffer.read_bytes()[:200]):
        buffer.write_bytes(data)
        with pytest.raises(AutostampError) as error:
            read_spec(spec, buffer)
        assert error.value.diagnostic.code == "AS6001"


def test_a_bare_array_is_the_slots(tmp_path):
    spec, _ = saved(tmp_path, by_hand())
    np.save(tmp_path / "slots.npy", SLOTS)
    assert read_spec(spec, tmp_path / "slots.npy").trace.lanes == read(tmp_path, by_hand()).trace.lanes


@pytest.mark.parametrize(
    ("slots", "arrays", "says"),
    [
        (SLOTS[:, :, :2], {}, "has shape [2, 6, 2], $.shape of the spec is [2, 6, 3]"),
        (SLOTS.reshape(-1)[:-1], {}, "has shape [35]"),
        (SLOTS.reshape(6, 2, 3), {}, "has shape [6, 2, 3]"),
        (SLOTS.astype(np.float64), {}, "float64"),
        (SLOTS.astype(np.int16), {}, "int16"),
        (None, {"other": SLOTS}, "holds no array 'slots'"),
        (SLOTS, {"entry": np.zeros(3, np.int64)}, "'entry' is int64[3]"),
        (SLOTS, {"entry": np.zeros(2, np.uint32)}, "'entry' is uint32, the slots are int64"),
        (SLOTS, {"lost": np.zeros(2, np.float32)}, "'lost' is float32"),
        (SLOTS, {"payload": np.zeros((2, 6, 2), np.uint16)}, "'payload' is uint16"),
        (SLOTS, {"order": np.zeros((2, 6, 3), np.int64)}, "'order' is int64"),
    ],
)
def test_a_buffer_that_is_not_the_specs_is_refused(tmp_path, slots, arrays, says):
    found = refused(tmp_path, by_hand(), slots, **arrays)
    assert found.code == "AS6011"
    assert says in found.message


def test_an_empty_buffer_is_refused(tmp_path):
    assert refused(tmp_path, by_hand(), np.zeros_like(SLOTS)).code == "AS6012"
    nothing = by_hand(shape=[2, 6, 0])
    assert refused(tmp_path, nothing, np.zeros((2, 6, 0), np.int64)).code == "AS6012"


@pytest.mark.parametrize(
    ("slot", "clock", "says"),
    [
        ((0, 2, 1), -5, "slots[0, 2, 1]: its clock is negative (-5)"),
        ((0, 2, 2), 119, "slots[0, 2, 2] (load, commit): its clock is 1 earlier than that of iteration 1"),
        ((1, 4, 0), 104, "slots[1, 4, 0] (mma, wait_end): its clock is 1 earlier than that of event 3, iteration 0"),
        ((1, 5, 0), 109, "slots[1, 5, 0] (mma, release): its clock is 1 earlier than that of event 4, iteration 0"),
    ],
)
def test_clocks_that_go_backwards_are_refused_with_their_slot(tmp_path, slot, clock, says):
    slots = SLOTS.copy()
    slots[slot] = clock
    found = refused(tmp_path, by_hand(), slots)
    assert found.code == "AS6013"
    assert says in found.message


def test_a_negative_entry_is_refused(tmp_path):
    found = refused(tmp_path, by_hand(), entry=np.array([1, -1]))
    assert found.code == "AS6013"
    assert "entry[1]" in found.message


def test_a_buffer_of_another_manifest_or_trace_is_refused(tmp_path):
    spec = by_hand(manifest="a" * 64, trace=1)
    name = np.frombuffer(b"b" * 64, np.uint8)
    assert refused(tmp_path, spec, manifest_sha256=name).code == "AS6002"
    found = refused(tmp_path, spec, trace=np.array(2))
    assert found.code == "AS6002"
    assert "kernel trace 2" in found.message
    assert read(tmp_path, spec, manifest_sha256=np.frombuffer(b"a" * 64, np.uint8), trace=np.array(1)).trace.lanes


def arrow(source, target):
    """An arrow of the ring kernel's K, from (warp, instance, visit, cycles) to another."""
    return Arrow(End(*source), End(*target), 1, "full", -1, 0)


def ring():
    kernel = ring_kernel()
    return decode_region(ring_region(kernel), kernel), ring_manifest(kernel)


def test_a_trace_is_written_with_its_slots_and_what_they_mean(tmp_path):
    """The ring of `run_ring`: the producer acquires at 0-0, 10-10, 20-40, 50-70, commits at 10, 20, 50, 80."""
    trace, manifest = ring()
    commits, exits = (10, 20, 50, 80), (10, 40, 70, 100)
    arrows = [arrow((0, COMMIT, it, commits[it]), (1, CONSUME, it, exits[it])) for it in range(4)]
    arrows += [arrow((1, RELEASE, it, 40), (0, ACQUIRE, it + 2, 40)) for it in range(2)]
    spec = spec_of(trace, analyse(trace), manifest, arrows)
    assert spec.shape == (2, 8, 4)
    assert [(row.name, row.warp) for row in spec.roles] == [("load", 0), ("mma", 1)]
    stall = next(span for span in spec.spans if span.state == "stall" and span.role == 0)
    assert (stall.start_evt, stall.end_evt, stall.barrier, stall.side, stall.line) == (0, 1, "K", "empty", 12)
    hold = next(span for span in spec.spans if span.state == "active" and span.role == 1)
    assert (hold.start_evt, hold.end_evt, hold.offset, hold.its, hold.barrier) == (4, 5, 0, None, "K")
    assert [(a.source, a.target, a.offset, a.its) for a in spec.arrows] == [
        ((0, 2), (1, 4), 0, None),
        ((1, 5), (0, 1), 2, None),
    ]
    # What no warp visited is kept, on the rows of its role.
    assert [span.role for span in spec.spans if span.barrier == "epilogue"] == [1]
    write_spec(tmp_path / "s.json", tmp_path / "s.npz", spec, trace)
    slots = np.load(tmp_path / "s.npz")["slots"]
    # A plotter's formula on the flat array; one cycle later than the trace, because 0 is unused.
    assert slots.reshape(-1)[(0 * 8 + 2) * 4 + 3] == 80 + 1
    assert slots.reshape(-1)[(1 * 8 + 4) * 4 + 2] == 70 + 1


def test_arrows_that_hold_for_some_iterations_name_them():
    trace, manifest = ring()
    commits, exits = (10, 20, 50, 80), (10, 40, 70, 100)
    arrows = [arrow((0, COMMIT, it, commits[it]), (1, CONSUME, it, exits[it])) for it in (0, 2)]
    (found,) = spec_of(trace, analyse(trace), manifest, arrows).arrows
    assert found.its == (0, 2)


@pytest.mark.parametrize("run", RUNS, ids=lambda run: f"{run.parts[-3]}-{run.name}")
def test_a_recorded_run_comes_back_as_it_was(tmp_path, run):
    data = load_run(run)
    (trace,) = data.traces.values()
    timeline = analyse(trace)
    spec, buffer = tmp_path / "s.json", tmp_path / "s.npz"
    write_spec(spec, buffer, spec_of(trace, timeline, data.manifest, (), data.facts), trace)
    back = read_spec(spec, buffer)
    assert back.trace.lanes == trace.lanes
    assert back.trace.kernel.barriers == trace.kernel.barriers
    again = analyse(back.trace)
    assert again.warps == timeline.warps
    assert again.sites == timeline.sites
    assert again.roles == timeline.roles
    assert again.never_visited == timeline.never_visited
    assert (back.facts, back.trace.sm_mhz) == (data.facts, trace.sm_mhz)


def test_a_trace_in_nanoseconds_comes_back_as_it_was(tmp_path):
    """Many of its records share a time: `order` keeps them apart."""
    run = read_iket(ROOT / "tests/fixtures/iket/fa4_forward_one_cta.json.gz")
    (trace,) = run.traces
    spec = spec_of(trace, analyse(trace), run.manifest)
    assert (spec.clock.unit, spec.clock.step, spec.clock.mhz) == ("ns", 32, None)
    write_spec(tmp_path / "s.json", tmp_path / "s.npz", spec, trace)
    back = read_spec(tmp_path / "s.json", tmp_path / "s.npz").trace
    assert back.lanes == trace.lanes
    assert (back.unit, back.warnings) == (trace.unit, trace.warnings)
    assert analyse(back).warps == analyse(trace).warps


def test_nothing_is_left_of_a_pair_that_cannot_be_written(tmp_path):
    trace, manifest = ring()
    spec = spec_of(trace, analyse(trace), manifest)
    (tmp_path / "taken.json").mkdir()
    with pytest.raises(AutostampError) as error:
        write_spec(tmp_path / "taken.json", tmp_path / "s.npz", spec, trace)
    assert error.value.diagnostic.code == "AS7001"
    assert [path.name for path in tmp_path.iterdir()] == ["taken.json"]


def test_the_written_spec_has_one_entry_a_line_and_reads_back():
    trace, manifest = ring()
    spec = spec_of(trace, analyse(trace), manifest)
    text = encode_spec(spec)
    assert decode_spec(text) == spec
    assert len(text.splitlines()) > len(spec.spans) + len(spec.events) + len(spec.markers)


def test_the_shipped_schema_is_that_of_the_types():
    shipped = json.loads((ROOT / "autostamp/report/assets/spec.schema.json").read_text(encoding="utf-8"))
    assert shipped == schema()
    fields = shipped["$defs"]["SlotSpec"]
    assert fields["additionalProperties"] is False
    assert set(fields["required"]) == {"version", "shape", "roles", "events", "spans"}
    assert set(shipped["$defs"]["SpecArrow"]["required"]) == {"from", "to", "barrier"}
