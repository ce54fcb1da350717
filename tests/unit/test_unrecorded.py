# SPDX-License-Identifier: Apache-2.0
"""Where unrecorded stamps lie: neighbours by the order of the source, spans by hand."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from autostamp.analysis.call_positions import CallPositions
from autostamp.analysis.unrecorded import Missing, Place, bounds
from autostamp.model.manifest import EventKind, Instance, KernelTrace, Manifest, Payload, SourceFile
from autostamp.model.replay import Bound, Neighbour
from autostamp.model.site import Shape, Site, Span
from autostamp.model.sync import Kind, Side, StageFrom
from autostamp.model.trace import Event, Lane, Trace
from autostamp.passes.cuda import program_order as cuda
from autostamp.passes.cutedsl import program_order as cutedsl

SOURCE = textwrap.dedent("""\
    class Gemm:
        def kernel(self):                     # 2
            self.head.wait()
            for t in range(n):                # 4
                self.full.wait()              # 5
                self.step(t)
                if t > 2:
                    self.odd.arrive()         # 8
            self.tail.arrive()

        def step(self, t):                    # 11
            if const_expr(self.is_fast):
                self.mid.wait()               # 13
            else:
                self.slow.wait()              # 15
            self.sub()
            self.empty.arrive()               # 17

        def sub(self):                        # 19
            barrier()                         # 20
    """)

HEAD, FULL, ODD, TAIL, MID, EMPTY = 1, 2, 3, 4, 5, 6
LINES = {HEAD: 3, FULL: 5, ODD: 8, TAIL: 9, MID: 13, EMPTY: 17}
PATHS = {number: ("kernel:6", f"step:{LINES[number]}") for number in (MID, EMPTY)}
WAITS = (HEAD, FULL, MID)


def site(number: int, line: int) -> Site:
    return Site(
        number,
        Span(0, 1, line, 1),
        "call()",
        "call",
        "",
        Kind.WAIT,
        Side.FULL,
        StageFrom.NONE,
        Shape.STATEMENT,
        "kernel",
        "",
        "",
        0,
    )


def kernel_of(numbers: Sequence[int], paths: Mapping[int, tuple[str, ...]], half: int = 0) -> KernelTrace:
    """A kernel whose instances are stamped at both ends (`half`: at its enter alone)."""
    rows = tuple(
        Instance(
            number,
            "f",
            number,
            "mma",
            paths[number],
            "wait" if number in WAITS else "signal",
            "full",
            0,
            Payload.NONE,
            enter=10 * number if number in WAITS else 0,
            exit=10 * number + 1 if number in WAITS and number != half else 0,
            signal=0 if number in WAITS else 10 * number,
        )
        for number in numbers
    )
    return KernelTrace(1, "kernel", "f", 64, (0, 0, 0), 1, 1, (), rows)


def trace_of(kernel: KernelTrace, rows: Sequence[tuple[int, EventKind, int, int, int]]) -> Trace:
    """Rows are (instance, kind, cycles, replay, error), in the order of visits."""
    seen: dict[tuple[int, EventKind], int] = {}
    events = []
    for instance, kind, cycles, _, _ in rows:
        visit = seen.get((instance, kind), 0)
        seen[instance, kind] = visit + 1
        events.append(Event(cycles, kind, instance, 0, visit))
    replays, errors = tuple(row[3] for row in rows), tuple(row[4] for row in rows)
    return Trace(kernel, (Lane(4, 0, tuple(events), 0, 0, 999, 0, 0, replays, errors),), 1000.0)


def find(
    missing: Missing,
    rows: Sequence[tuple[int, EventKind, int, int, int]],
    text: str = SOURCE,
    *,
    half: int = 0,
) -> tuple[Bound, ...]:
    numbers = sorted({row[0] for row in rows})
    kernel = kernel_of(numbers, {n: PATHS.get(n, (f"kernel:{LINES[n]}",)) for n in numbers}, half)
    sites = tuple(site(number, line) for number, line in LINES.items())
    manifest = Manifest(1, "autostamp", (SourceFile("f", "f.py", "f", "", sites, (), ()),), (kernel,))
    positions = CallPositions.of_kernel(kernel, manifest, cutedsl.functions_of(text, "f"))
    return bounds([trace_of(kernel, rows)], [missing], positions)


def wait(
    number: int, start: int, end: int, replay: int = 1, error: int = 0
) -> list[tuple[int, EventKind, int, int, int]]:
    return [(number, EventKind.ENTER, start, replay, error), (number, EventKind.EXIT, end, replay, error)]


def signal(number: int, at: int, replay: int = 1, error: int = 0) -> tuple[int, EventKind, int, int, int]:
    return number, EventKind.SIGNAL, at, replay, error


TRIPS = [
    *wait(HEAD, 0, 10),
    *[row for at in (100, 200, 320) for row in (*wait(FULL, at, at + 20), signal(EMPTY, at + 70, 2, 4))],
    signal(ODD, 395),
    signal(TAIL, 400),
]
"""Three trips: FULL's exits at 120, 220, 340, EMPTY at 170, 270, 390 with an error of 4."""


