# SPDX-License-Identifier: Apache-2.0
"""Lean stamps, compiled: a producer with 24 registers spills with usual stamps and does not with lean ones."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from autostamp.model.placement import Form, Placement, ReplaySet, ScheduleFeatures, site_key
from autostamp.model.sync import Kind
from autostamp.runtime.placement_file import write_placement
from tests.cuda_builds import SM_90A, Builds, build

if shutil.which("nvcc") is None:
    pytest.skip("nvcc is not installed", allow_module_level=True)

SOURCE = Path(__file__).with_name("cuda") / "few_registers.cu"
WORDS = (*SM_90A, "-std=c++17", "-O3", str(SOURCE))


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Builds:
    return build(tmp_path_factory.mktemp("lean") / "builds", WORDS)


def test_off_is_the_clean_build(builds):
    assert builds.cubin("off") == builds.cubin("clean")
    assert builds.cubin("copies") == builds.cubin("clean")


def test_nothing_is_spilled_and_nothing_else_changes(builds):
    (kernel,) = builds.kernels
    assert "USETMAXREG.DEALLOC.CTAPOOL" in {each.opcode for each in kernel.clean.instructions}
    assert kernel.spills == (0, 0)
    assert kernel.changed == {}
    assert builds.added_messages() == []


def test_every_stamp_is_there_and_reads_the_clock_once(builds):
    (kernel,) = builds.kernels
    expected = {event for _, events in builds.sites() for event in events}
    assert set(kernel.written.events) == expected
    assert kernel.written.lane == 2
    stamps = kernel.report.stamps
    assert stamps is not None
    assert (stamps.missing, stamps.unnamed) == ((), 0)


def test_the_manifest_says_which_kernels_are_lean(builds):
    (file,) = builds.manifest.files
    (kernel,) = file.kernels
    assert (kernel.is_lean, kernel.carrier, kernel.reason) == (True, "symbol", "its stamps are lean")


def test_usual_stamps_are_spilled_here(tmp_path):
    """Without this, the tests above would say nothing: another compiler may find room for usual stamps too."""
    (kernel,) = build(tmp_path / "builds", WORDS, ("clean", "stamped"), AUTOSTAMP_FORM="usual").kernels
    clean, stamped = kernel.spills
    assert clean == 0
    assert stamped > 0


@pytest.mark.parametrize("form", [Form.ENTER, Form.EXIT])
def test_waits_with_one_stamp_are_lean_too(builds, tmp_path, form):
    (file,) = builds.manifest.files
    waits = [site for site in file.sites if site.kind is Kind.WAIT]
    sites = tuple((site_key(file, site), form) for site in waits)
    only = ReplaySet(1, sites, (), ScheduleFeatures(1.0, {}, (1.0, 1.0), (0, 0), (0, 0), 0.0))
    write_placement(tmp_path / "one.json", Placement(1, file.kernels[0].name, "", (), (only,), (), 0, complete=True))
    chosen = {"AUTOSTAMP_PLACEMENT": str(tmp_path / "one.json"), "AUTOSTAMP_SET": "1"}
    (kernel,) = build(tmp_path / "builds", WORDS, ("clean", "stamped"), **chosen).kernels
    assert kernel.written.lane == 2
    # In the only file of a unit site n enters as event 2n - 1 and exits as 2n.
    assert set(kernel.written.events) == {2 * site.number - (form is Form.ENTER) for site in waits}
