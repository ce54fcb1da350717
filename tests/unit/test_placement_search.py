# SPDX-License-Identifier: Apache-2.0
"""The placement search on kernels whose cost is a given function: which sets it proposes, and with how many compilations."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autostamp.diagnostics import AutostampError
from autostamp.hooks import variants as variants_module
from autostamp.hooks.placement_search import Search, union
from autostamp.hooks.state import StateFolder
from autostamp.hooks.variants import Candidate, Measured, Sites, Target, Variants
from autostamp.model.placement import Effect, Form, ScheduleFeatures, forms_of, together
from autostamp.passes import schedule_features

LIMIT = 1.0


def features(distance: float) -> ScheduleFeatures:
    return ScheduleFeatures(1.0, {}, (1.0, 1.0), (32, 32), (0, 0), distance)


class Kernel:
    """Stands for `Variants`: the distance of a set is what `cost` says of it. Each set asked for is compiled, in a second."""

    def __init__(self, candidates, cost, in_loop=lambda key: True, fails=lambda sites: False) -> None:
        self.target = Target("kernel", b"", tuple(candidates), ("f" * 16,), "d" * 64)
        self.cost, self.in_loop, self.fails = cost, in_loop, fails
        self.now = 0.0
        self.roles = {each.key: each.roles for each in candidates}
        self.failures: dict[Sites, AutostampError] = {}
        self.made: dict[Sites, Measured] = {}

    @property
    def compiles(self) -> int:
        return len(self.made)

    def measure(self, sites: Sites) -> Measured | None:
        if self.fails(sites):
            self.failures[sites] = AutostampError.of("AS8104", sites="s", detail="no")
            return None
        if sites not in self.made:
            self.now += 1.0
            loops = {
                key: self.in_loop(key) for key, _ in sites
            }  # True: the main loop of its role; else that one's role
            looped = {
                loop if isinstance(loop, str) else role
                for key, loop in loops.items()
                if loop
                for role in self.roles[key]
            }
            self.made[sites] = Measured(features(self.cost(sites)), frozenset(looped))
        return self.made[sites]

    def known(self, sites: Sites) -> Measured | None:
        return self.made.get(sites)

    def measure_all(self, wanted, jobs) -> None:
        for sites in wanted:
            self.measure(sites)


def wait(key: str, role: str = "mma") -> Candidate:
    return Candidate(key, (role,), True, key)


def search(kernel: Kernel, **options) -> Search:
    return Search(kernel, limit=LIMIT, clock=lambda: kernel.now, **options)  # type: ignore[arg-type]


def keys(sites) -> set[str]:
    return {key for key, _ in sites}


def test_sites_that_change_nothing_are_one_set():
    found = search(Kernel([wait("a"), wait("b"), wait("p", "load")], lambda sites: 0.0)).run()
    assert [keys(each.sites) for each in found.sets] == [{"a", "b", "p"}]
    assert {each.effect for each in found.sites} == {Effect.FREE}
    assert found.uncovered == ()
    assert found.complete


def test_two_sites_that_do_not_fit_together_are_in_two_sets_with_the_anchors():
    # a and b are near clean alone and too much together; p changes nothing and anchors its role, h is mma's cheapest.
    def cost(sites):
        return 0.6 * len(keys(sites) & {"a", "b"}) + 0.1 * len(keys(sites) & {"h"})

    found = search(Kernel([wait("p", "load"), wait("h"), wait("a"), wait("b")], cost)).run()
    assert len(found.sets) == 2
    assert all({"p", "h"} <= keys(each.sites) for each in found.sets)
    assert {frozenset(keys(each.sites) & {"a", "b"}) for each in found.sets} == {frozenset("a"), frozenset("b")}
    assert all(set(each.anchors) == {"p", "h"} for each in found.sets)
    assert all(each.features.distance <= LIMIT for each in found.sets)


def test_a_wait_that_perturbs_is_taken_in_the_form_that_does_not():
    def cost(sites):
        return 5.0 if ("v", Form.BOTH) in sites or ("v", Form.EXIT) in sites else 0.2 * len(sites)

    found = search(Kernel([wait("k"), wait("v")], cost)).run()
    alone = {each.key: each for each in found.sites}
    assert (alone["v"].form, alone["k"].form) == (Form.ENTER, Form.BOTH)
    assert ("v", Form.ENTER) in {site for each in found.sets for site in each.sites}
    assert found.uncovered == ()


def test_a_signal_has_one_form():
    signal = Candidate("s", ("mma",), False, "s")
    kernel = Kernel([wait("k"), signal], lambda sites: 5.0 if "s" in keys(sites) else 0.0)
    found = search(kernel).run()
    assert found.uncovered == ("s",)
    assert next(each for each in found.sites if each.key == "s").features.distance == 5.0
    assert all(form is Form.BOTH for sites in kernel.made for key, form in sites if key == "s")


def test_a_signal_that_perturbs_is_stamped_before_it_where_that_helps():
    signal = Candidate("s", ("mma",), False, "s", forms_of(is_wait=False))
    kernel = Kernel([wait("k"), signal], lambda sites: 5.0 if ("s", Form.BOTH) in sites else 0.1 * len(sites))
    found = search(kernel).run()
    assert next(each for each in found.sites if each.key == "s").form is Form.BEFORE
    assert found.uncovered == ()
    assert {form for each in found.sets for key, form in each.sites if key == "s"} == {Form.BEFORE}


def test_a_form_that_gives_the_stall_is_taken_before_a_cheaper_one_that_does_not():
    costs = {Form.BOTH: 5.0, Form.CARRIED: 0.8, Form.ENTER: 0.2, Form.EXIT: 5.0, Form.CARRIED_EXIT: 0.1}

    def cost(sites):
        return sum(costs[form] if key == "v" else 0.0 for key, form in sites)

    carriable = Candidate("v", ("mma",), True, "v", forms_of(is_wait=True))
    found = search(Kernel([carriable], cost)).run()
    assert [(each.key, each.form) for each in found.sites] == [("v", Form.CARRIED)]
    # A wait that lets the warp go on before it ends is never carried, so the cheapest single stamp is left.
    deferred = Candidate("v", ("mma",), True, "v", forms_of(is_wait=True, is_deferred=True))
    found = search(Kernel([deferred], cost)).run()
    assert [(each.key, each.form) for each in found.sites] == [("v", Form.ENTER)]


@pytest.mark.parametrize(
    ("one", "two", "whole"),
    [
        (Form.ENTER, Form.EXIT, Form.BOTH),
        (Form.ENTER, Form.CARRIED_EXIT, Form.CARRIED),
        (Form.CARRIED, Form.ENTER, Form.CARRIED),
        (Form.CARRIED, Form.EXIT, Form.BOTH),
        (Form.BEFORE, Form.BOTH, Form.BOTH),
        (Form.BEFORE, Form.BEFORE, Form.BEFORE),
    ],
)
def test_two_forms_of_one_site_give_the_stamps_of_both(one, two, whole):
    assert together(one, two) is together(two, one) is whole


def test_where_any_stamp_moves_the_schedule_sets_go_a_limit_further_than_it():
    # Any stamp at all costs 3.0, ten sites more cost 0.1 each, and one 5.0.
    def cost(sites):
        present = keys(sites)
        return 3.0 + 0.1 * len(present) + 5.0 * ("z" in present)

    found = search(Kernel([wait(name) for name in "abcdefghijz"], cost)).run()
    assert found.floor == pytest.approx(3.1)
    assert set("abcdefghij") == {key for each in found.sets for key in keys(each.sites)}
    assert all(3.1 < each.features.distance <= 3.1 + LIMIT + 1e-9 for each in found.sets)
    assert found.uncovered == ("z",)
    # Where more than a quarter of the sites is near clean, the others are held against the limit itself.
    found = search(
        Kernel([wait(name) for name in "abcd"], lambda sites: 3.0 if keys(sites) & {"c", "d"} else 0.5)
    ).run()
    assert found.floor == 0.0
    assert found.uncovered == ("c", "d")


def test_free_sites_of_a_main_loop_are_anchors_too():
    free = [wait("p", "load"), wait("q", "load"), wait("before", "load")]
    kernel = Kernel([*free, wait("h")], lambda sites: 0.4 * ("h" in keys(sites)), in_loop=lambda key: key != "before")
    found = search(kernel).run()
    assert [set(each.anchors) for each in found.sets] == [{"p", "q", "h"}]
    assert [keys(each.sites) for each in found.sets] == [{"p", "q", "before", "h"}]


def test_costs_are_never_added_up():
    # Alone each costs next to nothing; any two cost too much: no set may hold two, whatever the sums say.
    def cost(sites):
        return 0.01 if len(sites) <= 1 else 9.0

    found = search(Kernel([wait(name) for name in "abc"], cost)).run()
    assert all(len(each.sites) == 1 for each in found.sets)
    assert {key for each in found.sets for key in keys(each.sites)} == set("abc")


def test_a_site_too_dear_beside_its_roles_anchor_keeps_those_of_other_roles():
    # h anchors mma at 0.3, k is 0.8 alone: 1.1 together. The producer's p costs nothing.
    def cost(sites):
        present = keys(sites)
        return 0.3 * ("h" in present) + 0.8 * ("k" in present)

    found = search(Kernel([wait("p", "load"), wait("h"), wait("k")], cost)).run()
    with_k = next(each for each in found.sets if "k" in keys(each.sites))
    assert keys(with_k.sites) == {"p", "k"}
    assert with_k.anchors == ("p",)
    assert found.uncovered == ()


def test_a_site_that_perturbs_alone_and_not_in_company_is_found_there():
    def cost(sites):
        present = keys(sites)
        return 5.0 if "s" in present and "c" not in present else 0.1 * len(present)

    found = search(Kernel([wait("c"), Candidate("s", ("mma",), False, "s")], cost)).run()
    assert [keys(each.sites) for each in found.sets] == [{"c", "s"}]
    assert next(each for each in found.sites if each.key == "s").effect is Effect.PERTURBING


def test_two_sites_that_are_harmless_only_together_are_a_set():
    def cost(sites):
        return 5.0 if len(keys(sites) & {"s", "t"}) == 1 else 0.1

    signals = [Candidate(key, ("mma",), False, key) for key in "st"]
    found = search(Kernel([wait("a"), *signals], cost)).run()
    assert found.uncovered == ()
    assert {"s", "t"} <= keys(found.sets[-1].sites)


def test_an_anchor_is_in_its_roles_own_loop_where_one_can_be():
    # s changes nothing, but stands in the loop over tiles, which stores; h is visited every iteration of mma's.
    def cost(sites):
        return 0.4 * len(keys(sites) & {"h"}) + 0.7 * len(keys(sites) & {"k"})

    made = search(Kernel([wait("h"), wait("k"), wait("s")], cost, in_loop=lambda key: "store" if key == "s" else True))
    found = made.run()
    # s costs nothing and is in every set: an anchor, too, but not the one of mma's iterations.
    assert found.sets[0].anchors == ("h",)
    assert made.unanchored == ()
    # Beside k the anchor is too much. What is free stays in both sets.
    assert {frozenset(keys(each.sites)) for each in found.sets} == {frozenset("hs"), frozenset("ks")}


def test_a_role_without_a_site_in_its_loop_has_no_anchor():
    made = search(Kernel([wait("a"), wait("p", "load")], lambda sites: 0.0, in_loop=lambda key: key == "a"))
    found = made.run()
    assert made.unanchored == ("load",)
    assert [each.anchors for each in found.sets] == [("a",)]


def test_a_variant_that_does_not_compile_stops_nothing():
    kernel = Kernel([wait("a"), wait("bad")], lambda sites: 0.0, fails=lambda sites: "bad" in keys(sites))
    found = search(kernel).run()
    assert [keys(each.sites) for each in found.sets] == [{"a"}]
    assert found.uncovered == ("bad",)
    assert frozenset({("bad", Form.BOTH)}) in kernel.failures


def test_nothing_is_compiled_after_the_deadline():
    kernel = Kernel([wait(name) for name in "abcdefgh"], lambda sites: 0.0)
    made = search(kernel, deadline=-1.0)
    found = made.run()
    assert not found.complete
    assert kernel.compiles == 0
    assert found.sets == ()
    assert set(found.uncovered) == set("abcdefgh")


def test_a_role_whose_sites_were_not_compiled_is_not_said_to_have_no_anchor():
    kernel = Kernel([*(wait(name) for name in "abcdefgh"), wait("p", "load")], lambda sites: 0.0)
    made = search(kernel, deadline=3.0)
    assert not made.run().complete
    assert made.unanchored == ()
    bad = Kernel([wait("a"), wait("p", "load")], lambda sites: 5.0 if "p" in keys(sites) else 0.0)
    made = search(bad)
    made.run()
    assert made.unanchored == ("load",)


def test_a_budget_that_ends_among_the_sites_leaves_time_for_a_set():
    kernel = Kernel([wait(name) for name in "abcdefghijklmnopqrst"], lambda sites: 0.0)
    found = search(kernel, deadline=10.0).run()
    assert not found.complete
    (only,) = found.sets
    # Six of ten seconds are for single sites: what begins at 0, 1, ... 6.
    assert len(only.sites) == 7
    assert keys(only.sites) == {each.key for each in found.sites}
    assert set(found.uncovered) == {each.key for each in kernel.target.candidates} - keys(only.sites)


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(st.sampled_from("abcdefghij"), st.floats(0, 1.5), min_size=1),
    st.sets(st.tuples(st.sampled_from("abcdefghij"), st.sampled_from("abcdefghij")), max_size=8),
)
def test_every_set_was_compiled_and_is_near_clean(costs, quarrels):
    def cost(sites):
        present = keys(sites)
        return sum(costs[key] * (0.5 if form is not Form.BOTH else 1.0) for key, form in sites) + 9.0 * any(
            first != second and {first, second} <= present for first, second in quarrels
        )

    kernel = Kernel([wait(key) for key in costs], cost)
    found = search(kernel).run()
    for each in found.sets:
        assert kernel.made[frozenset(each.sites)].features.distance <= found.floor + LIMIT
        assert set(each.anchors) <= keys(each.sites)
    covered = {key for each in found.sets for key in keys(each.sites)}
    assert covered.isdisjoint(found.uncovered)
    assert covered | set(found.uncovered) == set(costs)
    # Alone and with both stamps it fits: then it is in some set.
    assert {key for key, value in costs.items() if value <= LIMIT} <= covered


def test_both_stamps_win_where_forms_meet():
    assert union([("a", Form.ENTER)], [("a", Form.BOTH)]) == {("a", Form.BOTH)}
    assert union([("a", Form.ENTER)], [("a", Form.EXIT), ("b", Form.EXIT)]) == {("a", Form.BOTH), ("b", Form.EXIT)}


class Builder:
    """Counts its builds."""

    def __init__(self, target: Target) -> None:
        self.builds = 0
        self._target = target

    def target(self) -> Target:
        return self._target

    def build(self, sites: Sites) -> bytes:
        self.builds += 1
        if not sites:
            raise AutostampError.of("AS8104", sites="none", detail="no")
        return repr(sorted(sites)).encode()

    def close(self) -> None:
        pass


@pytest.fixture
def without_tools(monkeypatch):
    """A cubin's text stands for its facts: no disassembler is needed."""
    outline = type("Outline", (), {"__init__": lambda self, facts: None, "stamped_roles": frozenset()})
    monkeypatch.setattr(variants_module, "_kernel", lambda data, symbol: data)
    monkeypatch.setattr(schedule_features, "Outline", outline)
    monkeypatch.setattr(schedule_features, "features", lambda clean, stamped: features(0.0))


