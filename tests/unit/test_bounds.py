# SPDX-License-Identifier: Apache-2.0
"""The three bounds and the prediction, by hand arithmetic."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autostamp.diagnostics import AutostampError
from autostamp.model.budget import BoundKind, Budget, Dependency, Origin, Resource, ResourceRow, Ring, Step
from autostamp.predict.attention import AttentionTile, forward, forward_chain
from autostamp.predict.bounds import predict
from autostamp.predict.cycles import worst_cycle
from autostamp.predict.machines import load_machine


def row(role: str, resource: Resource, cycles: float, constant: str = "", *, is_write: bool = False) -> ResourceRow:
    return ResourceRow(role, resource, "work", cycles, "B", constant, 1, cycles, Origin.GIVEN, "", "", is_write)


def edge(start: str, end: str, cycles: float, distance: int = 0, constant: str = "") -> Dependency:
    return Dependency(start, end, (Step(f"{start} to {end}", cycles, constant),), distance)


def budget(*rows: ResourceRow, **fields) -> Budget:
    return Budget("kernel", "machine", "one tile", rows, **fields)


def ring(stages: int, fill: float, consume: float, round_trip: float = 0) -> Ring:
    hand_off = (Step("round trip", round_trip),) if round_trip else ()
    return Ring("K", "load", "mma", stages, (Step("fill", fill),), (Step("consume", consume),), hand_off)


def test_the_busiest_resource_is_summed_over_roles():
    found = predict(
        budget(
            row("mma", Resource.TENSOR, 500),
            row("mma", Resource.SMEM, 300),
            row("load", Resource.SMEM, 260),
            row("softmax", Resource.MUFU, 450),
        )
    )
    assert [(bound.name, bound.cycles) for bound in found.bounds] == [
        ("shared memory", 560),
        ("tensor core", 500),
        ("MUFU", 450),
    ]
    assert found.period == 560
    # Within a tenth of 560 is 504 and more: none.
    assert found.co_bottlenecks == ()
    assert [(idle.role, idle.resource, idle.busy) for idle in found.roles] == [
        ("mma", Resource.TENSOR, 500),
        ("load", Resource.SMEM, 260),
        ("softmax", Resource.MUFU, 450),
    ]
    assert [idle.idle for idle in found.roles] == pytest.approx([60 / 560, 300 / 560, 110 / 560])
    assert found.line == (
        "shared memory is the ceiling at ~560 cycles/iteration; role mma idles ~11 %; role load idles ~54 %; "
        "role softmax idles ~20 %"
    )


@pytest.mark.parametrize(("cycles", "is_close"), [(899, False), (900, True), (1000, True)])
def test_bounds_within_a_tenth_bind_together(cycles, is_close):
    found = predict(budget(row("mma", Resource.TENSOR, 1000), row("softmax", Resource.MUFU, cycles)))
    assert [bound.name for bound in found.co_bottlenecks] == ["MUFU"] * is_close
    assert ("(within 10 %: MUFU)" in found.line) is is_close


def test_writes_to_shared_memory_count_by_their_share():
    rows = (row("mma", Resource.SMEM, 640), row("load", Resource.SMEM, 384, is_write=True))
    periods = {share: predict(budget(*rows, smem_write_share=share)).period for share in (0, 0.5, 1)}
    assert periods == {0: 640, 0.5: 832, 1: 1024}
    assert predict(budget(*rows)).period_without_writes == 640


@pytest.mark.parametrize(
    ("stages", "fill", "consume", "round_trip", "expected"),
    [(1, 700, 300, 0, 1000), (2, 700, 300, 0, 500), (4, 700, 300, 174, 293.5), (3, 100, 200, 0, 100)],
)
def test_credit_is_what_a_stage_takes_over_the_stages(stages, fill, consume, round_trip, expected):
    found = predict(budget(rings=(ring(stages, fill, consume, round_trip),)))
    assert found.period == expected
    assert found.bottleneck.kind is BoundKind.CREDIT
    assert found.line == f"the depth of ring K is the ceiling at ~{expected:.0f} cycles/iteration"


def test_the_period_is_the_largest_of_the_three():
    # S stages of a ring with load 300, compute 200 and 400 of latency: resource 300, credit 900 / S; and a chain of 350.
    rows = (row("load", Resource.TMA_BYTES, 300), row("mma", Resource.TENSOR, 200))
    chain = (edge("a", "b", 250), edge("b", "a", 450, distance=2))
    kinds = {}
    for stages in (2, 3, 4):
        found = predict(budget(*rows, rings=(ring(stages, 700, 200),), dependencies=chain))
        kinds[stages] = (found.bottleneck.kind, found.period)
    assert kinds == {
        2: (BoundKind.CREDIT, 450),
        3: (BoundKind.RECURRENCE, 350),
        4: (BoundKind.RECURRENCE, 350),
    }
    assert predict(budget(*rows, rings=(ring(4, 700, 200),))).bottleneck.kind is BoundKind.RESOURCE


def test_attention_on_b200_is_bound_by_its_chain():
    # Worked example: (QK 512 + exponentials 1024 + PV 512 + 4 round trips of 123) / 2 tiles of Q = 1270, where the resources
    # need 1024 and 1424 was measured (FlashAttention-4 at 1613 TFLOP/s and 1.85 GHz): 0.89 of it instead of 0.72.
    b200 = load_machine("b200")
    tile = AttentionTile(128, 128, 128)
    chain = forward_chain(
        b200, tile, q_stages=2, round_trip=Step("round trip of B300", 123, "mbarrier_round_trip", True)
    )
    rows = forward(b200, tile, smem_write_share=0).rows
    found = predict(budget(*rows, dependencies=chain, smem_write_share=0))
    assert found.period == 1270
    assert found.bottleneck.kind is BoundKind.RECURRENCE
    assert {"QK", "softmax", "PV"} == set(found.bottleneck.name.split(" -> "))
    measured = 4 * 128**3 * 148 * 1.85e9 / 1613e12
    assert round(measured) == 1424
    assert found.period / measured == pytest.approx(0.89, abs=0.005)
    assert 1024 / measured == pytest.approx(0.72, abs=0.005)
    # A tenth more exponentials a cycle takes 1024 (1 - 1/1.1) / 2 off the chain, shorter round trips 492 (1 - 1/1.1) / 2.
    gains = {one.constant: one.gain for one in found.sensitivities}
    assert gains["mufu_ex2"] == gains["tensor_bf16"] == pytest.approx(1024 / 11 / 2)
    assert gains["mbarrier_round_trip"] == pytest.approx(492 / 11 / 2)
    assert gains["smem"] == 0
    assert [one.gain for one in found.sensitivities] == sorted(gains.values(), reverse=True)


def test_a_better_rate_helps_up_to_the_next_bound():
    rows = (row("mma", Resource.TENSOR, 1000, "tensor"), row("softmax", Resource.MUFU, 950, "mufu"))
    found = predict(budget(*rows))
    assert {one.constant: one.period for one in found.sensitivities} == {"tensor": 950, "mufu": 1000}
    # 1000 / 1.1 = 909 would be the tensor core's own.
    tie = predict(budget(row("mma", Resource.TENSOR, 1000, "tensor"), row("softmax", Resource.MUFU, 1000, "mufu")))
    assert [one.gain for one in tie.sensitivities] == [0, 0]


def test_the_worst_of_several_chains_is_named():
    # a->b->a: (10 + 20) / 1; b->c->b: (60 + 30) / 2; all three: (10 + 60 + 5) / 1.
    edges = (
        edge("a", "b", 10),
        edge("b", "a", 20, 1),
        edge("b", "c", 60),
        edge("c", "b", 30, 2),
        edge("c", "a", 5, 1),
    )
    found = worst_cycle(edges)
    assert found is not None
    chain, cycles = found
    assert cycles == 75
    assert {(one.start, one.end) for one in chain} == {("a", "b"), ("b", "c"), ("c", "a")}
    assert worst_cycle(edges[:1]) is None
    assert worst_cycle(()) is None


def _ratios(edges: tuple[Dependency, ...]) -> Iterator[float]:
    """Of every simple cycle, found by walking all paths."""

    def walk(path: list[Dependency]) -> Iterator[float]:
        for one in edges:
            if one.start != path[-1].end:
                continue
            if one.end == path[0].start:
                closed = [*path, one]
                yield sum(e.steps[0].cycles for e in closed) / sum(e.distance for e in closed)
            elif all(one.end not in (e.start, e.end) for e in path):
                yield from walk([*path, one])

    for one in edges:
        if one.start == one.end:
            yield one.steps[0].cycles / one.distance
        else:
            yield from walk([one])


NODES = st.sampled_from("abcd")
EDGES = st.lists(st.tuples(NODES, NODES, st.integers(0, 99), st.integers(1, 3)), max_size=8)


@given(EDGES)
def test_the_worst_chain_is_the_worst_of_all_cycles(drawn):
    edges = tuple(edge(*one) for one in drawn)
    found = worst_cycle(edges)
    expected = max(_ratios(edges), default=0.0)
    assert (0.0 if found is None else found[1]) == pytest.approx(expected)


def test_phases_that_wait_for_each_other_within_one_iteration_are_refused():
    with pytest.raises(AutostampError) as caught:
        predict(budget(dependencies=(edge("mma", "softmax", 5), edge("softmax", "mma", 5))))
    assert caught.value.diagnostic.code == "AS7107"
    assert "mma -> softmax -> mma" in caught.value.diagnostic.message or (
        "softmax -> mma -> softmax" in caught.value.diagnostic.message
    )


@pytest.mark.parametrize(
    "wrong",
    [budget(), budget(rings=(ring(0, 1, 1),)), budget(dependencies=(edge("a", "a", 1, -1),))],
    ids=["nothing", "no stages", "distance below zero"],
)
def test_a_budget_that_bounds_nothing_is_refused(wrong):
    with pytest.raises(AutostampError) as caught:
        predict(wrong)
    assert caught.value.diagnostic.code == "AS7106"
