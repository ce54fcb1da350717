# SPDX-License-Identifier: Apache-2.0
"""A kernel with nine sites whose every launch jitters, and what replays with a part of its sites would have recorded of it.

Simulated stamps take no time, so a replay with fewer of them runs the same schedule: only the jitter of its launches is another.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from autostamp.model.manifest import (
    MANIFEST_VERSION,
    Barrier,
    Instance,
    KernelTrace,
    Manifest,
    Payload,
    SourceFile,
)
from autostamp.model.placement import Form
from autostamp.model.replay import Recording
from autostamp.model.run import MachineFacts
from autostamp.model.site import Shape, Site, Span
from autostamp.model.sync import Kind, Side, StageFrom
from autostamp.model.trace import Event, Trace
from autostamp.runtime.decode import decode_region
from autostamp.runtime.encode import encode_region
from autostamp.runtime.regions import Recorded
from autostamp.runtime.store import write_run
from tests.simulator.kernel import Action, Arrive, Simulation, Wait, Work
from tests.simulator.region import write_region
from tests.simulator.tables import FILE_KEY, SIGNATURE, kernel_trace, signal_row, wait_row

ACQUIRE_K, COMMIT_K, ACQUIRE_V, COMMIT_V = 1, 2, 3, 4
WAIT_K, GROUP, WAIT_V, RELEASE_K, RELEASE_V = 5, 6, 7, 8, 9
LOAD_SITES = (ACQUIRE_K, COMMIT_K, ACQUIRE_V, COMMIT_V)
MMA_SITES = (WAIT_K, GROUP, WAIT_V, RELEASE_K, RELEASE_V)
STAGES = 2
LEFT_OUT = {Form.ENTER: "exit", Form.EXIT: "enter"}


@dataclass(frozen=True)
class Schedule:
    """Cycles of each piece of work; each varies evenly by up to `jitter` to both sides, from one iteration to the next.

    `late` moves work of the MMA warps from before the group wait to after it: the period stays, the order of things does not.
    """

    iterations: int = 12
    load: int = 60
    first: int = 90
    second: int = 70
    third: int = 50
    jitter: int = 8
    late: int = 0
    consumers: int = 2

    def launch(self, seed: int) -> Trace:
        """One launch with every site stamped."""
        kernel = full_kernel()
        draw = random.Random(seed)
        simulation = Simulation(kernel, dict.fromkeys(range(1 + self.consumers), 0))
        warps: dict[int, Iterator[Action]] = {0: self._producer(draw)}
        warps |= {warp: self._consumer(draw) for warp in range(1, 1 + self.consumers)}
        return decode_region(write_region(kernel.capacity, simulation.run(warps), SIGNATURE), kernel)

    def _work(self, draw: random.Random, cycles: int) -> Work:
        return Work(cycles + draw.randint(-self.jitter, self.jitter))

    def _producer(self, draw: random.Random) -> Iterator[Action]:
        for use in range(self.iterations):
            lap, stage = divmod(use, STAGES)
            for acquire, commit, name in ((ACQUIRE_K, COMMIT_K, "K"), (ACQUIRE_V, COMMIT_V, "V")):
                yield Wait(acquire, ("empty", name, stage), lap * self.consumers, stage)
                yield self._work(draw, self.load)
                yield Arrive(commit, ("full", name, stage), stage)

    def _consumer(self, draw: random.Random) -> Iterator[Action]:
        for use in range(self.iterations):
            lap, stage = divmod(use, STAGES)
            yield Wait(WAIT_K, ("full", "K", stage), lap + 1, stage)
            yield self._work(draw, self.first - self.late)
            yield Wait(GROUP, ("full", "K", stage), lap + 1)
            yield self._work(draw, 20 + self.late)
            yield Wait(WAIT_V, ("full", "V", stage), lap + 1, stage)
            yield self._work(draw, self.second)
            yield Arrive(RELEASE_K, ("empty", "K", stage), stage)
            yield self._work(draw, self.third)
            yield Arrive(RELEASE_V, ("empty", "V", stage), stage)


def full_kernel() -> KernelTrace:
    """All nine sites, one instance each."""
    k, v = {"barrier": 1, "payload": Payload.STAGE}, {"barrier": 2, "payload": Payload.STAGE}
    rows = (
        wait_row(ACQUIRE_K, 1, 2, role="load", side="empty", **k),
        signal_row(COMMIT_K, 3, role="load", side="full", **k),
        wait_row(ACQUIRE_V, 4, 5, role="load", side="empty", **v),
        signal_row(COMMIT_V, 6, role="load", side="full", **v),
        wait_row(WAIT_K, 7, 8, role="mma", side="full", **k),
        wait_row(GROUP, 9, 10, role="mma", side="async-group", barrier=0),
        wait_row(WAIT_V, 11, 12, role="mma", side="full", **v),
        signal_row(RELEASE_K, 13, role="mma", side="empty", **k),
        signal_row(RELEASE_V, 14, role="mma", side="empty", **v),
    )
    barriers = (Barrier(1, "K", "PipelineAsync", STAGES, False), Barrier(2, "V", "PipelineAsync", STAGES, False))
    return kernel_trace(rows, barriers, capacity=256)


def with_sites(trace: Trace, sites: Collection[int], forms: Mapping[int, Form] | None = None) -> Trace:
    """What a build with these sites alone would have recorded: its instances and events are numbered without gaps.

    `forms` has the waits of which one stamp is left out.
    """
    left_out = {site: LEFT_OUT[form] for site, form in (forms or {}).items() if form in LEFT_OUT}
    rows: list[Instance] = []
    event = 0
    for row in trace.kernel.instances:
        if row.site not in sites:
            continue
        numbers = {}
        for name in ("enter", "exit", "signal"):
            numbers[name] = 0
            if getattr(row, name) and left_out.get(row.site) != name:
                event += 1
                numbers[name] = event
        rows.append(replace(row, number=len(rows) + 1, **numbers))  # type: ignore[arg-type]
    used = sorted({row.barrier for row in rows if row.barrier})
    barriers = tuple(replace(trace.kernel.barriers[old - 1], number=new) for new, old in enumerate(used, 1))
    rows = [replace(row, barrier=used.index(row.barrier) + 1 if row.barrier else 0) for row in rows]
    number = {row.site: row.number for row in rows}
    lanes = tuple(
        replace(
            lane,
            events=tuple(
                replace(one, instance=number[one.instance])
                for one in lane.events
                if one.instance in number and left_out.get(one.instance) != one.kind.value
            ),
        )
        for lane in trace.lanes
    )
    return replace(trace, kernel=replace(trace.kernel, instances=tuple(rows), barriers=barriers), lanes=lanes)


def recordings(launches: Sequence[Sequence[Trace]], sites: Sequence[Collection[int]]) -> tuple[Recording, ...]:
    """A recording for each set of sites, of its own launches."""
    return tuple(
        Recording(number, tuple(replace(with_sites(trace, chosen), launch=at) for at, trace in enumerate(own)))
        for number, (own, chosen) in enumerate(zip(launches, sites, strict=True), 1)
    )


def by_name(trace: Trace) -> dict[tuple[int, int, str, int], Event]:
    """Every record by (warp, site, kind, visit)."""
    site = {row.number: row.site for row in trace.kernel.instances}
    return {
        (lane.warp, site[event.instance], event.kind.value, event.visit): event
        for lane in trace.lanes
        for event in lane.events
    }


def replay_manifest(kernel: KernelTrace) -> Manifest:
    """A manifest of one file with the sites of the kernel's instances, site n on line 10 n; the others are not selected."""
    sites = tuple(
        Site(
            number=row.site,
            span=Span(100 * row.site, 100 * row.site + 20, 10 * row.site, 5),
            text=f"site_{row.site}()",
            method=f"site_{row.site}",
            owner="",
            kind=Kind(row.kind),
            side=Side(row.side),
            stage_from=StageFrom.NONE,
            shape=Shape.STATEMENT,
            function="kernel",
            barrier="",
            role=row.role,
            loop_depth=1,
        )
        for row in kernel.instances
    )
    source = SourceFile(FILE_KEY, "src/attention.py", "attention", FILE_KEY * 4, sites, (), ())
    return Manifest(MANIFEST_VERSION, "autostamp 0.1.0", (source,), (kernel,))


def key_of_site(site: int) -> str:
    """The key of a site in `replay_manifest`."""
    return f"attention.py:{10 * site}:5@{FILE_KEY}"


def write_replay(
    folder: Path, launches: Sequence[Trace], sites: Collection[int], forms: Mapping[int, Form] | None = None
) -> None:
    """The run folder that a build with these sites alone would have left of the launches."""
    traces = [replace(with_sites(trace, sites, forms), launch=at) for at, trace in enumerate(launches)]
    kernel = traces[0].kernel
    regions = [
        Recorded(kernel.region, encode_region(replace(trace, kernel=kernel)), at, 0, (0, 0, 0), (1, 1, 1))
        for at, trace in enumerate(traces)
    ]
    write_run(folder, replay_manifest(kernel), regions, MachineFacts(gpu="simulated"), {})
