# SPDX-License-Identifier: Apache-2.0
"""Two runs of the ring kernel: what changed is what was changed in the simulation."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from autostamp import cli
from autostamp.analysis import analyse
from autostamp.analysis.compare import Sample, compare, growths
from autostamp.analysis.latencies import UNKNOWN
from autostamp.model.manifest import Manifest
from autostamp.model.run import MachineFacts
from autostamp.runtime.decode import decode_region
from autostamp.runtime.regions import Recorded
from autostamp.runtime.store import write_run
from tests.simulator.tables import ring_kernel, ring_manifest, ring_region

KERNEL = ring_kernel()
MANIFEST = ring_manifest(KERNEL)
GRID = (2, 1, 1)


def sample(computes: list[int], manifest: Manifest = MANIFEST, periods: tuple[float | None, ...] = (), block: int = 0):
    """A launch for each time that the consumer computes. By hand: a CTA takes 10 + 4 * compute cycles."""
    traces = [
        replace(decode_region(ring_region(KERNEL, compute=compute), KERNEL), launch=launch, block=(block, 0, 0))
        for launch, compute in enumerate(computes)
    ]
    # The made-up waits are shorter than real ready ones; without a figure every wait is a stall.
    return Sample(manifest, tuple(analyse(trace, latencies=UNKNOWN) for trace in traces), periods)


def moved(manifest: Manifest, lines: int, **texts: str) -> Manifest:
    """The same kernel after an edit above it: every line is `lines` further down, and sites may read otherwise."""
    (file,) = manifest.files
    sites = tuple(
        replace(
            site,
            span=replace(site.span, line=site.span.line + lines),
            text=texts.get(site.method, site.text),
        )
        for site in file.sites
    )
    return replace(manifest, files=(replace(file, path=f"elsewhere/{file.path}", sites=sites),))


def of_role(found, role: str, name: str):
    changes = next(each.changes for each in found.roles if each.role == role)
    return next(each for each in changes if each.name == name)


def test_equal_runs_have_no_change():
    found = compare(sample([30, 31, 32]), sample([30, 31, 32]))
    assert (found.cycles.delta, found.cycles.is_change) == (0, False)
    assert found.launches == (3, 3)
    assert found.blocks == 1
    assert not any(change.is_change for role in found.roles for change in role.changes)
    assert (found.notes, found.only_first, found.only_second, found.period) == ((), (), (), None)


def test_a_slower_consumer_is_seen_in_the_cta_and_in_the_producers_stall():
    found = compare(sample([30, 31, 32]), sample([60, 61, 62]))
    # 10 + 4 * 31 = 134 and 10 + 4 * 61 = 254 cycles.
    assert (found.cycles.first.median, found.cycles.second.median, found.cycles.delta) == (134, 254, 120)
    assert found.cycles.is_change
    # The producer's third and fourth acquires wait for the first and second release: at 20 and 10 cycles after the fill
    # before them, until 10 + compute and 10 + 2 * compute. Its stall is (compute - 10) + (compute - 10).
    assert of_role(found, "load", "stall").first.median == 2 * (31 - 10)
    assert of_role(found, "load", "stall").second.median == 2 * (61 - 10)
    assert of_role(found, "mma", "stall").delta == 0
    (acquire, consume) = found.sites
    assert (acquire.first.role, acquire.first.text) == ("load", "pipeline_k.producer_acquire(state)")
    assert (acquire.stall.delta, acquire.stall.is_change) == (60, True)
    assert (consume.first.role, consume.stall.delta) == ("mma", 0)


def test_one_launch_each_says_nothing_of_noise():
    found = compare(sample([30]), sample([60]))
    assert (found.cycles.delta, found.cycles.noise, found.cycles.is_change) == (120, None, False)
    assert found.notes == ("a run has one launch only, so the noise is unknown: record more with --repeat",)


def test_sites_are_recognised_where_lines_moved():
    found = compare(sample([30]), sample([30], moved(MANIFEST, 5)))
    assert [(site.first.line, site.second.line) for site in found.sites] == [(12, 17), (31, 36)]
    assert (found.only_first, found.only_second) == ((), ())


def test_a_site_that_was_rewritten_is_listed_on_both_sides():
    other = moved(MANIFEST, 0, consumer_wait="pipeline_k.consumer_wait(state, token)")
    found = compare(sample([30]), sample([30], other))
    assert [place.text for place in found.only_first] == ["pipeline_k.consumer_wait(read_state)"]
    assert [place.text for place in found.only_second] == ["pipeline_k.consumer_wait(state, token)"]
    assert [site.first.line for site in found.sites] == [12]


def test_equal_calls_are_matched_by_line_where_one_run_has_more():
    (file,) = MANIFEST.files
    # Both waits read alike, on one barrier and in one role; the second run has only the latter, on its old line.
    twins = tuple(replace(site, text="ring.wait()") if site.number in (1, 3) else site for site in file.sites)
    manifest = replace(MANIFEST, files=(replace(file, sites=twins),))
    both = sample([30], manifest)
    both = replace(
        both,
        timelines=tuple(
            replace(each, sites=tuple(replace(site, role="r") for site in each.sites)) for each in both.timelines
        ),
    )
    only_later = replace(both, timelines=tuple(replace(each, sites=each.sites[1:]) for each in both.timelines))
    found = compare(both, only_later)
    assert [(site.first.line, site.second.line) for site in found.sites] == [(31, 31)]
    assert [place.line for place in found.only_first] == [12]


def test_only_ctas_of_both_runs_are_compared():
    first = sample([30])
    mixed = replace(first, timelines=(*first.timelines, *sample([300], block=1).timelines))
    found = compare(mixed, sample([30]))
    assert (found.cycles.delta, found.blocks) == (0, 1)
    apart = compare(sample([30], block=1), sample([30], block=2))
    assert apart.notes[0] == "the runs have no CTA in common: different ones are compared"


def test_periods_are_compared_where_both_runs_have_them():
    found = compare(sample([30, 30], periods=(30.0, None)), sample([40, 40], periods=(40.0, 42.0)))
    assert found.period is not None
    assert (found.period.first.count, found.period.first.median, found.period.second.median) == (1, 30, 41)
    assert compare(sample([30], periods=(None,)), sample([30], periods=(1.0,))).period is None


def test_growth_is_measured_against_the_roles_span():
    found = compare(sample([30, 30]), sample([60, 60]))
    # A CTA: 130 to 250 cycles, + 92.3 %. The producer's span ends with its last commit at 10 + 2 * compute + 10 = 80 cycles, its
    # stall grows from 40 to 100: + 75 % of that span.
    grown = {growth.what: growth for growth in growths(found, 50)}
    assert grown["a CTA's cycles"].percent == pytest.approx(100 * 120 / 130)
    assert grown["the stall of load"].percent == pytest.approx(100 * 60 / 80)
    assert grown["the stall of load at ring.py:12"].is_certain
    assert "the stall of mma" not in grown
    assert growths(found, 93) == ()
    assert growths(compare(sample([60, 60]), sample([30, 30])), 0) == ()


def test_growth_within_noise_is_none():
    assert growths(compare(sample([30, 60, 90]), sample([35, 65, 95])), 1) == ()
    assert not growths(compare(sample([30]), sample([35])), 1)[0].is_certain


def write(path, computes: list[int], manifest: Manifest = MANIFEST, uses: int = 4):
    regions = [
        Recorded(1, ring_region(KERNEL, compute=compute, uses=uses), launch, 0, (0, 0, 0), GRID)
        for launch, compute in enumerate(computes)
    ]
    write_run(path, manifest, regions, MachineFacts(), {})
    return str(path)


def test_the_command(tmp_path, capsys):
    runs = write(tmp_path / "a", [30, 31, 32]), write(tmp_path / "b", [60, 61, 62])
    assert cli.main(["diff", *runs]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"ring: A = {runs[0]} (3 launches), B = {runs[1]} (3 launches), 1 CTA\n")
    row = next(line for line in out.splitlines() if line.startswith("CTA "))
    assert row.split() == "CTA 134 [130 - 138] 254 [250 - 258] +120 +89.6 % ±19 changed".split()  # noqa: SIM905 - as a reader sees it
    assert cli.main(["diff", *runs, "--fail-over", "50"]) == 1
    assert "a CTA's cycles grew by 89.6 %, more than 50 %\n" in capsys.readouterr().err
    assert cli.main(["diff", *runs, "--fail-over", "90"]) == 0
    assert cli.main(["diff", *reversed(runs), "--fail-over", "1"]) == 0


def test_the_command_as_json(tmp_path, capsys):
    runs = write(tmp_path / "a", [30]), write(tmp_path / "b", [60])
    assert cli.main(["diff", *runs, "--json", "--fail-over", "10"]) == 1
    printed = json.loads(capsys.readouterr().out)
    (kernel,) = printed["kernels"]
    assert printed["schema_version"] == 1
    assert kernel["cycles"]["delta"] == 120
    assert (kernel["cycles"]["noise"], kernel["cycles"]["is_change"], kernel["period"]) == (None, False, None)
    assert kernel["growths"][0] == {
        "what": "a CTA's cycles",
        "percent": pytest.approx(92.3, abs=0.05),
        "is_certain": False,
    }


def test_the_command_compares_the_periods_of_the_steady_states(tmp_path, capsys):
    # The consumer enters a wait at 0, 40, 70, 100, ..: once the ring is full it goes on as fast as it computes, 30 and 60 cycles.
    runs = write(tmp_path / "a", [30, 30], uses=12), write(tmp_path / "b", [60, 60], uses=12)
    assert cli.main(["diff", *runs, "--json", "--fail-over", "99"]) == 1
    (kernel,) = json.loads(capsys.readouterr().out)["kernels"]
    period = kernel["period"]
    assert (period["first"]["median"], period["second"]["median"], period["delta"]) == (30, 60, 30)
    assert {"what": "the period", "percent": 100, "is_certain": True} in kernel["growths"]


def test_runs_of_different_kernels_are_refused(tmp_path, capsys):
    other = replace(KERNEL, kernel="other")
    runs = write(tmp_path / "a", [30]), write(tmp_path / "b", [30], ring_manifest(other))
    assert cli.main(["diff", *runs]) == 2
    printed = capsys.readouterr()
    assert "AS7010" in printed.err
    assert printed.out == ""
    assert cli.main(["diff", runs[0], str(tmp_path / "none")]) == 1


def test_kernels_of_one_run_only_are_said(tmp_path, capsys):
    second = replace(ring_kernel(number=2), kernel="extra")
    manifest = ring_manifest(KERNEL, second)
    write_run(tmp_path / "a", manifest, {1: ring_region(KERNEL), 2: ring_region(second)}, MachineFacts(), {})
    run_b = write(tmp_path / "b", [30])
    assert cli.main(["diff", str(tmp_path / "a"), run_b]) == 0
    assert f"note: only {tmp_path / 'a'} has extra" in capsys.readouterr().err
