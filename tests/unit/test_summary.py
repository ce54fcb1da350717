# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from dataclasses import replace

import pytest

from autostamp.analysis import analyse
from autostamp.model.manifest import Manifest
from autostamp.model.run import MachineFacts
from autostamp.model.timeline import Timeline
from autostamp.report.places import places_of
from autostamp.report.summary import as_text
from autostamp.report.summary_json import as_object
from autostamp.runtime.decode import decode_region
from tests.simulator.kernel import Simulation
from tests.simulator.region import write_region
from tests.simulator.tables import (
    CONSUME,
    EPILOGUE,
    NO_PASS,
    consumer,
    producer,
    ring_kernel,
    ring_manifest,
    ring_region,
)

NO_FACTS = MachineFacts()


def ring(facts=NO_FACTS, **arguments) -> tuple[Timeline, Manifest, MachineFacts]:
    """The ring kernel with its timer stopped, so that the clock is unknown unless `facts` has it."""
    kernel = ring_kernel()
    trace = decode_region(ring_region(kernel, **arguments), kernel)
    return replace(analyse(trace, latencies=NO_PASS), sm_mhz=0.0), ring_manifest(kernel), facts


def table(text: str, title: str) -> list[list[str]]:
    """Rows of a table, split at gaps of two spaces or more."""
    lines = text.split("\n")
    rows = lines[lines.index(title) + 1 :]
    return [[cell.strip() for cell in row.split("  ") if cell.strip()] for row in rows[: rows.index("")]]


def test_the_verdict_comes_first():
    lines = as_text(*ring()).split("\n")
    assert lines[0] == "ring (kernel trace 1), CTA (0, 0, 0) on SM 0: 2 warps (load 1, mma 1)"
    assert lines[1] == "130 cycles (SM clock unknown); no record lost"
    # 210 warp-cycles: 50 stalled, 160 held.
    assert lines[2] == "of all warp time: 23.8% stall, 76.2% active, 0.0% untracked"
    assert lines[3] == "most waited for: K producer_acquire at ring.py:12 by load, 40 warp-cycles = 50.0% of the role"


def test_time_is_given_where_the_clock_is_known():
    # 130 cycles at 1300 MHz are 0.1 microseconds.
    text = as_text(*ring(MachineFacts(gpu="Test GPU", driver="580.1", sm_mhz=1300.0, recorded_at="2026-01-02")))
    assert "130 cycles = 0.10 µs at 1,300 MHz" in text
    assert "recorded on Test GPU, driver 580.1, 2026-01-02" in text


def test_the_clock_measured_in_the_trace_goes_before_that_of_the_machine():
    timeline, manifest, facts = ring(MachineFacts(sm_mhz=1300.0))
    assert "at 1,000 MHz" in as_text(replace(timeline, sm_mhz=1000.0), manifest, facts)


def test_roles_and_warps_have_their_shares():
    text = as_text(*ring())
    assert table(text, "Roles, in warp-cycles") == [
        ["role", "warps", "span", "stall", "pass", "active", "untracked"],
        ["load", "0", "80", "40", "50.0%", "0", "0.0%", "40", "50.0%", "0", "0.0%"],
        ["mma", "1", "130", "10", "7.7%", "0", "0.0%", "120", "92.3%", "0", "0.0%"],
    ]
    assert table(text, "Warps, in cycles")[1] == [
        "0",
        "load",
        "80",
        "40",
        "50.0%",
        "0",
        "0.0%",
        "40",
        "50.0%",
        "0",
        "0.0%",
        "0",
    ]


def test_waits_are_ordered_by_total_and_name_their_source():
    # Acquire 0, 0, 20, 20; consumer 10, 0, 0, 0 (p90 7).
    assert table(as_text(*ring()), "Waits by total stall, in cycles") == [
        ["where", "barrier", "role", "visits", "median", "p10-p90", "longest", "total", "source"],
        ["ring.py:12", "K", "load", "4", "10", "0-20", "20", "40", "pipeline_k.producer_acquire(state)"],
        ["ring.py:31", "K", "mma", "4", "0", "0-7", "10", "10", "pipeline_k.consumer_wait(read_state)"],
    ]


