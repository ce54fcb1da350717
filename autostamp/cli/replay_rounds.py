# SPDX-License-Identifier: Apache-2.0
"""Rounds of replays: every set of one is run between clean runs, there and back, and what came of each is kept."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import click

if TYPE_CHECKING:
    from autostamp.analysis.replay_sets import Trial
    from autostamp.hooks.replay_builds import Builds
    from autostamp.hooks.replay_program import Early, Outcome, Program
    from autostamp.model.placement import Placement
    from autostamp.model.replay import SetTimes


STRETCH: Final = 8
"""Stamped runs from one clean run to the next, about: a clock drifts over minutes, and clean runs of one program differ."""


@dataclass
class Ran:
    """All runs of one set so far, and the clean runs of the same rounds. `fault`: code and reason where it cannot be kept."""

    trial: Trial
    clean: list[Outcome] = field(default_factory=list)
    stamped: list[Outcome] = field(default_factory=list)
    are_equal: bool | None = None
    fault: tuple[str, str] | None = None

    @property
    def runs(self) -> list[Path]:
        """The run folders."""
        return [each.run for each in self.stamped if each.run is not None]

    @property
    def noise(self) -> float:
        """By what share of it the times of its runs differ, each its median; 0 where the program prints none."""
        from autostamp.analysis.replay_sets import noise_of

        return noise_of([each.times for each in self.stamped])


class Rounds:
    """Runs sets of a placement. `ran` has every set that was run by its number; `unsteady` whether clean results differed."""

    def __init__(self, program: Program, placement: Placement, folder: Path, jobs: int, *, quiet: bool) -> None:
        from autostamp.hooks.replay_builds import Builds

        self._program = program
        self._placement = placement
        self._folder = folder
        self._jobs = jobs
        self._quiet = quiet
        self._count = 0
        self._builds = Builds(program, folder / "builds", jobs)
        self.ran: dict[int, Ran] = {}
        self.clean: list[Outcome] = []
        self.unsteady = False

    @property
    def noise(self) -> float:
        """By what share of it the times of clean runs differ, each its median; 0 where the program prints none."""
        from autostamp.analysis.replay_sets import noise_of

        return noise_of([each.times for each in self.clean])

    def run(self, trials: Sequence[Trial], times: int) -> int:
        """Clean, every set there and back as often as it is to be run, clean: a steady drift is in all of them alike.

        The program's status where the clean run failed, else 0.
        """
        placement = _with_sets(self._placement, trials)
        order = _order([trial.number for trial in trials], times)
        ends: dict[int, list[Callable[[], Outcome]]] = {number: [] for number in order}
        sizes = {trial.number: len(trial.sites) for trial in trials}
        self._build(placement, order)
        folder = self._folder / f"round_{self._count}"
        with _Queue(self._program, placement, folder, order, self._jobs, self._builds) as queue:
            for at, number in enumerate(order):
                known = ends[number]
                if known and (known[0]().status or known[0]().fault):
                    continue
                self._say(number, sizes)
                known.append(queue.run(at))
                if not number and (status := known[0]().status):
                    return status
            outcomes = {number: [end() for end in each] for number, each in ends.items()}
        clean = outcomes[0]
        self.clean += clean
        if any(each.results != self.clean[0].results for each in clean):
            self.unsteady = True
        for trial in trials:
            self._keep(trial, clean, outcomes[trial.number])
        return 0

    def _build(self, placement: Placement, order: Sequence[int]) -> None:
        """Have every set built that is not yet, side by side, where its program has a name of its own."""
        missing = self._builds.missing(order)
        if missing and not self._quiet:
            count = f"{len(missing)} programs" if len(missing) > 1 else "a program"
            click.echo(f"autostamp: build {count}, up to {self._jobs} at a time", err=True)
        self._builds.prepare(placement, missing)

    def _say(self, number: int, sizes: dict[int, int]) -> None:
        """What is being run now."""
        self._count += 1
        if not self._quiet:
            what = f"set {number}, {sizes[number]} sites" if number else "the clean kernel"
            click.echo(f"autostamp: run {self._count}: {what}", err=True)
        sys.stderr.flush()

    def _keep(self, trial: Trial, clean: Sequence[Outcome], stamped: Sequence[Outcome]) -> None:
        ran = self.ran.setdefault(trial.number, Ran(trial))
        ran.clean += clean
        ran.stamped += stamped
        wrong = next((each for each in stamped if each.status or each.fault or each.run is None), None)
        if wrong is not None:
            ran.fault = ("AS8125", wrong.fault or f"the program ended with status {wrong.status}")
        elif self._program.results and clean[0].results and not self.unsteady:
            ran.are_equal = all(each.results == clean[0].results for each in stamped)
            if not ran.are_equal:
                ran.fault = ("AS8130", "the program's results are not those of the clean run")
        elif self.unsteady:
            ran.are_equal = None

    def times(self, ran: Ran) -> SetTimes:
        """What a set takes against the clean runs beside it; of several kernels the one that lost most."""
        from autostamp.analysis.replay_sets import CTA_TIME, times_of

        if self._program.time:
            method = "what the program printed"
            return times_of([each.times for each in ran.clean], [each.times for each in ran.stamped], method)
        spans = [[_spans(each.run) for each in side] for side in (ran.clean, ran.stamped)]
        found = [
            times_of([of.get(kernel, []) for of in spans[0]], [of.get(kernel, []) for of in spans[1]], CTA_TIME)
            for kernel in dict.fromkeys(kernel for of in spans[1] for kernel in of)
        ]
        return max(found, key=lambda each: each.ratio, default=times_of([], [], CTA_TIME))


def _order(there: Sequence[int], times: int) -> list[int]:
    """Sets there and back, clean (0) before and after them and after every `STRETCH` runs in between."""
    stamped = [number for run in range(times) for number in there[:: 1 - 2 * (run % 2)]]
    parts = max(1, round(len(stamped) / STRETCH))
    ends = [len(stamped) * at // parts for at in range(parts + 1)]
    order = [0]
    for begin, end in pairwise(ends):
        order += [*stamped[begin:end], 0]
    return order


class _Queue:
    """The runs of one round in their order, each started up to `jobs` - 1 turns ahead."""

    def __init__(
        self, program: Program, placement: Placement, folder: Path, order: Sequence[int], jobs: int, builds: Builds
    ) -> None:
        self._program = program
        self._placement = placement
        self._folder = folder
        self._order = order
        self._jobs = jobs
        self._builds = builds
        self._early: dict[int, Early | None] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for early in self._early.values():
            if early is not None and early.process.poll() is None:
                early.stop()

    def run(self, at: int) -> Callable[[], Outcome]:
        """Let the run at this place of the order have its turn; what is returned waits for its end, and says how it ended."""
        from autostamp.hooks import replay_program

        if self._jobs > 1:
            for ahead in range(at, min(at + self._jobs, len(self._order))):
                if ahead not in self._early:
                    number = self._order[ahead]
                    self._early[ahead] = replay_program.start_early(
                        self._program, self._placement, number, self._place(ahead)
                    )
        number, place = self._order[at], self._place(at)
        early = self._early.get(at)
        if early is None:
            failed = self._builds.ready(self._placement, number)
            if failed is not None:
                return lambda: failed
            outcome = replay_program.replay(self._program, self._placement, number, place)
            return lambda: outcome
        results = early.take_turn(self._program)
        return cache(lambda: early.outcome(self._program, number, place, results))

    def _place(self, at: int) -> Path:
        return self._folder / f"{at:03}_set_{self._order[at]}"


def _with_sets(placement: Placement, trials: Iterable[Trial]) -> Placement:
    """The placement with these sets in the place of its own; numbers in between have none."""
    from autostamp.model.placement import ReplaySet

    features = placement.sets[0].features
    sets = tuple(ReplaySet(each.number, each.sites, each.anchors, features) for each in trials)
    return replace(placement, sets=sets)


def _spans(run: Path | None) -> dict[tuple[str, int], list[float]]:
    """CTA times of a run by kernel and its place among those of that name."""
    from autostamp.analysis.replay_sets import spans_of
    from autostamp.cli.run_joined import by_kernel
    from autostamp.runtime.store import load_run

    if run is None:
        return {}
    return {key[:2]: spans_of(traces) for key, traces in by_kernel(load_run(run)).items()}
