# SPDX-License-Identifier: Apache-2.0
"""The handoff-split study: how much of P should softmax send before the rest? Time and stalls for each way to split it.

    python benchmarks/attention_split.py [--json FILE] [--split N]... [--serial] [--halves N] [--rounds N] [--runs FOLDER]

The attention forward of `kernels/cutedsl/attention_handoff` sends the first N of 8 chunks of P's columns, then the rest. Two
tables, one line for each N. Times: A/B/B/A rounds of the clean and the stamped build (as benchmarks/overhead.py), and
scaled_dot_product_attention in the same run. Stalls: `autostamp run` records one CTA of a grid that fills the GPU; shown are
stalled cycles per block of 128 keys and warp, without the first and last blocks, by role and by barrier. Needs a Hopper GPU,
torch and nvidia-cutlass-dsl; takes about a minute.

Exit status: 0 done, 1 a result is wrong or outputs differ, 2 wrong usage, 3 no GPU or no torch.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

if not __package__:  # run as a script: what it imports lives beside this folder
    sys.path.append(str(Path(__file__).resolve().parents[1]))

from autostamp.analysis import analyse
from autostamp.hooks import caches
from autostamp.hooks.session import Session
from autostamp.model.options import RecordOptions
from autostamp.model.timeline import Slice, State
from autostamp.model.trace import Trace
from autostamp.runtime import machine
from autostamp.runtime.store import load_run
from benchmarks.gallery_cases import ATTENTION, GalleryAttention
from benchmarks.overhead_cases import Builds, TorchMemory
from benchmarks.overhead_statistics import compare, spread_of, table
from benchmarks.overhead_timing import Result, measure, say

SPLITS: Final = (2, 4, 6, 8)
TIMED: Final = (32, 4096, 4096)
"""Heads, queries, keys: 1024 CTAs of 128 queries."""
RECORDED: Final = (8, 2048, 2048)
"""128 CTAs, one wave on 132 SMs."""
RECORD_LIMIT_S: Final = 120
EDGE_BLOCKS: Final = 2
"""Blocks of keys at the begin and at the end that are not counted: the rings fill, and drain."""


@dataclass(frozen=True, slots=True)
class Stalls:
    """Of one CTA, without its first and last blocks. `cycles`: stalled cycles per block and warp, by "role: barrier side"."""

    split: int
    blocks: int
    period: float
    shares: Mapping[str, float]
    cycles: Mapping[str, float]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what was asked for; the exit status."""
    options = _parser().parse_args(arguments)
    try:
        import torch
    except ImportError as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    if not torch.cuda.is_available():
        print("error: torch sees no CUDA device", file=sys.stderr)
        return 3
    splits = options.split or list(SPLITS)
    with tempfile.TemporaryDirectory(prefix="autostamp-") as folder:
        run = options.runs or Path(folder) / "RUN"
        if not record(run, splits, options):
            return 1
        stalls = [stalls_of(split, trace) for split, trace in zip(splits, _traces(run), strict=True)]
    os.environ.update(caches.switched_off())
    results, library_us = time_all(splits, options)
    gpu = str(torch.cuda.get_device_name())
    print(report(gpu, splits, results, library_us, stalls))
    if options.json:
        content = {"schema_version": 1, "gpu": gpu, "driver": machine.driver_version(), "versions": machine.versions()}
        content |= {"halves": options.halves, "looks_ahead": not options.serial, "shape": TIMED, "recorded": RECORDED}
        content |= {"sdpa_us": library_us, "cases": [result.as_json() for result in results]}
        content |= {"stalls": [asdict(item) for item in stalls]}
        options.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return 0 if all(result.is_good for result in results) else 1


def record(run: Path, splits: Sequence[int], options: argparse.Namespace) -> bool:
    """Check every split against float64 and record one CTA of each, in a process of its own."""
    heads, length_q, length_k = RECORDED
    knobs = ["--halves", str(options.halves), "--order", "serial" if options.serial else "ahead"]
    shape = ["--heads", str(heads), "--length-q", str(length_q), "--length-k", str(length_k)]
    program = [sys.executable, "-m", f"{ATTENTION}.reference", "--split", *map(str, splits), *knobs, *shape]
    command = [
        sys.executable,
        "-m",
        "autostamp",
        "run",
        "-q",
        "--instrument",
        ATTENTION,
        "-o",
        str(run),
        "--",
        *program,
    ]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True, timeout=RECORD_LIMIT_S)
    say(done.stdout.rstrip())
    return done.returncode == 0


def _traces(run: Path) -> list[Trace]:
    """One per split, in the order in which they were compiled."""
    return [trace for _, trace in sorted(load_run(run).traces.items())]


