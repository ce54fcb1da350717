# SPDX-License-Identifier: Apache-2.0
"""The verdict: what a comparison comes to, in one word and in one sentence."""

from __future__ import annotations

from autostamp.model.reconciliation import Direction, Finding, PathStall, Period, Ranking, Trial
from autostamp.predict.trials import TOLERANCE


def finding_of(
    explained: float, share: float, over: tuple[tuple[str, float], ...], found: Direction, order: Ranking
) -> Finding:
    """A refuted bound first; then the model is at fault until direction and order are right and it explains all but `share`."""
    if over:
        return Finding.MODEL_ERROR
    if found.holds is False or order.swapped or explained < 1 - share:
        return Finding.INCOMPLETE
    return Finding.AT_BOUND if explained >= 1 - TOLERANCE else Finding.KERNEL


def headline(
    finding: Finding,
    explained: float,
    period: Period,
    over: tuple[tuple[str, float], ...],
    trials: tuple[Trial, ...],
    stalls: tuple[PathStall, ...],
    found: Direction,
    order: Ranking,
) -> str:
    """One sentence, with the change that gains most, or the stall that is worth most."""
    if finding is Finding.MODEL_ERROR:
        name, cycles = over[0]
        what = "clean" if period.ratio else "measured"
        return f"model error: the bound of {name}, {cycles:,.0f} cycles, is above the {what} {period.clean:,.0f}"
    if finding is Finding.INCOMPLETE:
        wrong = [] if found.holds is not False else [f"{found.measured} binds, not {' and '.join(found.predicted)}"]
        wrong += [f"{less} idles more than {more}" for more, less in order.swapped]
        against = f"against the prediction {', and '.join(wrong)}; " if wrong else ""
        said = f"the model is incomplete: {against}it explains {100 * explained:.0f} % of the period"
        if not trials:
            return f"{said}, and nothing that was tried explains more"
        first = trials[0]
        what = first.what.split(";")[0]
        return f"{said}; with {what} ({first.cycles:,.0f} cycles) it is {100 * first.explained:.0f} %"
    if finding is Finding.AT_BOUND:
        return f"the kernel runs at its bound: the model explains {100 * explained:.0f} % of the period"
    said = f"the kernel leaves performance: the model explains {100 * explained:.0f} % of the period"
    if not stalls:
        return f"{said}, and no stall lies on the critical path"
    worst = stalls[0]
    return f"{said}; {worst.role}'s {worst.kind} at {worst.where} is worth up to {worst.worth:,.0f} cycles an iteration"
