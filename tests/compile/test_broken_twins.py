# SPDX-License-Identifier: Apache-2.0
"""The broken twins: each compiles clean and stamped, differs from its right twin, and on a GPU does what its head says."""

from __future__ import annotations

import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.cuda_builds import ROOT, SM_90A, SM_100A, Builds, build

if shutil.which("nvcc") is None:
    pytest.skip("nvcc is not installed", allow_module_level=True)

FOLDER = ROOT / "kernels" / "cuda" / "broken"
TWINS = tomllib.loads((FOLDER / "twins.toml").read_text())
EXIT = {"slow": 0, "wrong": 1, "launch-error": 2, "hang": 3}
"""Exit status of a twin by its symptom, as watchdog.cuh says."""

FLAGS = ("-std=c++17", "-O3", "-Xcompiler=-Wall,-Wextra")
OPTIONS = (*SM_90A, *FLAGS)


@pytest.fixture(scope="module", params=TWINS)
def name(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def builds(name: str, tmp_path_factory: pytest.TempPathFactory) -> Builds:
    return build(tmp_path_factory.mktemp(name) / "builds", [*OPTIONS, str(FOLDER / f"{name}.cu")])


def test_the_table_names_every_twin():
    assert {path.stem for path in FOLDER.glob("*.cu")} == set(TWINS)
    for twin in TWINS.values():
        assert set(twin) == {"mistake", "symptom"}
        assert twin["symptom"] in EXIT


def test_the_head_says_what_is_wrong_and_what_happens(name):
    head = (FOLDER / f"{name}.cu").read_text().split("#include")[0]
    assert "// BROKEN: " in head
    (line,) = (line for line in head.splitlines() if line.startswith("// What happens: "))
    assert line.removeprefix("// What happens: ").startswith(TWINS[name]["symptom"].replace("-", " "))


def test_off_is_the_clean_build(builds):
    assert builds.cubin("off") == builds.cubin("clean")
    assert builds.cubin("copies") == builds.cubin("clean")


def test_the_broken_kernel_compiles_without_a_word_and_is_stamped(builds):
    assert "warning" not in builds.log("clean").lower()
    (kernel,) = builds.kernels
    # The compiler brings a warp together where it cannot see that it is whole.
    assert set(kernel.changed) <= {"WARPSYNC"}
    assert kernel.spills == (0, 0)
    expected = {event for _, events in builds.sites() for event in events}
    # All but what stands in the branch that only the right twin takes.
    assert set() < set(kernel.written.events) <= expected


def test_blackwell_too(name, tmp_path):
    words = [*SM_100A, *FLAGS, str(FOLDER / f"{name}.cu")]
    found = build(tmp_path / "builds", words, ("clean", "off", "stamped"))
    assert found.cubin("off") == found.cubin("clean")
    assert found.added_messages() == []
    (kernel,) = found.kernels
    assert kernel.spills == (0, 0)
    assert kernel.written.events


def test_the_right_twin_is_another_kernel(name, builds, tmp_path):
    right = tmp_path / "right.cubin"
    subprocess.run(["nvcc", *OPTIONS, "-DFIXED", "-cubin", "-o", right, FOLDER / f"{name}.cu"], check=True, timeout=300)
    assert right.read_bytes() != builds.cubin("clean")


def program(name: str, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """What a twin does; a kernel that hangs is ended with its process."""
    path = folder / name
    subprocess.run(["nvcc", *OPTIONS, *options, "-o", path, FOLDER / f"{name}.cu"], check=True, timeout=300)
    return subprocess.run(["timeout", "-s", "KILL", "30", path], capture_output=True, text=True, timeout=60)


@pytest.mark.gpu
def test_it_does_what_the_table_says(name, tmp_path):
    done = program(name, tmp_path)
    assert done.returncode == EXIT[TWINS[name]["symptom"]], done.stdout + done.stderr


@pytest.mark.gpu
def test_the_right_twin_is_right(name, tmp_path):
    done = program(name, tmp_path, "-DFIXED")
    assert done.returncode == 0, done.stdout + done.stderr