def test_longest_stalls_have_their_stage_and_place_in_time():
    rows = table(as_text(*ring()), "Longest stalls, in cycles")
    assert rows[1] == ["ring.py:12", "K[0]", "load", "0", "2", "20", "40", "20", "pipeline_k.producer_acquire(state)"]
    assert rows[3] == ["ring.py:31", "K[0]", "mma", "1", "0", "0", "10", "10", "pipeline_k.consumer_wait(read_state)"]


def test_top_shortens_the_long_tables_and_says_so():
    text = as_text(*ring(), top=1)
    assert table(text, "Waits by total stall, in cycles")[2] == ["and 1 more"]
    assert len(table(text, "Longest stalls, in cycles")) == 2


def test_what_was_not_reached_or_not_stamped_is_said():
    text = as_text(*ring())
    assert (
        "never visited by the recorded CTA: 1 of 5 instances\n  ring.py:40  epilogue arrive_and_wait  (mma)\n" in text
    )
    assert "recognised and not stamped: 2 calls (AS2101 x 2); `autostamp explain CODE` says why" in text


def test_many_instances_that_were_not_reached_are_cut_and_counted():
    timeline, manifest, facts = ring()
    text = as_text(replace(timeline, never_visited=(1, 2, 3, 4, 5)), manifest, facts, top=2)
    assert "never visited by the recorded CTA: 5 of 5 instances" in text
    assert "  and 3 more\n" in text
    assert "ring.py:31" not in text.split("never visited")[1]


def lossy() -> tuple[Timeline, Manifest, MachineFacts]:
    kernel = ring_kernel(capacity=10)
    return analyse(decode_region(ring_region(kernel), kernel), latencies=NO_PASS), ring_manifest(kernel), NO_FACTS


def test_lost_records_are_loud():
    # Four uses make twelve records a warp, of which a lane of ten loses two; the tenth is an enter.
    text = as_text(*lossy())
    assert text.split("\n")[1].endswith("; 4 records LOST")
    assert "warning: warp 0 lost 2 records: its lane was full, its last part is not shown" in text
    assert "warning: warp 1 entered K consumer_wait at ring.py:31; its exit may be among the lost records" in text
    assert "never visited by the recorded CTA (or only after a lane was full)" in text
    assert table(text, "Warps, in cycles")[1][-1] == "2"


def test_a_hang_names_the_wait_that_never_ended():
    kernel = ring_kernel()
    logs = Simulation(kernel, {0: 0, 1: 0}).run({0: producer(2, 10), 1: consumer(3, 30)})
    trace = decode_region(write_region(kernel.capacity, logs, kernel.signature), kernel)
    text = as_text(analyse(trace, latencies=NO_PASS), ring_manifest(kernel), NO_FACTS)
    assert "warning: warp 1 never released its lane" in text
    assert "warning: warp 1 entered K consumer_wait at ring.py:31; never came out" in text


def test_a_timeline_without_warps_has_no_tables():
    kernel = ring_kernel()
    timeline = analyse(decode_region(write_region(kernel.capacity, [], 0), kernel), latencies=NO_PASS)
    text = as_text(timeline, ring_manifest(kernel), NO_FACTS)
    assert text.startswith("ring (kernel trace 1), CTA (0, 0, 0): 0 warps (none)\n")
    assert "Warps, in cycles" not in text
    assert "5 of 5 instances" in text


