# SPDX-License-Identifier: Apache-2.0
"""A CTA with barriers that take their time, which keeps the truth: for every wait, the arrivals that completed its use.

Warps are generators of steps. What a step costs is drawn from the machine's random numbers, so a schedule is repeatable, and
nothing here looks at records: a barrier counts arrivals and bytes as the hardware does.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from autostamp.model.flow import End
from autostamp.model.manifest import Instance, KernelTrace, Payload
from tests.simulator.region import Stamp, WarpLog


@dataclass(frozen=True)
class Timing:
    """Bounds of what steps cost, in cycles, each drawn evenly from `least` to `most`.

    ready: of a wait whose barrier is complete (exactly). hand_off: from an arrival to the exit of a wait that stood there.
    late: from an arrival to its stamp. transfer: from an asynchronous arrival's issue to its landing.
    """

    ready: int = 0
    hand_off: tuple[int, int] = (1, 1)
    late: tuple[int, int] = (0, 0)
    transfer: tuple[int, int] = (20, 60)


@dataclass
class Phase:
    """One use of a barrier: its arrivals as stamped, and when it was complete."""

    ends: list[End] = field(default_factory=list)
    is_async: set[End] = field(default_factory=set)
    complete: int | None = None


@dataclass(eq=False)
class Barrier:
    """Counts `arrivals`, and bytes announced and landed, like an mbarrier; a named barrier has no bytes."""

    name: str
    arrivals: int
    payload: int = 0
    phases: list[Phase] = field(default_factory=lambda: [Phase()])
    pending: int = 0
    in_flight: int = 0
    waiting: list[tuple[int, Callable[[int], None]]] = field(default_factory=list)

    @property
    def use(self) -> int:
        """The use that is being filled."""
        return len(self.phases) - 1

    def arrive(self, clock: int) -> int:
        """Count an arrival; the use that it belongs to."""
        use = self.use
        self.pending += 1
        assert self.pending <= self.arrivals, f"{self.name}: more arrivals than a use takes"
        self._settle(clock)
        return use

    def land(self, clock: int) -> None:
        """Announced bytes have come."""
        self.in_flight -= 1
        self._settle(clock)

    def _settle(self, clock: int) -> None:
        if self.pending < self.arrivals or self.in_flight:
            return
        self.phases[-1].complete = clock
        self.phases.append(Phase())
        self.pending = 0
        ready = [wake for use, wake in self.waiting if use < self.use]
        self.waiting = [(use, wake) for use, wake in self.waiting if use >= self.use]
        for wake in ready:
            wake(clock)


@dataclass(frozen=True)
class Work:
    """Time passes, and nothing is stamped."""

    cycles: int


@dataclass(frozen=True)
class Wait:
    """Wait until `use` of the barrier is complete; -1 is granted. `arms`: at its end it announces bytes there and arrives.

    `all_of`: wait for these as well (a producer's tail).
    """

    instance: int
    barrier: Barrier
    use: int
    arms: Barrier | None = None
    all_of: tuple[tuple[Barrier, int], ...] = ()


@dataclass(frozen=True)
class Arrive:
    """Arrive, stamped as a signal. `announces` bytes that a Copy brings."""

    instance: int
    barrier: Barrier
    announces: int = 0


@dataclass(frozen=True)
class Copy:
    """Issue a copy whose bytes the barrier expects. `instance` 0: it has no stamp of its own."""

    instance: int
    barrier: Barrier


@dataclass(frozen=True)
class Commit:
    """A stamp after a copy's issue that emits nothing."""

    instance: int
    barrier: Barrier


@dataclass(frozen=True)
class Meet:
    """Arrive on a barrier and wait until all have."""

    instance: int
    barrier: Barrier


Step = Work | Wait | Arrive | Copy | Commit | Meet


@dataclass(frozen=True)
class WaitTruth:
    """One wait: its clocks, and the use it was for (-1: granted) of which barrier, whose phase is kept whole."""

    enter: int
    exit: End
    barrier: Barrier
    use: int
    own: End | None = None

    @property
    def phase(self) -> Phase | None:
        """The use's arrivals, None when it was granted."""
        return self.barrier.phases[self.use] if self.use >= 0 else None


@dataclass
class Truth:
    """What happened, by (warp, instance, visit), on the axis of the records (0: the earliest entry)."""

    waits: dict[tuple[int, int, int], WaitTruth] = field(default_factory=dict)
    logs: list[WarpLog] = field(default_factory=list)

    def stall(self, warp: int, ready: int) -> int:
        """Cycles that a warp spent in waits that took longer than `ready`."""
        lengths = [wait.exit.cycles - wait.enter for wait in self.waits.values() if wait.exit.warp == warp]
        return sum(length for length in lengths if length > ready)


class Machine:
    """Runs warps on one clock that starts at `base`; entries may differ."""

    def __init__(self, kernel: KernelTrace, timing: Timing, seed: int = 0, base: int = 0) -> None:
        self._instances: dict[int, Instance] = {item.number: item for item in kernel.instances}
        self._timing = timing
        self._random = random.Random(seed)
        self._base = base
        self._queue: list[tuple[int, int, Callable[[int], None]]] = []
        self._order = itertools.count()
        self._visits: dict[tuple[int, int, str], int] = {}
        self._logs: dict[int, WarpLog] = {}
        self._first = 0
        self._truth = Truth()

    def run(self, warps: Mapping[int, Iterator[Step]], entries: Mapping[int, int] | None = None) -> Truth:
        """The truth, with the logs that a region is written from. Every warp must come to its end."""
        entries = entries or dict.fromkeys(warps, 0)
        self._first = min(entries.values())
        for warp, steps in warps.items():
            clock = entries[warp]
            self._logs[warp] = WarpLog(warp, self._base + clock, None)
            self._at(clock, self._stepper(warp, steps))
        while self._queue:
            clock, _, act = heapq.heappop(self._queue)
            act(clock)
        stuck = [warp for warp, log in self._logs.items() if log.exit is None]
        assert not stuck, f"warps {stuck} wait for ever"
        self._truth.logs = list(self._logs.values())
        return self._truth

    def _at(self, clock: int, act: Callable[[int], None]) -> None:
        heapq.heappush(self._queue, (clock, next(self._order), act))

    def _draw(self, bounds: tuple[int, int]) -> int:
        return self._random.randint(*bounds)

    def _stamp(self, warp: int, instance: int, stamp: str, clock: int, barrier: Barrier) -> End:
        """A record; the end that an arrow would have there."""
        row = self._instances[instance]
        has_payload = row.payload is not Payload.NONE and stamp != "exit"
        event = {"enter": row.enter, "exit": row.exit, "signal": row.signal}[stamp]
        self._logs[warp].stamps.append(Stamp(self._base + clock, event, barrier.payload if has_payload else 0))
        visit = self._visits.get((warp, instance, stamp), 0)
        self._visits[warp, instance, stamp] = visit + 1
        return End(warp, instance, visit, clock - self._first)

    def _stepper(self, warp: int, steps: Iterator[Step]) -> Callable[[int], None]:
        def advance(clock: int) -> None:
            step = next(steps, None)
            if step is None:
                self._logs[warp].exit = self._base + clock
            elif isinstance(step, Work):
                self._at(clock + step.cycles, advance)
            elif isinstance(step, Wait | Meet):
                self._wait(warp, clock, step, advance)
            else:
                self._signal(warp, clock, step, advance)

        return advance

    def _signal(self, warp: int, clock: int, step: Arrive | Copy | Commit, advance: Callable[[int], None]) -> None:
        barrier = step.barrier
        phase = barrier.phases[-1]
        stamped = clock + self._draw(self._timing.late)
        if isinstance(step, Copy):
            self._at(clock + self._draw(self._timing.transfer), barrier.land)
        if step.instance:
            # The arrival takes effect now; its stamp comes when the warp gets to it.
            end = self._stamp(warp, step.instance, "signal", stamped, barrier)
            phase.ends.append(end)
            if not isinstance(step, Arrive):
                phase.is_async.add(end)
        if isinstance(step, Arrive):
            barrier.in_flight += step.announces
            barrier.arrive(clock)
        self._at(stamped, advance)

    def _wait(self, warp: int, clock: int, step: Wait | Meet, advance: Callable[[int], None]) -> None:
        barrier = step.barrier
        enter = self._stamp(warp, step.instance, "enter", clock, barrier)
        wanted: list[tuple[Barrier, int]]
        own: End | None = None
        if isinstance(step, Meet):
            barrier.phases[-1].ends.append(enter)
            own = enter
            wanted = [(barrier, barrier.use)]
            barrier.arrive(clock)
        else:
            wanted = [(barrier, step.use), *step.all_of]
        left = [pair for pair in wanted if pair[0].use <= pair[1]]
        latest = [max(clock, pair[0].phases[pair[1]].complete or 0) for pair in wanted if pair[0].use > pair[1] >= 0]
        state = {"left": len(left), "complete": max(latest, default=clock)}

        def finish(complete: int) -> None:
            exit_ = max(
                clock + self._timing.ready, complete + self._draw(self._timing.hand_off) if complete > clock else 0
            )
            self._at(exit_, lambda at: self._leave(warp, step, enter, at, wanted, own, advance))

        def one_came(complete: int) -> None:
            state["left"] -= 1
            state["complete"] = max(state["complete"], complete)
            if not state["left"]:
                finish(state["complete"])

        for one, use in left:
            one.waiting.append((use, one_came))
        if not left:
            finish(clock)

    def _leave(
        self,
        warp: int,
        step: Wait | Meet,
        enter: End,
        clock: int,
        wanted: list[tuple[Barrier, int]],
        own: End | None,
        advance: Callable[[int], None],
    ) -> None:
        exit_ = self._stamp(warp, step.instance, "exit", clock, step.barrier)
        barrier, use = max(wanted, key=lambda pair: pair[0].phases[pair[1]].complete or 0 if pair[1] >= 0 else -1)
        truth = WaitTruth(enter.cycles, exit_, barrier, use, own)
        self._truth.waits[warp, step.instance, exit_.visit] = truth
        if isinstance(step, Wait) and step.arms is not None:
            # Announced within the call: its exit is the record of that.
            phase = step.arms.phases[-1]
            phase.ends.append(exit_)
            phase.is_async.add(exit_)
            step.arms.in_flight += 1
            step.arms.arrive(clock)
        self._at(clock, advance)
