# SPDX-License-Identifier: Apache-2.0
"""Schedule features on hand-written kernels, counted by hand, and what the measured pairs say of the weights."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest

from autostamp.model.placement import Effect
from autostamp.passes import schedule_features
from autostamp.passes.schedule_features import MMA_RATE, Outline, Parts, effect, features, parts, weights
from benchmarks import placement as benchmark
from tests.listing import facts
from tests.unit.test_loop_report import ARRIVE, CLOSE, LOADS, MMA, WAIT, looped
from tests.unit.test_schedule import STAMP

LOAD = WAIT + ARRIVE + LOADS
EX2 = "MUFU.EX2 R3, R3\n"
FMUL = "FMUL R4, R4, R5\n"
GROUP_1, GROUP_0 = "WARPGROUP.DEPBAR.LE gsb0, 0x1\n", "WARPGROUP.DEPBAR.LE gsb0, 0x0\n"


def attention(before: int, after: int, *, extra: str = "") -> str:
    """A trip: two products, the wait for the first, `before` exponentials, the wait for the second, `after` more."""
    return looped(LOAD, attention_body(before, after) + extra)


def attention_body(before: int = 2, after: int = 8) -> str:
    work = f"{EX2 * before}{GROUP_0}{EX2 * after}{FMUL * 4}"
    return f"{WAIT}WARPGROUP.ARRIVE\n{MMA}{CLOSE}{GROUP_1}{work}{ARRIVE}"


def outline(text: str, **resources) -> Outline:
    return Outline(facts(text, **resources))


CLEAN = outline(attention(2, 8))


def test_a_kernel_is_as_far_from_itself_as_can_be_nearest():
    found = features(CLEAN, CLEAN)
    assert (found.order_share, dict(found.waits_moved), found.distance) == (1.0, {}, 0.0)
    assert found.unroll[0] == found.unroll[1]
    assert effect(found) is Effect.FREE


def test_where_each_wait_stands():
    mma = CLEAN.streams["mma"]
    assert mma.waits == {"mbarrier": (0, 2), "wait_group(1)": (0, 10), "wait_group(0)": (2, 10)}
    assert mma.work == 2 + 10
    # Two m64n128k16 of 16-bit operands: 64 * 128 * 16 multiply-adds each, 2048 a cycle.
    assert 2 * 64 * 128 * 16 / MMA_RATE == 128
    assert mma.cycles == 128


@pytest.mark.parametrize(("before", "moved"), [(0, 0), (10, 10)])
def test_a_wait_that_leaves_its_place_among_the_exponentials(before, moved):
    found = features(CLEAN, outline(attention(before, 10 - before)))
    assert dict(found.waits_moved) == {"mma wait_group(0)": (2, moved)}
    # 2 or 8 of 10 is past the end of the range: all that a move counts.
    assert found.distance == pytest.approx(weights().moved)
    assert effect(found) is Effect.PERTURBING


def test_a_producer_has_time():
    # The same mma loop, and twice the arrives in the load loop: neither order nor length of a trip counts there.
    found = features(CLEAN, outline(looped(LOAD + ARRIVE, attention_body())))
    assert found.distance == 0.0


def test_the_share_of_the_order_is_of_the_main_loop():
    mixed = attention(2, 8).replace(EX2 * 8 + FMUL * 4, (EX2 * 2 + FMUL) * 4)
    found = parts(CLEAN, outline(mixed))
    # Core opcodes of a trip: mbarrier wait, ARRIVE, 2 HGMMA, 2 DEPBAR, 10 MUFU, 4 FMUL, SYNCS.ARRIVE: 21. Of the last 12 the
    # longest common subsequence of XXXXXXXXFFFF and XXFXXFXXFXXF has 8 X and 1 F.
    assert found.order == pytest.approx(1 - (21 - 12 + 9) / 21)
    assert found.shift == 0


def test_a_stamp_in_the_loop_makes_the_trip_longer():
    stamped = outline(attention(2, 8, extra=STAMP))
    found = parts(CLEAN, stamped)
    assert found.order == found.shift == 0
    assert found.trip == pytest.approx(7 / 128)  # a stamp of seven instructions in a trip of 128 cycles
    assert stamped.stamped_roles == {"mma"}
    assert CLEAN.stamped_roles == frozenset()


def test_a_wait_behind_a_try_may_stand_in_line_or_behind_the_kernel():
    # Both try in the loop. Clean waits behind EXIT where the try failed, and comes back; stamped passes the wait by in line.
    tried = "SYNCS.PHASECHK.TRANS64.TRYWAIT P1, [UR7], R9\n"
    work = f"{MMA}{CLOSE}{GROUP_0}"
    clean = f"{tried}@!P1 BRA 0x70\n{work}@P6 BRA 0x0\nEXIT\n{WAIT}@!P5 BRA 0x70\nBRA 0x20\n"
    stamped = f"{tried}@P1 BRA 0x30\n{WAIT}{work}@P6 BRA 0x0\nEXIT\n"
    one, other = outline(clean), outline(stamped)
    assert [len(each.streams["mma"].waits) for each in (one, other)] == [2, 3]
    found = features(one, other)
    assert (found.order_share, dict(found.waits_moved)) == (1.0, {})


def test_a_loop_that_only_the_stamped_build_has_is_the_stamps_own():
    copy = "LDG.E R2, [R4]\nSTG.E [R6], R2\n"
    found = features(CLEAN, outline(looped(copy, LOAD, attention_body())))
    assert found.distance == 0.0


def test_a_main_loop_that_is_gone_is_all_moved():
    found = parts(CLEAN, outline(looped(LOAD)))
    assert (found.order, found.shift) == (1.0, 1.0)


def test_registers_spills_and_unrolling():
    text = attention(2, 8)
    found = parts(outline(text, registers=168), outline(text, registers=169))
    assert found.registers == 1  # 168 is 21 units of 8, 169 begins the 22nd
    assert parts(outline(text, registers=161), outline(text, registers=168)).registers == 0
    spill = "STL.64 [R1], R4\nLDL R5, [R1]\n"
    spilt = parts(CLEAN, outline(text.replace("EXIT", f"{spill}EXIT")))
    assert (spilt.spills, spilt.once) == (0, 8 + 4)
    in_loop = parts(CLEAN, outline(attention(2, 8, extra=spill)))
    assert (in_loop.spills, in_loop.once) == (8 + 4, 0)
    twice = parts(CLEAN, outline(looped(LOAD, attention_body() * 2)))
    assert twice.unroll == 1.0  # one doubling


def test_the_distance_is_the_larger_move_and_the_rest():
    by = replace(
        weights(),
        moved=0.5,
        trip=2.0,
        unroll=1.0,
        registers=0.25,
        spills=0.125,
        once=0.0625,
        order=(0.0, 0.5),
        wait=(0.0, 1.0),
    )
    # order 0.25 lies half way, shift 0.25 a quarter of the way: half of `moved`.
    assert Parts(0.25, 0.25, 0.1, 0.0, 2.0, 4.0).distance(by) == pytest.approx(0.25 + 0.2 + 0.5 + 0.5)
    assert Parts(9.0, 9.0, 0.0, 0.0, 0.0, 0.0).distance(by) == 0.5
    assert Parts(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, once=8.0).distance(by) == 0.5


def test_effects_are_by_the_limits_of_the_file():
    limits = weights()
    base = features(CLEAN, CLEAN)
    assert effect(replace(base, distance=limits.free)) is Effect.FREE
    assert effect(replace(base, distance=0.0, waits_moved={"mma mbarrier": (0, 1)})) is Effect.NEAR_CLEAN
    assert effect(replace(base, distance=limits.near_clean)) is Effect.NEAR_CLEAN
    assert effect(replace(base, distance=limits.near_clean + 0.001)) is Effect.PERTURBING


PAIRS = json.loads(benchmark.RESULTS.read_text())["pairs"]


def inversions(first: list[float], second: list[float]) -> float:
    """Kendall's tau-a by counting pairs: another measure of rank correlation than the one that the benchmark prints."""
    signs = [
        (a > b) - (a < b) if (c > d) - (c < d) > 0 else (b > a) - (b < a) if (c > d) - (c < d) < 0 else 0
        for (a, c), (b, d) in combinations(zip(first, second, strict=True), 2)
    ]
    return sum(signs) / len(signs)


