# SPDX-License-Identifier: Apache-2.0
"""Figures over launches, and the noise between two runs: worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import NormalDist

import pytest

from autostamp.analysis import analyse
from autostamp.analysis.latencies import UNKNOWN
from autostamp.analysis.spreads import BEYOND, QUANTILES, by_launch, change, figure_of, noise, spreads
from autostamp.model.comparison import Figure
from autostamp.runtime.decode import decode_region
from tests.simulator.tables import ring_kernel, ring_region

KERNEL = ring_kernel()


def timeline(launch: int, compute: int, block: int = 0):
    trace = decode_region(ring_region(KERNEL, compute=compute), KERNEL)
    # The made-up waits are shorter than real ready ones; without a figure every wait is a stall.
    return analyse(replace(trace, launch=launch, block=(block, 0, 0)), latencies=UNKNOWN)


def test_a_figure():
    assert figure_of([5, 1, 9]) == Figure(3, 5, 1, 9)
    assert figure_of([4]) == Figure(1, 4, 4, 4)


def test_launches_are_means_over_their_ctas():
    timelines = [timeline(0, 30), timeline(0, 50, block=1), timeline(1, 30)]
    # The consumer of 4 uses ends at 10 + 4 * compute: 130 and 210 cycles.
    assert by_launch(timelines, lambda each: each.cycles) == [(130 + 210) / 2, 130]


def test_the_spread_of_a_role():
    roles = {each.role: each for each in spreads([timeline(0, 30), timeline(1, 40), timeline(2, 60)])}
    assert roles["mma"].span == Figure(3, 170, 130, 250)
    # The consumer waits for the first fill only: 10 cycles.
    assert roles["mma"].stall == Figure(3, 10, 10, 10)
    assert roles["load"].span.count == 3


def test_noise_is_students_interval_for_medians():
    # Variances 1 and 4, pooled 2.5 with 4 degrees of freedom; the difference has variance 2.5 * (1/3 + 1/3).
    found = noise([10, 11, 12], [20, 22, 24])
    assert found == pytest.approx(4.604 * math.sqrt(math.pi / 2) * math.sqrt(2.5 * 2 / 3))


def test_noise_of_one_launch_is_unknown():
    assert noise([1], [1, 2, 3]) is None
    assert noise([1, 2, 3], [1]) is None
    assert not change("x", [1], [1000]).is_change


def test_a_change_is_more_than_noise():
    assert not change("x", [100, 110, 120], [105, 115, 125]).is_change
    found = change("x", [100, 101, 102], [200, 201, 202])
    assert (found.delta, found.is_change) == (100, True)
    assert change("x", [7, 7], [7, 7]).noise == 0


def test_quantiles_fall_towards_the_normal_one():
    assert list(QUANTILES) == sorted(QUANTILES, reverse=True)
    assert QUANTILES[-1] > BEYOND
    assert pytest.approx(NormalDist().inv_cdf(0.995), abs=5e-4) == BEYOND
    # With one degree of freedom it is the Cauchy distribution's, tan(pi * (p - 1/2)); with two, a closed form.
    assert QUANTILES[0] == pytest.approx(math.tan(math.pi * 0.495), abs=5e-4)
    assert QUANTILES[1] == pytest.approx(0.99 * math.sqrt(2 / (1 - 0.99**2)), abs=5e-4)
