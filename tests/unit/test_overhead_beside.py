# SPDX-License-Identifier: Apache-2.0
"""`benchmarks/overhead.py --beside`: single run, replays and other tools in one table, each with its source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.overhead import main
from benchmarks.overhead_beside import Row, rows_of

CASE = {
    "name": "FA4 forward",
    "error": "",
    "clean": {"median": 50.0},
    "ratio": {"median": 1.2, "p10": 1.19, "p90": 1.21},
}


def replayed(ratio: float, keys: tuple[str, ...]) -> dict[str, Any]:
    times = {"rounds": 4, "clean": 50.0, "ratio": ratio, "method": "what the program printed"}
    return {"sites": [[key, "both"] for key in keys], "times": times}


REPLAYS = {
    "name": "FA4 forward",
    "sets": [replayed(1.004, ("a", "b")), replayed(1.018, ("a", "c"))],
    "uncovered": [{"key": "d", "cost": "1.1 of the clean time alone", "code": "AS8126"}],
}
# Two rounds clean, traced, traced, clean: 90 to 60 and 96 to 60, so 1.5 and 1.6.
RIVAL = {
    "tool": "Proton",
    "version": "3",
    "kernel": "matmul",
    "rounds": [[30, 45, 45, 30], [30, 48, 48, 30]],
    "error": "",
}


def written(folder: Path, name: str, content: dict[str, Any]) -> Path:
    path = folder / name
    path.write_text(json.dumps(content))
    return path


def test_each_source_gives_its_rows(tmp_path: Path) -> None:
    (single,) = rows_of(written(tmp_path, "overhead.json", {"cases": [CASE]}))
    assert single == Row("FA4 forward", "autostamp, all sites in one run", 50.0, 60.0, "1.190-1.210", "overhead.json")
    (joined,) = rows_of(written(tmp_path, "replays.json", {"cases": [REPLAYS]}))
    # The dearest set is what the joined timeline costs; a, b and c are there, d is not.
    assert joined.what == "autostamp, 2 replays, 3 of 4 sites"
    assert (joined.traced, joined.spread) == (pytest.approx(50.9), "each: 1.004, 1.018")
    (rival,) = rows_of(written(tmp_path, "rivals.json", {"tools": [RIVAL]}))
    assert (rival.kernel, rival.what, rival.clean) == ("matmul", "Proton 3", 30.0)
    assert rival.traced == pytest.approx(30.0 * 1.55)


def test_a_joined_run_is_a_source(tmp_path: Path) -> None:
    folder = tmp_path / "RUN"
    folder.mkdir()
    written(folder, "replays.json", {key: value for key, value in REPLAYS.items() if key != "name"})
    (row,) = rows_of(folder)
    assert (row.kernel, row.source) == ("RUN", "RUN")


def test_recorded_results_need_no_gpu_and_stand_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [
        written(tmp_path, "rivals.json", {"tools": [RIVAL]}),
        written(tmp_path, "overhead.json", {"cases": [CASE]}),
        written(tmp_path, "replays.json", {"cases": [REPLAYS]}),
    ]
    assert main(["--recorded", *(word for file in files for word in ("--beside", str(file)))]) == 0
    lines = capsys.readouterr().out.strip().splitlines()[2:]
    assert [line.split("|")[-2].strip() for line in lines] == ["rivals.json", "overhead.json", "replays.json"]


def test_what_is_no_source_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--recorded", "--beside", str(written(tmp_path, "x.json", {}))]) == 2
    assert "x.json" in capsys.readouterr().err
