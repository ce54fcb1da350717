# SPDX-License-Identifier: Apache-2.0
"""`autostamp run`: whose exit status it is, what is left behind, and what is said when nothing was recorded."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from autostamp import cli
from autostamp.cli.run import command as run_command
from autostamp.runtime.manifest_file import read_manifest

ROOT = Path(cli.__file__).parents[2]
needs_dsl = pytest.mark.skipif(importlib.util.find_spec("cutlass") is None, reason="CuTe-DSL is not installed")

KERNEL = """\
import cutlass
import cutlass.cute as cute
from cutlass.cute.runtime import make_fake_compact_tensor


@cute.kernel
def kernel(a: cute.Tensor):
    warp_idx = cute.arch.warp_idx()
    cute.arch.sync_threads()
    if warp_idx == 0:
        cute.arch.sync_warp()
    a[0] = cutlass.Float32(1.0)


@cute.jit
def host(a: cute.Tensor):
    kernel(a).launch(grid=(1, 1, 1), block=(64, 1, 1))


def build():
    a = make_fake_compact_tensor(cutlass.Float32, (64,), stride_order=(0,))
    return cute.compile(host, a, options="--gpu-arch sm_90a")
"""
WITHOUT_DSL = """\
# as if for cutlass
import sys


def spin(bar):
    while not bar.try_wait(0):
        pass
    raise ValueError("late")


class Bar:
    def try_wait(self, phase):
        return True


def main():
    print(*sys.argv)
    if "--fail" in sys.argv:
        spin(Bar())
    if "--text" in sys.argv:
        sys.exit("said so")
    sys.exit(int(sys.argv[1]) if sys.argv[1:] else None)


if __name__ == "__main__":
    main()
"""


def run(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """`autostamp run --compile-only` in `folder`."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    words = [sys.executable, "-m", "autostamp", "run", "--compile-only", *arguments]
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def program(tmp_path: Path) -> Path:
    write(tmp_path / "program.py", WITHOUT_DSL)
    return tmp_path


@needs_dsl
def test_a_program_that_compiles_a_kernel(tmp_path):
    write(tmp_path / "bench.py", f"{KERNEL}\n\nbuild()\nprint('built')\n")
    done = run(tmp_path, "--", sys.executable, "bench.py")
    assert (done.returncode, done.stdout) == (0, "built\n"), done.stderr
    assert "wrote RUN" in done.stderr
    manifest = read_manifest(tmp_path / "RUN" / "manifest.json")
    (file,) = manifest.files
    (trace,) = manifest.traces
    assert (Path(file.path).name, trace.kernel, trace.file) == ("bench.py", "kernel", file.key)
    assert [instance.kind for instance in trace.instances] == ["wait", "wait"]
    assert [(item.enter > 0, item.exit > 0, item.signal) for item in trace.instances] == [(True, True, 0)] * 2
    kept = tmp_path / "RUN" / "sources"
    assert (kept / "original" / file.key / "bench.py").read_text(encoding="utf-8").startswith(KERNEL)
    assert "_as.bind(mProf" in (kept / "stamped" / file.key / "bench.py").read_text(encoding="utf-8")


@needs_dsl
@pytest.mark.parametrize("status", [0, 3])
def test_a_module_of_a_package_with_the_status_of_the_program(tmp_path, status):
    write(tmp_path / "mykern" / "__init__.py", "")
    write(tmp_path / "mykern" / "deep.py", KERNEL)
    write(tmp_path / "bench.py", "import sys\nfrom mykern.deep import build\nbuild()\nsys.exit(int(sys.argv[1]))\n")
    done = run(tmp_path, "--instrument", "mykern", "-o", "out/first", "-q", "--", "bench.py", str(status))
    assert (done.returncode, done.stderr) == (status, "")
    assert [trace.kernel for trace in read_manifest(tmp_path / "out" / "first" / "manifest.json").traces] == ["kernel"]


@needs_dsl
def test_an_error_in_a_kernel_names_the_authors_line(tmp_path):
    """The first stamp of this file needs a line of its own, so stamped lines and the author's differ."""
    text = KERNEL.replace("    cute.arch.sync_threads()\n", "    cute.arch.sync_threads(1, 2, 3)\n")
    write(tmp_path / "bench.py", f"if True:\n    pass\n{text}\n\nbuild()\n")
    done = run(tmp_path, "--", "bench.py")
    assert done.returncode == 1
    assert "autostamp-" not in done.stderr
    assert 'File "bench.py", line 27, in <module>' in done.stderr
    assert 'File "bench.py", line 24, in build' in done.stderr


def test_a_traceback_names_the_original_file_and_line(program):
    done = run(program, "--", "program.py", "--fail")
    assert done.returncode == 1
    assert 'File "program.py", line 8, in spin\n    raise ValueError("late")\n' in done.stderr
    assert 'File "program.py", line 19, in main\n    spin(Bar())\n' in done.stderr
    assert "_as" not in done.stderr.split("AS5003")[0]
    assert "hooks" not in done.stderr
    assert done.stderr.startswith("Traceback (most recent call last):\n")


@pytest.mark.parametrize(
    ("arguments", "status"), [((), 1), (("0",), 1), (("3",), 3), (("--fail",), 1), (("--text",), 1), (("130",), 130)]
)
def test_the_status_is_the_programs_where_it_failed(program, arguments, status):
    done = run(program, "--", "program.py", *arguments)
    assert done.returncode == status
    assert "AS5003 no record was written: no stamped kernel was compiled" in done.stderr
    assert ("said so" in done.stderr) is ("--text" in arguments)


