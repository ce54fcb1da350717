# SPDX-License-Identifier: Apache-2.0
"""How well the schedule distance says what stamps cost: `python -m benchmarks.placement [RESULTS.json]`.

Fits the weights of `passes/schedule_weights.toml` to two thirds of the measured pairs, holds them against the others, and
prints rank correlations (Spearman's, ties averaged) of distance and measured ratio. No GPU. The ranges in that file were chosen
on all pairs, so the held-out figures are those of the weights alone.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autostamp.passes.schedule_features import Parts, Weights, weights

RESULTS = Path(__file__).parent / "results" / "placement_h200.json"
LATER = tuple(RESULTS.with_name(f"placement_{name}_h200.json") for name in ("forms", "sets"))
"""Measured after the weights were fitted, of the same kernel: in no fit."""
REPLAYS = RESULTS.with_name("placement_replays_h200.json")
"""Sets that replay sessions measured, by kernel: in no fit."""
CUDA = RESULTS.with_name("placement_cuda_h200.json")
"""Sets of stamps of CUDA C++ kernels that `autostamp run --replay` tried, by kernel and shape: in no fit."""
FEW = 4
"""Of fewer variants a rank correlation says nothing."""
HELD_OUT = 3
"""Every third pair, in the order in which they were measured, is held out of the fit."""

Values = NDArray[np.float64]


def parts_of(pair: dict[str, Any]) -> Parts:
    names = ("order", "shift", "trip", "unroll", "registers", "spills", "once")
    return Parts(*(float(pair.get(name, 0.0)) for name in names))


def columns(pairs: Sequence[dict[str, Any]], by: Weights) -> Values:
    """What the fitted weights multiply: how far the schedule moved (0 to 1), the trip's growth, and 1 for binding a lane."""
    unit = Weights(1.0, 0.0, 0.0, 0.0, 0.0, 0.0, by.order, by.wait, by.free, by.near_clean)
    return np.array([[parts_of(pair).distance(unit), pair["trip"], 1.0] for pair in pairs])


def fitted(table: Values, costs: Values) -> Values:
    """Least squares with no weight below 0: the best of all choices of columns that gives such weights."""
    best, lowest = np.zeros(table.shape[1]), float(costs @ costs)
    for count in range(1, table.shape[1] + 1):
        for chosen in itertools.combinations(range(table.shape[1]), count):
            found = np.linalg.lstsq(table[:, chosen], costs, rcond=None)[0]
            error = float(((table[:, chosen] @ found - costs) ** 2).sum())
            if (found >= 0).all() and error < lowest:
                best, lowest = np.zeros(table.shape[1]), error
                best[list(chosen)] = found
    return best


def ranks(values: Values) -> Values:
    """Ranks from 1; equal values share the mean of theirs."""
    return np.array([(values < each).sum() + ((values == each).sum() + 1) / 2 for each in values])


def spearman(first: Values, second: Values) -> float:
    return float(np.corrcoef(ranks(first.round(6)), ranks(second.round(6)))[0, 1])


def later(by: Weights) -> list[tuple[str, float, float]]:
    """(name, distance, ratio) of every variant that was measured after the fit."""
    forms, sets = (json.loads(path.read_text(encoding="utf-8")) for path in LATER)
    found = [(pair["name"], parts_of(pair).distance(by), float(pair["ratio"])) for pair in forms["pairs"]]
    return found + [(f"set {each['set']}", float(each["distance"]), each["one_cta"]["ratio"]) for each in sets["sets"]]


def show_replays(by: Weights) -> tuple[Values, Values]:
    """Rank correlations of each kernel's sets in replay sessions; distances and costs of all of them."""
    distances, costs = [], []
    for case in json.loads(REPLAYS.read_text(encoding="utf-8"))["cases"]:
        distance = np.array([parts_of(pair).distance(by) for pair in case["pairs"]])
        cost = np.array([pair["ratio"] - 1 for pair in case["pairs"]])
        near = cost <= by.near_clean
        print(
            f"replays of {case['kernel']}: {len(cost)} sets, rank correlation {spearman(distance, cost):.3f}, "
            f"of the {int(near.sum())} up to {1 + by.near_clean:g} {spearman(distance[near], cost[near]):.3f}"
        )
        distances.append(distance)
        costs.append(cost)
    return np.concatenate(distances), np.concatenate(costs)