def test_the_weights_rank_the_measured_pairs():
    distances = [benchmark.parts_of(pair).distance(weights()) for pair in PAIRS]
    ratios = [pair["ratio"] for pair in PAIRS]
    assert len(PAIRS) == 55
    assert all(pair["is_equal"] and not pair["lost"] for pair in PAIRS)
    moving = [at for at, distance in enumerate(distances) if distance > weights().free]
    # Of two sets of stamps of which one is further from clean, five in six times that one is slower, too.
    assert inversions([distances[at] for at in moving], [ratios[at] for at in moving]) > 2 * 5 / 6 - 1
    # What the distance calls free costs no more than binding a lane does, within a hundredth.
    assert max(ratios[at] for at in range(len(PAIRS)) if at not in moving) < 1.01
    wrong = [pair["name"] for pair, far in zip(PAIRS, distances, strict=True) if (far > 0.03) != (pair["ratio"] > 1.03)]
    assert wrong == ["enter:1445"]


def test_the_correlation_of_the_benchmark_is_spearmans():
    # Ranks 1 2 3 4 5 and 2 1 4 3 5: 1 - 6 * (1 + 1 + 1 + 1 + 0) / (5 * 24) = 0.8.
    array = benchmark.np.array
    assert benchmark.spearman(array([1.0, 2.0, 3.0, 4.0, 5.0]), array([0.2, 0.1, 0.4, 0.3, 0.5])) == pytest.approx(0.8)
    assert benchmark.ranks(array([3.0, 1.0, 3.0])).tolist() == [2.5, 1.0, 2.5]


