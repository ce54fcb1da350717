# SPDX-License-Identifier: Apache-2.0
"""Arithmetic on half-open spans of cycles."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

Span: TypeAlias = tuple[int, int]
"""Start and end in cycles, end not included."""


def union(spans: Iterable[Span]) -> list[Span]:
    """The spans merged: disjoint, in start order, empty ones left out."""
    merged: list[Span] = []
    first = last = 0
    for start, end in sorted(spans):
        if end <= start:
            continue
        if first < last and start <= last:
            last = max(last, end)
            continue
        if first < last:
            merged.append((first, last))
        first, last = start, end
    if first < last:
        merged.append((first, last))
    return merged


def length(merged: Iterable[Span]) -> int:
    """Total cycles of disjoint spans."""
    return sum(end - start for start, end in merged)


def overlap(first: list[Span], second: list[Span]) -> int:
    """Cycles common to two lists of disjoint spans in start order."""
    total = i = j = 0
    while i < len(first) and j < len(second):
        total += max(0, min(first[i][1], second[j][1]) - max(first[i][0], second[j][0]))
        if first[i][1] <= second[j][1]:
            i += 1
        else:
            j += 1
    return total


def clip(merged: Iterable[Span], window: Span) -> list[Span]:
    """The parts of disjoint spans that lie in `window`, empty ones left out."""
    first, last = window
    return [(max(start, first), min(end, last)) for start, end in merged if start < last and end > first]


def subtract(first: list[Span], second: list[Span]) -> list[Span]:
    """What of `first` no span of `second` covers; both are disjoint and in start order, and so is the result."""
    left: list[Span] = []
    j = 0
    for start, end in first:
        while j < len(second) and second[j][1] <= start:
            j += 1
        at, k = start, j
        while k < len(second) and second[k][0] < end:
            if second[k][0] > at:
                left.append((at, second[k][0]))
            at = max(at, second[k][1])
            k += 1
        if at < end:
            left.append((at, end))
        j = max(j, k - 1)
    return left
