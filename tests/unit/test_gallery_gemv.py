# SPDX-License-Identifier: Apache-2.0
"""The NVFP4 ladder: roles, sites and edges of its ring are those written down by hand in tests/cases/gallery; its table."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from pathlib import Path

from autostamp import cli
from autostamp.analysis import analyse
from autostamp.analysis.flow import explain
from autostamp.model.manifest import EventKind
from autostamp.model.timeline import State
from autostamp.model.trace import Trace
from autostamp.runtime.decode import check
from autostamp.runtime.manifest_file import read_manifest
from autostamp.runtime.store import load_run
from benchmarks import gemv

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "kernels" / "cuda" / "gemv"
CASE = ROOT / "tests" / "cases" / "gallery" / "gemv_ring.expected"
RUN = ROOT / "kernels" / "cuda" / "recorded" / "gemv_ring_h200"
RESULTS = ROOT / "benchmarks" / "results" / "gemv_h200.json"
GALLERY = (ROOT / "docs" / "gallery.md").read_text("utf-8")

# CTA 0 of 132, on a matrix of 7168 x 16384: rows 0 to 53, in groups of four. A row is 8192 bytes and 1024 of scales. A CTA can
# have 232448 bytes, of which 16 sums of 55 rows take up 3520; a stage takes 4 * 9216 + 16, and six of them fit.
CONSUMERS = 16
GROUPS = 14
STAGES = 6

Sites = dict[tuple[str, str], set[str]]
"""Barriers with their side, by role and `waits` or `signals`."""
Edges = set[tuple[str, str, str]]
"""Who signals, who waits for it, and on which barrier and side."""


def expected() -> tuple[Sites, Edges]:
    """The two parts of the case file."""
    sites: Sites = {}
    edges: Edges = set()
    role = ""
    for line in CASE.read_text("utf-8").splitlines():
        if line.startswith("#"):
            continue
        if not line.startswith(" "):
            role = line
        elif role == "edges":
            first, second, barrier = re.fullmatch(r"    (.+) -> (.+?)  +(.+)", line).groups()  # type: ignore[union-attr]
            edges.add((first, second, barrier))
        else:
            kind, barriers = line.split(maxsplit=1)
            sites[role, kind] = set(barriers.split(", "))
    return sites, edges


def test_the_source_has_the_roles_and_sites_that_it_should(tmp_path):
    sources = [str(FOLDER / name) for name in ("gemv.cu", "ring.cuh", "ladder.cuh")]
    assert cli.main(["instrument", *sources, "-o", str(tmp_path), "-q"]) == 0
    found: Sites = defaultdict(set)
    for file in read_manifest(tmp_path / "autostamp.manifest.json").files:
        for site in () if file.path.endswith("floor.cuh") else file.sites:
            barrier = site.root.rsplit(":", 1)[-1]
            found[site.role or "all", f"{site.kind.value}s"].add(f"{barrier} {site.side.value}")
    assert found == expected()[0]


def test_files_are_short():
    assert all(len(path.read_text("utf-8").splitlines()) <= 400 for path in FOLDER.iterdir())


def recorded() -> Trace:
    (trace,) = load_run(RUN).traces.values()
    return trace


def test_the_recorded_run_is_whole():
    trace = recorded()
    assert check(trace) == []
    assert all(lane.lost == 0 for lane in trace.lanes)
    # Two waits for the CTA, of two stamps each. For a group: two waits and a release; or a wait and three signals, and one
    # __syncwarp at the end.
    consumer, load = 4 + 5 * GROUPS, 4 + 5 * GROUPS + 2
    assert [len(lane.events) for lane in trace.lanes] == [consumer] * CONSUMERS + [load]


def test_the_recorded_run_has_the_edges_that_it_should():
    trace = recorded()
    timeline = analyse(trace)
    roles = {warp.warp: warp.role for warp in timeline.warps}
    labels = {barrier.number: barrier.label for barrier in trace.kernel.barriers}
    edges = Counter(
        (roles[arrow.signal.warp], roles[arrow.wait.warp], f"{labels[arrow.barrier]} {arrow.side}")
        for arrow in explain(trace, timeline).arrows
        if arrow.side in {"full", "empty"}
    )
    assert set(edges) == expected()[1]
    # A fresh ring grants the first STAGES groups.
    assert sorted(edges.values()) == [GROUPS - STAGES, CONSUMERS * GROUPS]


def test_stages_go_round():
    timeline = analyse(recorded())
    sides = {instance.number: instance.side for instance in recorded().kernel.instances}
    for warp in timeline.warps:
        side = "empty" if warp.role == "load" else "full"
        stages = [part.stage for part in warp.slices if part.state is not State.ACTIVE and sides[part.instance] == side]
        assert stages == [group % STAGES for group in range(GROUPS)]


def test_a_release_comes_after_its_wait():
    trace = recorded()
    sides = {instance.number: (instance.kind, instance.side) for instance in trace.kernel.instances}
    for lane in trace.lanes[:CONSUMERS]:
        kinds = [
            (sides[event.instance], event.kind)
            for event in lane.events
            if sides[event.instance][1] in {"full", "empty"}
        ]
        wait, release = ("wait", "full"), ("signal", "empty")
        assert kinds == [(wait, EventKind.ENTER), (wait, EventKind.EXIT), (release, EventKind.SIGNAL)] * GROUPS


def test_the_picture_is_the_recorded_run(tmp_path):
    made, shown = tmp_path / "picture.svg", ROOT / "docs/pictures/gemv_ring.svg"
    assert cli.main(["export", str(RUN), "--svg", str(made), "--from", "29000", "--to", "49200", "-q"]) == 0
    assert made.read_text("utf-8") == shown.read_text("utf-8")
    assert len(shown.read_bytes()) < 200 * 1024


def ladders() -> list[gemv.Ladder]:
    content = json.loads(RESULTS.read_text("utf-8"))
    return [
        gemv.Ladder(**{**ladder, "rungs": tuple(gemv.Rung(**rung) for rung in ladder["rungs"])})
        for ladder in content["ladders"]
    ]


def test_the_table_is_what_was_measured():
    assert gemv.report(ladders()) in GALLERY
    assert all(f"- {line}\n" in GALLERY for line in gemv.rates(ladders()).splitlines())


def test_nothing_is_faster_than_the_floor():
    for ladder in ladders():
        rungs = [rung for rung in ladder.rungs if rung.name != gemv.EMPTY]
        assert all(rung.wrong == 0 and rung.median >= ladder.floor.median for rung in rungs)


def test_what_the_program_prints_is_read():
    printed = """M 7 K 1024 L 3 bytes 13824 seed 18446744073709551615 repeat 1
floor us_per_launch 6.56 p10 6.50 p90 6.60 least 6.49
naive us_per_launch 1332.45 p10 1332.40 p90 1333.00 least 1331.00 max_error_of_allowed 1.5e+02 wrong 4
"""
    ladder = gemv.read(printed)
    assert (ladder.m, ladder.k, ladder.l, ladder.bytes_read, ladder.repeat) == (7, 1024, 3, 13824, 1)
    assert ladder.seed == 2**64 - 1
    assert ladder.rungs == (
        gemv.Rung("floor", 6.56, 6.5, 6.6, 6.49),
        gemv.Rung("naive", 1332.45, 1332.4, 1333.0, 1331.0, 4),
    )
    assert "wrong" in gemv.report([ladder])
