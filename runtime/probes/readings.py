# SPDX-License-Identifier: Apache-2.0
"""How a figure is read from a pair of launches. Rates are per SM: one CTA is one SM's work."""

from __future__ import annotations

import numpy as np

from autostamp.runtime.probes.probe import SAMPLES, Pair, Reading, Role, Word


def cycles_each(count: int) -> Reading:
    """Cycles of one of `count` operations of a trip."""
    return lambda pair: pair.cycles / count


def rate(count: int) -> Reading:
    """Of `count` units of work that a CTA does in a trip, how many in a cycle."""
    return lambda pair: count / pair.cycles


def counted_each(count: int) -> Reading:
    """What the probe counted itself, for one of `count` operations of a trip."""

    def read(pair: Pair) -> float:
        few, many = (int(each.of(Role.MEASURED, Word.COUNT).max()) for each in (pair.few, pair.many))
        return (many - few) / (pair.many.trips - pair.few.trips) / count

    return read


def smallest_step(pair: Pair) -> float:
    """The smallest difference above zero between neighbouring samples."""
    samples = pair.many.records[0, 0, SAMPLES:]
    steps = np.diff(samples[samples != 0])
    if not (steps > 0).any():
        message = "the clock never went on"
        raise ValueError(message)
    return float(steps[steps > 0].min())


def copied(size: int) -> Reading:
    """Bytes a cycle that the copying warp had moved beside the measured ones, in copies of `size` bytes."""

    def read(pair: Pair) -> float:
        count, begin, end = (int(pair.many.of(Role.COPIER, word)[0]) for word in (Word.COUNT, Word.BEGIN, Word.END))
        return count * size / (end - begin)

    return read


def gigahertz(pair: Pair) -> float:
    """SM cycles over nanoseconds of %globaltimer, the median of all measured warps."""
    cycles = pair.many.of(Role.MEASURED, Word.END) - pair.many.of(Role.MEASURED, Word.BEGIN)
    nanoseconds = pair.many.of(Role.MEASURED, Word.END_NS) - pair.many.of(Role.MEASURED, Word.BEGIN_NS)
    return float(np.median(cycles / nanoseconds))
