# SPDX-License-Identifier: Apache-2.0
"""Packing of replay sets step by step: what is run after a set above the bar, what is merged, what is kept."""

from __future__ import annotations

import pytest

from autostamp.analysis.replay_packing import Packing, Tried
from autostamp.analysis.replay_sets import Trial, everything, initial
from autostamp.model.placement import (
    PLACEMENT_SCHEMA,
    Form,
    Placement,
    ReplaySet,
    ScheduleFeatures,
)

FEATURES = ScheduleFeatures(1.0, {}, (1.0, 1.0), (32, 32), (0, 0), 0.0)
BAR = 1.02


def both(*keys: str) -> tuple[tuple[str, Form], ...]:
    return tuple((key, Form.BOTH) for key in keys)


def trial(number: int, own: str, anchors: str = "A") -> Trial:
    """A letter a site; capitals are anchors."""
    return Trial(number, both(*anchors, *own), tuple(anchors))


def packing(*tried: tuple[Trial, float], waits: str = "", most: int = 6) -> Packing:
    made = Packing(BAR, most, waits)
    for each, ratio in tried:
        made.add(Tried(each, ratio, ratio <= BAR))
    return made


def owns(trials: list[Trial]) -> list[str]:
    return ["".join(key for key, _ in each.own) for each in trials]


def test_sites_that_another_set_has_are_not_run_again() -> None:
    parts = packing((trial(1, "abcdef"), 1.01), (trial(2, "abcdegh"), 1.04)).split(3)
    assert owns(parts) == ["g", "h"]
    assert [each.number for each in parts] == [3, 4]
    assert all(each.anchors == ("A",) and each.sites[0] == ("A", Form.BOTH) for each in parts)


def test_a_large_set_is_divided_into_likely_and_unlikely_sites() -> None:
    made = packing((trial(1, "abcdefg"), 1.05))
    made.weights = {"b": 0.02, "f": 0.01}
    assert owns(made.split(2)) == ["acdeg", "b", "f"]
    assert owns(packing((trial(1, "abcdef"), 1.05)).split(2)) == ["abc", "def"]


def test_sites_of_main_loops_are_run_a_few_at_a_time_apart_from_the_rest() -> None:
    made = packing((trial(1, "abcdefghi"), 1.05))
    made.inside = "cdefgh"
    made.weights = {"h": 0.01}
    assert owns(made.split(2)) == ["abi", "cdef", "g", "h"]


def test_a_stamp_that_costs_too_much_is_tried_at_another_place() -> None:
    forms = {"w": (Form.BOTH, Form.CARRIED, Form.ENTER, Form.EXIT, Form.CARRIED_EXIT), "s": (Form.BOTH, Form.BEFORE)}
    exit_only = Trial(1, (*both("A"), ("w", Form.EXIT)), ("A",))
    made = packing((exit_only, 1.08), (trial(2, "s"), 1.12), (trial(3, "t"), 1.12), waits="w")
    made.forms = forms
    assert [each.own for each in made.split(4)] == [(("w", Form.CARRIED_EXIT),), (("s", Form.BEFORE),)]
    # What costs too much there, too, is given up with both costs known.
    for number, site in ((4, ("w", Form.CARRIED_EXIT)), (5, ("s", Form.BEFORE))):
        made.add(Tried(Trial(number, (*both("A"), site), ("A",)), 1.03, False))
    assert made.split(6) == []
    assert {form: each.ratio for form, each in made.evidence("s").items()} == {Form.BOTH: 1.12, Form.BEFORE: 1.03}


def test_a_wait_of_one_stamp_has_no_other_place_where_the_program_has_none() -> None:
    made = packing((Trial(1, (*both("A"), ("w", Form.EXIT)), ("A",)), 1.08), waits="w")
    made.forms = {"w": (Form.BOTH, Form.ENTER, Form.EXIT)}
    assert made.split(2) == []


def test_the_parts_of_a_set_far_from_the_clean_schedule_are_run_with_it() -> None:
    made = packing()
    made.inside, made.weights = "bcd", {"c": 0.02, "d": 0.01}
    trials = [trial(1, "abc"), trial(2, "abd"), trial(3, "a")]
    # a is outside of the main loops, b in one and harmless, c and d likely to cost: one after the other, each of them once.
    found = made.foreseen(trials, {1: 0.028, 2: 0.02, 3: 0.014}, 4)
    assert owns(found) == ["a", "b", "c", "d"]
    assert [each.number for each in found] == [4, 5, 6, 7]
    made.add(Tried(trials[0], 1.03, False))
    assert made.split(8) == []
    assert packing().foreseen(trials, {}, 4) == []


