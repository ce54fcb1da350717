# SPDX-License-Identifier: Apache-2.0
"""`autostamp nvcc` in front of a compiler that keeps the words it is given."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from autostamp.hooks import include_closure
from autostamp.hooks.copies import named
from autostamp.hooks.libraries import owner
from autostamp.hooks.state import BuildNote, Outcome, StateFolder
from autostamp.passes import edits
from autostamp.runtime.manifest_file import read_manifest

ROOT = Path(__file__).parents[2]
PRETEND = Path(__file__).with_name("pretend_nvcc.py")

KERNEL = """#include "../inc/wait.h"
__global__ void kernel(unsigned long long* out) {
  __shared__ unsigned long long bar;
  wait(&bar, 0);
  __syncthreads();
  *out = bar;
}
void run(unsigned long long* out) { kernel<<<1, 32>>>(out); }
"""
HEADER = """#pragma once
#include <deep/asm.h>
__device__ __forceinline__ void wait(unsigned long long* bar, unsigned parity) {
  while (!try_wait(bar, parity)) {
  }
}
"""
ASM = """#pragma once
__device__ __forceinline__ bool try_wait(unsigned long long* bar, unsigned parity) {
  unsigned ok;
  asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
               : "=r"(ok) : "r"(unsigned(__cvta_generic_to_shared(bar))), "r"(parity) : "memory");
  return ok;
}
"""


class Bench:
    """A project, a pretended nvcc, and a state folder."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "project"
        self.state = folder / "state"
        self.log = folder / "log"
        self.nvcc = folder / "bin" / "nvcc"
        self.nvcc.parent.mkdir()
        self.nvcc.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{PRETEND}" "$@"\n')
        self.nvcc.chmod(0o755)
        for name, text in (("src/k.cu", KERNEL), ("inc/wait.h", HEADER), ("inc/deep/asm.h", ASM)):
            (self.project / name).parent.mkdir(parents=True, exist_ok=True)
            (self.project / name).write_text(text)

    def run(
        self, *words: object, before: tuple[str, ...] = ("--",), **variables: str
    ) -> subprocess.CompletedProcess[bytes]:
        """`autostamp nvcc BEFORE nvcc WORDS`, in the project."""
        command = [sys.executable, "-m", "autostamp", "nvcc", *before, str(self.nvcc), *map(str, words)]
        return self.run_as(command, **variables)

    def run_as(self, command: list[str], **variables: str) -> subprocess.CompletedProcess[bytes]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("AUTOSTAMP", "NVCC"))}
        environment |= {"PYTHONPATH": str(ROOT), "AUTOSTAMP_STATE": str(self.state), "PRETEND_LOG": str(self.log)}
        return subprocess.run(command, cwd=self.project, env={**environment, **variables}, capture_output=True)

    def calls(self) -> list[list[str]]:
        """The words of every call so far, queries left out."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [words for words in map(json.loads, lines) if "-MF" not in words or "-M" not in words]

    def queries(self) -> int:
        return len(self.log.read_text().splitlines()) - len(self.calls())

    def notes(self) -> tuple[BuildNote, ...]:
        return StateFolder(self.state).notes()

    def compiled(self) -> str:
        """The source that the newest compilation was given."""
        return next(word for word in self.calls()[-1] if word.endswith(".cu"))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    return Bench(tmp_path)


@pytest.mark.parametrize(
    "line",
    [
        "--version",
        "-V",
        "--help",
        "",
        "a.o b.o -o program",
        "-dlink a.o -o a_dlink.o",
        "-E src/k.cu",
        "-M src/k.cu",
        "-MM -MT x src/k.cu",
        "-dryrun -c src/k.cu -o k.o",
        "-x c++ -c src/k.cu -o k.o",
        "-c host.cpp -o host.o",
        "-lib a.o -o lib.a",
        "-x cu -c - -o k.o",
        "-cubin k.ptx -o k.cubin",
        "-fdevice-syntax-only src/k.cu",
        "-c src/k.cu -o",
        "@all.rsp",
        "--options-file nowhere.rsp",
    ],
)
def test_everything_else_is_run_as_it_is(bench, line):
    before = () if len(line) % 2 else ("--",)  # both spellings, each on about half of the lines
    done = bench.run(
        *line.split(), before=before, PRETEND_SAYS="some\nwarning\r\n", PRETEND_PRINTS="out", PRETEND_STATUS="3"
    )
    assert (done.returncode, done.stdout, done.stderr) == (3, b"out", b"some\nwarning\r\n")
    assert bench.calls() == [line.split()]
    assert not bench.state.exists()


@pytest.mark.parametrize("value", ["0", "off", "False", "no"])
def test_the_switch_turns_it_off(bench, value):
    words = ["-Iinc", "-c", "src/k.cu", "-o", "k.o"]
    done = bench.run(*words, AUTOSTAMP=value, PRETEND_SAYS="x")
    assert (done.returncode, done.stderr) == (0, b"x")
    assert bench.calls() == [words]
    assert bench.queries() == 0
    assert not bench.state.exists()


def test_device_code_is_compiled_from_stamped_copies(bench):
    done = bench.run("-std=c++17", "-Iinc", "-c", "src/k.cu", "-o", "k.o", PRETEND_STAMPED_SAYS="ptxas info\n")
    assert (done.returncode, done.stderr) == (0, b"ptxas info\n")
    (words,) = bench.calls()
    source = Path(bench.compiled())
    tree = source.parents[len(bench.project.parts)]
    assert source.parts[-len(bench.project.parts) - 1 :] == (*bench.project.parts[1:], "src", "k.cu")
    assert words == [
        "-DAUTOSTAMP=1",
        words[1],
        *("-isystem", str(tree.parent / "include")),
        *("-I", f"{tree}{bench.project}/inc"),
        *("-std=c++17", "-Iinc", "-c", str(source), "-o", "k.o"),
    ]
    assert words[1].startswith("-DAUTOSTAMP_VERSION=")
    assert source.read_text().startswith('#include "autostamp.cuh"\n#line 1 "src/k.cu"\n#include "../inc/wait.h"\n')
    assert "AUTOSTAMP_WARP_ENTER" in source.read_text()
    assert {path.name for path in (tree.parent / "include").iterdir()} == {
        "autostamp.cuh",
        "autostamp_drain.cuh",
        "autostamp_forms.cuh",
        "autostamp_host.cuh",
        "autostamp_lean.cuh",
        "autostamp_payload.cuh",
        "autostamp_settings.cuh",
        "autostamp_unit.cuh",
    }
    # Wrappers of one instruction are not stamped: their callers are. They are copied under their own names.
    assert (source.parent / "../inc/wait.h").read_text() == f'#line 1 "src/../inc/wait.h"\n{HEADER}'
    assert (source.parent / "../inc/deep/asm.h").read_text() == f'#line 1 "inc/deep/asm.h"\n{ASM}'


def test_what_decoding_needs_is_kept(bench):
    bench.run("-Iinc", "-c", "src/k.cu", "-o", "k.o")
    (note,) = bench.notes()
    project = bench.project
    assert note == BuildNote((f"{project}/src/k.cu",), f"{project}/k.o", Outcome.STAMPED, note.unit)
    state = StateFolder(bench.state)
    manifest = read_manifest(state.manifest(int(note.unit, 16)))
    assert manifest.unit is not None
    assert f"{manifest.unit.signature:08x}" == note.unit
    assert [file.path for file in manifest.files if file.sites] == [f"{project}/src/k.cu"]
    (file,) = (file for file in manifest.files if file.sites)
    texts = state.texts(manifest.unit.signature)
    assert (texts / "original" / file.key / "k.cu").read_text() == KERNEL
    stamped = (texts / "stamped" / file.key / "k.cu").read_bytes()
    assert edits.strip(stamped, "k.cu") == KERNEL.encode()


def test_the_second_time_nothing_is_asked_or_written(bench):
    bench.run("-Iinc", "-c", "src/k.cu", "-o", "k.o")
    first, asked = bench.calls()[-1], bench.queries()
    written = {path: path.stat().st_mtime_ns for path in (bench.state / "copies").rglob("*.cu")}
    bench.run("-Iinc", "-c", "src/k.cu", "-o", "k.o")
    assert bench.calls()[-1] == first
    assert bench.queries() == asked
    assert written == {path: path.stat().st_mtime_ns for path in (bench.state / "copies").rglob("*.cu")}


def changed(bench: Bench) -> None:
    (bench.project / "inc/deep/asm.h").write_text(ASM + "// more\n")


def touched(bench: Bench) -> None:
    os.utime(bench.project / "inc/deep/asm.h", ns=(1, 1))


def shadowed(bench: Bench) -> None:
    """A file that <deep/asm.h> finds first from now on."""
    (bench.project / "first/deep").mkdir(parents=True)
    (bench.project / "first/deep/asm.h").write_text(ASM + "// first\n")


def unrelated(bench: Bench) -> None:
    (bench.project / "inc/deep/other.h").write_text("")
    (bench.project / "src/k.o").write_text("")


@pytest.mark.parametrize(
    ("change", "is_new"), [(changed, True), (touched, False), (shadowed, True), (unrelated, False)]
)
def test_a_change_that_matters_is_noticed(bench, change, is_new):
    words = ("-Ifirst", "-Iinc", "-c", "src/k.cu", "-o", "k.o")
    bench.run(*words)
    before = bench.compiled()
    change(bench)
    assert bench.run(*words).stderr == b""
    assert (bench.compiled() != before) is is_new
    tree = Path(bench.compiled()).parents[1]
    assert (tree / "first/deep/asm.h").exists() is (change is shadowed)


def test_words_in_the_environment_and_in_response_files_count(bench):
    (bench.project / "inc.rsp").write_text("-Iinc")
    bench.run("--options-file", "inc.rsp", "-c", "src/k.cu", "-o", "k.o")
    words = bench.calls()[-1]
    assert words[words.index("-I") + 1].endswith("/project/inc")
    assert words[-6:-4] == ["--options-file", "inc.rsp"]
    (bench.project / "inc.rsp").unlink()
    bench.run("-c", "src/k.cu", "-o", "k.o", NVCC_APPEND_FLAGS="-Iinc")
    words = bench.calls()[-1]
    assert words[words.index("-I") + 1].endswith("/project/inc")
    assert words[-4] == "-c"
    bench.run("-Iinc", "-c", "src/k.cu", "-o", "k.o", NVCC_APPEND_FLAGS="-x c++")
    assert bench.calls()[-1] == ["-Iinc", "-c", "src/k.cu", "-o", "k.o"]


def test_a_source_in_a_response_file_is_said_to_be_left_out(bench):
    (bench.project / "all.rsp").write_text("src/k.cu")
    done = bench.run("-Iinc", "-c", "--options-file", "all.rsp", PRETEND_SAYS="from nvcc\n")
    assert done.returncode == 0
    assert b"AS4022" in done.stderr
    assert done.stderr.endswith(b"from nvcc\n")
    assert bench.calls() == [["-Iinc", "-c", "--options-file", "all.rsp"]]
    (note,) = bench.notes()
    assert (note.outcome, note.code) == (Outcome.PLAIN, "AS4022")


def test_a_unit_with_nothing_to_stamp_is_compiled_as_it_is(bench):
    (bench.project / "src/plain.cu").write_text("__global__ void plain(int* out) { *out = 1; }\n")
    words = ["-c", "src/plain.cu", "-o", "plain.o"]
    done = bench.run(*words, PRETEND_SAYS="x")
    assert (done.returncode, done.stderr) == (0, b"x")
    assert bench.calls() == [words]
    assert [note.outcome for note in bench.notes()] == [Outcome.EMPTY]
    assert b"compiled unchanged" in bench.run(*words, before=("-v", "--")).stderr


def test_make_rules_name_the_originals(bench):
    bench.run("-Iinc", "-c", "src/k.cu", "-o", "k.o", "-MD", "-MF", "k.d")
    copied = (bench.project / "k.d").read_text()
    bench.run("-Iinc", "-c", "src/k.cu", "-o", "k.o", "-MD", "-MF", "k.d", AUTOSTAMP="0")
    assert copied == (bench.project / "k.d").read_text()
    assert "src/../inc/wait.h" in copied


def test_several_sources_are_one_unit(bench):
    (bench.project / "src/l.cu").write_text(KERNEL.replace("kernel", "other"))
    bench.run("-Iinc", "src/k.cu", "src/l.cu", "-o", "program")
    (note,) = bench.notes()
    assert [Path(source).name for source in note.sources] == ["k.cu", "l.cu"]
    manifest = read_manifest(StateFolder(bench.state).manifest(int(note.unit, 16)))
    assert manifest.unit is not None
    assert len(manifest.unit.files) == 2
    assert sum(word.startswith(str(bench.state)) and word.endswith(".cu") for word in bench.calls()[-1]) == 2


@pytest.mark.parametrize(
    ("pattern", "is_stamped"),
    [("src/*", True), ("k.cu", True), ("*/project/*", True), ("inc/*", False), ("*.cuh", False)],
)
def test_patterns_choose_files(bench, pattern, is_stamped):
    for extra, variables in ((("--files", pattern), {}), ((), {"AUTOSTAMP_FILES": f"nothing.h {pattern}"})):
        bench.run("-Iinc", "-c", "src/k.cu", "-o", "k.o", before=(*extra, "--"), **variables)
        assert bench.compiled().startswith(str(bench.state)) is is_stamped


def test_the_projects_table_selects(bench):
    table = bench.project / "pyproject.toml"
    table.write_text('[tool.autostamp]\nskip = ["kind=wait"]\n')
    bench.run("-Iinc", "-c", "src/k.cu", "-o", "k.o")
    assert bench.compiled() == "src/k.cu"
    table.write_text('[tool.autostamp]\nskip = ["method=__syncthreads"]\n')
    bench.run("-Iinc", "-c", "src/k.cu", "-o", "k.o")
    assert re.findall(r"AUTOSTAMP_(?:WARP_)?(?:ENTER|AROUND)\w*\([^)]*\)", Path(bench.compiled()).read_text()) != []
    assert "AUTOSTAMP_EXIT" not in Path(bench.compiled()).read_text().partition("__syncthreads")[2]


def test_a_wrong_table_is_said(bench):
    (bench.project / "pyproject.toml").write_text("[tool.autostamp]\nskip = 1\n")
    done = bench.run("-Iinc", "-c", "src/k.cu", "-o", "k.o")
    assert done.returncode == 0
    assert re.search(rb"AS4022 src/k\.cu .*AS9001", done.stderr)


UNKNOWN = "ptxas /tmp/tmpxft_1_2_k.ptx, line 59; error   : Unknown symbol 'autostamp_at'\nptxas fatal   : aborted\n"


@pytest.mark.parametrize(("said", "code"), [(UNKNOWN, "AS4020"), ("src/k.cu(4): error: expected a ;\n", "AS4021")])
def test_a_copy_that_does_not_compile_is_replaced_by_the_original(bench, said, code):
    words = ["-Iinc", "-c", "src/k.cu", "-o", "k.o"]
    failing = {"PRETEND_STAMPED_SAYS": said, "PRETEND_STAMPED_STATUS": "255", "PRETEND_SAYS": "a warning\n"}
    done = bench.run(*words, **failing)
    assert done.returncode == 0
    assert done.stderr.startswith(code.encode())
    assert done.stderr.endswith(b"a warning\n")
    assert bench.calls()[-1] == words
    assert (bench.project / "k.o").read_text() == KERNEL
    (note,) = bench.notes()
    assert (note.outcome, note.code) == (Outcome.PLAIN, code)

    strict = bench.run(*words, AUTOSTAMP_STRICT="1", **failing)
    assert strict.returncode == 1
    assert code.encode() in strict.stderr
    assert not (bench.project / "k.o").exists()


def test_an_error_of_the_author_is_reported_as_without_stamps(bench):
    words = ("-Iinc", "-c", "src/k.cu", "-o", "k.o")
    says = {"PRETEND_SAYS": "src/k.cu(9): error: no\n", "PRETEND_STATUS": "2"}
    done = bench.run(*words, PRETEND_STAMPED_SAYS="copy: error\n", PRETEND_STAMPED_STATUS="2", **says)
    assert (done.returncode, done.stderr) == (2, b"src/k.cu(9): error: no\n")
    assert bench.notes() == ()


def test_a_source_that_is_not_there_is_nvccs_to_report(bench):
    done = bench.run("-c", "src/none.cu", "-o", "k.o", PRETEND_SAYS="no such file\n", PRETEND_STATUS="1")
    assert (done.returncode, done.stderr) == (1, b"no such file\n")


def test_a_state_folder_that_cannot_be_written_does_not_break_the_build(bench):
    bench.state.write_text("a file is in the way")
    done = bench.run("-Iinc", "-c", "src/k.cu", "-o", "k.o")
    assert done.returncode == 0
    assert re.search(rb"AS4022 src/k\.cu was compiled without stamps: AS7001", done.stderr)
    assert bench.compiled() == "src/k.cu"
    assert bench.run("-Iinc", "-c", "src/k.cu", "-o", "k.o", AUTOSTAMP_STRICT="1").returncode == 1


def test_an_absolute_include_leads_to_the_copy(bench):
    (bench.project / "src/k.cu").write_text(KERNEL.replace('"../inc/wait.h"', f'"{bench.project}/inc/wait.h"'))
    assert bench.run("-Iinc", "-c", "src/k.cu", "-o", "k.o").stderr == b""
    source = Path(bench.compiled())
    assert f'#include "{source.parents[1]}/inc/wait.h"' in source.read_text()


def test_an_include_that_leads_past_the_copies_is_refused(bench):
    """Here through a folder that the command line does not name."""
    for _ in range(2):  # the second time the answer is known
        done = bench.run("-c", "src/k.cu", "-o", "k.o", PRETEND_HIDDEN="inc")
        assert done.returncode == 0
        assert b"AS4022 src/k.cu was compiled without stamps: inc/deep/asm.h is included past its copy" in done.stderr
        assert bench.compiled() == "src/k.cu"
    assert bench.queries() == 2


def test_one_file_by_two_names_stays_one(bench):
    (bench.project / "link").symlink_to("inc")
    (bench.project / "src/k.cu").write_text(f'#include "../link/wait.h"\n{KERNEL}')
    bench.run("-Iinc", "-c", "src/k.cu", "-o", "k.o")
    tree = Path(bench.compiled()).parents[1]
    assert (tree / "inc/wait.h").samefile(tree / "link/wait.h")


def test_a_way_through_a_folder_without_copies(bench):
    (bench.project / "inc/empty").mkdir()
    (bench.project / "inc/wait.h").write_text(HEADER.replace("<deep/asm.h>", '"empty/../deep/asm.h"'))
    assert bench.run("-c", "src/k.cu", "-o", "k.o").stderr == b""
    assert bench.compiled().startswith(str(bench.state))


def test_two_files_that_a_link_makes_one_are_refused(bench):
    (bench.project / "elsewhere/deep").mkdir(parents=True)
    (bench.project / "elsewhere/asm.h").write_text(ASM)
    (bench.project / "inc/asm.h").write_text(ASM.replace("try_wait(", "other("))
    (bench.project / "inc/link").symlink_to("../elsewhere/deep")
    text = HEADER.replace("<deep/asm.h>", '"link/../asm.h"\n#include "asm.h"')
    (bench.project / "inc/wait.h").write_text(text)
    done = bench.run("-Iinc", "-c", "src/k.cu", "-o", "k.o")
    assert done.returncode == 0
    assert b"are two files behind symbolic links" in done.stderr


DEVICE_ONLY = f"#ifdef __CUDA_ARCH__\n#include <deep/device.h>\n#endif\n{KERNEL}"


def test_headers_of_device_passes_are_found_and_stamped(bench):
    """Where -M runs the host pass alone: it, and one pass for each architecture, for the originals and for the copies."""
    (bench.project / "src/k.cu").write_text(DEVICE_ONLY)
    (bench.project / "inc/deep/device.h").write_text("__device__ void last(int* x) { __syncthreads(); *x = 1; }\n")
    words = ("-gencode=arch=compute_80,code=sm_80", "-arch=sm_90a", "-Iinc", "-c", "src/k.cu", "-o", "k.o")
    assert bench.run(*words).stderr == b""
    assert bench.queries() == 2 * (1 + 2)
    copy = Path(bench.compiled()).parents[1] / "inc/deep/device.h"
    assert '#line 1 "inc/deep/device.h"' in copy.read_text()


def test_what_device_passes_read_is_assumed_when_they_cannot_be_asked(bench):
    (bench.project / "src/k.cu").write_text(DEVICE_ONLY)
    (bench.project / "inc/deep/device.h").write_text("")
    assert bench.run("-Iinc", "-c", "src/k.cu", "-o", "k.o", PRETEND_NO_DEVICE_PASS="1").stderr == b""
    assert (Path(bench.compiled()).parents[1] / "inc/deep/device.h").is_file()


def test_a_file_that_conditions_look_for_is_copied(bench):
    (bench.project / "src/k.cu").write_text(f'#if __has_include("probe.h")\n#endif\n{KERNEL}')
    (bench.project / "src/probe.h").write_text("")
    bench.run("-Iinc", "-c", "src/k.cu", "-o", "k.o")
    assert Path(bench.compiled()).with_name("probe.h").read_text() == '#line 1 "src/probe.h"\n'


def test_a_compiler_cache_that_runs_it_is_refused(bench):
    """Measured with ccache 4.7.5: `ccache autostamp-nvcc` gave the stamped object to a compilation with AUTOSTAMP=0."""
    cache = bench.nvcc.with_name("ccache")
    cache.write_text('#!/bin/sh\n"$@"\n')
    cache.chmod(0o755)
    command = [sys.executable, "-m", "autostamp", "nvcc", "--", str(bench.nvcc)]
    done = bench.run_as([str(cache), *command, "-Iinc", "-c", "src/k.cu", "-o", "k.o"])
    assert done.returncode == 0
    assert b"ccache runs it" in done.stderr
    assert bench.compiled() == "src/k.cu"
    assert bench.run_as([str(cache), *command, "-E", "src/k.cu"]).stderr == b""


def test_stderr_keeps_what_ptxas_advises(bench):
    advice = "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized\n"
    done = bench.run("-Iinc", "-c", "src/k.cu", "-o", "k.o", PRETEND_STAMPED_SAYS=f"one\n{advice}two\n")
    assert done.stderr == f"one\n{advice}two\n".encode()
    assert [note.warnings for note in bench.notes()] == [(advice.rstrip("\n"),)]


def test_a_compiler_that_is_not_there(bench):
    done = bench.run_as([sys.executable, "-m", "autostamp", "nvcc", "--", "nowhere-nvcc", "-c", "src/k.cu"])
    assert done.returncode == 3
    assert done.stderr.startswith(b"AS4002 nowhere-nvcc was not found")
    done = bench.run_as([sys.executable, "-m", "autostamp", "nvcc", "--"])
    assert done.returncode == 2


def test_another_compiler_is_left_alone_and_named(bench):
    other = bench.nvcc.with_name("clang++")
    bench.nvcc.rename(other)
    done = bench.run_as([sys.executable, "-m", "autostamp", "nvcc", str(other), "-c", "src/k.cu"])
    assert done.returncode == 0
    assert b"AS4023" in done.stderr
    assert bench.calls() == [["-c", "src/k.cu"]]


def test_the_program_for_tools_that_take_a_path(bench):
    """autostamp-nvcc finds nvcc on PATH, past a link to itself that bears nvcc's name."""
    folder = bench.nvcc.parent.with_name("front")
    folder.mkdir()
    program = folder / "autostamp-nvcc"
    program.write_text(f"#!{sys.executable}\nimport sys\nfrom autostamp.cli.nvcc import main\nsys.exit(main())\n")
    program.chmod(0o755)
    (folder / "nvcc").symlink_to(program)
    path = os.pathsep.join([str(folder), str(bench.nvcc.parent), os.environ["PATH"]])
    for name in ("autostamp-nvcc", "nvcc"):
        done = bench.run_as([str(folder / name), "--version"], PATH=path, PRETEND_STATUS="7")
        assert (done.returncode, done.stderr) == (7, b"")
    assert bench.calls() == [["--version"], ["--version"]]
    done = bench.run_as([str(program), "-Iinc", "-c", "src/k.cu", "-o", "k.o"], AUTOSTAMP_NVCC=str(bench.nvcc))
    assert done.returncode == 0
    assert bench.compiled().startswith(str(bench.state))