def test_a_call_lies_between_the_nearest_calls_that_run_whenever_it_does():
    (found,) = find(Missing(Place("f", 13, 1, "k"), "wait"), TRIPS)
    assert (found.before, found.after) == (Neighbour(FULL, "exit"), Neighbour(EMPTY, "signal"))
    # 170 - 120, 270 - 220, 390 - 340; the reference's error is 0, EMPTY's is 4.
    assert (found.count, found.median, found.error, found.warps) == (3, 50, 4, (4,))


def test_a_function_without_records_is_found_by_its_calls():
    (found,) = find(Missing(Place("f", 20, 1, "k"), "wait"), TRIPS)
    assert (found.before, found.after) == (Neighbour(FULL, "exit"), Neighbour(EMPTY, "signal"))


def test_what_follows_in_the_next_trip_bounds_what_the_trip_ends_with():
    (found,) = find(Missing(Place("f", 8, 1, "k"), "signal"), [row for row in TRIPS if row[0] != ODD])
    assert (found.before, found.after) == (Neighbour(EMPTY, "signal"), Neighbour(FULL, "enter", trip=1))
    # 200 - 170 and 320 - 270.
    assert (found.count, found.median) == (2, 40)


def test_what_runs_in_some_trips_only_bounds_nothing():
    rows = [row for row in TRIPS if row[0] != EMPTY]
    (found,) = find(Missing(Place("f", 17, 1, "k"), "signal"), rows)
    assert (found.before, found.after) == (Neighbour(FULL, "exit"), Neighbour(FULL, "enter", trip=1))
    # 200 - 120 and 320 - 220: ODD at 395 is nearer in the last trip, and stands for none of the others.
    assert (found.count, found.median) == (2, 90)


def test_what_has_nothing_before_it_has_no_bound():
    assert find(Missing(Place("f", 3, 1, "k"), "wait"), [row for row in TRIPS if row[0] != HEAD]) == ()


def test_a_loop_is_entered_at_its_first_visit():
    text = SOURCE.replace("for t in range(n):                # 4", "self.mark.arrive()\n        for t in range(n):")
    lines = text.splitlines()
    assert "mark" in lines[3]
    shifted = {number: line + (line > 3) for number, line in LINES.items()}
    paths = {n: ("kernel:7", f"step:{shifted[n]}") if n in PATHS else (f"kernel:{shifted[n]}",) for n in shifted}
    numbers = sorted({row[0] for row in TRIPS})
    kernel = kernel_of(numbers, paths)
    sites = tuple(site(number, line) for number, line in shifted.items())
    manifest = Manifest(1, "autostamp", (SourceFile("f", "f.py", "f", "", sites, (), ()),), (kernel,))
    positions = CallPositions.of_kernel(kernel, manifest, cutedsl.functions_of(text, "f"))
    (found,) = bounds([trace_of(kernel, TRIPS)], [Missing(Place("f", 4, 1, "k"), "signal")], positions)
    # From HEAD's exit at 10 to the first of three enters, at 100.
    assert (found.before, found.after) == (Neighbour(HEAD, "exit"), Neighbour(FULL, "enter", "first"))
    assert (found.count, found.median) == (1, 90)


