# SPDX-License-Identifier: Apache-2.0
"""A prediction as text: the budget, the bounds, and what would prove it wrong."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from autostamp.model.budget import Bound, BoundKind, Budget, Prediction, ResourceRow
from autostamp.report.sass_text import table
from autostamp.report.verdict_words import kernel_name

_SENSITIVITIES = 8


def as_text(budget: Budget, found: Prediction, title: str, width: int = 120) -> str:
    """All of it; `title` is the machine's."""
    parts = [
        [f"{kernel_name(budget.kernel)} on {title}", f"one iteration: {budget.iteration}"],
        _budget(budget, width),
        _bounds(budget, found),
        _roles(found),
        _sensitivities(found),
        _wrapped("Prediction: " + found.line, width),
        _blind_spots(found.blind_spots, width),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def _budget(budget: Budget, width: int) -> list[str]:
    rows = [_row(each, budget.smem_write_share) for each in sorted(budget.rows, key=lambda one: -one.cycles)]
    lines = table(("resource", "role", "what", "work", "rate", "cycles", "from"), rows) if rows else []
    sources: dict[str, list[str]] = {}
    for each in budget.rows:
        if each.source and each.source not in sources.setdefault(str(each.origin), []):
            sources[str(each.origin)].append(each.source)
    for origin, found in sources.items():
        lines += textwrap.wrap(f"{origin}: {'; '.join(found)}", width, initial_indent="  ", subsequent_indent="    ")
    return lines


def _row(each: ResourceRow, share: float) -> tuple[str, ...]:
    cycles = _number(each.cycles)
    if each.is_write and share != 1:
        cycles += f" x {share:g}"
    rate = f"{_number(each.rate)} ({each.constant})"
    work = f"{_number(each.work)} {each.unit}".rstrip()
    return str(each.resource), each.role, each.what, work, rate, cycles, str(each.origin)


def _bounds(budget: Budget, found: Prediction) -> list[str]:
    rows = [
        (str(each.kind), each.name, _number(each.cycles), _origins(budget, each), _mark(each is found.bottleneck))
        for each in found.bounds
    ]
    missing = [kind for kind in BoundKind if kind not in {each.kind for each in found.bounds}]
    lines = table(("bound", "of", "cycles/iteration", "from", ""), rows)
    lines += [f"no {kind} bound: see the blind spots" for kind in missing]
    lines.append(f"  {found.bottleneck.name}: {found.bottleneck.detail}")
    if found.co_bottlenecks:
        lines.append("within 10 %: " + ", ".join(each.name for each in found.co_bottlenecks))
    if found.period_without_writes != found.period:
        lines.append(
            f"if TMA's writes took no time from the shared memory port: {_number(found.period_without_writes)} cycles/iteration"
        )
    return lines


def _origins(budget: Budget, bound: Bound) -> str:
    """Where the parts of a bound were found."""
    if bound.kind is BoundKind.RESOURCE:
        origins = [row.origin for row in budget.rows if row.resource == bound.name]
    elif bound.kind is BoundKind.CREDIT:
        rings = [ring for ring in budget.rings if ring.name == bound.name]
        origins = [step.origin for ring in rings for step in (*ring.fill, *ring.consume, *ring.hand_off)]
    else:
        phases = set(bound.name.split(" -> "))
        edges = [edge for edge in budget.dependencies if {edge.start, edge.end} <= phases]
        origins = [step.origin for edge in edges for step in edge.steps]
    return ", ".join(dict.fromkeys(map(str, origins)))


def _mark(is_bottleneck: bool) -> str:
    return "<- bottleneck" if is_bottleneck else ""


def _roles(found: Prediction) -> list[str]:
    rows = [(each.role, str(each.resource), _number(each.busy), f"{100 * each.idle:.0f} %") for each in found.roles]
    return table(("role", "busiest resource", "busy cycles", "predicted idle"), rows) if rows else []


def _sensitivities(found: Prediction) -> list[str]:
    useful = [each for each in found.sensitivities if each.gain > 0][:_SENSITIVITIES]
    if not useful:
        return ["no constant alone, a tenth better, shortens the iteration"]
    rows = [(each.constant, _number(each.period), f"-{_number(each.gain)}") for each in useful]
    return table(("a tenth better", "cycles/iteration", "change"), rows)


def _blind_spots(spots: Iterable[str], width: int) -> list[str]:
    wrapped = (textwrap.wrap(each, width, initial_indent="- ", subsequent_indent="  ") for each in dict.fromkeys(spots))
    lines = [line for each in wrapped for line in each]
    return ["What this leaves out:", *lines] if lines else []


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width)