def test_a_compiler_cache_may_stand_between(bench):
    cache = bench.nvcc.with_name("ccache")
    cache.write_text('#!/bin/sh\nexec "$@"\n')
    cache.chmod(0o755)
    command = [sys.executable, "-m", "autostamp", "nvcc", "--", str(cache), str(bench.nvcc)]
    assert bench.run_as([*command, "-Iinc", "-c", "src/k.cu", "-o", "k.o"]).stderr == b""
    assert bench.compiled().startswith(str(bench.state))


def test_compilations_at_the_same_time(bench):
    command = [sys.executable, "-m", "autostamp", "nvcc", "--", str(bench.nvcc), "-Iinc", "-c", "src/k.cu", "-o"]
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "AUTOSTAMP_STATE": str(bench.state),
        "PRETEND_LOG": str(bench.log),
    }
    running = [
        subprocess.Popen([*command, "k.o"], cwd=bench.project, env=environment, stderr=subprocess.PIPE)
        for _ in range(4)
    ]
    assert [(child.communicate()[1], child.returncode) for child in running] == [(b"", 0)] * 4
    assert len({next(word for word in words if word.endswith(".cu")) for words in bench.calls()}) == 1
    assert not list(bench.state.rglob("*.tmp"))


@pytest.mark.parametrize(
    ("text", "is_stamped", "expected"),
    [
        (b"int x;\n", False, b'#line 1 "a/k.cu"\nint x;\n'),
        (b"int x;\r\n", False, b'#line 1 "a/k.cu"\r\nint x;\r\n'),
        (b"\xef\xbb\xbfint x;\n", False, b'\xef\xbb\xbf#line 1 "a/k.cu"\nint x;\n'),
        (b'#include "autostamp.cuh"\n#line 1\nx\n', True, b'#include "autostamp.cuh"\n#line 1 "a/k.cu"\nx\n'),
        (b'#include "autostamp.cuh"\r\n#line 1\r\nx', True, b'#include "autostamp.cuh"\r\n#line 1 "a/k.cu"\r\nx'),
    ],
)
def test_copies_are_named(text, is_stamped, expected):
    assert named(text, "a/k.cu", is_stamped=is_stamped) == expected


