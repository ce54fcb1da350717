# SPDX-License-Identifier: Apache-2.0
"""Bounds of unrecorded stamps against the truth: random programs are run, some of their calls are recorded, and every execution
of another call must lie between the two records that bound it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from autostamp.analysis.call_positions import CallPositions
from autostamp.analysis.unrecorded import Missing, Place, bounds
from autostamp.model.manifest import EventKind, Instance, KernelTrace, Manifest, Payload, SourceFile
from autostamp.model.replay import Bound
from autostamp.model.site import Shape, Site, Span
from autostamp.model.sync import Kind, Side, StageFrom
from autostamp.model.trace import Event, Lane, Trace
from autostamp.passes.cuda import program_order as cuda
from autostamp.passes.cutedsl import program_order as cutedsl


@dataclass
class Program:
    """Source of a random program, line by line, and what ran when: (line, time) in order."""

    random: Random
    is_cuda: bool
    lines: list[str] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)
    ran: list[tuple[int, int]] = field(default_factory=list)

    def write(self, depth: int, indent: int) -> list[object]:
        """Append a block of source; what it does, to be run."""
        block: list[object] = []
        for _ in range(self.random.randint(1, 4)):
            kind = self.random.choice(("call", "call", "loop", "if", "either")) if depth else "call"
            pad = "    " * indent
            if kind == "call":
                self.lines.append(f"{pad}c{len(self.lines) + 1}(){';' if self.is_cuda else ''}")
                self.calls.append(len(self.lines))
                block.append(len(self.lines))
            elif kind == "loop":
                self.lines.append(
                    f"{pad}for (int i = 0; i < n; ++i) {{" if self.is_cuda else f"{pad}for i in range(n):"
                )
                block.append(("loop", self.write(depth - 1, indent + 1)))
                self._end(pad)
            else:
                self.lines.append(f"{pad}if (n) {{" if self.is_cuda else f"{pad}if n:")
                first, second = self.write(depth - 1, indent + 1), []
                if kind == "either":
                    self.lines.append(f"{pad}}} else {{" if self.is_cuda else f"{pad}else:")
                    second = self.write(depth - 1, indent + 1)
                self._end(pad)
                block.append(("if", first, second))
        return block

    def _end(self, pad: str) -> None:
        if self.is_cuda:
            self.lines.append(f"{pad}}}")

    def run(self, block: Sequence[object]) -> None:
        """Run a block, with random trips and choices."""
        for part in block:
            if isinstance(part, int):
                self.ran.append((part, len(self.ran)))
            elif isinstance(part, tuple) and part[0] == "loop":
                for _ in range(self.random.choice((0, 1, 1, 2, 3))):
                    self.run(part[1])
            elif isinstance(part, tuple):
                self.run(part[1] if self.random.random() < 0.6 else part[2])


def made(seed: int, *, is_cuda: bool) -> tuple[Program, list[Bound], dict[str, int]]:
    """A program that was run, the bounds of the calls of which nothing was kept, and their lines by key."""
    program = Program(Random(seed), is_cuda)
    program.lines.append("__global__ void kernel(int n) {" if is_cuda else "def kernel(n):")
    program.run(program.write(3, 1))
    program._end("")
    program.kept = [line for line in program.calls if program.random.random() < 0.6]
    numbers = {line: number for number, line in enumerate(program.kept, 1)}
    paths = {line: () if is_cuda else (f"kernel:{line}",) for line in program.kept}
    rows = tuple(
        Instance(number, "f", number, "", paths[line], "signal", "full", 0, Payload.NONE, signal=number)
        for line, number in numbers.items()
    )
    kernel = KernelTrace(1, "kernel", "f", 64, (0, 0, 0), 1, 1, (), rows)
    file = SourceFile("f", "f", "f", "", tuple(_site(number, line) for line, number in numbers.items()), (), ())
    text = "\n".join(program.lines) + "\n"
    functions = (cuda if is_cuda else cutedsl).functions_of(text, "f")
    positions = CallPositions.of_kernel(kernel, Manifest(1, "autostamp", (file,), (kernel,)), functions)
    seen: dict[int, int] = {}
    events = []
    for line, time in program.ran:
        if line in numbers:
            events.append(Event(time, EventKind.SIGNAL, numbers[line], 0, seen.get(line, 0)))
            seen[line] = seen.get(line, 0) + 1
    trace = Trace(kernel, (Lane(0, 0, tuple(events), 0, 0, len(program.ran), 0, 0),), 0.0)
    left = {f"c{line}": line for line in program.calls if line not in numbers}
    missing = [Missing(Place("f", line, 5, key), "signal") for key, line in left.items()]
    return program, list(bounds([trace], missing, positions)), left


def _site(number: int, line: int) -> Site:
    span = Span(0, 1, line, 5)
    return Site(
        number, span, "c()", "c", "", Kind.SIGNAL, Side.FULL, StageFrom.NONE, Shape.STATEMENT, "kernel", "", "", 0
    )


def pairs(program: Program, bound: Bound) -> Iterator[tuple[float, float]]:
    """The intervals that a bound means; that before the first and after the last record of a loop are open."""
    ends = (program.kept[end.instance - 1] for end in (bound.before, bound.after))
    first, last = ([time for line, time in program.ran if line == each] for each in ends)
    first = first[-1:] if bound.before.which == "last" else first
    last = last[:1] if bound.after.which == "first" else last
    shift = bound.after.trip - bound.before.trip
    yield from zip(first, last[shift:], strict=False)
    if bound.after.trip:
        yield first[-1], float("inf")
    if bound.before.trip:
        yield float("-inf"), last[0]


def check(seed: int, *, is_cuda: bool) -> int:
    """Every execution lies in an interval of its bound; how many were looked at."""
    program, found, left = made(seed, is_cuda=is_cuda)
    looked = 0
    for bound in found:
        times = [time for line, time in program.ran if line == left[bound.key]]
        intervals = list(pairs(program, bound))
        assert all(any(low < time < high for low, high in intervals) for time in times), (seed, bound)
        looked += len(times)
    return looked


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32), st.booleans())
def test_every_execution_lies_between_the_records_that_bound_it(seed, is_cuda):
    check(seed, is_cuda=is_cuda)


def test_many_programs_have_bounds():
    looked = [check(seed, is_cuda=bool(seed % 2)) for seed in range(200)]
    assert sum(1 for each in looked if each) > 50
