# SPDX-License-Identifier: Apache-2.0
"""The cycle of a dependency graph with the most latency for each iteration that it spans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from autostamp.diagnostics import AutostampError
from autostamp.model.budget import Dependency

TINY: Final = 1e-9
"""Of the longest latency: what rounding may leave of a cycle that has no excess."""

_Weighted: TypeAlias = tuple[Dependency, float]


def worst_cycle(dependencies: Sequence[Dependency]) -> tuple[tuple[Dependency, ...], float] | None:
    """The cycle with the largest sum of latencies over sum of distances, and that ratio in cycles; None without a cycle.

    Starts at a ratio of 0 and goes from any cycle that exceeds the ratio to that cycle's own, until none exceeds it: each step
    finds a better one of finitely many, so the last is the best. Raises AS7107 for a cycle that spans no iteration, which
    would wait for itself, and AS7106 for a distance or latency below zero.
    """
    for edge in dependencies:
        if edge.distance < 0 or any(step.cycles < 0 for step in edge.steps):
            detail = "a latency or a distance is below zero"
            raise AutostampError.of("AS7106", what=f"{edge.start} -> {edge.end}", detail=detail)
    if stuck := _positive_cycle([(edge, 1.0) for edge in dependencies if edge.distance == 0]):
        raise AutostampError.of("AS7107", chain=chain_name(stuck))
    best: tuple[tuple[Dependency, ...], float] | None = None
    ratio = 0.0
    while cycle := _positive_cycle([(edge, _latency(edge) - ratio * edge.distance) for edge in dependencies]):
        better = sum(map(_latency, cycle)) / sum(edge.distance for edge in cycle)
        if better <= ratio:
            break
        best, ratio = (cycle, better), better
    return best


def chain_name(chain: Sequence[Dependency]) -> str:
    """The phases of a cycle in order, and the first again."""
    return " -> ".join([*(edge.start for edge in chain), chain[0].start])


def _latency(edge: Dependency) -> float:
    return sum(step.cycles for step in edge.steps)


def _positive_cycle(edges: Sequence[_Weighted]) -> tuple[Dependency, ...]:
    """A cycle whose weights sum to more than nothing, or none: longest paths by Bellman-Ford."""
    nodes = dict.fromkeys(node for edge, _ in edges for node in (edge.start, edge.end))
    far = dict.fromkeys(nodes, 0.0)
    via: dict[str, Dependency] = {}
    slack = TINY * max((abs(weight) for _, weight in edges), default=0.0)
    grown = ""
    for _ in nodes:
        grown = ""
        for edge, weight in edges:
            if far[edge.start] + weight > far[edge.end] + slack:
                far[edge.end] = far[edge.start] + weight
                via[edge.end] = edge
                grown = edge.end
        if not grown:
            return ()
    if not grown:
        return ()
    # After as many rounds as there are nodes something still grows: going back that far lands on the cycle.
    node = grown
    for _ in nodes:
        node = via[node].start
    cycle = [via[node]]
    while cycle[-1].start != node:
        cycle.append(via[cycle[-1].start])
    return tuple(reversed(cycle))
