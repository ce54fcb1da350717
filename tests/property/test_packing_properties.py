# SPDX-License-Identifier: Apache-2.0
"""Replay sets packed from measured ratios, whatever the ratios are: capped, measured, and everything else named with its cost."""

from __future__ import annotations

import random
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from autostamp.analysis.replay_packing import NOISE, Packing, Tried
from autostamp.analysis.replay_sets import Trial
from autostamp.model.placement import Form

BAR = 1.02


@dataclass(frozen=True)
class Kernel:
    """Sites with costs of their stamps, and of pairs of sites: a schedule is no sum."""

    sites: int
    waits: frozenset[str]
    costs: dict[tuple[str, Form], float]
    pairs: dict[frozenset[str], float]

    def ratio(self, trial: Trial) -> float:
        stamps = Packing(BAR, 1, self.waits).stamps(trial.sites)
        keys = {key for key, _ in trial.sites}
        together = sum(cost for pair, cost in self.pairs.items() if pair <= keys)
        return max(0.9, 1.0 + sum(self.costs[stamp] for stamp in stamps) + together)


@st.composite
def kernels(draw: st.DrawFn) -> Kernel:
    rng = random.Random(draw(st.integers(0, 2**32)))
    count = draw(st.integers(1, 24))
    keys = [f"k.py:{at}:1@x" for at in range(count)]
    waits = frozenset(key for key in keys if rng.random() < 0.5)
    cost = draw(st.sampled_from([0.0, 0.004, 0.012, 0.05]))
    free = draw(st.sampled_from([0.0, 0.5, 0.9]))
    costs = {
        (key, form): 0.0 if rng.random() < free else rng.expovariate(1 / cost) if cost else 0.0
        for key in keys
        for form in Form
    }
    pairs = {frozenset(rng.sample(keys, 2)): rng.uniform(-0.03, 0.03) for _ in range(rng.randrange(4)) if count > 1}
    return Kernel(count, waits, costs, pairs)


def sets_of(kernel: Kernel, seed: int) -> list[Trial]:
    rng = random.Random(seed)
    keys = [f"k.py:{at}:1@x" for at in range(kernel.sites)]
    anchors = keys[: rng.randrange(min(3, len(keys)) + 1)]
    rest = keys[len(anchors) :]
    base = rest[: rng.randrange(len(rest) + 1)]
    others = rest[len(base) :]
    count = rng.randrange(1, 4)
    groups = [[*anchors, *base, *others[at::count]] for at in range(count)]
    return [
        Trial(number, tuple((key, Form.BOTH) for key in group), tuple(anchors))
        for number, group in enumerate(dict.fromkeys(tuple(group) for group in groups if group), 1)
    ]


def packed(kernel: Kernel, trials: list[Trial], most: int) -> tuple[Packing, list[Trial]]:
    """Run until nothing is left to run, as the command does."""
    packing = Packing(BAR, most, kernel.waits)
    run = []
    while trials:
        for trial in trials:
            run.append(trial)
            ratio = kernel.ratio(trial)
            packing.add(Tried(trial, ratio, ratio <= BAR))
        first = 1 + max(trial.number for trial in run)
        trials = packing.split(first) or packing.merge(first)
    return packing, run


@given(kernels(), st.integers(0, 1000), st.integers(1, 8))
@settings(deadline=None)
def test_kept_sets_are_few_and_within_the_bar_and_the_rest_has_a_measured_cost(
    kernel: Kernel, seed: int, most: int
) -> None:
    trials = sets_of(kernel, seed)
    if not trials:
        return
    packing, run = packed(kernel, trials, most)
    chosen = packing.chosen()
    assert len(chosen) <= most
    assert all(kernel.ratio(each.trial) == each.ratio <= BAR for each in chosen)
    assert len({frozenset(trial.sites) for trial in run}) == len(run)  # nothing is run twice
    covered = {stamp for each in chosen for stamp in packing.stamps(each.trial.sites)}
    for key in {key for trial in trials for key, _ in trial.sites}:
        stamps = packing.stamps([(key, Form.BOTH)])
        if not stamps <= covered:
            assert packing.evidence(key)
    # A stamp that is within the bar beside the anchors is only missing where the sets are too many.
    within = {stamp for each in packing.within for stamp in packing.stamps(each.trial.sites)}
    if len(chosen) < most:
        assert covered == within


@given(kernels(), st.integers(0, 1000))
@settings(deadline=None)
def test_every_stamp_that_is_cheap_enough_alone_is_found(kernel: Kernel, seed: int) -> None:
    """Without interactions a stamp that stays within the bar beside the anchors is in a set."""
    plain = Kernel(kernel.sites, kernel.waits, kernel.costs, {})
    trials = sets_of(plain, seed)
    if not trials:
        return
    packing, _ = packed(plain, trials, 64)
    within = {stamp for each in packing.within for stamp in packing.stamps(each.trial.sites)}
    anchors = tuple((key, Form.BOTH) for key in trials[0].anchors)
    for key in {key for trial in trials for key, _ in trial.own}:
        for stamp in packing.stamps([(key, Form.BOTH)]):
            alone = Trial(0, (*anchors, stamp), trials[0].anchors)
            if plain.ratio(alone) <= BAR - NOISE:
                assert stamp in within
