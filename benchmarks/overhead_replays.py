# SPDX-License-Identifier: Apache-2.0
"""The sets of a placement beside the single run with all sites, for `benchmarks/overhead.py --placement FILE`.

Each is measured by a process of its own, because a process stamps a module once. Nothing else differs from one case of
`overhead.py`: A/B/B/A rounds of CUDA graphs, outputs compared bit by bit.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from autostamp.runtime.placement_file import read_placement
from benchmarks.overhead_statistics import table
from benchmarks.overhead_timing import say

PROGRAM: Final = Path(__file__).with_name("overhead.py")
ALL: Final = 0
"""Stands for the single run with all sites."""


@dataclass(frozen=True, slots=True)
class Replay:
    """What one process measured. `number` is the set's, ALL for the single run; `sites` how many it stamps (0: all)."""

    number: int
    sites: int
    report: dict[str, Any]


def measure(placement: Path, words: Sequence[str]) -> list[Replay]:
    """The single run, then each set. `words` choose cases and rounds for `overhead.py`; a process that fails has no cases."""
    sets = read_placement(placement).sets
    found = []
    for number, sites in [(ALL, 0), *((each.number, len(each.sites)) for each in sets)]:
        say("all sites in one run" if number == ALL else f"set {number}: {sites} sites")
        chosen = [] if number == ALL else ["--placement", str(placement), "--set", str(number)]
        with tempfile.TemporaryDirectory(prefix="autostamp-") as folder:
            file = Path(folder) / "report.json"
            command = [sys.executable, str(PROGRAM), *words, *chosen, "--json", str(file)]
            subprocess.run(command, stdout=sys.stderr, check=False)
            report = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {"cases": []}
        found.append(Replay(number, sites, report))
    return found


def report(replays: Sequence[Replay]) -> str:
    """One row for each case and process, in Markdown."""
    headings = ("case", "stamped", "clean µs", "stamped µs", "stamped ÷ clean", "p10-p90", "outputs")
    names = dict.fromkeys(case["name"] for replay in replays for case in replay.report["cases"])
    rows = [_row(name, replay) for name in names for replay in replays]
    return table(headings, rows)


def is_good(replays: Sequence[Replay]) -> bool:
    """Whether every process measured every case, and no output differs."""
    names = {case["name"] for replay in replays for case in replay.report["cases"]}
    cases = [case for replay in replays for case in replay.report["cases"]]
    whole = len(cases) == len(names) * len(replays) and bool(cases)
    return whole and all(not case["error"] and "DIFFERS" not in case["outputs"].values() for case in cases)


def _row(name: str, replay: Replay) -> tuple[str, ...]:
    what = "all sites, one run" if replay.number == ALL else f"set {replay.number}, {replay.sites} sites"
    case = next((case for case in replay.report["cases"] if case["name"] == name), None)
    if case is None or "ratio" not in case:
        return name, what, "", "", case["error"] if case else "it failed", "", ""
    ratio = case["ratio"]
    spread = f"{ratio['p10']:.3f}-{ratio['p90']:.3f}"
    outputs = ", ".join(dict.fromkeys(case["outputs"].values()))
    times = (f"{case[side]['median']:,.1f}" for side in ("clean", "stamped"))
    return name, what, *times, f"{ratio['median']:.3f}", spread, outputs
