# SPDX-License-Identifier: Apache-2.0
"""How long a report takes: decode, analyse, explain, document and page of one CTA with many records, stage by stage.

    python benchmarks/report_scale.py [--records N] [--warps N] [--json OUT] [--keep PAGE.html]

Needs no GPU. The region is made up: a ring of two stages between a load warp and consumers, on a schedule with jitter, three
records a use and warp. Beside it stands one plain numpy pass over the same bytes (every record's clock step and its event's
count), which is about the least that reading them can cost; the last column is each stage's time over that.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

if not __package__:  # run as a script: what it imports lives beside this folder
    sys.path.append(str(Path(__file__).resolve().parents[1]))

from autostamp.analysis import analyse
from autostamp.analysis.flow import explain
from autostamp.cli.progress import collector_off
from autostamp.model.manifest import KernelTrace
from autostamp.report.document import document
from autostamp.report.html import MARKER, TITLE, page
from autostamp.runtime.decode import decode_region
from autostamp.runtime.layout import EVENT_MASK, HEADER_BYTES, LANES, RECORD_DTYPE, RELEASED, lane_bytes, region_bytes
from tests.simulator.region import write_header
from tests.simulator.tables import ACQUIRE, COMMIT, CONSUME, RELEASE, ring_kernel, ring_manifest

PERIOD, COMPUTE, LOAD, HAND_OFF = 400, 250, 30, 20
"""Cycles of the made-up schedule: an iteration, a consumer's work in it, the load warp's, and from an arrival to the exit."""
STAGES = 2
BUILT = f"<title>{TITLE}</title>{MARKER}"
"""Stands for the built page, whose own bytes are the same for every run."""

Result = TypeVar("Result")
Clocks = NDArray[np.int64]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; the exit status."""
    options = _parser().parse_args(arguments)
    uses = max(options.records // (3 * options.warps), STAGES + 1)
    kernel = ring_kernel(STAGES, capacity=3 * uses)
    region = make_region(kernel, uses, options.warps)
    print(f"{3 * uses * options.warps:,} records of {options.warps} warps, {region.nbytes / 1e6:,.0f} MB of region")
    with collector_off():  # as `autostamp report` does
        stages, html = measure(region, kernel)
    records = 3 * uses * options.warps
    least = stages["numpy pass"]
    print(f"{'stage':<12}{'seconds':>9}{'records/s':>14}{'÷ numpy':>9}")
    for name, seconds in stages.items():
        print(f"{name:<12}{seconds:>9.3f}{records / seconds:>14,.0f}{seconds / least:>9.1f}")
    print(f"page: {len(html) / 1e6:,.2f} MB, {len(html) / records:.2f} bytes a record")
    if options.json:
        content = {"schema_version": 1, "records": records, "seconds": stages, "page_bytes": len(html)}
        options.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    if options.keep:
        options.keep.write_bytes(html)
    return 0


def measure(region: NDArray[np.uint8], kernel: KernelTrace) -> tuple[dict[str, float], bytes]:
    """Seconds of each stage and of all of them, after those of the plain pass; and the page."""
    seconds: dict[str, float] = {}

    def timed(name: str, work: Callable[[], Result]) -> Result:
        begin = time.perf_counter()
        result = work()
        seconds[name] = time.perf_counter() - begin
        return result

    plain_pass(region, kernel.capacity)  # brings the bytes in
    timed("numpy pass", lambda: plain_pass(region, kernel.capacity))
    trace = timed("decode", lambda: decode_region(region, kernel))
    timeline = timed("analyse", lambda: analyse(trace))
    flow = timed("explain", lambda: explain(trace, timeline))
    found: dict[str, Any] = timed("document", lambda: document([(timeline, flow)], ring_manifest(kernel)))
    html = timed("page", lambda: page(found, BUILT))
    seconds["all"] = sum(seconds.values()) - seconds["numpy pass"]
    return seconds, html


def plain_pass(region: NDArray[np.uint8], capacity: int) -> tuple[int, NDArray[np.int64]]:
    """Sum of all clock steps, and how often each event number occurs, over the records of all lanes."""
    lanes = region.reshape(LANES, lane_bytes(capacity))[:, HEADER_BYTES:]
    total, counts = 0, np.zeros(EVENT_MASK + 1, np.int64)
    for lane in lanes:
        records = lane.view(RECORD_DTYPE)
        used = records[: int(np.count_nonzero(records["event"]))]
        total += int(np.diff(used["clock"]).astype(np.int64).sum())
        counts += np.bincount(used["event"] & EVENT_MASK, minlength=EVENT_MASK + 1)
    return total, counts


def make_region(kernel: KernelTrace, uses: int, warps: int) -> NDArray[np.uint8]:
    """The region of a load warp and `warps` - 1 consumers that each take part in every use."""
    instances = {instance.number: instance for instance in kernel.instances}
    acquire, commit, consume, release = (instances[number] for number in (ACQUIRE, COMMIT, CONSUME, RELEASE))
    jitter = np.random.default_rng(1)
    # Consumers leave the wait for a use together; the load warp is ahead of them by the ring's stages.
    begins: Clocks = 1000 + np.cumsum(PERIOD + jitter.integers(0, 40, uses))
    released = [begins + COMPUTE + jitter.integers(0, 40, uses) for _ in range(warps - 1)]
    freed = np.max(released, axis=0)
    acquired = np.concatenate([100 * np.arange(STAGES), freed[:-STAGES] + HAND_OFF])
    committed = acquired + LOAD
    data = bytearray(region_bytes(kernel.capacity))
    load = [np.concatenate([[0], committed[:-1] + 5]), acquired, committed]
    _write_lane(data, kernel, 0, load, (acquire.enter, acquire.exit, commit.signal), (0, 2))
    for warp, end in enumerate(released, start=1):
        enters = np.concatenate([[10], end[:-1] + 5])
        events = (consume.enter, consume.exit, release.signal)
        _write_lane(data, kernel, warp, [enters, begins, end], events, (0, 2))
    return np.frombuffer(bytes(data), np.uint8)


def _write_lane(
    data: bytearray,
    kernel: KernelTrace,
    warp: int,
    columns: Sequence[Clocks],
    events: Sequence[int],
    staged: Sequence[int],
) -> None:
    """Records in turn from `columns`, one column an event; `staged` says which events carry the ring index."""
    uses = len(columns[0])
    start = warp * lane_bytes(kernel.capacity) + HEADER_BYTES
    records = np.frombuffer(data, RECORD_DTYPE, 3 * uses, start)
    for index, (clocks, event) in enumerate(zip(columns, events, strict=True)):
        stage = np.arange(uses) % STAGES if index in staged else np.zeros(uses, np.int64)
        records["clock"][index::3] = clocks % (1 << 32)
        records["event"][index::3] = event | stage << 16
    last = int(columns[-1][-1]) + 50
    fields = {"exit_clock": last % (1 << 32), "exit_ns": last, "signature": kernel.signature}
    fields |= {"remaining": 8 * (kernel.capacity - 3 * uses), "state": RELEASED}
    write_header(data, kernel.capacity, warp, fields)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument("--records", type=int, default=1_000_000, help="about how many (default: 1000000)")
    parser.add_argument("--warps", type=int, choices=range(2, 33), default=8, metavar="N", help="2 to 32 (default: 8)")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument("--keep", type=Path, help="keep the page")
    return parser


if __name__ == "__main__":
    sys.exit(main())
