# SPDX-License-Identifier: Apache-2.0
"""`benchmarks/overhead.py --cuda` builds the bundled programs itself."""

from __future__ import annotations

import shutil

import pytest

from benchmarks import overhead_cuda
from benchmarks.overhead import main

if shutil.which("nvcc") is None:
    pytest.skip("nvcc is not installed", allow_module_level=True)


def test_every_gallery_program_is_a_case():
    folder = overhead_cuda.ROOT / "kernels" / "cuda"
    programs = {path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.cu")}
    # Kernels without host code, and those that are broken on purpose.
    without = {name for name in programs if name == "ring" or name.startswith("broken/")}
    assert {each.source for each in overhead_cuda.BUNDLED} == programs - without


def test_the_chosen_programs_are_built(capsys):
    assert main(["--cuda", "--compile-only", "--case", "sample GEMM 128"]) == 0
    assert capsys.readouterr().out == "CUDA C++ sample GEMM 128x128x4096 bf16: built clean and stamped\n"


def test_a_name_that_no_program_has(capsys):
    assert main(["--cuda", "--case", "nothing of the kind"]) == 2
    assert "--list shows them" in capsys.readouterr().err


def test_a_compiler_that_fails(monkeypatch, capsys):
    monkeypatch.setattr(overhead_cuda, "NVCC", (*overhead_cuda.NVCC, "--no-such-option"))
    assert main(["--cuda", "--compile-only", "--case", "sample GEMM 128"]) == 3
    assert "no-such-option" in capsys.readouterr().err