def test_as_many_sets_as_fit_are_merged_at_once() -> None:
    tried = [(trial(number, chr(96 + number)), 1.004) for number in range(1, 9)]
    merged = packing(*tried, most=2).merge(9)
    # Four of 1.004 each are thought to take 1.004, as the cheapest set takes that, too.
    assert sorted(len(each.own) for each in merged) == [4, 4]


def test_a_wait_is_run_whole_and_with_each_of_its_stamps() -> None:
    parts = packing((trial(1, "ab"), 1.05), waits="a").split(2)
    forms = [(key, str(form)) for each in parts for key, form in each.own]
    assert forms == [("a", "both"), ("a", "enter"), ("a", "exit"), ("b", "both")]


def test_half_a_wait_that_is_covered_is_not_run_again() -> None:
    enter = Trial(2, (*both("A"), ("a", Form.ENTER)), ("A",))
    parts = packing((trial(1, "ab"), 1.05), (enter, 1.01), waits="a").split(3)
    forms = [(key, str(form)) for each in parts for key, form in each.own]
    assert forms == [("a", "exit"), ("b", "both")]


def test_a_site_is_run_with_one_anchor_where_that_may_help() -> None:
    # The anchors alone take 1.015, so the site may take as little as 1.008.
    made = packing((trial(1, "", "AB"), 1.015), (trial(2, "a", "AB"), 1.023), waits="A")
    (part,) = made.split(3)
    assert part == Trial(3, both("B", "a"), ("B",))  # B is a signal, and has one stamp


def test_anchors_that_move_the_schedule_go_first() -> None:
    made = packing((trial(1, "", "ABC"), 1.015), (trial(2, "a", "ABC"), 1.023))
    made.weights = {"C": 0.009}
    (part,) = made.split(3)
    assert part == Trial(3, both("A", "B", "a"), ("A", "B"))
    # Where that is too much still, one is left.
    made.add(Tried(part, 1.021, False))
    assert made.split(4) == [Trial(4, both("A", "a"), ("A",))]


def test_anchors_that_cost_nothing_stay() -> None:
    assert packing((trial(1, "", "AB"), 0.999), (trial(2, "a", "AB"), 1.05)).split(3) == []


def test_anchors_that_are_too_much_are_a_set_of_their_own() -> None:
    parts = packing((trial(1, "a", "AB"), 1.03)).split(2)
    assert Trial(3, both("A", "B"), ("A",)) in parts
    assert Trial(2, both("A", "a"), ("A",)) in parts


def test_a_set_at_the_bar_is_not_taken_apart_before_it_is_settled() -> None:
    made = packing()
    made.add(Tried(trial(1, "ab"), 1.021, False), is_settled=False)
    assert made.split(2) == []
    made.add(Tried(trial(1, "ab"), 1.022, False))
    assert owns(made.split(2)) == ["a", "b"]


def test_sets_are_merged_only_where_there_are_too_many_and_the_cheapest_first() -> None:
    tried = [
        (trial(number, own), ratio)
        for number, (own, ratio) in enumerate([("a", 1.018), ("b", 1.004), ("c", 1.012), ("d", 1.003)], 1)
    ]
    assert packing(*tried, most=4).merge(5) == []
    # b and d should take 1.007 together; c and a 1.030, which is not tried.
    (merged,) = packing(*tried, most=3).merge(5)
    assert set(merged.sites) == {*both("A", "b", "d")}


def test_the_sets_that_cover_most_are_kept() -> None:
    made = packing(
        (trial(1, "ab"), 1.01), (trial(2, "c"), 1.0), (trial(3, "def"), 1.019), (trial(4, "g"), 1.03), most=2
    )
    assert [each.trial.number for each in made.chosen()] == [1, 3]
    assert made.evidence("c")[Form.BOTH].is_within
    assert not made.evidence("g")[Form.BOTH].is_within


def test_of_sets_that_cover_as_much_the_one_with_more_anchors_is_kept() -> None:
    made = packing((trial(1, "", "ABC"), 1.0), (trial(2, "x", "A"), 1.004), (trial(3, "x", "ABC"), 1.009), most=2)
    assert [each.trial.number for each in made.chosen()] == [3]
    # x alone is covered by any of these two. At the bar the noise may put a set on its other side.
    for ratio, chosen in ((1.01, 3), (1.019, 2)):
        two = packing((trial(2, "x", "AB"), 1.004), (Trial(3, both("A", "B", "x"), ("A", "B", "x")), ratio))
        assert [each.trial.number for each in two.chosen()] == [chosen]


def test_a_site_without_a_stamp_comes_before_the_other_stamp_of_one_that_has_one() -> None:
    enter, leave, other = (Trial(n, (*both("A"), site), ("A",)) for n, site in
                           enumerate([("w", Form.ENTER), ("w", Form.EXIT), ("v", Form.ENTER)], 1))  # fmt: skip
    made = packing((enter, 1.0), (leave, 1.001), (other, 1.01), waits="wv", most=2)
    assert [each.trial.number for each in made.chosen()] == [1, 3]


