# SPDX-License-Identifier: Apache-2.0
"""A placement holds for one compiler, and a build with another one says so."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from autostamp.cli.nvcc import _compare
from autostamp.model.options import Selection
from autostamp.runtime import compilers


def nvcc(folder: Path, release: str) -> str:
    file = folder / "nvcc"
    file.write_text(f'#!/bin/sh\necho "nvcc: NVIDIA (R) Cuda compiler driver"\necho "{release}"\n')
    file.chmod(0o755)
    return str(file)


@pytest.mark.parametrize(
    ("release", "named"),
    [("Cuda compilation tools, release 13.0, V13.0.88", "nvcc 13.0.88"), ("something else", "")],
)
def test_nvcc_says_its_release(tmp_path, release, named):
    assert compilers.of_nvcc(["ccache", nvcc(tmp_path, release), "-c", "k.cu"]) == named


def test_no_nvcc_is_not_known(tmp_path):
    assert compilers.of_nvcc(["clang++", "k.cu"]) == ""
    assert compilers.of_nvcc([str(tmp_path / "nvcc")]) == ""


def test_the_dsl_says_its_version_and_cuda(monkeypatch):
    dsl = SimpleNamespace(__version__="4.8.1", CUDA_VERSION=SimpleNamespace(major=12, minor=9))
    monkeypatch.setitem(sys.modules, "cutlass", dsl)
    assert compilers.of_dsl() == "nvidia-cutlass-dsl 4.8.1, CUDA 12.9"
    monkeypatch.delitem(sys.modules, "cutlass")
    assert compilers.of_dsl() == ""


def test_what_is_not_known_does_not_differ():
    assert compilers.differs("nvcc 13.0.88", "nvcc 12.9.41")
    assert not compilers.differs("nvcc 13.0.88", "nvcc 13.0.88")
    assert not compilers.differs("", "nvcc 13.0.88")
    assert not compilers.differs("nvcc 13.0.88", "")


@pytest.mark.parametrize(("recorded", "is_said"), [("nvcc 12.9.41", True), ("nvcc 13.0.88", False), ("", False)])
def test_autostamp_nvcc_warns_of_another_compiler(tmp_path, capsys, recorded, is_said):
    words = (nvcc(tmp_path, "Cuda compilation tools, release 13.0, V13.0.88"), "-c", "k.cu")
    _compare(Selection(placed=(), toolchain=recorded), words)
    said = capsys.readouterr().err
    assert ("AS8108" in said) is is_said
    assert ("12.9.41" in said and "13.0.88" in said) is is_said
