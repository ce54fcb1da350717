# SPDX-License-Identifier: Apache-2.0
"""The four GEMMs of kernels/cuda/gemm: roles, sites and edges are those written down by hand in tests/cases/gallery."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

from autostamp import cli
from autostamp.model.manifest import Manifest
from autostamp.runtime.manifest_file import read_manifest

ROOT = Path(__file__).parents[2]
KERNELS, CASES = ROOT / "kernels/cuda", ROOT / "tests/cases/gallery"
VARIANTS = ("serial", "plain", "pingpong", "cooperative")

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
            first, second, barrier = re.fullmatch(r"    (.+) -> (\S+) +(.+)", line).groups()  # type: ignore[union-attr]
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
