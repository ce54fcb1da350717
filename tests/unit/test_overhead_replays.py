# SPDX-License-Identifier: Apache-2.0
"""`benchmarks/overhead.py --placement`: the table, and what counts as good."""

from __future__ import annotations

from typing import Any

from benchmarks.overhead_replays import Replay, is_good, report


def case(ratio: float, outputs: str = "equal", error: str = "") -> dict[str, Any]:
    spread = {"median": ratio, "p10": ratio - 0.001, "p90": ratio + 0.001}
    times = {"clean": {"median": 100.0}, "stamped": {"median": 100.0 * ratio}}
    measured = {} if error else {"ratio": spread, **times}
    return {"name": "FA4 forward", "error": error, "outputs": {"O": outputs}, **measured}


def replays(*cases: dict[str, Any]) -> list[Replay]:
    return [Replay(number, 10 * number, {"cases": [each]}) for number, each in enumerate(cases)]


def test_the_single_run_stands_beside_the_sets() -> None:
    lines = report(replays(case(1.13), case(1.01))).splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    assert cells[0] == ["FA4 forward", "all sites, one run", "100.0", "113.0", "1.130", "1.129-1.131", "equal"]
    assert cells[1] == ["FA4 forward", "set 1, 10 sites", "100.0", "101.0", "1.010", "1.009-1.011", "equal"]


def test_a_set_that_failed_says_why() -> None:
    (line,) = report(replays(case(1.0, error="RuntimeError: no"))).splitlines()[2:]
    assert "RuntimeError: no" in line


def test_all_must_run_and_be_equal() -> None:
    assert is_good(replays(case(1.13), case(1.01)))
    assert not is_good(replays(case(1.13), case(1.01, outputs="DIFFERS")))
    assert not is_good(replays(case(1.13), case(1.0, error="no")))
    assert not is_good([*replays(case(1.13)), Replay(1, 4, {"cases": []})])
    assert not is_good([])
