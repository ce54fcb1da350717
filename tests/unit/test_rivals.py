# SPDX-License-Identifier: Apache-2.0
"""The comparison with other profilers: what their scripts hand over, its arithmetic, and the table in docs/profilers.md."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.rivals import iket_trace
from benchmarks.rivals.__main__ import report
from benchmarks.rivals.measured import MARK, Measured, read, rounds_of

ROOT = Path(__file__).parents[2]
RESULTS = json.loads((ROOT / "benchmarks/results/rivals_h200.json").read_text("utf-8"))


def test_the_table_is_what_was_measured():
    assert report(RESULTS["tools"]) in (ROOT / "docs/profilers.md").read_text("utf-8")


def test_the_last_object_that_a_script_prints_counts(capsys):
    Measured("tool", events=1).print()
    print("talk")
    Measured("tool", events=2).print()
    found = read(capsys.readouterr().out)
    assert found is not None
    assert (found["tool"], found["events"], found["error"]) == ("tool", 2, "")
    assert read(f"talk\nnot {MARK}") is None


def test_rounds_are_clean_stamped_stamped_clean():
    assert rounds_of(lambda: 1.0, lambda: 2.0, 2) == [[1.0, 2.0, 2.0, 1.0]] * 2


def test_a_row_is_plain_arithmetic():
    """(12 + 13) / (10 + 10) = 1.25; (3 + 3 - 1 - 1) / 2 = 2 µs more, at 1000 MHz 2000 cycles, for 100 stamps: 20 each."""
    measured = Measured(
        "tool", "1", "kernel", "all", rounds=[[10, 12, 13, 10]], events=1234, bytes_per_event=8, step_ns=32
    )
    measured.loop, measured.loop_stamps, measured.sm_mhz = [[1, 3, 3, 1]], 100, 1000
    row = report([measured.as_json()]).splitlines()[-1]
    assert [cell.strip() for cell in row.strip("|").split("|")] == [
        "tool 1", "kernel", "10.0", "1.250 (1.250-1.250)", "1,234", "8.0", "20 (20-20)", "32", "all",
    ]  # fmt: skip


def test_a_tool_that_did_not_run_says_why():
    row = report([Measured("tool", error="ValueError: no room").as_json()]).splitlines()[-1]
    assert "did not run: ValueError: no room" in row


def test_a_range_is_two_events_and_the_step_divides_all_times():
    launch = {
        "ranges": [{"startTs": 1000, "endTs": 1064}, {"startTs": 1096, "endTs": 1128}],
        "markers": [{"timestamp": 1160}],
    }
    assert iket_trace.of_launch(launch) == iket_trace.Summary(5, 32.0)


def test_a_folder_without_a_trace_is_refused(tmp_path):
    (tmp_path / "other.json").write_text('{"launches": []}')
    with pytest.raises(ValueError, match="holds no trace"):
        iket_trace.summarise(tmp_path)