@pytest.mark.parametrize("width", [90, 100, 120, 200])
def test_lines_fit_the_width_and_figures_are_never_cut(width):
    timeline, manifest, facts = ring()
    text = as_text(timeline, manifest, facts, width=width)
    start = text.index("Roles")
    source = "pipeline_k.producer_acquire(state)"
    assert all(len(line) <= width for line in text[start:].split("\n")[:-4])
    assert (source in text) == (width > 90)
    assert table(text, "Waits by total stall, in cycles")[1][:8] == [
        "ring.py:12",
        "K",
        "load",
        "4",
        "10",
        "0-20",
        "20",
        "40",
    ]


def test_a_page_too_narrow_for_the_figures_keeps_them():
    assert as_text(*ring(), width=10) == as_text(*ring(), width=80)


def test_plain_text_has_no_escapes_and_a_terminal_gets_bold_headings():
    arguments = ring()
    plain, styled = as_text(*arguments), as_text(*arguments, is_terminal=True)
    assert "\x1b" not in plain
    assert "\x1b[1mWarps, in cycles\x1b[0m" in styled
    assert styled.replace("\x1b[1m", "").replace("\x1b[0m", "") == plain
    assert all(line == line.rstrip() for line in plain.split("\n"))


def test_the_object_is_plain_json_with_a_version():
    found = json.loads(json.dumps(as_object(*ring(MachineFacts(sm_mhz=1300.0))), allow_nan=False))
    assert found["schema_version"] == 1
    assert (found["kernel"], found["trace"], found["block"], found["smid"]) == ("ring", 1, [0, 0, 0], 0)
    assert (found["cycles"], found["us"], found["sm_mhz"], found["lost"]) == (130, pytest.approx(0.1), 1300.0, 0)
    times = {"span": 80, "stall": 40, "passed": 0, "active": 40, "untracked": 0}
    assert found["roles"][0] == {"role": "load", "warps": [0]} | times
    assert found["warps"][1]["stall"] == 10
    assert found["sites"][0] == {
        "instance": 1,
        "site": 1,
        "file": "src/ring.py",
        "line": 12,
        "text": "pipeline_k.producer_acquire(state)",
        "method": "producer_acquire",
        "kind": "wait",
        "side": "empty",
        "barrier": "K",
        "role": "load",
        "warps": [0],
        "count": 4,
        "total": 40,
        "p10": 0.0,
        "median": 10.0,
        "p90": 20.0,
        "longest": 20,
    }
    longest = found["longest"][0]
    assert (longest["start"], longest["end"], longest["cycles"], longest["stage"], longest["visit"]) == (
        20,
        40,
        20,
        0,
        2,
    )
    assert [place["instance"] for place in found["never_visited"]] == [EPILOGUE]
    assert found["skipped"] == {"count": 2, "by_code": {"AS2101": 2}}


def test_what_is_unknown_is_null():
    found = as_object(*ring())
    assert (found["us"], found["sm_mhz"]) == (None, None)
    timeline, manifest, facts = ring()
    bare = as_object(replace(timeline, smid=-1), manifest, facts)
    assert bare["smid"] is None


def test_places_resolve_instances_to_source():
    place = places_of(ring_manifest(), 1)[CONSUME]
    assert (place.file, place.line, place.where) == ("src/ring.py", 31, "ring.py:31")
    assert place.label(1) == "K[1] consumer_wait"
    assert place.label() == "K consumer_wait"
    assert places_of(ring_manifest(), 9) == {}


def test_an_instance_without_its_site_still_has_a_name():
    manifest = ring_manifest()
    bare = replace(manifest, files=())
    place = places_of(bare, 1)[CONSUME]
    assert (place.line, place.text, place.label(0)) == (0, "", "K[0]")
    assert place.where == place.file
    timeline, _, facts = ring()
    assert "Waits by total stall" in as_text(timeline, replace(bare, traces=()), facts)


def test_a_barrier_without_a_name_leaves_the_method():
    manifest = ring_manifest()
    kernel = replace(manifest.traces[0], barriers=())
    assert places_of(replace(manifest, traces=(kernel,)), 1)[CONSUME].label(1) == "consumer_wait"
