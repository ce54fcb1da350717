# SPDX-License-Identifier: Apache-2.0
"""The commands that README.md shows for CUDA C++ are run as they stand there, in a folder with the bundled kernels.

Without a GPU those that need one are left out, and `autostamp launch` compiles only.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SECTION = (ROOT / "README.md").read_text(encoding="utf-8").partition("\n## CUDA C++\n")[2].partition("\n## ")[0]
FENCE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [
    [line.removeprefix("$ ") for line in re.sub(r"\\\n\s*", "", block).splitlines()] for block in FENCE.findall(SECTION)
]
NEEDS_GPU = re.compile(r"autostamp (?:run|summary)\b")
LAUNCHES = re.compile(r"autostamp launch\b[^#]*")
HAS_FINDINGS = re.compile(r"autostamp safety\b")
"""Ends with 1 where the stamped kernel takes more registers than the clean one, as its help says."""

EVERY_BLOCK = pytest.mark.parametrize("commands", BLOCKS, ids=lambda commands: commands[0].split("#")[0].strip()[:40])
NEEDS_NVCC = pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")


@pytest.fixture
def shell(tmp_path, monkeypatch):
    """Runs a command line where the paths of README.md lead somewhere, with this checkout's autostamp on PATH."""
    shutil.copytree(ROOT / "kernels" / "cuda", tmp_path / "kernels" / "cuda")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, module in (("autostamp", "autostamp.cli"), ("autostamp-nvcc", "autostamp.cli.nvcc")):
        program = programs / name
        program.write_text(f"#!{sys.executable}\nimport sys\nfrom {module} import main\n\nsys.exit(main())\n")
        program.chmod(0o755)
    for name in [name for name in os.environ if name.startswith("AUTOSTAMP")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AUTOSTAMP_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]))
    monkeypatch.setenv("PATH", os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ["PATH"]]))

    def run(command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False
        )

    return run


def require_success(command: str, done: subprocess.CompletedProcess[str]) -> None:
    said = f"$ {command}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    assert done.returncode in ((0, 1) if HAS_FINDINGS.search(command) else (0,)), said
    assert "compiled without stamps" not in done.stderr, said
    if HAS_FINDINGS.search(command):
        assert "schedule distance" in done.stdout, said


def test_the_section_has_commands_of_every_kind():
    commands = " ".join(command for block in BLOCKS for command in block)
    for part in ("instrument", "nvcc --", "run", "summary", "strip", "launch", "safety"):
        assert f"autostamp {part}" in commands
    assert all(line for block in BLOCKS for line in block)


@NEEDS_NVCC
@EVERY_BLOCK
def test_commands_that_need_no_gpu(commands, shell):
    for shown in commands:
        command = LAUNCHES.sub(lambda found: f"{found[0].rstrip()} --compile-only ", shown)
        if not NEEDS_GPU.search(command):
            require_success(command, shell(command))


@NEEDS_NVCC
@pytest.mark.gpu
@EVERY_BLOCK
def test_commands(commands, shell, tmp_path):
    for command in commands:
        done = shell(command)
        require_success(command, done)
        if command.startswith("autostamp summary"):
            assert "gemm_ws" in done.stdout
    for run in re.findall(r"autostamp (?:run|launch)\b.* -o (\w+)", "\n".join(commands)):
        assert (tmp_path / run / "records.npz").is_file()


@NEEDS_NVCC
@pytest.mark.parametrize("compiler", sorted({"autostamp-nvcc", *re.findall(r'\w*NVCC="(.*?)"', SECTION)}))
def test_compilers_that_builds_are_given(compiler, shell):
    assert f"={compiler}" in SECTION or f'="{compiler}"' in SECTION
    done = shell(f"{compiler} -arch=sm_90a -cubin -o ring.cubin kernels/cuda/ring.cu && test -f ring.cubin")
    require_success(compiler, done)
    notes = shell("cat state/builds/*")
    assert '"stamped"' in notes.stdout


def test_off_is_the_plain_compiler(shell, tmp_path):
    """`AUTOSTAMP=0` hands over to the compiler named, whatever it is."""
    assert "`AUTOSTAMP=0`" in SECTION
    done = shell("AUTOSTAMP=0 autostamp nvcc -- echo nvcc ring.cu")
    assert (done.returncode, done.stdout) == (0, "nvcc ring.cu\n")
    assert not (tmp_path / "state").exists()


def test_codes_named_are_those_with_a_page():
    codes = set(re.findall(r"AS\d{4}", SECTION))
    assert codes
    assert all((ROOT / "docs" / "codes" / f"{code}.md").is_file() for code in codes)