def test_the_other_stamp_of_a_wait_lies_on_its_own_side():
    rows = [row for row in TRIPS if (row[0], row[1]) != (FULL, EventKind.EXIT)]
    (found,) = find(Missing(Place("f", 5, 1, "k"), "exit", FULL), rows, half=FULL)
    assert (found.before, found.after) == (Neighbour(FULL, "enter"), Neighbour(EMPTY, "signal"))
    assert (found.count, found.median) == (3, 70)


def test_the_arm_that_was_not_compiled_has_no_place():
    rows = [*TRIPS, *[row for at in (130, 230, 350) for row in wait(MID, at, at + 5)]]
    assert find(Missing(Place("f", 15, 1, "k"), "wait"), rows) == ()


def test_nothing_is_said_of_a_source_that_cannot_be_read():
    assert find(Missing(Place("f", 13, 1, "k"), "wait"), TRIPS, "def kernel(:") == ()


def test_two_statements_of_one_line_have_no_place():
    text = SOURCE.replace("self.mid.wait()               # 13", "self.mid.wait(); more()")
    assert find(Missing(Place("f", 13, 1, "k"), "wait"), TRIPS, text) == ()


CUDA = textwrap.dedent("""\
    __device__ void inner() {
        sync();
    }
    __device__ void store() {
        arrive();
    }
    __global__ void kernel(int n) {
        if (threadIdx.x == 0) {
            head();
            for (int t = 0; t < n; ++t) {
                full();
                inner();
                if (t > 2) odd();
                empty();
            }
        } else {
            other();
        }
    }
    """)


def test_cuda_is_read_the_same_way():
    lines = {TAIL: 5, HEAD: 9, FULL: 11, EMPTY: 14}
    kernel = kernel_of([TAIL, HEAD, FULL, EMPTY], dict.fromkeys(lines, ()))
    sites = tuple(site(number, line) for number, line in lines.items())
    file = SourceFile("f", "f.cu", "", "", sites, (), (), language="cuda")
    functions = cuda.functions_of(CUDA, "f")
    positions = CallPositions.of_kernel(kernel, Manifest(1, "autostamp", (file,), (kernel,)), functions)
    trace = trace_of(kernel, [row for row in TRIPS if row[0] in lines])

    def ends(line: int, column: int = 1) -> list[tuple[int, str, int]]:
        found = bounds([trace], [Missing(Place("f", line, column, "k"), "wait")], positions)
        return [(end.instance, end.kind, end.trip) for each in found for end in (each.before, each.after)]

    assert ends(2) == ends(12) == ends(13, 24) == [(FULL, "exit", 0), (EMPTY, "signal", 0)]
    assert ends(17) == []  # the other warps: nothing of theirs is recorded


TILES = textwrap.dedent("""\
    __global__ void kernel(int n) {
        head();
        for (int tile = 0; tile < n; ++tile) {
            turn();
            for (int t = 0; t < n; ++t) {
                full();
            }
        }
    }
    """)


def test_a_record_before_a_loop_does_not_bound_what_is_in_it():
    """`turn` waits once a tile: only its first visit comes before the first `full` of all, so HEAD and that bound nothing."""
    lines = {HEAD: 2, FULL: 6}
    kernel = kernel_of([HEAD, FULL], dict.fromkeys(lines, ()))
    sites = tuple(site(number, line) for number, line in lines.items())
    file = SourceFile("f", "f.cu", "", "", sites, (), (), language="cuda")
    functions = cuda.functions_of(TILES, "f")
    positions = CallPositions.of_kernel(kernel, Manifest(1, "autostamp", (file,), (kernel,)), functions)
    trace = trace_of(kernel, [row for row in TRIPS if row[0] in lines])
    assert bounds([trace], [Missing(Place("f", 4, 1, "k"), "wait")], positions) == ()
