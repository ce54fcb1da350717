# SPDX-License-Identifier: Apache-2.0
"""`autostamp run --replay` with a simulated program: what is run, kept, split, dropped, joined and said."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path

import jsonschema
import pytest

from autostamp.analysis import analyse
from autostamp.cli import main
from autostamp.hooks import replay_program
from autostamp.hooks.replay_program import Outcome, Program
from autostamp.model.placement import (
    PLACEMENT_SCHEMA,
    Effect,
    Form,
    PlacedSite,
    Placement,
    ReplaySet,
    ScheduleFeatures,
    forms_of,
)
from autostamp.runtime.decode import check
from autostamp.runtime.placement_file import read_placement, write_placement
from autostamp.runtime.store import load_run
from tests.simulator.replays import (
    GROUP,
    LOAD_SITES,
    RELEASE_K,
    RELEASE_V,
    WAIT_K,
    WAIT_V,
    Schedule,
    by_name,
    key_of_site,
    write_replay,
)
from tests.simulator.tables import AT_ONCE

FEATURES = ScheduleFeatures(1.0, {}, (1.0, 1.0), (32, 32), (0, 0), 0.25)
NEAR = replace(FEATURES, distance=0.01)
"""Of sets: at 0.015 and more their parts are run with them, where programs start side by side."""
ANCHORS = (*LOAD_SITES, WAIT_K)
SETS = ((GROUP, WAIT_V), (RELEASE_K, RELEASE_V))


def placement_of(*sets: tuple[int, ...]) -> Placement:
    keys = [key_of_site(site) for site in ANCHORS]
    made = tuple(
        ReplaySet(number, tuple((key_of_site(site), Form.BOTH) for site in (*ANCHORS, *own)), tuple(keys), NEAR)
        for number, own in enumerate(sets, 1)
    )
    sites = tuple(PlacedSite(key_of_site(site), Form.BOTH, Effect.NEAR_CLEAN, FEATURES) for site in range(1, 10))
    return Placement(PLACEMENT_SCHEMA, "ring", "0", sites, made, (), 0, complete=True)


@dataclass
class Bench:
    """A program whose stamped kernel takes `cost(sites)` times the clean time, and what was asked of it."""

    cost: Callable[[set[int]], float] = lambda sites: 1.05 if len(sites) == 9 else 1.0
    cost_of_forms: Callable[[dict[int, Form]], float] = lambda _: 1.0
    status: Callable[[set[int]], int] = lambda _: 0
    result: Callable[[set[int], int], str] = lambda _sites, _run: "same"
    schedule: Callable[[set[int]], Schedule] = lambda _: Schedule()
    launches: int = 4
    is_timed: bool = True
    runs: list[set[int]] = field(default_factory=list)

    def __call__(self, program: Program, placement: Placement, number: int, folder: Path) -> Outcome:
        chosen = next((each.sites for each in placement.sets if each.number == number), ())
        sites = {site for site in range(1, 10) if key_of_site(site) in dict(chosen)}
        self.runs.append(sites)
        count = len(self.runs)
        results = tuple(self.result(sites, count) for _ in program.results)
        if self.status(sites):
            return Outcome(self.status(sites), (), results, None)
        if number:
            traces = [self.schedule(sites).launch(1000 * count + launch) for launch in range(self.launches)]
            forms = {site: dict(chosen)[key_of_site(site)] for site in sites}
            write_replay(folder / "RUN", traces, sites, forms)
        forms = {site: dict(chosen)[key_of_site(site)] for site in sites}
        cost = self.cost(sites) * (self.cost_of_forms(forms) if number else 1.0)
        times = tuple(100.0 * cost + 0.01 * at for at in range(5 * self.is_timed))
        return Outcome(0, times, results, folder / "RUN" if number else None)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bench:
    made = Bench()
    monkeypatch.setattr(replay_program, "replay", made)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bench.py").write_text("")
    write_placement(tmp_path / "p.json", placement_of(*SETS))
    return made


def run(*options: str) -> int:
    words = ["run", "-q", "--replay", "--placement", "p.json", "--time", "us ([0-9.]+)", *options]
    return main([*words, "-o", "RUN", "--", "python", "bench.py"])


def test_clean_and_sets_run_there_and_back(bench: Bench) -> None:
    assert run() == 0
    sets = [{*ANCHORS, *own} for own in SETS]
    whole = set(range(1, 10))
    # Twice until it is known what they cost, all sites in one set first; what is kept twice again, to have launches to join.
    assert bench.runs[:4] == [set(), whole, whole, set()]
    assert bench.runs[4:10] == [set(), *sets, *reversed(sets), set()]
    assert bench.runs[10:] == [set(), *sets, *reversed(sets), set()]


def test_sets_are_run_as_placed_on_request(bench: Bench) -> None:
    bench.cost = lambda sites: 1.05 if WAIT_V in sites else 1.0
    assert run("--as-placed") == 1
    first, second = ({*ANCHORS, *own} for own in SETS)
    assert all(sites in (set(), first, second) for sites in bench.runs)
    found = load_run("RUN").replays
    assert found is not None
    assert [made.number for made in found.sets] == [2]


def test_all_sites_in_one_set_need_no_other(bench: Bench) -> None:
    bench.cost = lambda _: 1.01
    assert run() == 0
    found = load_run("RUN").replays
    assert found is not None
    assert [len(made.sites) for made in found.sets] == [9]
    assert not found.dropped
    assert all(len(sites) in (0, 9) for sites in bench.runs)


def test_each_set_runs_as_often_as_it_is_told(bench: Bench) -> None:
    assert run("--runs", "3") == 0
    first, second = ({*ANCHORS, *own} for own in SETS)
    assert bench.runs[10:] == [set(), first, second, set()]


def test_the_joined_run_has_every_site_and_says_where_each_record_is_from(bench: Bench) -> None:
    assert run() == 0
    found = load_run("RUN")
    assert found.replays is not None
    assert [made.number for made in found.replays.sets] == [1, 2]
    assert [round(made.times.ratio, 3) for made in found.replays.sets] == [1.0, 1.0]
    assert len(found.recorded) == 16  # four runs of four launches
    trace = found.recorded[0]
    site = {row.number: row.site for row in trace.kernel.instances}
    assert set(site.values()) == set(range(1, 10))
    consumer = trace.lanes[1]
    replays = {site[event.instance]: number for event, number in zip(consumer.events, consumer.replays, strict=True)}
    assert replays == {WAIT_K: 1, GROUP: 1, WAIT_V: 1, RELEASE_K: 2, RELEASE_V: 2}
    assert all(error == 0 for number, error in zip(consumer.replays, consumer.errors, strict=True) if number == 1)
    assert max(consumer.errors) > 0


def test_the_reference_is_as_it_was_recorded(bench: Bench) -> None:
    assert run() == 0
    truth = by_name(Schedule().launch(6000))  # the sixth run is that of set 1, and its first launch comes first
    for key, event in by_name(load_run("RUN").recorded[0]).items():
        if key[1] in (*ANCHORS, GROUP, WAIT_V):
            assert event.cycles == truth[key].cycles


def test_a_set_above_the_bar_is_split(bench: Bench) -> None:
    bench.cost = lambda sites: 1.05 if {GROUP, WAIT_V} <= sites else 1.0
    assert run() == 0
    found = load_run("RUN").replays
    assert found is not None
    assert found.sets[0].number == 2
    alone = [dict(made.sites) for made in found.sets[1:]]
    assert [(key_of_site(GROUP) in sites, key_of_site(WAIT_V) in sites) for sites in alone] == [
        (True, False),
        (False, True),
    ]
    assert {sites[key] for sites in alone for key in sites} == {Form.BOTH}


def test_every_set_that_is_run_is_built_once(bench: Bench, tmp_path: Path) -> None:
    bench.cost = lambda sites: 1.05 if {GROUP, WAIT_V} <= sites else 1.0
    words = ["run", "-q", "--replay", "--placement", "p.json", "--time", "us ([0-9.]+)", "-o", "RUN"]
    assert main([*words, "--jobs", "4", "--build", "echo {set} >> builds", "--", "./app_{set}"]) == 0
    built = [int(line) for line in (tmp_path / "builds").read_text().split()]
    # Clean and all sites in one (3), side by side; both sets; then what the first set is taken apart into: two waits, each whole
    # and with one of its stamps.
    assert [sorted(part) for part in (built[:2], built[2:4], built[4:])] == [[0, 3], [1, 2], [4, 5, 6, 7, 8, 9]]
    assert len(bench.runs) > len(built)


def test_a_site_above_the_bar_is_named_with_its_cost(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.cost = lambda sites: 1.17 if WAIT_V in sites else 1.0
    assert run() == 1
    found = load_run("RUN").replays
    assert found is not None
    assert [(each.key, each.code) for each in found.uncovered] == [(key_of_site(WAIT_V), "AS8126")]
    assert found.uncovered[0].cost.startswith("1.170")
    assert "AS8126" in capsys.readouterr().err


def test_a_wait_above_the_bar_is_split_into_its_stamps(bench: Bench) -> None:
    bench.cost_of_forms = lambda forms: 1.17 if forms.get(WAIT_V) is Form.BOTH else 1.0
    assert run() == 0
    found = load_run("RUN")
    assert found.replays is not None
    assert not found.replays.uncovered
    halves = [dict(made.sites).get(key_of_site(WAIT_V)) for made in found.replays.sets]
    assert halves[1:] == [None, Form.ENTER, Form.EXIT]
    for trace in found.recorded:
        number = next(row.number for row in trace.kernel.instances if row.site == WAIT_V)
        for warp in analyse(trace, latencies=AT_ONCE).warps[1:]:
            waits = [part for part in warp.slices if part.instance == number and not part.signal]
            assert len(waits) == Schedule().iterations
            assert all(part.length_error > 0 for part in waits)
        assert not check(trace)


def test_a_run_says_what_to_replay_next_time(bench: Bench) -> None:
    bench.cost = lambda sites: 1.05 if {GROUP, WAIT_V} <= sites else 1.0
    assert run("--budget", "0") == 1
    ahead = read_placement(Path("RUN/placement.json"))
    own = [{key for key, _ in each.sites} - {key_of_site(site) for site in ANCHORS} for each in ahead.sets]
    # Set 2 is within the bar; set 1 is to be taken apart: two waits, each whole and with one stamp.
    assert own[0] == {key_of_site(RELEASE_K), key_of_site(RELEASE_V)}
    assert own[1:] == [{key_of_site(GROUP)}] * 3 + [{key_of_site(WAIT_V)}] * 3
    bench.runs.clear()
    assert main(["run", "-q", "--replay", "--placement", "RUN/placement.json", "--time", "us ([0-9.]+)", "-o", "RUN2",
                 "--", "python", "bench.py"]) == 0  # fmt: skip
    found = load_run("RUN2").replays
    assert found is not None
    assert not found.uncovered


def test_where_nothing_is_left_to_join_it_is_said_what_to_run_next(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.cost = lambda sites: 1.0 + 0.015 * len(sites)
    assert run("--as-placed") == 1
    said = capsys.readouterr().err
    assert "AS8131" in said
    assert "RUN-placement.json has what to run next" in said
    assert not Path("RUN").exists()
    ahead = read_placement(Path("RUN-placement.json"))
    # Each of the two sets has two sites beside the anchors: they are to be run one at a time, and the anchors by themselves.
    own = {frozenset(key for key, _ in each.sites) - {key_of_site(site) for site in ANCHORS} for each in ahead.sets}
    assert own == {frozenset(), *(frozenset({key_of_site(site)}) for site in (GROUP, WAIT_V, RELEASE_K, RELEASE_V))}
    assert len(ahead.tried) == 2


def test_what_an_earlier_session_measured_is_named(bench: Bench) -> None:
    bench.cost = lambda sites: 1.17 if WAIT_V in sites else 1.0
    assert run() == 1
    runs = len(bench.runs)
    assert main(["run", "-q", "--replay", "--as-placed", "--placement", "RUN/placement.json", "--time", "us ([0-9.]+)",
                 "-o", "RUN2", "--", "python", "bench.py"]) == 0  # fmt: skip
    assert not any(WAIT_V in sites for sites in bench.runs[runs:])
    found = load_run("RUN2").replays
    assert found is not None
    (missing,) = found.uncovered
    assert missing.key == key_of_site(WAIT_V)
    beside = f"alone beside {len(ANCHORS)} anchors"
    assert missing.cost.startswith(f"1.170 of the clean time {beside}; enter only 1.170 {beside}")
    assert missing.cost.endswith("in an earlier session")


def test_a_budget_ends_the_splitting(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.cost = lambda sites: 1.05 if {GROUP, WAIT_V} <= sites else 1.0
    assert run("--budget", "0") == 1
    found = load_run("RUN").replays
    assert found is not None
    assert [(each.number, each.code) for each in found.dropped] == [(1, "AS8126")]
    assert {each.key for each in found.uncovered} == {key_of_site(GROUP), key_of_site(WAIT_V)}
    cost = f"1.050 of the clean time with 1 other site beside {len(ANCHORS)} anchors"
    assert all(each.cost == cost for each in found.uncovered)
    assert any("--budget" in note for note in found.notes)


def test_a_bar_that_is_wide_enough_admits_it(bench: Bench) -> None:
    bench.cost = lambda sites: 1.17 if WAIT_V in sites else 1.0
    assert run("--bar", "1.2") == 0


def test_what_the_placement_leaves_out_is_tried_on_request(bench: Bench, tmp_path: Path) -> None:
    left = (GROUP, WAIT_V, RELEASE_V)
    file = replace(placement_of((RELEASE_K,)), uncovered=tuple(key_of_site(site) for site in left))
    write_placement(tmp_path / "p.json", file)
    bench.cost = lambda sites: 1.17 if WAIT_V in sites else 1.0
    assert run("--try-uncovered") == 1
    found = load_run("RUN").replays
    assert found is not None
    covered = [{key for key, _ in made.sites} - {key_of_site(site) for site in ANCHORS} for made in found.sets]
    # All three are too slow, and one of them alone.
    assert covered == [{key_of_site(RELEASE_K)}, {key_of_site(GROUP)}, {key_of_site(RELEASE_V)}]
    assert [each.key for each in found.uncovered] == [key_of_site(WAIT_V)]


def test_a_set_that_fails_leaves_the_others(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.status = lambda sites: 3 if RELEASE_V in sites else 0
    assert run() == 1
    found = load_run("RUN").replays
    assert found is not None
    assert {each.code for each in found.dropped} == {"AS8125"}
    assert {each.key for each in found.uncovered} == {key_of_site(RELEASE_K), key_of_site(RELEASE_V)}
    assert "status 3" in capsys.readouterr().err


def test_a_set_that_changes_the_results_is_left_out(bench: Bench) -> None:
    bench.result = lambda sites, _: "other" if RELEASE_V in sites else "same"
    assert run("--results", "c.bin") == 1
    found = load_run("RUN").replays
    assert found is not None
    assert {each.code for each in found.dropped} == {"AS8130"}
    assert [made.results_equal for made in found.sets] == [True]


def test_results_that_change_by_themselves_are_not_compared(bench: Bench) -> None:
    bench.result = lambda _sites, run: str(run)
    assert run("--results", "c.bin") == 1
    found = load_run("RUN").replays
    assert found is not None
    assert not found.dropped
    assert any("AS8129" in note for note in found.notes)
    assert [made.results_equal for made in found.sets] == [None, None]


def test_a_program_that_prints_no_time_is_joined_and_said(bench: Bench) -> None:
    bench.is_timed = False
    assert run() == 1
    found = load_run("RUN").replays
    assert found is not None
    assert any("AS8127" in note for note in found.notes)
    assert {key for made in found.sets for key, _ in made.sites} == {key_of_site(site) for site in range(1, 10)}


def test_another_schedule_is_refused(bench: Bench) -> None:
    # 120 cycles more in an iteration of 230, where stamps alone may shift a gap by 50.
    shifted = Schedule(first=210, jitter=8)
    bench.schedule = lambda sites: shifted if RELEASE_V in sites else Schedule()
    assert run() == 1
    found = load_run("RUN").replays
    assert found is not None
    assert [each.code for each in found.dropped] == ["AS8121"]


def test_other_sets_take_the_place_of_a_refused_one(bench: Bench, tmp_path: Path) -> None:
    write_placement(tmp_path / "p.json", placement_of(*SETS, (RELEASE_K,), (RELEASE_V,)))
    shifted = Schedule(first=210, jitter=8)
    bench.schedule = lambda sites: shifted if {RELEASE_K, RELEASE_V} <= sites else Schedule()
    assert run() == 1
    found = load_run("RUN").replays
    assert found is not None
    # Set 2 covers more than 3 and 4, which are run as often as it once it is out.
    assert [(each.number, each.code) for each in found.dropped] == [(2, "AS8121")]
    assert [(made.number, made.launches) for made in found.sets] == [(1, 16), (3, 16), (4, 16)]
    assert not found.uncovered


def test_a_stamp_that_costs_too_much_is_run_in_the_sites_other_form(bench: Bench, tmp_path: Path) -> None:
    placement = placement_of((GROUP, RELEASE_K, RELEASE_V), (WAIT_V,))
    forms = {key_of_site(WAIT_V): forms_of(is_wait=True), key_of_site(RELEASE_V): forms_of(is_wait=False)}
    sites = tuple(replace(each, forms=forms.get(each.key, ())) for each in placement.sites)
    write_placement(tmp_path / "p.json", replace(placement, sites=sites))
    dear = {(WAIT_V, Form.BOTH): 1.1, (WAIT_V, Form.EXIT): 1.09, (RELEASE_V, Form.BOTH): 1.12}
    bench.cost_of_forms = lambda chosen: max([1.0, *(dear.get(site, 1.0) for site in chosen.items())])
    assert run() == 0
    found = load_run("RUN").replays
    assert found is not None
    assert not found.uncovered
    taken = {site for made in found.sets for site in made.sites}
    assert (key_of_site(RELEASE_V), Form.BEFORE) in taken
    assert {form for key, form in taken if key == key_of_site(WAIT_V)} == {Form.ENTER, Form.CARRIED_EXIT}


@pytest.mark.parametrize("budget", [(), ("--budget", "0")], ids=["", "none left"])
def test_sets_that_share_no_site_of_a_role_are_run_with_one(
    bench: Bench, tmp_path: Path, budget: tuple[str, ...]
) -> None:
    load = tuple(key_of_site(site) for site in LOAD_SITES)
    sets = tuple(
        ReplaySet(number, tuple((key, Form.BOTH) for key in (*load, *map(key_of_site, own))), load, NEAR)
        for number, own in enumerate(((GROUP, WAIT_V), (RELEASE_K,), (RELEASE_V,)), 1)
    )
    placed = placement_of()
    sites = tuple(replace(each, loops=("load" if each.key in load else "mma",)) for each in placed.sites)
    write_placement(tmp_path / "p.json", replace(placed, sites=sites, sets=sets))
    bench.cost = lambda chosen: 1.05 if {GROUP, WAIT_V, RELEASE_K, RELEASE_V} <= chosen else 1.001
    assert run(*budget) == 0
    found = load_run("RUN").replays
    assert found is not None
    # `guided` counts the warps that no record of their own puts onto the axis.
    assert {fit.guided > 0 for fit in found.fits} == {bool(budget)}
    assert {key for made in found.sets for key, _ in made.sites} == {key for made in sets for key, _ in made.sites}


def test_other_trip_counts_are_refused(bench: Bench) -> None:
    bench.schedule = lambda sites: Schedule(iterations=11) if RELEASE_V in sites else Schedule()
    assert run() == 1
    found = load_run("RUN").replays
    assert found is not None
    assert [each.code for each in found.dropped] == ["AS8122"]


def test_too_few_launches_to_join_are_refused_before_anything_is_run(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--runs", "2") == 2
    assert "AS9001" in capsys.readouterr().err
    assert not bench.runs
    assert run("--runs", "2", "--repeat", "2") == 0


def test_one_launch_a_run_may_turn_out_to_be_too_few(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.launches = 1
    assert run("--runs", "2", "--repeat", "4") == 1
    assert "AS8131" in capsys.readouterr().err
    assert not Path("RUN").exists()


def test_the_programs_own_failure_is_its_status(bench: Bench) -> None:
    bench.status = lambda _: 7
    assert run() == 7
    assert not Path("RUN").exists()


def test_without_a_placement_there_is_nothing_to_replay(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--replay", "--", "python", "bench.py"]) == 2
    assert "--placement" in capsys.readouterr().err


def test_options_of_replays_need_a_replay(bench: Bench) -> None:
    assert main(["run", "--time", "x ([0-9]+)", "--", "python", "bench.py"]) == 2


def test_a_plain_run_over_a_joined_one_leaves_no_origins(bench: Bench) -> None:
    assert run() == 0
    write_replay(Path("RUN"), [Schedule().launch(1)], range(1, 10))
    found = load_run("RUN")
    assert found.replays is None
    assert all(not lane.replays for trace in found.recorded for lane in trace.lanes)


def test_damaged_origins_are_said(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0
    Path("RUN/replays.npz").write_bytes(b"no archive")
    assert main(["summary", "RUN"]) == 1
    assert "AS8128" in capsys.readouterr().err


def test_summary_reads_a_joined_run(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0
    assert main(["summary", "RUN", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {role["role"] for role in found["kernels"][0]["roles"]} == {"load", "mma"}
    assert [made["times"]["ratio"] for made in found["replays"]["sets"]] == pytest.approx([1.0, 1.0])
    assert found["replays"]["reference"] == 1


def test_the_face_says_sets_ratios_and_what_is_missing(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.cost = lambda sites: 1.17 if WAIT_V in sites else 1.0
    run()
    assert main(["summary", "RUN"]) == 0
    first, *lines = capsys.readouterr().out.splitlines()
    assert first == "joined from 2 replays, each at most 1.000 of the clean time; the bar was 1.020"
    assert any(line.startswith("  set 4:") and "1.000 of the clean time" in line for line in lines)
    assert any(line.startswith("    attention.py:70:5: 1.170 of the clean time alone") for line in lines)


def test_the_document_has_the_replays_and_fits_its_schema(bench: Bench) -> None:
    assert run() == 0
    assert main(["report", "RUN", "-q", "--json", "r.json", "-o", "r.html"]) == 0
    found = json.loads(Path("r.json").read_text())
    schema = resources.files("autostamp.report").joinpath("assets", "report.schema.json").read_text("utf-8")
    jsonschema.Draft202012Validator(json.loads(schema)).validate(found)
    timeline = found["timelines"][0]
    assert timeline["cost"]["time_ratio"] == pytest.approx(1.0, abs=0.001)
    assert [made["number"] for made in found["replays"]["sets"]] == [1, 2]
    assert not any("replays, each" in note for note in found["notes"])
    consumer = next(row for row in timeline["rows"] if row["warp"] == 1)
    spans = consumer["spans"]
    assert set(spans["replay"]) <= {1, 2}
    stalls = [at for at, state in enumerate(spans["state"]) if state > 0]
    assert all(spans["length_error"][at] == 0 for at in stalls)
    assert len(timeline["arrows"]["error"]) == len(timeline["arrows"]["flags"])


def test_a_joined_run_compares_with_another(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0
    Path("RUN").rename("FIRST")
    assert run() == 0
    assert main(["diff", "FIRST", "RUN"]) == 0
    assert "ring" in capsys.readouterr().out


def test_origins_of_another_version_are_refused_by_their_version(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before their fields are looked at: those of another version may have other names."""
    assert run() == 0
    Path("RUN/replays.json").write_text('{"schema_version": 99, "a_field_to_come": 1}')
    assert main(["summary", "RUN"]) == 1
    assert "it has schema version 99" in capsys.readouterr().err