def test_a_name_is_quoted_as_a_string_literal():
    assert named(b"", 'a\\b"c.cu', is_stamped=False) == b'#line 1 "a\\\\b\\"c.cu"\n'


def test_a_stamped_text_without_its_head_is_refused():
    with pytest.raises(ValueError, match="does not start"):
        named(b"x\n", "k.cu", is_stamped=True)


def test_libraries_are_known_by_what_lies_in_them(tmp_path):
    toolkit, project = tmp_path / "cuda/include", tmp_path / "project"
    for file in (toolkit / "cuda_runtime_api.h", toolkit / "crt/host_config.h", project / "cub/version.cuh"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    sources = (project / "src/k.cu",)
    assert owner(toolkit / "cooperative_groups.h", sources) == "the CUDA toolkit"
    assert owner(toolkit / "crt/sm_90_rt.h", sources) == "the CUDA toolkit"
    assert owner(tmp_path / "other/include/x.h", sources) == ""
    assert owner(project / "inc/autostamp.cuh", sources) == "autostamp"
    # A folder with a source in it is the project, even with a library's files beside.
    assert owner(project / "inc/x.h", sources) == ""
    assert owner(project / "cub/block.cuh", (tmp_path / "elsewhere/k.cu",)) == "CUB"


def test_paths_are_folded_as_text(tmp_path, monkeypatch):
    (tmp_path / "real/inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real/inner")
    assert include_closure.absolute(f"{tmp_path}/link/../x.h") == f"{tmp_path}/x.h"


def test_where_the_state_lies():
    assert StateFolder.of({"AUTOSTAMP_STATE": "/s", "HOME": "/h"}).root == Path("/s")
    assert StateFolder.of({"XDG_CACHE_HOME": "/c", "HOME": "/h"}).root == Path("/c/autostamp")
    assert StateFolder.of({"HOME": "/h"}).root == Path("/h/.cache/autostamp")
