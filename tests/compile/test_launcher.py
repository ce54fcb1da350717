# SPDX-License-Identifier: Apache-2.0
"""`autostamp nvcc` with the real nvcc: what it compiles, and that the build around it sees no difference."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from autostamp.hooks import include_query
from autostamp.hooks.copies import Copies
from autostamp.hooks.nvcc_command import NvccCommand
from autostamp.hooks.state import BuildNote, Outcome, StateFolder
from autostamp.runtime.cuda import header

if shutil.which("nvcc") is None:
    pytest.skip("nvcc is not installed", allow_module_level=True)

ROOT = Path(__file__).parents[2]
LAUNCHER = (sys.executable, "-m", "autostamp", "nvcc", "--")
ARCH = "-arch=sm_90a"

SYNC = """#pragma once
#include <cstdint>
__device__ __forceinline__ bool try_wait(uint64_t* bar, uint32_t parity) {
  uint32_t done;
  asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
               : "=r"(done) : "r"((uint32_t)__cvta_generic_to_shared(bar)), "r"(parity) : "memory");
  return done;
}
__device__ __forceinline__ void wait(uint64_t* bar, uint32_t parity) {
  while (!try_wait(bar, parity)) {
  }
}
"""
BODY = """#pragma once
#include "../../common/sync.h"
template <int N> __device__ __forceinline__ void body(uint64_t* bars, float* out, int n) {
  for (int i = 0; i < n; ++i) {
    wait(&bars[i % N], (i / N) & 1);
    out[i] = i;
  }
}
"""
KERNEL = """#include "../common/sync.h"
#include <deep/body.cuh>
__global__ void kernel(float* out, int n, const char** file, int* line) {
  __shared__ uint64_t bars[4];
  body<4>(bars, out, n);
  wait(&bars[0], 1); int unused = __LINE__;
  __syncthreads(); *line = __LINE__;
  *file = __FILE__;
}
void run(float* out) { kernel<<<1, 128>>>(out, 4, nullptr, nullptr); }
"""


def environment(state: Path, **variables: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AUTOSTAMP", "NVCC_"))}
    return {**kept, "PYTHONPATH": str(ROOT), "AUTOSTAMP_STATE": str(state), **variables}


class Project:
    """A folder of sources, with the state of their compilations beside it."""

    def __init__(self, folder: Path, **files: str) -> None:
        self.folder = folder / "project"
        self.state = folder / "state"
        for name, text in files.items():
            self.write(name, text)

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words,
            cwd=self.folder,
            env=environment(self.state, **variables),
            capture_output=True,
            text=True,
            timeout=600,
        )

    def both(self, *words: str) -> tuple[subprocess.CompletedProcess[str], subprocess.CompletedProcess[str]]:
        """The same nvcc command with and without autostamp; the outputs of the first are renamed to `stamped.…`."""
        stamped = self.run(*LAUNCHER, "nvcc", ARCH, *words)
        for path in self.folder.glob("out.*"):
            path.rename(path.with_name(f"stamped{path.suffix}"))
        return stamped, self.run("nvcc", ARCH, *words)

    def text(self, name: str) -> str:
        return (self.folder / name).read_text()

    def notes(self) -> dict[str, BuildNote]:
        """What became of each compilation, by the name of its output."""
        return {Path(note.output).name: note for note in StateFolder(self.state).notes()}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    for name, text in (("common/sync.h", SYNC), ("inc/deep/body.cuh", BODY), ("src/k.cu", KERNEL)):
        made.write(name, text)
    return made


def test_messages_rules_and_debug_information_are_the_originals(project):
    words = ("-lineinfo", "-Iinc", "-MD", "-MP", "-MF", "out.d", "-MT", "out.ptx", "-ptx", "src/k.cu", "-o", "out.ptx")
    stamped, plain = project.both(*words)
    assert (stamped.returncode, plain.returncode) == (0, 0), stamped.stderr
    assert project.notes()["out.ptx"].outcome is Outcome.STAMPED
    assert project.text("stamped.d") == project.text("out.d")

    warnings = re.compile(r"^(\S+\(\d+\): warning #.*)$", re.MULTILINE)
    assert warnings.findall(plain.stderr)
    assert warnings.findall(stamped.stderr) == warnings.findall(plain.stderr)

    ptx = project.text("stamped.ptx")
    assert "autostamp_at" in ptx
    assert "autostamp" not in project.text("out.ptx")
    file = re.compile(r'^\s*\.file\s+\d+ "(.*)"$', re.MULTILINE)
    ours = {name for name in file.findall(ptx) if name.startswith(str(project.state))}
    assert "autostamp.cuh" in {Path(name).name for name in ours} <= set(header.header_files())
    assert set(file.findall(project.text("out.ptx"))) <= set(file.findall(ptx)) - ours
    # The values of __FILE__ and __LINE__ in the kernel: the bytes of a string, and the number of a line of it.
    spelled = ", ".join(str(byte) for byte in b"src/k.cu")
    for text in (ptx, project.text("out.ptx")):
        assert spelled in text
        assert re.search(r"mov\.(?:u|b)32\s+%r\d+, 7;", text)


def test_an_error_is_reported_as_if_there_were_no_stamps(project):
    project.write("src/k.cu", KERNEL.replace("*file = ", "*file = undefined + "))
    stamped, plain = project.both("-Iinc", "-c", "src/k.cu", "-o", "out.o")
    assert plain.returncode != 0
    assert (stamped.returncode, stamped.stdout, stamped.stderr) == (plain.returncode, plain.stdout, plain.stderr)
    assert project.notes() == {}


def test_off_is_the_command_itself(project):
    words = ("nvcc", ARCH, "-Iinc", "-cubin", "src/k.cu", "-o")
    assert project.run(*words, "plain.cubin").returncode == 0
    assert project.run(*LAUNCHER, *words, "off.cubin", AUTOSTAMP="0").returncode == 0
    assert (project.folder / "plain.cubin").read_bytes() == (project.folder / "off.cubin").read_bytes()
    assert not project.state.exists()


def test_copies_without_stamps_give_the_same_cubin(project, monkeypatch):
    """What remains of the difference to the original is the stamps."""
    monkeypatch.chdir(project.folder)
    variables = environment(project.state)
    words = ["nvcc", ARCH, "-Iinc", "-frandom-seed=7", "-cubin", "src/k.cu", "-o", "out.cubin"]
    command = NvccCommand.of(words, variables)
    copies = Copies(project.state / "copies", command, include_query.find(command, variables, lambda _: False))
    copies.write({}, {})
    copied = copies.compilation([])
    copies.check(copied, variables)
    assert f"{copies.folder}/files{project.folder}/src/k.cu" in copied
    assert project.run(*words).returncode == 0
    plain = (project.folder / "out.cubin").read_bytes()
    assert project.run(*copied).returncode == 0
    assert (project.folder / "out.cubin").read_bytes() == plain


AWKWARD = """#include <sync.h>
#include <lib/user.h>
#include "../third/real/include/lib/once.h"
#if __has_include("probe.h")
#define PROBED 1
#endif
#ifdef __CUDA_ARCH__
#include "../inc/device.h"
#endif
__global__ void kernel(float* out) {
  __shared__ uint64_t bars[4];
#ifdef __CUDA_ARCH__
  device_only(bars);
#endif
  wait(&bars[0], 1);
  Once once{PROBED + FIRST + SECOND};
  out[0] = once.x;
}
"""


def test_includes_of_every_kind(tmp_path):
    """System folders, a folder behind a link, one file by two names, conditions, and names with spaces."""
    project = Project(tmp_path)
    for name, text in {
        "my src/k.cu": AWKWARD,
        "my src/probe.h": "",
        "sys/sync.h": SYNC,
        "inc/device.h": "__device__ __forceinline__ void device_only(uint64_t* b) { for (;;) { wait(b, 0); b[1] = 2; break; } }",
        "third/real/include/lib/once.h": "#pragma once\nstruct Once { int x; };\n",
        "third/real/include/lib/user.h": '#pragma once\n#include "once.h"\n',
        "pre/first.h": '#define FIRST 7\n#include "second.h"\n',
        "pre/second.h": "#define SECOND 8\n",
    }.items():
        project.write(name, text)
    (project.folder / "third/link").symlink_to("real")
    search = ("-isystem", "sys", "-Ithird/link/include", "-include", "pre/first.h")
    stamped, plain = project.both(*search, "-MMD", "-MF", "out.d", "-cubin", "my src/k.cu", "-o", "out.cubin")
    assert (stamped.returncode, plain.returncode) == (0, 0), stamped.stderr
    assert stamped.stderr == plain.stderr
    assert project.text("stamped.d") == project.text("out.d")
    note = project.notes()["out.cubin"]
    assert note.outcome is Outcome.STAMPED
    stamped_files = StateFolder(project.state).texts(int(note.unit, 16)) / "stamped"
    assert {path.name for path in stamped_files.rglob("*.*")} == {"k.cu", "device.h"}


def test_a_function_that_is_not_inlined_is_named_and_the_build_goes_on(project):
    """A macro of the command line keeps the function out of its kernel, which nothing in the sources tells."""
    project.write(
        "src/k.cu",
        '#include "../common/sync.h"\n'
        "namespace ns { template <int N> KEEP __device__ void slow(uint64_t* bar) { wait(bar, N); __syncthreads(); } }\n"
        "__global__ void kernel(float* out) { __shared__ uint64_t bars[2]; ns::slow<0>(bars); *out = 1; }\n",
    )
    words = ("nvcc", ARCH, "-DKEEP=__noinline__", "-cubin", "src/k.cu", "-o", "out.cubin")
    done = project.run(*LAUNCHER, *words)
    assert done.returncode == 0
    assert re.match(r"AS4020 src/k\.cu was compiled without stamps: \S*.*slow.* was not inlined", done.stderr)
    assert project.notes()["out.cubin"].code == "AS4020"
    made = (project.folder / "out.cubin").read_bytes()
    assert project.run(*words).returncode == 0
    assert (project.folder / "out.cubin").read_bytes() == made
    strict = project.run(*LAUNCHER, *words, AUTOSTAMP_STRICT="1")
    assert strict.returncode == 1
    assert not (project.folder / "out.cubin").exists()


MAKEFILE = """NVCC ?= nvcc
program: k.o main.o
\t$(NVCC) -arch=sm_90a $^ -o $@
%.o: src/%.cu
\t$(NVCC) -arch=sm_90a -Iinc -MD -c $< -o $@
-include k.d main.d
"""


def test_make(project):
    """A program of two units, the second of which launches the first one's kernel; a changed header builds what it must."""
    project.write("Makefile", MAKEFILE)
    declaration = "__global__ void kernel(float* out, int n, const char** file, int* line);\n"
    project.write("src/k.h", f"#pragma once\n{declaration}")
    project.write("src/k.cu", f'#include "k.h"\n{KERNEL}')
    launch = "int main(int count, char**) { if (count > 1) kernel<<<1, 128>>>(nullptr, 0, nullptr, nullptr); }\n"
    project.write("src/main.cu", f'#include "k.h"\n{launch}')
    make = ("make", f"NVCC={' '.join(LAUNCHER)} nvcc")
    done = project.run(*make)
    assert done.returncode == 0, done.stderr
    assert project.run(str(project.folder / "program")).returncode == 0
    assert {name: note.outcome for name, note in project.notes().items()} == {
        "k.o": Outcome.STAMPED,
        "main.o": Outcome.EMPTY,
    }
    assert "up to date" in project.run(*make).stdout
    project.write("common/sync.h", SYNC + "// changed\n")
    again = project.run(*make).stdout
    assert "src/k.cu" in again
    assert "src/main.cu" not in again