def test_arguments_reach_the_program_and_options_of_ours_do_not(program):
    done = run(program, "-q", "--", "program.py", "0", "-o", "x", "--only", "nonsense", "--help")
    assert done.stdout == "program.py 0 -o x --only nonsense --help\n"


@pytest.mark.parametrize("words", [["program.py"], ["python"], ["-m"]], ids=["script", "interpreter", "module"])
def test_the_ways_to_name_a_program(program, words):
    given = {
        "program.py": ["program.py", "4"],
        "python": [sys.executable, "-u", "-X", "utf8", "program.py", "4"],
        "-m": ["-m", "program", "4"],
    }[words[0]]
    done = run(program, "--", *given)
    assert done.returncode == 4
    assert done.stdout.split()[1:] == ["4"]


def test_the_programs_view_of_the_world(tmp_path):
    """Its module, its path and its arguments are what they would be without us."""
    lines = "import sys\nprint(__name__, __file__, sys.argv, sys.path[0], sys.modules['__main__'].__name__)\n"
    write(tmp_path / "a" / "look.py", f"# cutlass\n{lines}def f(p):\n    p.wait()\n")
    done = run(tmp_path, "--", "a/look.py", "x")
    assert done.stdout == f"__main__ a/look.py ['a/look.py', 'x'] {tmp_path / 'a'} __main__\n"


def test_a_target_that_is_never_imported(program):
    done = run(program, "--instrument", "nosuch.module", "--", "program.py", "0")
    assert done.returncode == 1
    assert "AS5006 nosuch.module was asked for but never imported" in done.stderr
    assert "AS5003 no record was written: nosuch.module was never imported" in done.stderr


def test_a_target_that_the_hook_is_too_late_for(program):
    done = run(program, "--instrument", "autostamp.model", "--", "program.py", "0")
    assert done.returncode == 1
    assert "AS5002 autostamp.model" in done.stderr
    assert done.stdout == ""


def test_a_target_that_holds_nothing_to_stamp(tmp_path):
    write(tmp_path / "plain.py", "print('ran')\n")
    done = run(tmp_path, "--", "plain.py")
    assert (done.returncode, done.stdout) == (1, "ran\n")
    assert "AS5003 no record was written: the targets hold no sync call" in done.stderr


def test_a_program_that_is_not_python(tmp_path):
    write(tmp_path / "broken.py", "# cutlass\ndef f(p):\n    p.wait(]\n")
    done = run(tmp_path, "--", "broken.py")
    assert done.returncode == 1
    assert "SyntaxError" in done.stderr
    assert "broken.py:3:12: AS1001" in done.stderr


def test_a_program_that_is_killed(tmp_path):
    write(tmp_path / "gone.py", "import os\nos._exit(7)\n")
    done = run(tmp_path, "--", "gone.py")
    assert done.returncode == 7
    assert "AS5003 no record was written: the program ended before its records could be read" in done.stderr
    write(tmp_path / "gone.py", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    assert run(tmp_path, "--", "gone.py").returncode == 128 + 9


@pytest.mark.parametrize(
    ("program_words", "detail"),
    [
        (["nosuch.py"], "nosuch.py: no such file"),
        ([sys.executable, "nosuch.py"], "nosuch.py: no such file"),
        (["-m"], "-m: it names no module"),
        ([sys.executable], "it names no script and no module"),
        ([sys.executable, "-c", "print(1)"], "it names no script and no module"),
        (["/no/such/python3", "x.py"], "/no/such/python3: not found"),
        (["ls", "-l"], "ls: it is not a Python program"),
    ],
)
def test_what_cannot_be_run(tmp_path, capsys, monkeypatch, program_words, detail):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["run", "--compile-only", "--", *program_words]) == 2
    printed = capsys.readouterr().err
    assert "AS5007" in printed
    assert detail in printed
    assert not (tmp_path / "RUN").exists()


def test_an_interpreter_without_autostamp(tmp_path):
    write(tmp_path / "x.py", "print('ran')\n")
    python = tmp_path / "python3"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    done = run(tmp_path, "--", str(python), "x.py", PYTHONPATH=str(ROOT))
    assert (done.returncode, done.stdout) == (2, "")
    assert f"AS5007 cannot run {python}: ModuleNotFoundError: No module named 'autostamp'" in done.stderr


def test_no_program_is_wrong_usage(capsys):
    assert cli.main(["run"]) == 2
    assert "Usage: autostamp run" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "expected"), [("1", (1, 0, 0)), ("1,2", (1, 2, 0)), ("1,2,3", (1, 2, 3)), ("(4, 5, 6)", (4, 5, 6))]
)
def test_the_block_that_records(given, expected):
    with run_command.make_context("run", ["--block", given, "--", "x.py"]) as context:
        assert context.params["block"] == expected


@pytest.mark.parametrize("given", ["", "a", "1,2,3,4", "-1", "1,,2"])
def test_what_is_no_block(given, capsys):
    assert cli.main(["run", "--block", given, "--", "x.py"]) == 2
    assert "is not a block index such as 0,0,0" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written(program):
    write(program / "blocked", "")
    done = run(program, "-o", "blocked/RUN", "--", "program.py", "0")
    assert done.returncode == 2
    assert "AS7001" in done.stderr


@pytest.mark.skipif(importlib.util.find_spec("cupy") is not None, reason="records where there is a GPU")
def test_recording_without_cupy(program):
    words = [sys.executable, "-m", "autostamp", "run", "--", "program.py", "0"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, cwd=program, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (3, "")
    assert "AS5008" in done.stderr
    assert "AS5006" not in done.stderr  # nothing ran, so nothing that was not imported is a finding
