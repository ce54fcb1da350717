# SPDX-License-Identifier: Apache-2.0
"""Stamped CUDA C++ and nvcc: switched off it is the original, token for token and byte for byte; switched on it compiles.

The cases are those of tests/cases/cuda/stamp. CUDA Compiler Driver NVCC, "Options for Specifying Behavior of Compiler/Linker".
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from autostamp.hooks.instrument_cuda import unit_files
from autostamp.passes.cuda.carrier import Carrier
from autostamp.passes.cuda.instrument import CudaOptions, Project, instrument

if shutil.which("nvcc") is None:
    pytest.skip("nvcc is not installed", allow_module_level=True)

FOLDER = Path(__file__).parents[1] / "cases" / "cuda" / "stamp"
NAMES = sorted(path.name.removesuffix(".expected.cu") for path in FOLDER.glob("*.expected.cu"))
TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|[A-Za-z_]\w*|\.?\d[\w.\']*|\S')
EVENT = re.compile(r"^\s*// autostamp (\d+)\s*$", re.MULTILINE)
# Most cases hold the symbol anyway; these would take the parameter.
CASES = [(name, Carrier.AUTO) for name in NAMES] + [(name, Carrier.SYMBOL) for name in ("kernels", "statements")]
EVERY_CASE = pytest.mark.parametrize(("name", "carrier"), CASES)


def nvcc(folder: Path, *words: str) -> str:
    """Run nvcc in `folder`; what it wrote to stdout."""
    command = ["nvcc", "-arch=sm_90a", "-std=c++17", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def stamped(name: str, carrier: Carrier) -> Project:
    context = {Path("sync.cuh"): (FOLDER / "sync.cuh").read_bytes()}
    return instrument({Path("case.cu"): (FOLDER / f"{name}.cu").read_bytes()}, context, CudaOptions(carrier=carrier))


def put_clean(name: str, folder: Path) -> None:
    shutil.copy(FOLDER / "sync.cuh", folder)
    shutil.copy(FOLDER / f"{name}.cu", folder / "case.cu")


def put_stamped(project: Project, folder: Path) -> None:
    """The stamped case in place of the clean one, with what it includes."""
    shutil.copy(FOLDER / "sync.cuh", folder)
    for name, data in unit_files(project).items():
        (folder / name).write_bytes(data)
    (folder / "case.cu").write_bytes(project.stamped[Path("case.cu")].text)


def tokens(preprocessed: str) -> list[str]:
    """Tokens of a preprocessed text, punctuation by single characters; line markers apart."""
    code = re.sub(r"^#.*$", "", preprocessed, flags=re.MULTILINE)
    return TOKEN.findall(code)


def lines(preprocessed: str) -> Iterator[tuple[int, str]]:
    """(line of case.cu, text) of a preprocessed text, as its line markers say."""
    number, is_here = 0, False
    for text in preprocessed.splitlines():
        if marker := re.match(r'# (\d+) "([^"]*)"', text):
            number, is_here = int(marker[1]), marker[2].endswith("case.cu")
        elif not text.startswith("#"):
            if is_here and text.strip():
                yield number, "".join(text.split())
            number += 1


def test_cases_were_found() -> None:
    assert len(NAMES) >= 8


@EVERY_CASE
def test_off_is_the_original_to_the_compiler(name: str, carrier: Carrier, tmp_path: Path) -> None:
    put_clean(name, tmp_path)
    clean_text = nvcc(tmp_path, "-E", "case.cu")
    nvcc(tmp_path, "-cubin", "-frandom-seed=1", "-o", "clean.cubin", "case.cu")
    put_stamped(stamped(name, carrier), tmp_path)
    off_text = nvcc(tmp_path, "-E", "case.cu")
    nvcc(tmp_path, "-cubin", "-frandom-seed=1", "-o", "off.cubin", "case.cu")
    assert "AUTOSTAMP" not in off_text
    assert tokens(off_text) == tokens(clean_text)
    assert [number for number, _ in lines(off_text)] == [number for number, _ in lines(clean_text)]
    assert (tmp_path / "off.cubin").read_bytes() == (tmp_path / "clean.cubin").read_bytes()


@EVERY_CASE
def test_on_every_stamp_reaches_the_kernel(name: str, carrier: Carrier, tmp_path: Path) -> None:
    project = stamped(name, carrier)
    put_stamped(project, tmp_path)
    # Host code, too: launches pass the slot on or are prepared.
    nvcc(tmp_path, "-DAUTOSTAMP=1", "-c", "-o", "case.o", "case.cu")
    nvcc(tmp_path, "-DAUTOSTAMP=1", "-ptx", "-o", "case.ptx", "case.cu")
    found = {int(number) for number in EVENT.findall((tmp_path / "case.ptx").read_text(encoding="utf-8"))}
    sites = project.stamped[Path("case.cu")].file.sites
    enters = {2 * site.number - 1 for site in sites}
    exits = {2 * site.number for site in sites if site.kind.value == "wait"}
    assert found == enters | exits