def stalls_of(split: int, trace: Trace) -> Stalls:
    """What each role waited for, between the first and the last of the blocks of keys that `EDGE_BLOCKS` leaves."""
    timeline = analyse(trace)
    barriers = {item.number: item.label for item in trace.kernel.barriers}
    waits = {item.number: f"{barriers[item.barrier]} {item.side}" for item in trace.kernel.instances if item.barrier}
    warps = Counter(warp.role for warp in timeline.warps)
    named = {row.role for row in trace.kernel.instances if row.role}
    # mma waits for K once a block. Every warp of it does so at about the same time; the first one's marks serve for all.
    first_warp = next(warp for warp in timeline.warps if warp.role == "mma")
    marks = [item.end for item in first_warp.slices if waits.get(item.instance) == "k_pipeline full" and is_wait(item)]
    start, end = marks[EDGE_BLOCKS], marks[-EDGE_BLOCKS]
    blocks = len(marks) - 2 * EDGE_BLOCKS
    cycles: Counter[str] = Counter()
    stalled: Counter[str] = Counter()
    for warp in timeline.warps:
        for item in warp.slices:
            length = min(item.end, end) - max(item.start, start)
            if item.state is State.STALL and length > 0:
                cycles[f"{warp.role}: {waits.get(item.instance, '?')}"] += length
                stalled[warp.role] += length
    return Stalls(
        split,
        blocks,
        (end - start) / blocks,
        {role: stalled[role] / warps[role] / (end - start) for role in sorted(warps) if role in named},
        {name: total / warps[name.split(":")[0]] / blocks for name, total in sorted(cycles.items())},
    )


def is_wait(item: Slice) -> bool:
    """True for a wait, whether it stalled or passed."""
    return item.state in (State.STALL, State.PASS)


def time_all(splits: Sequence[int], options: argparse.Namespace) -> tuple[list[Result], float]:
    """Both builds of every split, and the library's microseconds."""
    session = Session((ATTENTION,), record=False)
    session.open()
    memory = TorchMemory()
    builds = Builds(memory, RecordOptions())
    results = []
    library_us = 0.0
    try:
        for split in splits:
            case = GalleryAttention(split, *TIMED, options.halves, not options.serial)
            builds.case = case.name
            results.append(Result(case.name))
            measure(case, builds, memory, options.rounds, results[-1])
            library_us = library_us or time_library(case.tensors)
    finally:
        session.close()
    return results, library_us


def time_library(tensors: Mapping[str, Any], rounds: int = 20, launches: int = 4) -> float:
    """Median microseconds of scaled_dot_product_attention on the same inputs."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    q, k, v = (tensors[name][None] for name in "qkv")
    times = []
    for _ in range(rounds):
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        scaled_dot_product_attention(q, k, v)
        first.record()
        for _ in range(launches):
            scaled_dot_product_attention(q, k, v)
        last.record()
        last.synchronize()
        times.append(1000 * first.elapsed_time(last) / launches)
    return spread_of(times).median


def report(
    gpu: str, splits: Sequence[int], results: Sequence[Result], library_us: float, stalls: Sequence[Stalls]
) -> str:
    """Tables for people, in Markdown."""
    heads, length_q, length_k = TIMED
    operations = 4 * heads * length_q * length_k * 64
    rows = [_timing_row(split, result, operations) for split, result in zip(splits, results, strict=True)]
    rows.append(("SDPA", f"{library_us:,.1f}", f"{1e-6 * operations / library_us:,.1f}", "", "", ""))
    headings = ("first part", "clean µs", "TFLOP/s", "stamped ÷ clean", "p10-p90", "outputs")
    roles = sorted({role for item in stalls for role in item.shares})
    waits = sorted({name for item in stalls for name, cycles in item.cycles.items() if cycles >= 1})
    shown: list[tuple[str, Callable[[Stalls], str]]] = [("cycles per block", lambda item: f"{item.period:,.0f}")]
    shown += [(f"{role} stalled", lambda item, role=role: f"{100 * item.shares.get(role, 0):.0f} %") for role in roles]  # type: ignore[misc]
    shown += [(name, lambda item, name=name: f"{item.cycles.get(name, 0):,.0f}") for name in waits]  # type: ignore[misc]
    lines = [(name, *(text(item) for item in stalls)) for name, text in shown]
    parts = [
        f"{gpu}: attention forward {heads}x{length_q}x{length_k}x64 bf16",
        table(headings, rows),
        "Stalled cycles per block of 128 keys and warp, one CTA of a full grid, stamped build",
        table(("first part", *(f"{split}/8" for split in splits)), lines),
    ]
    return "\n\n".join(parts)


def _timing_row(split: int, result: Result, operations: int) -> tuple[str, ...]:
    found = compare(result.rounds)
    return (
        f"{split}/8",
        f"{found.clean.median:,.1f}",
        f"{1e-6 * operations / found.clean.median:,.1f}",
        f"{found.ratio.median:.3f}",
        f"{found.ratio.p10:.3f}-{found.ratio.p90:.3f}",
        ", ".join(dict.fromkeys(result.outputs.values())),
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument(
        "--split", type=int, action="append", choices=range(1, 9), help="eighths; default 2, 4, 6 and 8"
    )
    parser.add_argument(
        "--halves", type=int, default=2, choices=(1, 2), help="softmax warpgroups (default %(default)s)"
    )
    parser.add_argument("--serial", action="store_true", help="the next S only after this block's P V")
    parser.add_argument("--rounds", type=int, default=50, help="A/B/B/A rounds of each split (default %(default)s)")
    parser.add_argument("--runs", type=Path, metavar="FOLDER", help="keep the recorded run here")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything to a file")
    return parser


if __name__ == "__main__":
    sys.exit(main())
