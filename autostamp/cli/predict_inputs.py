# SPDX-License-Identifier: Apache-2.0
"""What `autostamp predict` knows of a kernel before the user's word: loops of its cubin, roles and rings of its run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from autostamp.diagnostics import AutostampError

if TYPE_CHECKING:
    from autostamp.model.cubin import CubinFacts
    from autostamp.model.kernel_loops import LoopReport
    from autostamp.model.run import MachineFacts
    from autostamp.model.trace import Trace
    from autostamp.predict.given import Given
    from autostamp.predict.kernel import Kernel, KnownRing, RoleLoop

CLEAN = "clean.cubin"
"""What `autostamp launch` leaves in a run folder beside the stamped one."""

WARPS_OF_LOAD_GROUP = 4
"""Warps of the warpgroup that a Hopper kernel gives to its loads, most of which do nothing."""


EPILOGUES = frozenset({"store", "compute", "copy"})
"""Roles that may work once a tile: their loop is left out where it is not as deep as the others."""


OWN_STORES = frozenset({"STS", "STSM", "LDTM", "LDT"})


@dataclass(frozen=True, slots=True)
class RunKnowledge:
    """What a run says: its kernel's name, warps by role, rings, and CTAs (0: unknown). `digest` is of its sources."""

    name: str
    warps: Mapping[str, int]
    rings: tuple[KnownRing, ...]
    ctas: int
    facts: MachineFacts
    digest: str


def read_run(path: Path, pattern: str, trace: int | None) -> RunKnowledge:
    """One kernel of a run. Raises what `load_run` raises, and AS9001 where the choice is not of one kernel."""
    from fnmatch import fnmatchcase

    from autostamp.runtime.prediction_file import digest_of_sources
    from autostamp.runtime.store import load_run

    data = load_run(path)
    chosen = [
        each
        for number, each in data.traces.items()
        if each.lanes and trace in (None, number) and fnmatchcase(each.kernel.kernel, pattern)
    ]
    if len(chosen) != 1:
        there = ", ".join(f"{number} {each.kernel.kernel}" for number, each in data.traces.items()) or "none"
        raise AutostampError.of("AS9001", detail=f"{len(chosen)} kernel traces fit; choose one with --trace: {there}")
    (one,) = chosen
    warps = _warps(one)
    return RunKnowledge(one.kernel.kernel, warps, _rings(one), _ctas(one), data.facts, digest_of_sources(data.manifest))


def _ctas(trace: Trace) -> int:
    across, down, deep = trace.grid
    return across * down * deep


def _warps(trace: Trace) -> dict[str, int]:
    """Warps by role. Warps without a role of their own are left out: they wait for the others to end."""
    from autostamp.analysis.roles import group_warps

    instances = {each.number: each for each in trace.kernel.instances}
    named = {each.role for each in instances.values()} | set(trace.roles)
    found: Counter[str] = Counter()
    for group in group_warps(trace, instances):
        if group.role in named:
            found[group.role] += len(group.warps)
    return dict(found)


def _rings(trace: Trace) -> tuple[KnownRing, ...]:
    """Barriers with a full and an empty side and a known depth, waited for in the main loop: not seldom beside the others."""
    from autostamp.analysis.rings import Rings
    from autostamp.model.manifest import EventKind
    from autostamp.predict.kernel import KnownRing

    instances = {each.number: each for each in trace.kernel.instances}
    waits: Counter[tuple[int, str]] = Counter()
    roles: dict[tuple[int, str], str] = {}
    for lane in trace.lanes:
        mine: Counter[tuple[int, str]] = Counter()
        for event in lane.events:
            one = instances[event.instance]
            if event.kind is EventKind.ENTER and one.side in {"full", "empty"}:
                mine[one.barrier, one.side] += 1
                roles.setdefault((one.barrier, one.side), one.role)
        for key, count in mine.items():
            waits[key] = max(waits[key], count)
    seen = Rings.of(trace)
    most = max(waits.values(), default=0)
    found = []
    for barrier in trace.kernel.barriers:
        full, empty = (barrier.number, "full"), (barrier.number, "empty")
        depth = barrier.stages or seen.depth(*full) or seen.depth(*empty)
        if depth and full in roles and empty in roles and 2 * waits[full] >= most:
            found.append(KnownRing(barrier.label, roles[empty], roles[full], depth))
    return tuple(found)


def choose_kernel(kernels: Sequence[CubinFacts], pattern: str, path: Path, wanted: str = "") -> CubinFacts:
    """The one kernel of a cubin that matches, or, of several, the one that is called as the run's."""
    from fnmatch import fnmatchcase

    chosen = [each for each in kernels if fnmatchcase(each.kernel, pattern)]
    if len(chosen) > 1 and wanted:
        short = re.split(r"::|\.", wanted.partition("<")[0])[-1]
        chosen = [each for each in chosen if short in each.kernel] or chosen
    if len(chosen) != 1:
        there = ", ".join(each.kernel for each in kernels) or "none"
        raise AutostampError.of(
            "AS9001", detail=f"{len(chosen)} kernels of {path} fit; choose one with --kernel: {there}"
        )
    return chosen[0]


