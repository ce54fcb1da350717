# SPDX-License-Identifier: Apache-2.0
"""The parts of `benchmarks/overhead.py` that need no GPU: statistics, tables, record counts, and keeping two builds apart."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from autostamp.model.options import RecordOptions
from autostamp.runtime import layout
from autostamp.runtime.buffer import NoMemory
from autostamp.runtime.recorder import RECORDER
from benchmarks import overhead
from benchmarks.overhead_cases import Build, Builds, Shape, all_cases, count_records, flash_caches
from benchmarks.overhead_statistics import Round, as_json, compare, launches_for, percentile, spread_of, table
from benchmarks.overhead_timing import DIFFERS, EQUAL, VARIES, Result
from tests.simulator.region import Stamp, WarpLog, write_region


def test_ratio_of_a_round_cancels_a_steady_drift():
    # The machine slows down by 1 with every time taken; stamped is 1.1 times clean at rest.
    assert Round(100, 111, 112, 103).ratio == pytest.approx(223 / 203)
    assert Round(100.0, 110.0 * 1.01, 110.0 * 1.02, 100.0 * 1.03).ratio == pytest.approx(1.1, rel=1e-4)


def test_control_is_clean_over_clean():
    assert Round(100, 300, 300, 102).control == pytest.approx(1.02)


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        ([5], 0.5, 5),
        ([1, 2], 0.5, 1.5),
        ([0, 10], 0.1, 1),
        ([0, 1, 2, 3], 1, 3),
        ([0, 1, 2, 3], 0, 0),
        (range(11), 0.9, 9),
    ],
)
def test_percentiles_interpolate_between_ranks(values, share, expected):
    assert percentile(values, share) == pytest.approx(expected)
    assert percentile(values, share) == pytest.approx(float(np.percentile(values, 100 * share)))


def test_spread_does_not_depend_on_the_order():
    spread = spread_of([9, 1, 5, 3, 7, 2, 8, 4, 6, 10, 0])
    assert (spread.low, spread.p10, spread.median, spread.p90, spread.high) == (0, 1, 5, 9, 10)


def test_one_outlier_moves_no_median():
    rounds = [Round(100, 110, 110, 100)] * 9 + [Round(100, 990, 110, 100)]
    found = compare(rounds)
    assert found.ratio.median == pytest.approx(1.1)
    assert found.ratio.high == pytest.approx(5.5)
    assert found.stamped.median == 110
    assert found.control.median == 1


def test_comparison_takes_both_times_of_a_round():
    found = compare([Round(1, 10, 20, 3), Round(5, 30, 40, 7)])
    assert (found.clean.low, found.clean.median, found.clean.high) == (1, 4, 7)
    assert (found.stamped.low, found.stamped.median, found.stamped.high) == (10, 25, 40)


def test_json_keeps_single_rounds():
    rounds = [Round(1, 2, 3, 4)]
    content = json.loads(json.dumps(as_json(compare(rounds), rounds)))
    assert content["rounds"] == [[1, 2, 3, 4]]
    assert content["ratio"]["median"] == 1
    assert set(content["clean"]) == {"median", "p10", "p90", "low", "high"}


@pytest.mark.parametrize(
    ("microseconds", "expected"), [(45, 44), (250, 8), (2000, 1), (9000, 1), (1, 64), (0, 64), (-1, 64)]
)
def test_launches_fill_a_measurement(microseconds, expected):
    assert launches_for(microseconds, 2000, 64) == expected


def test_table_is_aligned_markdown():
    assert table(("case", "µs"), [("a", "1.0"), ("long", "100.0")]).splitlines() == [
        "| case |    µs |",
        "| ---- | ----: |",
        "| a    |   1.0 |",
        "| long | 100.0 |",
    ]


def test_records_and_losses_are_counted():
    stamps = [Stamp(clock, 1) for clock in range(10, 15)]
    logs = [WarpLog(0, 0, 90, stamps=stamps), WarpLog(3, 0, 90, stamps=stamps[:2], single=stamps[:1])]
    assert count_records(write_region(4, logs, 7)) == (4 + 2 + 1, 1)


def test_losses_of_a_lane_that_was_not_released_are_unknown():
    assert count_records(write_region(4, [WarpLog(0, 0, None, stamps=[Stamp(1, 1)] * 9)], 7)) == (4, 0)
    assert count_records(np.zeros(layout.region_bytes(4), np.uint8)) == (0, 0)


@pytest.fixture
def flash(monkeypatch):
    """Stands for FlashAttention: two functions with a cache of either kind, and one without."""
    forward = SimpleNamespace(compile_cache=SimpleNamespace(cache={}))
    backward = SimpleNamespace(compile_cache={})
    module = SimpleNamespace(_fwd=forward, _bwd=backward, other=len)
    monkeypatch.setitem(sys.modules, "flash_attn.cute.interface", module)
    return module


def test_caches_are_found_by_their_owner(flash):
    assert flash_caches() == {"_fwd": {}, "_bwd": {}}
    assert flash_caches()["_fwd"] is flash._fwd.compile_cache.cache


def test_no_flash_attention_is_no_cache(monkeypatch):
    monkeypatch.delitem(sys.modules, "flash_attn.cute.interface", raising=False)
    assert flash_caches() == {}


def test_builds_are_kept_apart(flash):
    forward, backward = flash._fwd.compile_cache.cache, flash._bwd.compile_cache
    options = RecordOptions(capacity=16)
    builds = Builds(NoMemory(), options, case="first")
    with builds.use(Build.CLEAN) as kept:
        assert not RECORDER.is_open
        forward["key"] = "clean forward"
        kept.setdefault("gemm", {})["gemm"] = "clean gemm"
    builds.case = "second"
    with builds.use(Build.STAMPED) as kept:
        assert RECORDER.is_open
        assert RECORDER.options is options
        assert forward == {}
        assert "gemm" not in kept
        forward["key"] = "stamped forward"
        backward["other"] = "stamped backward"
    assert not RECORDER.is_open
    with builds.use(Build.CLEAN) as kept:
        assert forward == {"key": "clean forward"}
        assert backward == {}
        assert kept["gemm"] == {"gemm": "clean gemm"}
    with builds.use(Build.STAMPED):
        assert forward == {"key": "stamped forward"}
    assert builds.made_for == {("_fwd", "key"): "first", ("gemm", "gemm"): "first", ("_bwd", "other"): "second"}


def test_the_recorder_is_closed_after_a_failure(flash):
    builds = Builds(NoMemory(), RecordOptions())
    with pytest.raises(ZeroDivisionError), builds.use(Build.STAMPED):
        flash._fwd.compile_cache.cache["key"] = 1 / 0
    assert not RECORDER.is_open


def test_cases_have_names_of_their_own():
    names = [case.name for case in all_cases()]
    assert len(set(names)) == len(names) == 15
    assert str(Shape(1, 128, 4096, 1, 128)) == "1x128x4096x1x128"
    assert names[0] == "FA4 forward 1x128x4096x1x128 bf16"


def result(name="case", **fields):
    rounds = [Round(100, 110, 110, 100)] * 3
    row = {"rounds": rounds, "method": "CUDA graphs", "outputs": {"out": EQUAL, "lse": EQUAL}, "records": 1234}
    return Result(name, **row | fields)


def test_report_shows_times_outputs_and_failures():
    results = [
        result(),
        result("backward", outputs={"dq": VARIES, "dk": EQUAL, "dv": EQUAL}),
        Result("broken", error="ValueError: no"),
    ]
    resources = [
        {
            "case": "case",
            "owner": "fwd",
            "kernel": "k",
            "clean": {"registers": 168, "spill_bytes": 0, "instructions": 1591},
            "stamped": {"registers": 168, "spill_bytes": 8, "instructions": 1990},
        }
    ]
    text = overhead.report("GPU", results, resources)
    lines = text.splitlines()
    assert lines[0] == "GPU: 3 rounds A/B/B/A of each case, by CUDA graphs"
    cells = [cell.strip() for cell in next(line for line in lines[4:] if line.startswith("| case ")).split("|")[1:-1]]
    assert cells == [
        "case",
        "100.0",
        "110.0",
        "1.100",
        "1.100-1.100",
        "1.100-1.100",
        "1.000-1.000",
        "1,234",
        "0",
        "equal",
    ]
    assert "dq varies; dk, dv equal" in text
    assert "1,591 → 1,990" in text
    assert lines[-1] == "FAILED broken: ValueError: no"


def test_a_case_is_good_when_it_ran_and_nothing_differs():
    assert result().is_good
    assert result(outputs={"dq": VARIES}).is_good
    assert not result(outputs={"dq": DIFFERS}).is_good
    assert not result(error="x").is_good
    assert result().as_json()["ratio"]["median"] == pytest.approx(1.1)
    assert "ratio" not in Result("broken", error="x").as_json()


def test_an_unknown_case_is_wrong_usage(capsys):
    assert overhead.main(["--case", "no such"]) == 2
    assert "no case has such a name" in capsys.readouterr().err


def test_cases_can_be_listed_and_chosen(capsys):
    assert overhead.main(["--list", "--case", "forward*causal"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "FA4 forward 1x128x4096x1x128 causal bf16",
        "FA4 forward 1x4096x4096x16x128 causal bf16",
    ]