def test_the_fit_finds_weights_that_made_the_costs():
    table = benchmark.np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, 1.0], [0.5, 2.0, 1.0]])
    made = benchmark.np.array([0.3, 0.0, 0.01])
    assert benchmark.fitted(table, table @ made) == pytest.approx(made, abs=1e-9)


def test_the_shipped_weights_are_those_that_the_pairs_give():
    table = tomllib.loads((Path(schedule_features.__file__).parent / "schedule_weights.toml").read_text())
    costs = benchmark.np.array([pair["ratio"] - 1 for pair in PAIRS])
    moved, trip, bound = benchmark.fitted(benchmark.columns(PAIRS, weights()), costs)
    assert (weights().moved, weights().trip, table["source"]["bound"]) == pytest.approx((moved, trip, bound), rel=0.01)


def test_the_pairs_of_cuda_cpp_are_as_the_documents_say():
    cases = json.loads(benchmark.CUDA.read_text())["cases"]
    pairs = [pair for case in cases for pair in case["pairs"]]
    assert len(pairs) == 95
    # No stamp moved the order or a wait, a register or a spill: what the distance has of them is the trip.
    assert all(pair[part] == 0 for pair in pairs for part in ("order", "shift", "unroll", "registers", "spills"))
    wrong = [pair for pair in pairs if (pair["trip"] * weights().trip > 0.03) != (pair["ratio"] > 1.03)]
    assert len(wrong) == 58
    for case in cases:
        ratios = [pair["ratio"] for pair in case["pairs"]]
        if len(ratios) >= benchmark.FEW:
            distances = [benchmark.parts_of(pair).distance(weights()) for pair in case["pairs"]]
            assert inversions(distances, ratios) > 0
