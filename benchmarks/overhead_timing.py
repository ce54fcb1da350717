# SPDX-License-Identifier: Apache-2.0
"""One case of `benchmarks/overhead.py` on a GPU: are the outputs equal, does only the stamped build record, how long."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from benchmarks.overhead_cases import Build, Builds, Case, TorchMemory
from benchmarks.overhead_statistics import Round, as_json, compare, launches_for

if TYPE_CHECKING:
    import torch

TARGET_US = 2000.0
"""Length of one time. Events resolve about half a microsecond, and what a replay itself costs is the same in all."""
MOST_LAUNCHES = 64
PROBE_LAUNCHES = 8
WARM_UP_ROUNDS = 5
REPEATS = 3
"""Launches of each build whose outputs are compared: a kernel that adds atomically may give another result every time."""

EQUAL, DIFFERS, VARIES = "equal", "DIFFERS", "varies"


@dataclass
class Result:
    """One case. `outputs` says of each output whether it is equal, or VARIES where clean alone is not reproducible.

    `records` and `lost` are those of one stamped launch.
    """

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
        """True when it ran and no output differs."""
        return not self.error and DIFFERS not in self.outputs.values()

    def as_json(self) -> dict[str, object]:
        """Everything, single rounds included."""
        own = {"name": self.name, "error": self.error, "launches_per_time": self.launches, "method": self.method}
        own |= {"outputs": self.outputs, "records": self.records, "lost": self.lost}
        return own | (as_json(compare(self.rounds), self.rounds) if self.rounds else {})


@dataclass(frozen=True, slots=True)
class Timer:
    """`replay` enqueues `launches` launches of one build."""

    method: str
    replay: Callable[[], object]
    launches: int


def compile_both(case: Case, builds: Builds) -> None:
    """Prepare the case and compile (and on a GPU launch) both of its builds."""
    with builds.use(Build.CLEAN):
        case.prepare()
    for build in Build:
        say(f"{case.name}: compiling {build}")
        with builds.use(build) as kept:
            case.launch(kept)


def measure(case: Case, builds: Builds, memory: TorchMemory, rounds: int, result: Result) -> None:
    """Fill `result` as far as it goes."""
    import torch

    compile_both(case, builds)
    torch.cuda.synchronize()
    result.outputs = compare_outputs(case, builds)
    probe = timer_of(case, builds, Build.CLEAN, PROBE_LAUNCHES)
    probe.replay()
    (microseconds,) = _times([probe])
    result.launches = launches_for(microseconds, TARGET_US, MOST_LAUNCHES)
    timers = {build: timer_of(case, builds, build, result.launches) for build in Build}
    result.method = " and ".join(dict.fromkeys(timer.method for timer in timers.values()))
    result.records, result.lost = check_records(timers, memory)
    for _ in range(WARM_UP_ROUNDS):
        one_round(timers)
    result.rounds = [one_round(timers) for _ in range(rounds)]


def compare_outputs(case: Case, builds: Builds) -> dict[str, str]:
    """Of each output, whether both builds write the same bits; an output that nothing wrote keeps the pattern it had."""
    import torch

    runs = {
        (build, repeat): {name: bits.clone() for name, bits in _launch_on_pattern(case, builds, build).items()}
        for build in Build
        for repeat in range(REPEATS)
    }
    verdicts: dict[str, str] = {}
    for name, expected in runs[Build.CLEAN, 0].items():
        is_same = {
            build: all(torch.equal(runs[build, repeat][name], expected) for repeat in range(REPEATS)) for build in Build
        }
        verdicts[name] = VARIES if not is_same[Build.CLEAN] else EQUAL if is_same[Build.STAMPED] else DIFFERS
    return verdicts


def _launch_on_pattern(case: Case, builds: Builds, build: Build) -> dict[str, torch.Tensor]:
    """Bytes of the outputs after one launch that began with all of them set to a pattern."""
    import torch

    outputs = {name: tensor.view(torch.uint8) for name, tensor in case.outputs().items()}
    for bits in outputs.values():
        bits.fill_(0xA5)
    with builds.use(build) as kept:
        case.launch(kept)
    return outputs


def timer_of(case: Case, builds: Builds, build: Build, launches: int) -> Timer:
    """A CUDA graph of the launches; where capturing fails, the launches one by one."""
    import torch

    def launch_all() -> None:
        with builds.use(build) as kept:
            for _ in range(launches):
                case.launch(kept)

    try:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            launch_all()
    except Exception as error:  # torch, the DSL and the driver each have their own
        say(f"{case.name}: no CUDA graph of the {build} build, its launches are timed one by one: {error}")
        torch.cuda.synchronize()
        return Timer("single launches", launch_all, launches)
    return Timer("CUDA graphs", graph.replay, launches)


def one_round(timers: Mapping[Build, Timer]) -> Round:
    """One A/B/B/A, in microseconds per launch."""
    order = [timers[build] for build in (Build.CLEAN, Build.STAMPED, Build.STAMPED, Build.CLEAN)]
    # An untimed replay comes first: on an idle GPU the first time would include the host's part of launching.
    order[0].replay()
    return Round(*_times(order))


def _times(timers: list[Timer]) -> list[float]:
    """Microseconds per launch of replays that are enqueued without a pause and read afterwards."""
    import torch

    events = [torch.cuda.Event(enable_timing=True) for _ in range(len(timers) + 1)]
    events[0].record()
    for timer, event in zip(timers, events[1:], strict=True):
        timer.replay()
        event.record()
    events[-1].synchronize()
    milliseconds = [first.elapsed_time(last) for first, last in pairwise(events)]
    return [1000 * time / timer.launches for time, timer in zip(milliseconds, timers, strict=True)]


def check_records(timers: Mapping[Build, Timer], memory: TorchMemory) -> tuple[int, int]:
    """Records of a stamped launch, and how many were lost. Raises when a build is not what it is called."""
    counts: dict[Build, tuple[int, int]] = {}
    for build, timer in timers.items():
        memory.clear()
        timer.replay()
        counts[build] = memory.records()
    if counts[Build.CLEAN][0]:
        message = f"the clean build wrote {counts[Build.CLEAN][0]:,} records"
        raise RuntimeError(message)
    if not counts[Build.STAMPED][0]:
        message = "the stamped build wrote no record"
        raise RuntimeError(message)
    return counts[Build.STAMPED]


def say(line: str) -> None:
    """Progress, for whoever waits."""
    print(line, file=sys.stderr, flush=True)