def describe(path: Path | None, run: RunKnowledge | None, pattern: str, given: Given) -> Kernel:
    """Loops of the cubin with the warps that run them, rings of the run, and the names that a budget may use."""
    from autostamp.predict.kernel import Kernel

    loops: tuple[RoleLoop, ...] = ()
    name, notes, without = run.name if run is not None else "", [], "the run has no cubin (--cubin gives one)"
    if path is not None:
        facts = _facts(path, pattern if run is None else "*", name)
        name = name or facts.kernel
        loops = _role_loops(facts, path, run, given)
        without = "" if loops else f"no main loop was found in {path.name}"
        if facts.clock_reads:
            notes.append(f"{path.name} holds stamps; their instructions are left out")
    known = tuple(run.warps) if run is not None else _roles_of_cubin(loops, given)
    if run is not None and (strange := [loop.role for loop in loops if loop.role not in run.warps]):
        notes.append(f"loops of the cubin that fit no role of the run: {', '.join(strange)}")
        loops = tuple(loop for loop in loops if loop.role in run.warps)
    rings, ctas = (run.rings, run.ctas) if run is not None else ((), 0)
    return Kernel(name, loops, rings, known, ctas, tuple(notes), without)


def _roles_of_cubin(loops: Sequence[RoleLoop], given: Given) -> tuple[str, ...]:
    """Names that a budget may use without a run: those of the loops, and of roles whose warps it gives."""
    declared = [name for name, said in given.roles.items() if said.warps]
    return tuple(dict.fromkeys([*(loop.role for loop in loops), *declared])) if loops else ()


def _facts(path: Path, pattern: str, wanted: str) -> CubinFacts:
    from autostamp.runtime import cubin

    cubin.require(path)
    return choose_kernel(cubin.read_file(path), pattern, path, wanted)


def _role_loops(facts: CubinFacts, path: Path, run: RunKnowledge | None, given: Given) -> tuple[RoleLoop, ...]:
    from autostamp.passes.definitions import Definitions
    from autostamp.passes.loop_report import KernelLoops
    from autostamp.passes.loop_traffic import traffic
    from autostamp.passes.trip_code import trip_code
    from autostamp.predict.kernel import RoleLoop

    read = KernelLoops(facts, without_stamps=True)
    report = read.report()
    chosen = _chosen(report.loops, given, facts.kernel)
    inner = max((each.facts.depth for role, each in chosen.items() if role not in EPILOGUES), default=0)
    outer = {role for role, each in chosen.items() if role in EPILOGUES and each.facts.depth < inner}
    together = {role: each for role, each in chosen.items() if role not in outer}
    bounds = {} if run is not None else _launch_bounds(path, facts.kernel, together)
    code = Definitions(facts.instructions)
    found = []
    for role, loop in chosen.items():
        warps, source = (run.warps.get(role, 0), "") if run is not None else bounds.get(role, (0, ""))
        trip = read.trip_at(loop.facts.start).instructions
        moved, ops = traffic(trip, code), trip_code(trip, code)
        found.append(RoleLoop(role, warps, source, loop.facts, moved, loop.copies, role in outer, code=ops))
    return tuple(found)


def _chosen(loops: Sequence[LoopReport], given: Given, kernel: str) -> dict[str, LoopReport]:
    """One loop for each role: the one that the user names by its address, else the main one."""
    chosen = {each.role: each for each in loops if each.is_main}
    for role, said in given.roles.items():
        if said.loop >= 0:
            named = [each for each in loops if each.facts.start == said.loop]
            if not named:
                there = ", ".join(f"{each.facts.start:#06x}" for each in loops) or "none"
                detail = f"roles.{role}.loop: {kernel} has no loop at {said.loop:#06x} (it has {there})"
                raise AutostampError.of("AS7120", path=given.path, detail=detail)
            # The loop's guessed role would count the same instructions once more.
            chosen = {name: each for name, each in chosen.items() if each is not named[0]}
            chosen[role] = named[0]
    return chosen


def _launch_bounds(path: Path, kernel: str, loops: Mapping[str, LoopReport]) -> dict[str, tuple[int, str]]:
    """Warps by role where the code tells: what one thread issues is one warp's, and where there is nothing but a warpgroup
    that loads and others that multiply, the launch bounds say how many those are.
    """
    from autostamp.runtime.launch_bounds import threads

    found = {}
    for role, what in (("load", "loads"), ("store", "stores")):
        # Warps that also write what TMA then stores are as many as they like.
        if role in loops and not OWN_STORES & set(loops[role].facts.counts):
            found[role] = (1, f"as TMA {what} are issued by one thread")
    if "mma" in loops and any(each.opcode.startswith("UTC") for each in loops["mma"].facts.mma):
        found["mma"] = (1, "as tcgen05.mma is issued by one thread")
        return found
    count = threads(path).get(kernel, 0) // 32
    is_plain = "mma" in loops and set(loops) <= {"load", "mma", "store"}
    if is_plain and count > WARPS_OF_LOAD_GROUP and count % WARPS_OF_LOAD_GROUP == 0:
        how = f"the {count} of its launch bounds less one warpgroup that loads"
        found["mma"] = (count - WARPS_OF_LOAD_GROUP, how)
    return found


def product_of(gpu: str) -> str:
    """The machine table of a GPU by the name that its driver gives, "" where none fits: NVIDIA H200 is h200."""
    from autostamp.predict.machines import products

    words = set(gpu.upper().replace("-", " ").split())
    if words & {"PCIE", "NVL"}:
        return ""
    fitting = [each for each in products() if set(each.upper().split("_")) - {"SXM"} <= words]
    return max(fitting, key=len, default="")