@pytest.mark.usefixtures("without_tools")
def test_a_variant_is_compiled_once_and_cached_by_content(tmp_path):
    sites = frozenset({("a", Form.BOTH)})
    target = Target("kernel", b"clean", (wait("a"),), (), "d")
    first = Variants(Builder(target), target, StateFolder(tmp_path))
    assert first.measure(sites) == first.measure(sites)
    assert (first.builder.builds, first.compiles) == (1, 1)  # type: ignore[attr-defined]
    again = Variants(Builder(target), target, StateFolder(tmp_path))
    again.measure(sites)
    assert (again.builder.builds, again.compiles) == (0, 0)  # type: ignore[attr-defined]
    other = Target("kernel", b"another clean cubin", (wait("a"),), (), "d")
    changed = Variants(Builder(other), other, StateFolder(tmp_path))
    changed.measure(sites)
    assert changed.compiles == 1
    changed.measure(frozenset({("a", Form.ENTER)}))
    assert changed.compiles == 2


@pytest.mark.usefixtures("without_tools")
def test_what_compares_cubins_may_change_without_another_build(tmp_path, monkeypatch):
    sites = frozenset({("a", Form.BOTH)})
    target = Target("kernel", b"clean", (wait("a"),), (), "d")
    Variants(Builder(target), target, StateFolder(tmp_path)).measure(sites)
    monkeypatch.setattr(variants_module, "_measures_digest", lambda: "others")
    monkeypatch.setattr(schedule_features, "features", lambda clean, stamped: features(0.5))
    again = Variants(Builder(target), target, StateFolder(tmp_path))
    assert again.measure(sites).features.distance == 0.5
    assert (again.builder.builds, again.compiles) == (0, 0)  # type: ignore[attr-defined]


@pytest.mark.usefixtures("without_tools")
def test_a_failure_is_kept_and_measures_as_nothing(tmp_path):
    target = Target("kernel", b"clean", (wait("a"),), (), "d")
    made = Variants(Builder(target), target, StateFolder(tmp_path))
    assert made.measure(frozenset()) is None
    assert [each.diagnostic.code for each in made.failures.values()] == ["AS8104"]


@pytest.mark.usefixtures("without_tools")
def test_variants_that_nobody_used_for_weeks_are_removed(tmp_path):
    target = Target("kernel", b"clean", (wait("a"),), (), "d")
    sites = [frozenset({("a", form)}) for form in (Form.BOTH, Form.ENTER)]
    Variants(Builder(target), target, StateFolder(tmp_path)).measure_all(sites, 1)
    files = sorted((tmp_path / "variants").iterdir())
    assert [{file.suffix for file in files[at : at + 2]} for at in (0, 2)] == [{".cubin", ".json"}] * 2
    for old in files[:2]:
        os.utime(old, (0, 0))
    Variants(Builder(target), target, StateFolder(tmp_path))
    assert sorted((tmp_path / "variants").iterdir()) == files[2:]
