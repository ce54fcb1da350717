# SPDX-License-Identifier: Apache-2.0
"""The ring of the NVFP4 ladder: roles, sites and edges are those written down by hand in tests/cases/gallery."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from autostamp import cli
from autostamp.runtime.manifest_file import read_manifest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "kernels" / "cuda" / "gemv"
CASE = ROOT / "tests" / "cases" / "gallery" / "gemv_ring.expected"

Sites = dict[tuple[str, str], set[str]]
"""Barriers with their side, by role and `waits` or `signals`."""


def expected() -> Sites:
    """The part of the case file that is about sites."""
    sites: Sites = {}
    role = ""
    for line in CASE.read_text("utf-8").splitlines():
        if line.startswith("#"):
            continue
        if not line.startswith(" "):
            role = line
        elif role != "edges":
            kind, barriers = line.split(maxsplit=1)
            sites[role, kind] = set(barriers.split(", "))
    return sites


def test_the_source_has_the_roles_and_sites_that_it_should(tmp_path):
    sources = [str(FOLDER / name) for name in ("gemv.cu", "ring.cuh", "ladder.cuh")]
    assert cli.main(["instrument", *sources, "-o", str(tmp_path), "-q"]) == 0
    found: Sites = defaultdict(set)
    for file in read_manifest(tmp_path / "autostamp.manifest.json").files:
        for site in () if file.path.endswith("floor.cuh") else file.sites:
            barrier = site.root.rsplit(":", 1)[-1]
            found[site.role or "all", f"{site.kind.value}s"].add(f"{barrier} {site.side.value}")
    assert found == expected()


def test_files_are_short():
    assert all(len(path.read_text("utf-8").splitlines()) <= 400 for path in FOLDER.iterdir())
