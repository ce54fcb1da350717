# SPDX-License-Identifier: Apache-2.0
"""The four GEMMs of kernels/cuda/gemm: roles, sites and edges are those written down by hand in tests/cases/gallery."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path

import pytest

from autostamp import cli
from autostamp.analysis import analyse
from autostamp.analysis.flow import explain
from autostamp.model.manifest import EventKind, Manifest
from autostamp.model.trace import Trace
from autostamp.runtime.decode import check
from autostamp.runtime.manifest_file import read_manifest
from autostamp.runtime.store import load_run
from benchmarks import gemm
from benchmarks.overhead_statistics import Spread

ROOT = Path(__file__).parents[2]
KERNELS, CASES = ROOT / "kernels/cuda", ROOT / "tests/cases/gallery"
VARIANTS = ("serial", "plain", "pingpong", "cooperative")
PICTURES = {
    "serial": (64500, 75200),
    "plain": (65800, 79400),
    "pingpong": (37500, 47500),
    "cooperative": (64500, 79200),
}
"""Cycles shown in docs/gallery.md: the last stages of a tile, and its store."""
WARPS = {"serial": 4, "plain": 5, "pingpong": 12, "cooperative": 12}

Sites = dict[tuple[str, str], set[str]]
"""Barriers with their side, by role and `waits` or `signals`."""
Edges = set[tuple[str, str, str]]
"""Who signals, who waits for it, and on which barrier and side."""


def expected(variant: str) -> tuple[Sites, Edges]:
    """The two parts of a case file."""
    sites: Sites = {}
    edges: Edges = set()
    role = ""
    for line in (CASES / f"gemm_{variant}.expected").read_text("utf-8").splitlines():
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


def found(manifest: Manifest) -> Sites:
    sites: Sites = defaultdict(set)
    for source in manifest.files:
        for site in source.sites:
            sites[site.role or "all", f"{site.kind.value}s"].add(f"{site.root.rsplit(':', 1)[-1]} {site.side.value}")
    return dict(sites)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_source_has_the_roles_and_sites_that_it_should(variant, tmp_path, capsys):
    source = KERNELS / "gemm" / f"gemm_{variant}.cu"
    assert cli.main(["instrument", str(source), "-o", str(tmp_path), "-q"]) == 0
    assert found(read_manifest(tmp_path / "autostamp.manifest.json")) == expected(variant)[0]


def test_the_variants_differ_in_their_roles_alone():
    """What is shared is in headers; each variant's own file is one kernel and its launch."""
    for variant in VARIANTS:
        text = (KERNELS / "gemm" / f"gemm_{variant}.cu").read_text("utf-8")
        assert text.count("__global__") == 1
        assert "asm" not in text


def test_the_files_of_the_gemm_are_short():
    assert all(len(path.read_text("utf-8").splitlines()) <= 300 for path in (KERNELS / "gemm").iterdir())


def recorded(variant: str) -> Trace:
    """One CTA of 2048 x 2048 x 2048 in TF32, on an H200."""
    (trace,) = load_run(KERNELS / "recorded" / f"gemm_{variant}_h200").traces.values()
    return trace


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_recorded_run_has_the_edges_that_it_should(variant):
    trace = recorded(variant)
    timeline = analyse(trace)
    roles = {warp.warp: warp.role for warp in timeline.warps}
    labels = {barrier.number: barrier.label for barrier in trace.kernel.barriers}
    edges = {
        (roles[arrow.signal.warp], roles[arrow.wait.warp], f"{labels[arrow.barrier]} {arrow.side}")
        for arrow in explain(trace, timeline).arrows
        if arrow.side in {"full", "empty", "mbarrier"}
    }
    assert edges == expected(variant)[1]


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_recorded_run_is_whole(variant):
    trace = recorded(variant)
    assert check(trace) == []
    assert [lane.warp for lane in trace.lanes] == list(range(WARPS[variant]))
    assert all(lane.lost == 0 for lane in trace.lanes)


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_consumer_waits_for_each_stage_of_its_tiles(variant):
    """2048 / 32 = 64 stages a tile. A CTA of the persistent variants has more than one tile where there are more than SMs."""
    trace = recorded(variant)
    full = {item.number for item in trace.kernel.instances if (item.kind, item.side) == ("wait", "full")}
    waits = {
        lane.warp: sum(event.kind is EventKind.ENTER and event.instance in full for event in lane.events)
        for lane in trace.lanes
    }
    consumers = 8 if variant in {"pingpong", "cooperative"} else 4
    assert waits == {warp: 64 if warp < consumers else 0 for warp in waits}


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_picture_is_the_recorded_run(variant, tmp_path):
    made, shown = tmp_path / "picture.svg", ROOT / f"docs/pictures/gemm_{variant}.svg"
    first, last = map(str, PICTURES[variant])
    run = KERNELS / "recorded" / f"gemm_{variant}_h200"
    assert cli.main(["export", str(run), "--svg", str(made), "--from", first, "--to", last, "-q"]) == 0
    assert made.read_text("utf-8") == shown.read_text("utf-8")
    assert len(shown.read_bytes()) < 200 * 1024


def test_the_table_is_what_was_measured():
    rows = [
        gemm.Row(**{**row, "us": Spread(**row["us"]), "tflops": Spread(**row["tflops"])})
        for row in json.loads((ROOT / "benchmarks/results/gemm_h200.json").read_text("utf-8"))["rows"]
    ]
    printed, _, agreement = gemm.report(rows).partition("\n\n")
    assert printed in (ROOT / "docs/gallery.md").read_text("utf-8")
    assert agreement == "all results are right, and of each shape and type equal in every bit"