CMAKE = """cmake_minimum_required(VERSION 3.20)
project(stamped LANGUAGES CXX CUDA)
set(CMAKE_CUDA_ARCHITECTURES 90a)
add_library(kernels OBJECT src/k.cu)
target_include_directories(kernels PRIVATE inc)
target_include_directories(kernels SYSTEM PRIVATE common)
"""


def test_cmake(project):
    """CMake's makefiles give include folders in a response file and want rules for each object."""
    cmake = shutil.which("cmake", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    assert cmake, "cmake is one of the development tools"
    project.write("CMakeLists.txt", CMAKE)
    project.write("src/k.cu", KERNEL.replace('"../common/sync.h"', "<sync.h>"))
    launcher = f"-DCMAKE_CUDA_COMPILER_LAUNCHER={';'.join(LAUNCHER)}"
    configured = project.run(cmake, "-G", "Unix Makefiles", "-B", "build", launcher, ".")
    assert configured.returncode == 0, configured.stderr
    build = (cmake, "--build", "build")
    done = project.run(*build)
    assert done.returncode == 0, done.stderr
    assert project.notes()["k.cu.o"].outcome is Outcome.STAMPED
    assert "Building" not in project.run(*build).stdout
    project.write("inc/deep/body.cuh", BODY + "// changed\n")
    assert "Building CUDA object" in project.run(*build).stdout
