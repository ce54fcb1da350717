# SPDX-License-Identifier: Apache-2.0
"""What stamps cost: median time of the stamped kernel over that of the clean one, and whether their outputs are equal.

    python benchmarks/overhead.py [--json OUT] [--case GLOB]... [--rounds N] [--only TERM] [--skip TERM] [--no-stage]

Needs an H200 (or another Hopper GPU), torch, flash-attn-4 and nvidia-cutlass-dsl; takes a few minutes, most of which is
compiling. Both builds live in one process. A round times A/B/B/A (clean, stamped, stamped, clean), each a replay of a CUDA
graph that holds enough launches for about two milliseconds, so a steady drift of the clock cancels within the round. Printed
are the median of the rounds' ratios with its spread, and as a control the same for clean over clean. A case that fails is
reported and the others still run. With --compile-only both builds are compiled, without a GPU, and only resources are shown.

Exit status: 0 done, 1 a case failed or outputs differ, 2 wrong usage, 3 no GPU or no torch.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import json
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

if not __package__:  # run as a script: what it imports lives beside this folder
    sys.path.append(str(Path(__file__).resolve().parents[1]))

from autostamp.hooks import caches
from autostamp.hooks.session import Session
from autostamp.model.options import InstrumentOptions, RecordOptions, Selection
from autostamp.runtime import machine
from autostamp.runtime.buffer import NoMemory
from benchmarks.overhead_cases import TARGETS, Build, Builds, Case, TorchMemory, all_cases
from benchmarks.overhead_statistics import Comparison, Round, as_json, compare, launches_for, table

TARGET_US = 2000.0
MOST_LAUNCHES = 64
WARM_UP_ROUNDS = 5
REPEATS = 3
"""Launches of each build whose outputs are compared: a kernel that adds atomically may give another result every time."""

COMPILE_ONLY = {
    "CUTE_DSL_ARCH": "sm_90a",
    "FLASH_ATTENTION_ARCH": "sm_90",
    "FLASH_ATTENTION_NUM_SMS": "132",  # of an H200 (SXM), where nobody can be asked
    "FLASH_ATTENTION_FAKE_TENSOR": "1",
}


@dataclass
class Result:
    """One case. `outputs` says of each output `equal`, `DIFFERS`, or `varies` where clean alone is not reproducible."""

    name: str
    error: str = ""
    launches: int = 0
    method: str = ""
    rounds: list[Round] = field(default_factory=list)
    outputs: dict[str, str] = field(default_factory=dict)
    records: int = 0
    lost: int = 0

    @property
    def is_good(self) -> bool:
        return not self.error and "DIFFERS" not in self.outputs.values()

    def as_json(self) -> dict[str, object]:
        own = {"name": self.name, "error": self.error, "launches_per_time": self.launches, "method": self.method}
        own |= {"outputs": self.outputs, "records": self.records, "lost": self.lost}
        return own | (as_json(compare(self.rounds), self.rounds) if self.rounds else {})


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what was asked for; the exit status."""
    options = _parser().parse_args(arguments)
    cases = [case for case in all_cases(is_real=not options.compile_only) if _is_chosen(case.name, options.case)]
    if not cases:
        print("error: no case has such a name; --list shows them", file=sys.stderr)
        return 2
    if options.list:
        print("\n".join(case.name for case in cases))
        return 0
    with tempfile.TemporaryDirectory(prefix="autostamp-") as folder:
        # Read by the packages while they are imported, so before anything of theirs is.
        os.environ.update(caches.switched_off() | {"CUTE_DSL_KEEP": "cubin", "CUTE_DSL_DUMP_DIR": folder})
        os.environ.update(COMPILE_ONLY if options.compile_only else {})
        return _run(cases, options)


def _run(cases: Sequence[Case], options: argparse.Namespace) -> int:
    gpu = "" if options.compile_only else _gpu()
    if not gpu and not options.compile_only:
        print("error: torch sees no CUDA device; --compile-only needs none", file=sys.stderr)
        return 3
    instrument = InstrumentOptions(selection=Selection(tuple(options.only), tuple(options.skip)))
    session = Session(TARGETS, instrument=instrument, record=False)
    session.open()
    builds = Builds(
        NoMemory() if options.compile_only else TorchMemory(),
        RecordOptions(capacity=options.capacity, with_payload=not options.no_stage),
    )
    try:
        with _fake_tensors() if options.compile_only else contextlib.nullcontext():
            results = [_guarded(case, builds, options) for case in cases]
        resources = _resources(builds)
    finally:
        session.close()
    for finding in session.findings():
        _say(f"{finding.code} {finding.message}")
    print(report(gpu, results, resources))
    if options.json:
        content = {"schema_version": 1, "gpu": gpu, "driver": machine.driver_version(), "versions": machine.versions()}
        content |= {"only": options.only, "skip": options.skip, "with_stage": not options.no_stage}
        content |= {"cases": [result.as_json() for result in results], "resources": resources}
        options.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return 0 if all(result.is_good for result in results) else 1


