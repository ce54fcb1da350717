# SPDX-License-Identifier: Apache-2.0
"""What synchronisation itself costs on this GPU: ready waits, and the time from an arrival to the exit that it ends.

    python benchmarks/sync_cost.py [--rounds N] [--warps 2,5,9] [--json FILE]

launches kernels/probes/sync_cost.cu stamped, with several numbers of warps, and prints percentiles over rounds and warps in
cycles, as stamps see them. `autostamp/analysis/latencies.py` holds what came out on an H200. Exit status 3 without a GPU.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

import numpy as np

from autostamp.model.manifest import EventKind
from autostamp.model.trace import Event, Lane, Trace
from autostamp.runtime.store import RunData, load_run

KERNEL: Final = Path(__file__).parent.parent / "kernels" / "probes" / "sync_cost.cu"
PERCENTILES: Final = (0, 10, 50, 90, 99, 100)
READY: Final = {
    "mbarrier": "mbarrier_ready",
    "mbarrier, whole warps": "mbarrier_ready_warps",
    "named barrier": "named_ready",
    "wgmma.wait_group": "group_ready",
}
"""What is waited for, and the function of the probe in which the barrier is complete before the wait."""
LATE: Final = {"mbarrier": "mbarrier_late", "named barrier": "named_late", "bulk copy of 16 KiB": "copy_late"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Launch, print the table, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--spin", type=int, default=2000, help="cycles that one side comes late")
    parser.add_argument("--warps", default="4,8,16", help="warps of the block, multiples of 4")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    rows: list[dict[str, object]] = []
    facts: dict[str, object] = {}
    for warps in map(int, options.warps.split(",")):
        with tempfile.TemporaryDirectory(prefix="autostamp-") as scratch:
            status = _launch(Path(scratch), warps, options.rounds, options.spin)
            if status:
                return status
            data = load_run(scratch)
        facts = asdict(data.facts)
        rows += [{"warps": warps, **row} for row in _rows(data)]
    _print(rows)
    if options.json:
        options.json.write_text(json.dumps({"machine": facts, "rounds": options.rounds, "rows": rows}, indent=1) + "\n")
    return 0


def _launch(folder: Path, warps: int, rounds: int, spin: int) -> int:
    words = ["launch", str(KERNEL), "--kernel", "sync_cost", "--grid", "1", "--block", str(32 * warps), "-q"]
    values = ["--arg", "in=f32[4096]:random", "--arg", f"rounds={rounds}", "--arg", f"spin={spin}"]
    command = [sys.executable, "-m", "autostamp", *words, *values, "-o", str(folder)]
    return subprocess.run(command, check=False, stdout=sys.stderr).returncode


def _rows(data: RunData) -> Iterator[dict[str, object]]:
    (trace,) = (found for found in data.traces.values() if found.lanes)
    functions = _functions(data, trace)
    last = max(lane.warp for lane in trace.lanes)
    for name, function in READY.items():
        # A named barrier is complete when its last warp comes, and the probe's warps come in order.
        warps = {last} if name == "named barrier" else set(range(1, last + 1))
        waits = [
            exit_.cycles - enter.cycles
            for lane in trace.lanes
            if lane.warp in warps
            for enter, exit_ in _waits(lane, functions, function)
        ]
        yield _row(f"ready wait: {name}", waits)
    for name, function in LATE.items():
        arrivals = _arrivals(trace.lanes[0], functions, function)
        gaps = [
            exit_.cycles - arrivals[exit_.visit]
            for lane in trace.lanes[1:]
            for _, exit_ in _waits(lane, functions, function)
        ]
        yield _row(f"arrival to exit: {name}", gaps)


def _functions(data: RunData, trace: Trace) -> dict[int, tuple[str, str]]:
    """Function of the probe and method called, by instance."""
    sites = {(file.key, site.number): site for file in data.manifest.files for site in file.sites}
    found = {row.number: sites[row.file, row.site] for row in trace.kernel.instances}
    return {number: (site.function.rpartition("::")[2], site.method) for number, site in found.items()}


def _waits(lane: Lane, functions: dict[int, tuple[str, str]], function: str) -> Iterator[tuple[Event, Event]]:
    """Enter and exit of the waits in `function`, without the block's barrier at the end of each round."""
    opened: dict[tuple[int, int], Event] = {}
    for event in lane.events:
        where, method = functions[event.instance]
        if where != function or method in {"__syncthreads", "__syncwarp"}:
            continue
        if event.kind is EventKind.ENTER:
            opened[event.instance, event.visit] = event
        elif event.kind is EventKind.EXIT:
            yield opened.pop((event.instance, event.visit)), event


def _arrivals(lane: Lane, functions: dict[int, tuple[str, str]], function: str) -> dict[int, int]:
    """Cycles of warp 0's last signal in each round of `function`."""
    return {
        event.visit: event.cycles
        for event in lane.events
        if event.kind is EventKind.SIGNAL and functions[event.instance][0] == function
    }


def _row(name: str, cycles: Sequence[int]) -> dict[str, object]:
    values = [int(value) for value in np.percentile(cycles, PERCENTILES)]
    return {
        "what": name,
        "count": len(cycles),
        **{f"p{at}": value for at, value in zip(PERCENTILES, values, strict=True)},
    }


def _print(rows: Sequence[dict[str, object]]) -> None:
    table = [list(rows[0]), *(list(map(str, row.values())) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


if __name__ == "__main__":
    sys.exit(main())
