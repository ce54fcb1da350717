# SPDX-License-Identifier: Apache-2.0
"""`autostamp run --replay`: run a program once for each set of a placement, time each against the clean kernel, and join them."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from autostamp.diagnostics import AutostampError, Diagnostic, ExitStatus, render

if TYPE_CHECKING:
    from autostamp.analysis.replay_packing import Packing
    from autostamp.analysis.replay_sets import Trial
    from autostamp.cli.replay_options import ReplayChoices
    from autostamp.cli.replay_rounds import Ran, Rounds
    from autostamp.cli.run_joined import JoinedRuns
    from autostamp.hooks.replay_program import Program
    from autostamp.model.placement import Placement
    from autostamp.model.replay import Refusal, ReplayedSet, Uncovered

ROUNDS: Final = 10
"""Rounds in which sets above the bar are taken apart, or put together."""

LOOK: Final = 2
"""Runs of a set until it is known whether it may be kept. Those that are kept are then run as often as was asked for."""

ALIKE: Final = 0.003
"""Schedule distances that differ by so little are the same: a tenth of what is near clean."""

PLACED: Final = "placement.json"
"""In the run folder: what to replay next time."""

START: Final = 0.4
"""Share of a round that it takes until its first program runs, about, where programs start side by side (docs/replays.md)."""

CONFIRMATIONS: Final = 3
"""So often the kept sets are run further: one that turns out to cost more than the bar makes room for another."""


def run_replays(program: Program, asked: ReplayChoices, out: Path, *, quiet: bool) -> int:
    """Run, time, take apart, put together, join, and write the run folder; the exit status.

    Raises AS9001 without a placement or with one that has no set, and AS8131 where nothing is left to join.
    """
    from autostamp.analysis.join_checks import LAUNCHES
    from autostamp.cli.replay_rounds import Rounds
    from autostamp.runtime.placement_file import read_placement

    if asked.placement is None:
        raise AutostampError.of("AS9001", detail="--replay needs --placement FILE, which `autostamp place` makes")
    if asked.runs * program.record.repeat < LAUNCHES:
        detail = f"--runs {asked.runs} keeps {asked.runs * program.record.repeat} launches of a set, and a join needs {LAUNCHES}"
        raise AutostampError.of("AS9001", detail=detail)
    placement = read_placement(asked.placement)
    if not placement.sets:
        raise AutostampError.of("AS9001", detail=f"{asked.placement} has no set to replay")
    with tempfile.TemporaryDirectory(prefix="autostamp-") as folder:
        rounds = Rounds(program, placement, Path(folder), asked.jobs, quiet=quiet)
        session = _Session(program, placement, rounds, asked)
        status = session.run()
        if status:
            return 128 - status if status < 0 else status
        session.write(out)
    for finding in session.findings:
        click.echo(render(finding), err=True)
    if not quiet:
        click.echo(f"wrote {out}; read it with: autostamp summary {out}", err=True)
    return max((finding.status for finding in session.findings), default=ExitStatus.OK)


def _packing(placement: Placement, asked: ReplayChoices) -> Packing:
    """What a placement says of its sites: those that move the schedule further than any stamp does are likely to cost."""
    from autostamp.analysis.replay_packing import Packing

    sites = placement.sites
    weights = {each.key: max(0.0, each.features.distance - placement.floor - ALIKE) for each in sites}
    forms = {each.key: each.forms for each in sites}
    roles = {each.key: each.loops[0] for each in sites if each.loops}
    return Packing(asked.bar, asked.sets, weights=weights, inside=frozenset(roles), roles=roles, forms=forms)


class _Session:
    def __init__(self, program: Program, placement: Placement, rounds: Rounds, asked: ReplayChoices) -> None:
        self._program = program
        self._placement = placement
        self._rounds = rounds
        self._asked = asked
        self._packing: Packing = _packing(placement, asked)
        self._next = 1
        self._begin = 0.0
        self._left: list[Trial] = []
        self._dropped: list[Refusal] = []
        self._codes: dict[str, str] = {}
        self._notes: list[str] = []
        self.findings: list[Diagnostic] = []

    def run(self) -> int:
        """Run sets until it is known which to keep, and those as often as asked; the status where a clean run failed."""
        from autostamp.analysis.replay_sets import everything, initial

        trials = initial(self._placement, with_untried=self._asked.with_untried)
        is_free = self._program.can_be_split and not self._asked.as_placed
        later: list[Trial] = []
        if not is_free:
            trials = trials[: len(self._placement.sets)]
        self._next = 1 + max(each.number for each in trials)
        if is_free and everything(trials[:-1]) == trials[-1]:
            self._packing.keep_whole(trials[-1].number)
            if self._program.build or self._asked.jobs == 1:
                # A kernel that hides all its stamps needs no other set. (Programs side by side take a round's time once.)
                *later, whole = trials
                trials = [whole]
        if is_free and self._asked.jobs > 1 and not later:
            distances = {each.number: each.features.distance - self._placement.floor for each in self._placement.sets}
            trials += self._new(self._packing.foreseen(trials, distances, self._next))
        self._begin = time.monotonic()
        took = size = 0.0
        is_own = True
        for _ in range(ROUNDS):
            spent = time.monotonic() - self._begin
            likely = took * (START + (1 - START) * len(trials) / size) if size else 0.0
            if not is_own and self._is_over(likely):
                self._notes.append("the time that --budget gives was over before all was tried")
                self._left = trials
                break
            # Sets that are run as they are need no look first: one round has all their runs.
            status = self._rounds.run(trials, min(LOOK, self._asked.runs) if is_free else self._asked.runs)
            if status:
                return status
            took, size = time.monotonic() - self._begin - spent, len(trials)
            trials = self._learn(trials)
            if later and not trials:
                trials, later = ([] if self._packing.within else later), []
            elif is_free:
                is_own = False
                trials += self._new(self._packing.split(self._next))
                # Programs that start side by side take a round's time once, so one round does both.
                if not trials or self._asked.jobs > 1:
                    trials += self._new(self._packing.merge(self._next))
            if not trials:
                break
        return (self._anchor(took / size) if is_free and size else 0) or self._confirm()

    def _anchor(self, took: float) -> int:
        """Run the sets that are kept with further anchors, where that should leave them within the bar. `took` seconds a set."""
        trials = self._packing.anchored(self._next)
        if not trials or self._is_over(took * len(trials)):
            return 0
        status = self._rounds.run(self._new(trials), min(LOOK, self._asked.runs))
        if not status:
            self._learn(trials)
        return status

    def _is_over(self, more: float = 0.0) -> bool:
        """Whether the time for trying other sets is over, or will be in so many seconds."""
        return self._asked.budget is not None and time.monotonic() - self._begin + more > self._asked.budget

    def _confirm(self) -> int:
        """Run the sets that are kept as often as was asked for."""
        for _ in range(CONFIRMATIONS):
            kept = [self._rounds.ran[each.trial.number] for each in self._packing.chosen()]
            short = [ran for ran in kept if len(ran.stamped) < self._asked.runs]
            if not short:
                break
            status = self._rounds.run(
                [ran.trial for ran in short], self._asked.runs - min(len(ran.stamped) for ran in short)
            )
            if status:
                return status
            self._learn([ran.trial for ran in short])
        return 0

    def _new(self, trials: list[Trial]) -> list[Trial]:
        self._next += len(trials)
        return trials

    def _learn(self, trials: Sequence[Trial]) -> list[Trial]:
        """Take note of what these sets cost. Left are those that lie at the bar within the noise, or whose own runs differ by
        more than the bar admits, and that may be run again.
        """
        from autostamp.analysis.replay_packing import NOISE, Tried
        from autostamp.analysis.replay_sets import is_within

        undecided = []
        for trial in trials:
            ran = self._rounds.ran[trial.number]
            if ran.fault is not None:
                self._fail(ran)
                continue
            self._look_for_waits(ran)
            times = self._rounds.times(ran)
            if not times.rounds:
                self._note("AS8127", times.method or "the clean kernel left no time")
            at_bar = bool(times.rounds) and abs(times.ratio - self._asked.bar) <= NOISE
            is_open = (at_bar or self._is_noise(ran.noise)) and len(ran.stamped) < self._asked.runs
            if is_open:
                undecided.append(trial)
            self._packing.add(Tried(trial, times.ratio, is_within(times, self._asked.bar)), is_settled=not is_open)
        if self._rounds.unsteady:
            self._note("AS8129", "two clean runs left other files")
        return undecided

    def _is_noise(self, noise: float) -> bool:
        return noise > self._asked.bar - 1.0

    def _look_at_noise(self, kept: Sequence[int]) -> None:
        """Say where clean runs, or those of a set that is kept, differ by more than the bar admits: a ratio says little then."""
        named = [("clean runs", self._rounds.noise)]
        named += [(f"the runs of set {number}", self._rounds.ran[number].noise) for number in kept]
        for name, noise in named:
            if self._is_noise(noise):
                self._note("AS8133", f"{name} differ by {noise:.1%}, and the bar admits {self._asked.bar - 1.0:.1%}")

    def _look_for_waits(self, ran: Ran) -> None:
        """A run's manifest has the sites of its set alone, so each set adds to what is known."""
        from autostamp.cli.run_joined import wait_keys

        self._packing.waits = frozenset(self._packing.waits) | wait_keys(ran.runs[0])

    def _fail(self, ran: Ran) -> None:
        """A set whose program failed, or gave other results."""
        assert ran.fault is not None
        self._packing.forget(ran.trial.number)
        self._codes |= dict.fromkeys((key for key, _ in ran.trial.sites), ran.fault[0])
        self._drop(ran.trial.number, *ran.fault)

    def _drop(self, number: int, code: str, detail: str) -> None:
        from autostamp.model.replay import Refusal

        refusal = Refusal(number, code, detail)
        if refusal not in self._dropped:
            self._dropped.append(refusal)
            self.findings.append(Diagnostic.of(code, number=number, detail=detail))

    def _note(self, code: str, detail: str) -> None:
        finding = Diagnostic.of(code, detail=detail)
        if finding not in self.findings:
            self.findings.append(finding)
            self._notes.append(f"{finding.code} {finding.message}")

    def write(self, out: Path) -> None:
        """Join the kept sets and write the run folder. Raises AS8131 where no trace comes of it, AS7001."""
        from autostamp.model.replay import REPLAYS_SCHEMA, Replays

        kept, joined = self._joined()
        self._look_at_noise([made.number for made, _ in kept])
        out_of = {each.number for each in joined.refusals}
        sets = tuple(made for made, _ in kept if made.number not in out_of)
        missing, notes = self._missing(sets)
        if not any(trace.lanes for trace in joined.traces):
            reasons = [f"set {each.number}: {each.detail}" for each in self._dropped] or ["no set recorded anything"]
            beside = out.with_name(f"{out.name}-{PLACED}")
            if self._write_placement(beside):
                reasons.append(f"{beside} has what to run next")
            raise AutostampError.of("AS8131", detail="; ".join(reasons))
        said = Replays(
            REPLAYS_SCHEMA,
            joined.reference,
            self._asked.bar,
            sets,
            joined.fits,
            tuple(self._dropped),
            missing,
            (*self._notes, *notes),
        )
        joined.write(out, said, self._program.command)
        self._write_placement(out / PLACED)

    def _write_placement(self, path: Path) -> bool:
        """What this session knows, for another: the sets within the bar, and those that it would have run next. False where none
        is left to run.
        """
        from autostamp.model.placement import ReplaySet, TriedSet
        from autostamp.runtime.placement_file import write_placement

        trials = self._packing.ahead(self._left) if self._program.can_be_split else []
        if not trials:
            return False
        first = self._placement.sets[0].features
        features = {frozenset(each.sites): each.features for each in self._placement.sets}
        unknown = replace(
            first, distance=0.0, waits_moved={}, order_share=1.0, spills=(first.spills[0], first.spills[0])
        )
        sets = tuple(
            ReplaySet(each.number, each.sites, each.anchors, features.get(frozenset(each.sites), unknown))
            for each in trials
        )
        held = {key for each in trials for key, _ in each.sites}
        every = (*(each.key for each in self._placement.sites), *self._placement.uncovered)
        left = tuple(key for key in dict.fromkeys(every) if key not in held)
        measured = {frozenset(each.sites): each for each in self._placement.tried}
        measured |= {
            frozenset(each.trial.sites): TriedSet(each.trial.sites, each.trial.anchors, round(each.ratio, 4))
            for each in self._packing.tried.values()
        }
        known = tuple(measured.values())
        write_placement(path, replace(self._placement, sets=sets, uncovered=left, floor=0.0, tried=known))
        return True

    def _joined(self) -> tuple[list[tuple[ReplayedSet, list[Path]]], JoinedRuns]:
        """The kept sets, joined. Where one is refused, others that have its stamps may take its place."""
        from autostamp.cli.run_joined import join_runs

        refused: dict[int, Refusal] = {}
        while True:
            chosen = [each.trial.number for each in self._packing.chosen()]
            kept = [self._replayed(self._rounds.ran[number]) for number in chosen]
            joined = join_runs(kept, self._asked.bar - 1.0)
            refused |= {each.number: each for each in joined.refusals}
            for number in refused.keys() & set(chosen):
                self._packing.refuse(number)
            others = {each.trial.number for each in self._packing.chosen()} - set(chosen)
            if not others or self._asked.as_placed or self._is_over() or self._confirm():
                break
        for refusal in refused.values():
            self._codes |= dict.fromkeys((key for key, _ in self._rounds.ran[refusal.number].trial.sites), refusal.code)
            self._drop(refusal.number, refusal.code, refusal.detail)
        return kept, joined

    def _replayed(self, ran: Ran) -> tuple[ReplayedSet, list[Path]]:
        from autostamp.cli.run_joined import launches
        from autostamp.model.replay import ReplayedSet

        trial, count = ran.trial, sum(launches(run) for run in ran.runs)
        times = self._rounds.times(ran)
        return ReplayedSet(trial.number, trial.sites, trial.anchors, count, times, ran.are_equal), ran.runs

    def _missing(self, sets: Sequence[ReplayedSet]) -> tuple[tuple[Uncovered, ...], list[str]]:
        """Sites that no joined set has, and notes on those of which it has one stamp. Their sets count as dropped."""
        from autostamp.cli.replay_missing import Missing

        missing = Missing(self._placement, self._packing, self._asked, self._codes)
        for refusal in missing.refusals(sets):
            self._drop(refusal.number, refusal.code, refusal.detail)
        return missing.uncovered(sets), missing.notes(sets)