def show_all(distances: Values, costs: Values, by: Weights) -> tuple[Values, Values]:
    """Rank correlations of what was measured after the fit, and of everything of CuTe-DSL; distances and costs of that."""
    names, new, ratios = zip(*later(by), strict=True)
    measured = np.array(ratios) - 1
    new_distances = np.array(new)
    print(f"measured after the fit: {len(names)} variants, rank correlation {spearman(new_distances, measured):.3f}")
    off = measured - new_distances
    print(
        f"  measured less predicted: median {np.median(off):.3f}, largest {off.max():.3f} ({names[int(off.argmax())]})"
    )
    wrong = int(((new_distances > by.near_clean) != (measured > by.near_clean)).sum())
    print(f"  on the wrong side of {by.near_clean:g}: {wrong}")
    every = np.concatenate([distances, new_distances]), np.concatenate([costs, measured])
    print(f"all {len(every[0])} variants measured: rank correlation {spearman(*every):.3f}")
    replayed = show_replays(by)
    every = np.concatenate([every[0], replayed[0]]), np.concatenate([every[1], replayed[1]])
    print(f"with the sets of replays, {len(every[0])} variants: rank correlation {spearman(*every):.3f}")
    return every


def cuda(by: Weights) -> list[tuple[str, Values, Values]]:
    """(case, distances, costs) of the CUDA C++ kernels."""
    cases = json.loads(CUDA.read_text(encoding="utf-8"))["cases"]
    return [
        (
            f"{case['kernel']}, {case['shape']}",
            np.array([parts_of(pair).distance(by) for pair in case["pairs"]]),
            np.array([pair["ratio"] - 1 for pair in case["pairs"]]),
        )
        for case in cases
    ]


def show_cuda(distances: Values, costs: Values, by: Weights) -> None:
    """Rank correlations of each CUDA C++ kernel, of all of them, and of all with the pairs of CuTe-DSL that are given."""
    cases = cuda(by)
    for name, far, cost in cases:
        ranked = f"{spearman(far, cost):.3f}" if len(far) >= FEW and far.std() and cost.std() else "too few"
        print(
            f"{name}: {len(far)} variants, rank correlation {ranked}; distances to {far.max():.3f},"
            f" measured {1 + cost.min():.3f} to {1 + cost.max():.3f}"
        )
    far, cost = (np.concatenate([case[at] for case in cases]) for at in (1, 2))
    print(f"CUDA C++: {len(far)} variants, rank correlation {spearman(far, cost):.3f}")
    print(
        f"  measured less predicted: median {np.median(cost - far):.3f}, {(cost - far).min():.3f} to {(cost - far).max():.3f}"
    )
    wrong = int(((far > by.near_clean) != (cost > by.near_clean)).sum())
    print(f"  on the wrong side of {by.near_clean:g}: {wrong}")
    far, cost = np.concatenate([far, distances]), np.concatenate([cost, costs])
    print(f"both languages: {len(far)} variants, rank correlation {spearman(far, cost):.3f}")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path, nargs="?", default=RESULTS)
    parser.add_argument("--pairs", action="store_true", help="print every pair")
    options = parser.parse_args(arguments)
    pairs = json.loads(options.results.read_text(encoding="utf-8"))["pairs"]
    by = weights()
    costs = np.array([pair["ratio"] - 1 for pair in pairs])
    table = columns(pairs, by)
    held = np.arange(len(pairs)) % HELD_OUT == 0
    distances = np.array([parts_of(pair).distance(by) for pair in pairs])
    if options.pairs:
        for pair, distance in sorted(zip(pairs, distances, strict=True), key=lambda item: item[1]):
            print(f"{pair['name']:26} measured {pair['ratio']:.4f}  distance {distance:.4f}")
    print(
        f"pairs: {len(pairs)}, of which {int(held.sum())} are held out; ratios {costs.min() + 1:.3f} to {costs.max() + 1:.3f}"
    )
    for name, chosen in (("all pairs", np.ones(len(pairs), bool)), ("two thirds", ~held)):
        moved, trip, bound = fitted(table[chosen], costs[chosen])
        print(f"fitted to {name}: moved {moved:.4f}, trip {trip:.3f}, bound {bound:.4f}")
    predicted = table @ fitted(table[~held], costs[~held])
    error = float(np.sqrt(((predicted[held] - costs[held]) ** 2).mean()))
    print(
        f"held-out pairs: rank correlation {spearman(predicted[held], costs[held]):.3f}, error {error:.4f} (rms of ratios)"
    )
    print(f"shipped weights, all pairs: rank correlation {spearman(distances, costs):.3f}")
    dear = costs > by.near_clean
    print(f"of these the {int(dear.sum())} over {1 + by.near_clean:g}: {spearman(distances[dear], costs[dear]):.3f}")
    wrong = int(((distances > by.near_clean) != (costs > by.near_clean)).sum())
    print(f"on the wrong side of {by.near_clean:g}: {wrong}")
    for name in ("order", "shift", "trip"):
        print(f"{name} alone: {spearman(np.array([pair[name] for pair in pairs]), costs):.3f}")
    if options.results == RESULTS:
        show_cuda(*show_all(distances, costs, by), by)
    return 0


if __name__ == "__main__":
    sys.exit(main())