def _guarded(case: Case, builds: Builds, options: argparse.Namespace) -> Result:
    """Measure one case; what goes wrong is its result."""
    result = Result(case.name)
    begin = time.monotonic()
    try:
        if options.compile_only:
            _compile(case, builds)
        else:
            _measure(case, builds, options.rounds, result)
    except Exception as error:  # noqa: BLE001 - one kernel that cannot run here must not hide the others
        traceback.print_exc()
        result.error = f"{type(error).__name__}: {error}".splitlines()[0]
    _say(f"{case.name}: {result.error or 'done'} in {time.monotonic() - begin:.1f} s")
    return result


def _compile(case: Case, builds: Builds) -> None:
    with builds.use(Build.CLEAN):
        case.prepare()
    for build in Build:
        _say(f"{case.name}: compiling {build}")
        with builds.use(build) as kept:
            case.launch(kept)


def _measure(case: Case, builds: Builds, rounds: int, result: Result) -> None:
    import torch

    _compile(case, builds)
    torch.cuda.synchronize()
    result.outputs = _compare_outputs(case, builds)
    with builds.use(Build.CLEAN) as kept:
        result.launches = launches_for(_direct_us(case, kept, 10), TARGET_US, MOST_LAUNCHES)
    timers = {build: _timer(case, builds, build, result.launches) for build in Build}
    result.method = " and ".join(sorted({timer.method for timer in timers.values()}))
    result.records, result.lost = _check_records(timers, builds.memory)
    for _ in range(WARM_UP_ROUNDS):
        _round(timers)
    result.rounds = [_round(timers) for _ in range(rounds)]


def _compare_outputs(case: Case, builds: Builds) -> dict[str, str]:
    """Bit by bit: NaN equals itself, and -0 does not equal 0."""
    import torch

    seen: dict[Build, list[dict[str, Any]]] = {build: [] for build in Build}
    for build in Build:
        with builds.use(build) as kept:
            for _ in range(REPEATS):
                for tensor in case.outputs().values():
                    tensor.view(torch.uint8).fill_(0xA5)
                case.launch(kept)
                seen[build].append({name: tensor.view(torch.uint8).clone() for name, tensor in case.outputs().items()})
    reference = seen[Build.CLEAN][0]
    verdicts = {}
    for name, expected in reference.items():
        equal = {build: all(torch.equal(run[name], expected) for run in seen[build]) for build in Build}
        is_same = "equal" if equal[Build.STAMPED] else "DIFFERS"
        verdicts[name] = is_same if equal[Build.CLEAN] else "varies"
    return verdicts


@dataclass
class _Timer:
    """Enqueues a number of launches of one build."""

    method: str
    replay: Any
    launches: int


def _timer(case: Case, builds: Builds, build: Build, launches: int) -> _Timer:
    """A CUDA graph of the launches; where capturing fails, the launches themselves."""
    import torch

    try:
        graph = torch.cuda.CUDAGraph()
        with builds.use(build) as kept, torch.cuda.graph(graph):
            for _ in range(launches):
                case.launch(kept)
    except Exception as error:  # noqa: BLE001 - any failure to capture has the same remedy
        _say(f"{case.name}: no CUDA graph of the {build} build ({error}); timing launches one by one")
        torch.cuda.synchronize()
    else:
        return _Timer("CUDA graphs", graph.replay, launches)

    def replay() -> None:
        with builds.use(build) as kept:
            for _ in range(launches):
                case.launch(kept)

    return _Timer("launches", replay, launches)


def _round(timers: dict[Build, _Timer]) -> Round:
    """One A/B/B/A, enqueued without a pause and read afterwards."""
    import torch

    order = [timers[build] for build in (Build.CLEAN, Build.STAMPED, Build.STAMPED, Build.CLEAN)]
    events = [torch.cuda.Event(enable_timing=True) for _ in range(len(order) + 1)]
    events[0].record()
    for timer, event in zip(order, events[1:], strict=True):
        timer.replay()
        event.record()
    events[-1].synchronize()
    times = [first.elapsed_time(last) * 1000 for first, last in zip(events, events[1:], strict=False)]
    return Round(*(time / timer.launches for time, timer in zip(times, order, strict=True)))


def _direct_us(case: Case, kept: dict[str, dict[Any, Any]], launches: int) -> float:
    """Microseconds per launch, roughly: with the cost of launching from Python where that is more."""
    import torch

    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(launches):
        case.launch(kept)
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end)) * 1000 / launches


def _check_records(timers: dict[Build, _Timer], memory: TorchMemory | NoMemory) -> tuple[int, int]:
    """Records of one replay and how many were lost. Raises when what is about to be timed is not what it says."""
    assert isinstance(memory, TorchMemory)
    counts = {}
    for build in Build:
        memory.clear()
        timers[build].replay()
        counts[build] = memory.records()
    if counts[Build.CLEAN][0]:
        message = f"the clean build wrote {counts[Build.CLEAN][0]} records"
        raise RuntimeError(message)
    if not counts[Build.STAMPED][0]:
        message = "the stamped build wrote no record"
        raise RuntimeError(message)
    return counts[Build.STAMPED]