def test_a_set_that_others_make_superfluous_gives_way() -> None:
    # Greedy takes the largest first, and then the two that hold all of it.
    made = packing((trial(1, "abcd"), 1.01), (trial(2, "abx"), 1.01), (trial(3, "cdy"), 1.01))
    assert [each.trial.number for each in made.chosen()] == [2, 3]


def test_everything_is_one_set_with_all_stamps() -> None:
    sets = (
        ReplaySet(1, (*both("A"), ("a", Form.ENTER)), ("A",), FEATURES),
        ReplaySet(2, both("A", "b"), ("A",), FEATURES),
    )
    placement = Placement(PLACEMENT_SCHEMA, "k", "0", (), sets, ("c",), 0, complete=True)
    *_, untried, whole = initial(placement, with_untried=True)
    # What the placement leaves out: a site, and the other stamp of a wait that it gives one.
    assert untried.own == (("c", Form.BOTH), ("a", Form.EXIT))
    assert set(whole.sites) == {*both("A", "a", "b", "c")}
    assert everything([whole]) is None


def test_where_stamps_stand_outlives_taking_apart_and_merging() -> None:
    anchor, carried, before = ("A", Form.BOTH), ("w", Form.CARRIED), ("s", Form.BEFORE)
    whole = Trial(1, (anchor, carried, before), ("A",))
    parts = packing((whole, 1.05), waits="w").split(2)
    assert [each.own for each in parts] == [
        (carried,),
        (("w", Form.ENTER),),
        (("w", Form.CARRIED_EXIT),),
        (before,),
    ]


def test_a_stamp_is_covered_wherever_it_stands() -> None:
    usual = trial(2, "ws")
    made = packing((Trial(1, (("w", Form.CARRIED), ("s", Form.BEFORE)), ()), 1.01), (usual, 1.08), waits="w")
    assert made.split(3) == []
    half = packing(
        (Trial(1, (("w", Form.ENTER),), ()), 1.01), (Trial(2, (("w", Form.CARRIED), ("s", Form.BOTH)), ()), 1.08)
    )
    assert [each.own for each in half.split(3)] == [(("w", Form.CARRIED_EXIT),), (("s", Form.BOTH),)]


# The gallery's pingpong GEMM of CUDA C++ at 4096^3: what single sites took on an H200 (docs/replays.md; 86, 87 are guessed), as
# if costs added up. The sets are those that `autostamp place` proposes: seven anchors, four of them in the load warp's loop.
LOAD, STORE = ("85", "86", "87", "88"), ("109", "128")
COSTS = {"85": 0.008, "86": 0.004, "87": 0.004, "88": 0.002, "112": 0.0045, "117": 0.008, "119": 0.0035}
ELSEWHERE = ("70", "130", "132", "144", "147", "148", "89", "91", "100", "103")
WAITS = {"85", "109", "112", "117", "70", "130", "144", "147", "148", "89", "91", "100"}


def pingpong() -> tuple[Packing, list[Trial]]:
    mma = {"112": 0.018, "115": 0.018, "117": 0.018, "119": 0.042}
    roles = {**dict.fromkeys(LOAD, "load"), **dict.fromkeys(STORE, "store"), **dict.fromkeys(mma, "mma")}
    anchors = (*LOAD, "115", *STORE)
    trials = [
        Trial(1, both(*anchors, *ELSEWHERE), anchors),
        Trial(2, (*both(*LOAD), ("112", Form.EXIT)), LOAD),
        Trial(3, (*both(*LOAD), ("117", Form.ENTER)), LOAD),
        Trial(4, (*both(*anchors), ("119", Form.BOTH), ("112", Form.ENTER), ("117", Form.EXIT)), anchors),
    ]
    return Packing(BAR, 6, WAITS, mma, frozenset(roles), roles), trials


def played(made: Packing, trials: list[Trial], costs: dict[str, float]) -> int:
    """Run rounds until nothing is left to try; how many there were. Half a wait takes half of what it takes whole, unless there
    is a cost of `KEY enter` or `KEY exit`.
    """
    number = 1 + max(each.number for each in trials)
    for count in range(1, 11):
        for each in trials:
            halves = {Form.ENTER: 0.5, Form.EXIT: 0.5}
            ratio = 1 + sum(
                costs.get(f"{key} {form.value}", costs.get(key, 0.0) * halves.get(form, 1.0))
                for key, form in each.sites
            )
            made.add(Tried(each, ratio, ratio <= BAR))
        trials = made.split(number)
        number += len(trials)
        merged = made.merge(number)
        number += len(merged)
        trials += merged
        if not trials:
            return count
    raise AssertionError("it does not end")


