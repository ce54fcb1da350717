# SPDX-License-Identifier: Apache-2.0
"""`autostamp run --replay`: run a program once for each set of a placement, time each against the clean kernel, and join them."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import click

from autostamp.diagnostics import AutostampError, Diagnostic, ExitStatus, render

if TYPE_CHECKING:
    from autostamp.analysis.replay_sets import Trial
    from autostamp.cli.replay_options import ReplayChoices
    from autostamp.hooks.replay_program import Early, Outcome, Program
    from autostamp.model.placement import Placement
    from autostamp.model.replay import Refusal, ReplayedSet, SetTimes

ROUNDS: Final = 6
"""A set above the bar is split at most so often, less one."""


def run_replays(program: Program, asked: ReplayChoices, out: Path, *, quiet: bool) -> int:
    """Run, time, split or drop, join, and write the run folder; the exit status.

    Raises AS9001 without a placement or with one that has no set, and AS8131 where nothing is left to join.
    """
    from autostamp.runtime.placement_file import read_placement

    if asked.placement is None:
        raise AutostampError.of("AS9001", detail="--replay needs --placement FILE, which `autostamp place` makes")
    placement = read_placement(asked.placement)
    if not placement.sets:
        raise AutostampError.of("AS9001", detail=f"{asked.placement} has no set to replay")
    with tempfile.TemporaryDirectory(prefix="autostamp-") as folder:
        session = _Session(program, placement, Path(folder), asked, quiet=quiet)
        status = session.run()
        if status:
            return 128 - status if status < 0 else status
        session.write(out)
    for finding in session.findings:
        click.echo(render(finding), err=True)
    if not quiet:
        click.echo(f"wrote {out}; read it with: autostamp summary {out}", err=True)
    return max((finding.status for finding in session.findings), default=ExitStatus.OK)


class _Queue:
    """The runs of one round in their order, each started up to `jobs` - 1 turns ahead."""

    def __init__(self, program: Program, placement: Placement, folder: Path, order: Sequence[int], jobs: int) -> None:
        self._program = program
        self._placement = placement
        self._folder = folder
        self._order = order
        self._jobs = jobs
        self._early: dict[int, Early | None] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for early in self._early.values():
            if early is not None:
                early.stop()

    def run(self, at: int) -> Outcome:
        """The outcome of the run at this place of the order, to its end."""
        from autostamp.hooks import replay_program

        if self._jobs > 1:
            for ahead in range(at, min(at + self._jobs, len(self._order))):
                if ahead not in self._early:
                    number = self._order[ahead]
                    self._early[ahead] = replay_program.start_early(
                        self._program, self._placement, number, self._place(ahead)
                    )
        early = self._early.pop(at, None)
        return replay_program.replay(self._program, self._placement, self._order[at], self._place(at), early)

    def _place(self, at: int) -> Path:
        return self._folder / f"{at:03}_set_{self._order[at]}"


class _Session:
    def __init__(
        self, program: Program, placement: Placement, folder: Path, asked: ReplayChoices, *, quiet: bool
    ) -> None:
        self._program = program
        self._placement = placement
        self._folder = folder
        self._bar = asked.bar
        self._with_untried = asked.with_untried
        self._jobs = asked.jobs
        self._budget = asked.budget
        self._times_each = asked.runs
        self._quiet = quiet
        self._runs = 0
        self._next = 1 + max(each.number for each in placement.sets)
        self._kept: list[tuple[ReplayedSet, list[Path]]] = []
        self._dropped: list[Refusal] = []
        self._costs: dict[str, SetTimes] = {}
        self._keys: dict[int, tuple[str, ...]] = {}
        self._codes: dict[str, str] = {}
        self._notes: list[str] = []
        self.findings: list[Diagnostic] = []

    def run(self) -> int:
        """Run every set, and the halves of those above the bar; the program's status where the clean run failed."""
        from autostamp.analysis.replay_sets import Trial, untried

        trials = [Trial.of(each) for each in self._placement.sets]
        left = untried(self._placement) if self._with_untried else None
        if left is not None:
            trials.append(left)
            self._next = max(self._next, left.number + 1)
        begin = time.monotonic()
        why = "it costs more than the bar, and was split often enough"
        for _ in range(ROUNDS):
            if not trials:
                break
            if self._runs and self._budget is not None and time.monotonic() - begin > self._budget:
                why = "the time that --budget gives was over before it could be run"
                break
            status, trials = self._round(trials)
            if status:
                return status
        for trial in trials:
            self._keys[trial.number] = tuple(key for key, _ in trial.own)
            self._drop(trial.number, "AS8126", why)
        return 0

    def _round(self, trials: Sequence[Trial]) -> tuple[int, list[Trial]]:
        """Clean, every set there and back as often as it is to be run, clean: a steady drift is in all of them alike."""
        placement = _with_sets(self._placement, trials)
        self._keys |= {trial.number: tuple(key for key, _ in trial.own) for trial in trials}
        there = [trial.number for trial in trials]
        order = [0, *(number for run in range(self._times_each) for number in there[:: 1 - 2 * (run % 2)]), 0]
        outcomes: dict[int, list[Outcome]] = {number: [] for number in order}
        with _Queue(self._program, placement, self._folder / f"round_{self._runs}", order, self._jobs) as queue:
            for at, number in enumerate(order):
                known = outcomes[number]
                if known and (known[0].status or known[0].fault):
                    continue
                self._say(number, trials)
                known.append(queue.run(at))
                if not number and known[0].status:
                    return known[0].status, []
        clean = outcomes[0]
        if clean[0].results != clean[1].results:
            self._note("AS8129", "two clean runs left other files")
            clean = [replace(each, results=()) for each in clean]
        follow: list[Trial] = []
        for trial in trials:
            follow += self._settle(trial, clean, outcomes[trial.number])
        return 0, follow

    def _say(self, number: int, trials: Sequence[Trial]) -> None:
        """What is being run now."""
        self._runs += 1
        sites = {trial.number: len(trial.sites) for trial in trials}
        what = f"set {number}, {sites[number]} sites" if number else "the clean kernel"
        if not self._quiet:
            click.echo(f"autostamp: run {self._runs}: {what}", err=True)
        sys.stderr.flush()

    def _settle(self, trial: Trial, clean: Sequence[Outcome], outcomes: Sequence[Outcome]) -> list[Trial]:
        """Keep a set, drop it, or give its halves."""
        from autostamp.analysis.replay_sets import halves, is_within
        from autostamp.cli.run_joined import wait_keys
        from autostamp.model.replay import ReplayedSet

        wrong = next((each for each in outcomes if each.status or each.fault or each.run is None), None)
        if wrong is not None:
            detail = wrong.fault or f"the program ended with status {wrong.status}"
            self._drop(trial.number, "AS8125", detail)
            return []
        are_equal = None
        if self._program.results and clean[0].results:
            are_equal = all(each.results == clean[0].results for each in outcomes)
            if not are_equal:
                self._drop(trial.number, "AS8130", "the program's results are not those of the clean run")
                return []
        times = self._times(clean, outcomes)
        if not times.rounds:
            self._note("AS8127", times.method or "the clean kernel left no time")
        runs = [each.run for each in outcomes if each.run is not None]
        if is_within(times, self._bar):
            launches = sum(_launches(run) for run in runs)
            made = ReplayedSet(trial.number, trial.sites, trial.anchors, launches, times, are_equal)
            self._kept.append((made, runs))
            return []
        waits = wait_keys(runs[0]) if len(trial.own) == 1 else ()
        parts = list(halves(trial, self._next, waits)) if self._program.can_be_split else []
        said = f"it takes {times.ratio:.3f} of the clean time, and the bar is {self._bar:.3f}"
        if parts:
            self._notes.append(f"set {trial.number}: {said}: split into sets {parts[0].number} and {parts[1].number}")
            self._next += len(parts)
            return parts
        self._costs |= {key: times for key, _ in trial.own}
        self._drop(trial.number, "AS8126", said)
        return []

    def _times(self, clean: Sequence[Outcome], stamped: Sequence[Outcome]) -> SetTimes:
        from autostamp.analysis.replay_sets import CTA_TIME, times_of

        if self._program.time:
            method = "what the program printed"
            return times_of([each.times for each in clean], [each.times for each in stamped], method)
        spans = [[_spans(each.run) for each in side] for side in (clean, stamped)]
        found = [
            times_of([of.get(kernel, []) for of in spans[0]], [of.get(kernel, []) for of in spans[1]], CTA_TIME)
            for kernel in dict.fromkeys(kernel for of in spans[1] for kernel in of)
        ]
        return max(found, key=lambda each: each.ratio, default=times_of([], [], CTA_TIME))

    def _drop(self, number: int, code: str, detail: str) -> None:
        from autostamp.model.replay import Refusal

        self._codes |= dict.fromkeys(self._keys.get(number, ()), code)
        self._dropped.append(Refusal(number, code, detail))
        self.findings.append(Diagnostic.of(code, number=number, detail=detail))

    def _note(self, code: str, detail: str) -> None:
        finding = Diagnostic.of(code, detail=detail)
        if finding not in self.findings:
            self.findings.append(finding)
            self._notes.append(f"{finding.code} {finding.message}")

    def write(self, out: Path) -> None:
        """Join the kept sets and write the run folder. Raises AS8131 where no trace comes of it, AS7001."""
        from autostamp.cli.run_joined import join_runs, uncovered
        from autostamp.model.replay import REPLAYS_SCHEMA, Replays

        joined = join_runs(self._kept, self._bar - 1.0)
        for refusal in joined.refusals:
            self._drop(refusal.number, refusal.code, refusal.detail)
        if not any(trace.lanes for trace in joined.traces):
            reasons = "; ".join(f"set {each.number}: {each.detail}" for each in self._dropped)
            raise AutostampError.of("AS8131", detail=reasons or "no set recorded anything")
        out_of = {each.number for each in joined.refusals}
        sets = tuple(made for made, _ in self._kept if made.number not in out_of)
        dropped = tuple(each for each in self._dropped)
        missing = uncovered(self._placement, sets, self._codes, self._costs)
        said = Replays(
            REPLAYS_SCHEMA, joined.reference, self._bar, sets, joined.fits, dropped, missing, tuple(self._notes)
        )
        joined.write(out, said, self._program.command)


def _with_sets(placement: Placement, trials: Iterable[Trial]) -> Placement:
    """The placement with these sets in the place of its own; numbers in between have none."""
    from autostamp.model.placement import ReplaySet

    features = placement.sets[0].features
    sets = tuple(ReplaySet(each.number, each.sites, each.anchors, features) for each in trials)
    return replace(placement, sets=sets)


def _launches(run: Path) -> int:
    from autostamp.runtime.store import load_run

    return max((trace.launch + 1 for trace in load_run(run).recorded), default=0)


def _spans(run: Path | None) -> dict[tuple[str, int], list[float]]:
    """CTA times of a run by kernel and its place among those of that name."""
    from autostamp.analysis.replay_sets import spans_of
    from autostamp.cli.run_joined import by_kernel
    from autostamp.runtime.store import load_run

    if run is None:
        return {}
    return {key[:2]: spans_of(traces) for key, traces in by_kernel(load_run(run)).items()}