def test_a_set_at_the_bar_is_run_again_before_it_is_decided(bench: Bench) -> None:
    # 1.021 at first, and 1.015 in the two runs after that: 1.018 of all four.
    first = {*ANCHORS, *SETS[0]}
    bench.cost = lambda sites: 1.0 if sites != first else (1.021 if bench.runs.count(first) <= 2 else 1.015)
    bench.cost_of_forms = lambda forms: 1.05 if len(forms) == 9 else 1.0
    assert run() == 0
    found = load_run("RUN").replays
    assert found is not None
    assert [(made.number, round(made.times.ratio, 3)) for made in found.sets] == [(1, 1.018), (2, 1.0)]
    assert bench.runs.count(first) == 4


def test_clean_runs_that_differ_by_more_than_the_bar_admits_are_said(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    # All clean runs but the first take 103.02 instead of 100.02 us; stamped kernels are faster than any.
    bench.cost = lambda sites: 0.9 if sites else (1.03 if len(bench.runs) > 1 else 1.0)
    assert run() == 1
    assert "AS8133" in capsys.readouterr().err
    found = load_run("RUN").replays
    assert found is not None
    assert any("AS8133" in note and "2.9%" in note for note in found.notes)


def test_a_set_whose_runs_differ_is_run_again_before_it_is_decided_and_said(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    first = {*ANCHORS, *SETS[0]}
    # 1.05 once and 1.0 after that: of two runs the median is above the bar, of four it is not.
    bench.cost = lambda sites: 1.05 if len(sites) == 9 or (sites == first and bench.runs.count(first) == 1) else 1.0
    assert run() == 1
    assert bench.runs.count(first) == 4
    assert "AS8133 times vary too much for the bar: the runs of set 1 differ by 5.0%" in capsys.readouterr().err
    found = load_run("RUN").replays
    assert found is not None
    assert [(made.number, round(made.times.ratio, 3)) for made in found.sets] == [(1, 1.0), (2, 1.0)]
    assert sum("AS8133" in note for note in found.notes) == 1
