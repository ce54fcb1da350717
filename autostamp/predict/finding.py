# SPDX-License-Identifier: Apache-2.0
"""The verdict: what a comparison comes to, in one word and in one sentence."""

from __future__ import annotations

from autostamp.model.reconciliation import Finding, PathStall, Period, Trial
from autostamp.predict.trials import TOLERANCE


def finding_of(explained: float, share: float, over: tuple[tuple[str, float], ...]) -> Finding:
    """A refuted bound first; then the model is at fault until it explains all but `share`."""
    if over:
        return Finding.MODEL_ERROR
    if explained < 1 - share:
        return Finding.INCOMPLETE
    return Finding.AT_BOUND if explained >= 1 - TOLERANCE else Finding.KERNEL


def headline(
    finding: Finding,
    explained: float,
    period: Period,
    over: tuple[tuple[str, float], ...],
    trials: tuple[Trial, ...],
    stalls: tuple[PathStall, ...],
) -> str:
    """One sentence, with the change that gains most, or the stall that is worth most."""
    if finding is Finding.MODEL_ERROR:
        name, cycles = over[0]
        what = "clean" if period.ratio else "measured"
        return f"model error: the bound of {name}, {cycles:,.0f} cycles, is above the {what} {period.clean:,.0f}"
    if finding is Finding.INCOMPLETE:
        said = f"the model is incomplete: it explains {100 * explained:.0f} % of the period"
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