@pytest.mark.parametrize("more", [{}, {"115": 0.006, "109": 0.0025, "128": 0.002}], ids=["within", "too much"])
def test_anchors_do_not_eat_the_bar(more: dict[str, float]) -> None:
    """All anchors together take 1.018 of the clean time, or, with `more`, 1.0285: each set then keeps few of them."""
    made, trials = pingpong()
    assert played(made, trials, COSTS | more) <= 5
    kept = made.chosen()
    assert len(kept) <= 6
    assert all(each.ratio <= BAR for each in kept)
    covered = {stamp for each in kept for stamp in made.stamps(each.trial.sites)}
    assert covered == made.stamps(both(*LOAD, *STORE, *ELSEWHERE, "112", "115", "117", "119"))


def test_where_anchors_are_too_much_each_role_keeps_the_one_that_should_cost_least() -> None:
    made, _ = pingpong()
    anchors = (*LOAD, "115", *STORE)
    made.add(Tried(Trial(1, both(*anchors), ("86",)), 1.03, is_within=False))
    made.add(Tried(Trial(2, both(*anchors, "144", "147"), anchors), 1.03, is_within=False))
    (part,) = [each for each in made.split(3) if each.own and not set(each.sites) <= set(both(*anchors))]
    # Signals before waits; none of mma's, as that is likely to cost.
    assert part.anchors == ("86", "128")
    assert [key for key, _ in part.own] == ["144", "147"]


def test_a_wait_is_run_whole_where_fewer_anchors_make_room_for_it() -> None:
    """`gemm_ws.cu` at 4096^3: five anchors take 1.013 together, and beside them no wait of the main loop is within the bar."""
    load, mma = ("211", "213", "214", "215", "217"), {"228": 0.08, "235": 0.05, "237": 0.07, "239": 0.07}
    roles = {**dict.fromkeys(load, "load"), **dict.fromkeys(mma, "mma")}
    costs = {**dict.fromkeys(load, 0.0026), "228": 0.0117, "235": 0.0108, "237": 0.015, "239": 0.0064}
    costs |= {"228 enter": 0.0095, "228 exit": 0.004, "237 enter": 0.0107, "237 exit": 0.011}
    trials = [
        Trial(1, both(*load, "201", "242", "245", "255"), load),
        Trial(2, both(*load, *mma), load),
    ]
    made = Packing(BAR, 6, {"211", "217", "201", "228", "237", "242", "245", "255"}, mma, frozenset(roles), roles)
    assert played(made, trials, costs) <= 4
    kept = made.chosen()
    assert len(kept) <= 6
    assert all(each.ratio <= BAR for each in kept)
    sites = {site for each in kept for site in each.trial.sites}
    assert set(both(*load, *mma)) <= sites


def recorded(last: float = 1.0101) -> Packing:
    """What the gallery's pingpong took on an H200 at the end: its four sets, and of single sites those that matter here."""
    made, _ = pingpong()
    measured = [
        (both("115", "88"), "115", 0.9993),
        (both("86", "109", "128", "130", "132", "115", "88", "100", "103", "89", "91"), "86 115", 1.0048),
        (both("86", "144", "147", "148", "70", "115", "87"), "86 115", 1.0057),
        (both("86", "112", "119"), "86", last),
        (both("115", "85", "86", "117"), "115 86", 1.0177),
    ]
    for number, (sites, anchors, ratio) in enumerate(measured, 1):
        made.add(Tried(Trial(number, sites, tuple(anchors.split())), ratio, ratio <= BAR))
    return made


def test_a_set_without_an_anchor_in_a_role_is_run_with_one() -> None:
    made = recorded()
    assert [each.trial.number for each in made.chosen()] == [2, 3, 4, 5]
    # The fourth set alone has sites of mma and none that another has; of 115 and 117 the former costs less.
    assert made.anchored(6) == [Trial(6, both("86", "112", "119", "115"), ("86", "115"))]
    assert made.anchored(7) == []


@pytest.mark.parametrize(("ratio", "kept"), [(1.012, [2, 3, 5, 6]), (1.024, [2, 3, 4, 5])], ids=["within", "above"])
def test_a_set_with_a_further_anchor_replaces_the_other_where_it_is_within_the_bar(
    ratio: float, kept: list[int]
) -> None:
    made = recorded()
    (more,) = made.anchored(6)
    made.add(Tried(more, ratio, ratio <= BAR))
    assert [each.trial.number for each in made.chosen()] == kept
    assert made.split(7) == made.merge(7) == []


def test_an_anchor_that_the_bar_has_no_room_for_is_not_tried() -> None:
    assert recorded(last=1.0185).anchored(6) == []
