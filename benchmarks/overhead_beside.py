# SPDX-License-Identifier: Apache-2.0
"""One table of what tracing costs, from several sources: `benchmarks/overhead.py --beside FILE|RUN`.

Sources are what `overhead.py --json` wrote (one run with all stamps), joined runs of `autostamp run --replay` or the file that
`benchmarks.replays` collects from them, and what `benchmarks.rivals --json` wrote (IKET, Proton and others). A ratio is
of one kernel on one day: each row says which kernel, and where it is from.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.overhead_statistics import Round, compare, table

HEADINGS: Final = ("kernel", "traced by", "clean µs", "traced µs", "traced ÷ clean", "spread", "from")


@dataclass(frozen=True, slots=True)
class Row:
    """Times in microseconds. `spread` is p10-p90 of the ratio, or what else is known of it."""

    kernel: str
    what: str
    clean: float
    traced: float
    spread: str
    source: str

    @property
    def cells(self) -> tuple[str, ...]:
        """The columns of `HEADINGS`."""
        ratio = self.traced / self.clean
        times = (f"{self.clean:,.1f}", f"{self.traced:,.1f}", f"{ratio:.3f}")
        return self.kernel, self.what, *times, self.spread, self.source


def report(sources: Sequence[Path], measured: Sequence[dict[str, Any]] = ()) -> str:
    """One table in Markdown, rows of one kernel together. `measured` are cases of a run just made."""
    rows = [row for case in measured for row in _of_case(case, "this run")]
    rows += [row for path in sources for row in rows_of(path)]
    order = {kernel: at for at, kernel in enumerate(dict.fromkeys(row.kernel for row in rows))}
    return table(HEADINGS, [row.cells for row in sorted(rows, key=lambda row: order[row.kernel])])


def rows_of(path: Path) -> list[Row]:
    """The rows of one source. Raises ValueError for a file that is none of those above, OSError for one that is not there."""
    file = path / "replays.json" if path.is_dir() else path
    content = json.loads(file.read_text(encoding="utf-8"))
    if path.is_dir():
        return list(_of_replays({"name": path.name, **content}, path.name))
    if "cases" not in content and "tools" not in content:
        message = f"{path}: neither cases nor tools in it"
        raise ValueError(message)
    rows: list[Row] = []
    for case in content.get("cases", ()):
        rows += _of_replays(case, path.name) if "sets" in case else _of_case(case, path.name)
    for tool in (*content.get("tools", ()), *content.get("once", {}).get("tools", ())):
        rows += _of_tool(tool, path.name)
    return rows


def _of_case(case: Mapping[str, Any], source: str) -> Iterator[Row]:
    if "ratio" in case and not case["error"]:
        spread = f"{case['ratio']['p10']:.3f}-{case['ratio']['p90']:.3f}"
        clean, ratio = case["clean"]["median"], case["ratio"]["median"]
        yield Row(case["name"], "autostamp, all sites in one run", clean, clean * ratio, spread, source)


def _of_replays(case: Mapping[str, Any], source: str) -> Iterator[Row]:
    """A row for the dearest of the sets, which is what a joined timeline costs."""
    sets = [made for made in case["sets"] if made["times"]["rounds"]]
    if not sets:
        return
    worst = max(sets, key=lambda made: made["times"]["ratio"])
    times = worst["times"]
    missing = len(case["uncovered"])
    there = {key for made in sets for key, _ in made["sites"]}
    covered = f"{len(there)} of {len(there) + missing} sites"
    count = f"{len(sets)} replay{'s' * (len(sets) != 1)}"
    all_of = ", ".join(f"{made['times']['ratio']:.3f}" for made in sets)
    clean = times["clean"]
    unit = "" if times["method"].startswith("what") else " (cycles)"
    what = f"autostamp, {count}, {covered}{unit}"
    yield Row(case["name"], what, clean, clean * times["ratio"], f"each: {all_of}", source)


def _of_tool(tool: Mapping[str, Any], source: str) -> Iterator[Row]:
    name = f"{tool['tool']} {tool.get('version', '')}".strip()
    if "clean_us" in tool:
        yield Row(tool["kernel"], name, tool["clean_us"], tool["stamped_us"], "measured once", source)
    elif tool["rounds"] and not tool["error"]:
        found = compare([Round(*times) for times in tool["rounds"]])
        spread = f"{found.ratio.p10:.3f}-{found.ratio.p90:.3f}"
        clean = found.clean.median
        yield Row(tool["kernel"], name, clean, clean * found.ratio.median, spread, source)
