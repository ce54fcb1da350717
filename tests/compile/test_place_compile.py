# SPDX-License-Identifier: Apache-2.0
"""`autostamp place` from end to end, without a GPU: a kernel of CUDA C++ through nvcc, and the sample GEMM of CuTe-DSL."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from autostamp.cli import main
from autostamp.diagnostics import AutostampError
from autostamp.hooks.placement_search import Search
from autostamp.hooks.state import StateFolder
from autostamp.hooks.variants import Variants
from autostamp.hooks.variants_cuda import CudaBuilder
from autostamp.hooks.variants_cutedsl import CuteBuilder
from autostamp.model.cubin import Instruction
from autostamp.model.placement import Form, Placement, ReplaySet, ScheduleFeatures
from autostamp.runtime import cubin
from autostamp.runtime.manifest_file import read_manifest
from autostamp.runtime.placement_file import read_placement, write_placement
from tests.builds import ROOT

KERNEL = """\
__global__ void handshake(float* out) {
  __shared__ float value;
  for (int round = 0; round < 64; ++round) {
    if (threadIdx.x < 32) {
      value = round;
      asm volatile("bar.arrive 1, 64;" ::: "memory");
    } else {
      asm volatile("bar.sync 1, 64;" ::: "memory");
      out[threadIdx.x] += value;
    }
    __syncthreads();
  }
}
"""


@pytest.fixture
def state(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("AUTOSTAMP_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))))
    return tmp_path / "state"


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
def test_a_kernel_of_cuda_cpp(tmp_path, state, capsys):
    source = tmp_path / "handshake.cu"
    source.write_text(KERNEL)
    out = tmp_path / "placement.json"
    words = ["--", "nvcc", "-arch=sm_90a", "-std=c++17", str(source)]
    # Nothing is near clean at this limit, so every form of both waits is compiled as well.
    assert main(["place", "-q", "--jobs", "2", "--limit", "0", "-o", str(out), *words]) == 0
    strict = read_placement(out)
    lines = {6: "asm volatile", 8: "asm volatile", 11: "__syncthreads()"}
    assert [int(each.key.split(":")[1]) for each in strict.sites] == list(lines)
    shown = capsys.readouterr().out
    assert all(f"handshake.cu:{line} " in shown for line in lines)
    singles = len(list((state / "variants").iterdir()))
    # Three sites alone, two waits with each single stamp; sets of what is within the limit, if anything is.
    assert singles >= 2 * (3 + 2 * 2)  # a cubin and its features each
    assert main(["place", "-q", "--limit", "9", "-o", str(out), *words]) == 0
    loose = read_placement(out)
    assert loose.uncovered == ()
    assert len(loose.sets) == 1
    assert {form for _, form in loose.sets[0].sites} == {Form.BOTH}
    assert loose.compiles <= 1  # the sites alone are cached: only the set is new
    assert loose.digest == strict.digest


INSTANCES = """\
#ifdef LOGGED
__global__ void logged(float* out) {
  __syncthreads();
  __syncwarp();
  __syncthreads();
}
#endif
template <typename T>
__global__ void handshake(T* out) {
  __shared__ T value;
  for (int round = 0; round < 64; ++round) {
    if (threadIdx.x == 0) value = round;
    __syncthreads();
    out[threadIdx.x] += value;
    __syncthreads();
  }
}
template __global__ void handshake(float*);
template __global__ void handshake(double*);
"""


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
def test_a_role_without_an_anchor_and_a_schedule_that_any_stamp_moves_are_said(tmp_path, state, monkeypatch, capsys):
    """The search finds neither in this kernel (tests/unit/test_placement_search.py does): here it is what the command says."""
    source = tmp_path / "handshake.cu"
    source.write_text(KERNEL)
    run = Search.run

    def unlucky(self):
        found = run(self)
        self.unanchored = ("load",)
        return replace(found, floor=0.0391)

    monkeypatch.setattr(Search, "run", unlucky)
    words = ["--limit", "0.03", "-o", str(tmp_path / "p.json"), "--", "nvcc", "-arch=sm_90a", "-std=c++17", str(source)]
    assert main(["place", *words]) == 0
    said = capsys.readouterr().err
    assert "AS8105" in said
    assert "no anchor for role load: " in said
    assert "AS8109" in said
    assert "any stamp moves the schedule: by 0.039 where 0.030 is near clean; sets go up to 0.069" in said
    assert read_placement(tmp_path / "p.json").floor == 0.0391


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_signal_ends_the_search_with_the_best_so_far(tmp_path, state, monkeypatch, capsys, number):
    source = tmp_path / "handshake.cu"
    source.write_text(KERNEL)
    out = tmp_path / "placement.json"
    build, built = CudaBuilder.build, []
    # What runs in the background of a shell ignores SIGINT.
    before, own = signal.signal(number, signal.default_int_handler), signal.default_int_handler

    def signalled(self, sites):
        built.append(sites)
        if len(built) == 2:
            os.kill(os.getpid(), number)  # a compiler that gets it, too, fails
            deadline = time.monotonic() + 30
            while signal.getsignal(number) is not own and time.monotonic() < deadline:
                time.sleep(0.01)  # the handler runs in the main thread, when that comes to it
            raise AutostampError.of("AS8104", sites="s", detail="terminated")
        return build(self, sites)

    monkeypatch.setattr(CudaBuilder, "build", signalled)
    words = ["--", "nvcc", "-arch=sm_90a", "-std=c++17", str(source)]
    try:
        assert main(["place", "--jobs", "1", "-o", str(out), *words]) == 0
        assert signal.getsignal(number) is own
    finally:
        signal.signal(number, before)
    said = capsys.readouterr().err
    assert "note: a signal ended the search; this is the best so far" in said
    assert "AS8104" not in said
    found = read_placement(out)
    assert (len(built), len(found.sites), found.complete) == (2, 1, False)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
def test_the_kernel_is_one_that_is_compiled_and_an_instance_has_a_name(tmp_path, state):
    source = tmp_path / "instances.cu"
    source.write_text(INSTANCES)
    words = ["nvcc", "-arch=sm_90a", "-std=c++17", str(source)]
    # Of the source's kernels `logged` reaches most sites, and the cubin does not hold it.
    first, double = CudaBuilder(words).target(), CudaBuilder(words, "*Id*").target()
    assert "9handshakeI" in first.symbol
    assert "9handshakeId" in double.symbol
    assert not double.others
    # Both instances match, and have as many sites.
    assert {"9handshakeIf" in each or "9handshakeId" in each for each in (first.symbol, *first.others)} == {True}
    assert len({first.symbol, *first.others}) == 2
    with pytest.raises(AutostampError) as error:
        CudaBuilder(words, "logged").target()
    assert error.value.diagnostic.code == "AS8106"
    assert "logged" in error.value.diagnostic.message


FORMS = """\
#include <cstdint>
__global__ void forms(int* out) {
  __shared__ uint64_t bar;
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(&bar));
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 64;" ::"r"(at) : "memory");
  __syncthreads();
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");
  asm volatile("bar.sync 1, 64;" ::: "memory");
  int votes = __syncthreads_or(out[threadIdx.x]);
  asm volatile("bar.arrive 2, 64;" ::: "memory");
  out[threadIdx.x] = votes;
}
"""
LETTERS = {"SYNCS.EXCH": "i", "SYNCS.ARRIVE": "a", "BAR.SYNC": "s", "BAR.RED": "r", "BAR.ARV": "v"}
"""What the lines of FORMS become (init, arrive, sync, __syncthreads_or, bar.arrive); every clock that is read is a c."""


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
def test_each_form_of_cuda_cpp_reads_its_clocks_where_it_says(tmp_path, state):
    source = tmp_path / "forms.cu"
    source.write_text(FORMS)
    builder = CudaBuilder(["nvcc", "-arch=sm_90a", "-std=c++17", str(source)])
    keys = {int(each.key.split(":")[1]): each.key for each in builder.target().candidates}
    assert list(keys) == [6, 7, 8, 9, 10]

    def compiled(*forms: Form) -> str:
        (kernel,) = cubin.read(builder.build(frozenset(zip(keys.values(), forms, strict=True))))
        said = ["c" if each.is_clock_read else _letter(each.opcode) for each in kernel.instructions]
        return "".join(said)

    # The lane's own clocks are the first and the last.
    usual = compiled(*[Form.BOTH] * 5)
    assert usual == "c" + "i" + "csc" + "ac" + "csc" + "crc" + "vc" + "c"
    some = compiled(Form.ENTER, Form.BEFORE, Form.EXIT, Form.EXIT, Form.BOTH)
    assert some == "c" + "i" + "cs" + "ca" + "sc" + "rc" + "vc" + "c"
    others = compiled(Form.EXIT, Form.BOTH, Form.ENTER, Form.ENTER, Form.BEFORE)
    assert others == "c" + "i" + "sc" + "ac" + "cs" + "cr" + "cv" + "c"


def _letter(opcode: str) -> str:
    return next((letter for name, letter in LETTERS.items() if opcode.startswith(name)), "")


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
def test_a_source_that_does_not_compile(tmp_path, state, capsys):
    source = tmp_path / "broken.cu"
    source.write_text("__global__ void k() { nonsense }\n")
    assert main(["place", "-o", str(tmp_path / "p.json"), "--", "nvcc", "-arch=sm_90a", str(source)]) == 2
    error = capsys.readouterr().err
    assert "AS8107" in error
    assert "nonsense" in error
    assert not (tmp_path / "p.json").exists()


PROGRAM = """\
from autostamp.kernels.cutedsl.gemm_ws import compile_gemm
compile_gemm()
"""
TARGET = "autostamp.kernels.cutedsl.gemm_ws"


def without_signature(kernel: tuple[Instruction, ...]) -> list[tuple[str, int]]:
    """Opcodes and numbers of operands: all but the constant that names the instance table of a build."""
    return [(each.opcode, len(each.operands)) for each in kernel]


PLAIN = (Form.BOTH, Form.EXIT, Form.BOTH)
OTHER = (Form.CARRIED, Form.CARRIED_EXIT, Form.BEFORE)


@pytest.mark.parametrize("forms", [PLAIN, OTHER], ids=["plain", "other"])
def test_a_forked_variant_is_the_build_that_its_set_gives(tmp_path, state, monkeypatch, forms):
    pytest.importorskip("cutlass")
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_90a")
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    builder = CuteBuilder([sys.executable], [str(script)], [TARGET])
    try:
        target = builder.target()
        variants = Variants(builder, target, StateFolder(state))
        waits = [each for each in target.candidates if each.is_wait and set(forms) <= {*each.forms, Form.BEFORE}][:2]
        signal = next(each for each in target.candidates if not each.is_wait)
        sites = frozenset(zip((waits[0].key, waits[1].key, signal.key), forms, strict=True))
        measured = variants.measure(sites)
        assert not variants.failures
        forked = builder.build(sites)
        assert builder.build(sites) == forked  # the server is as it was
    finally:
        builder.close()
    assert measured is not None
    empty = ScheduleFeatures(1.0, {}, (1.0, 1.0), (0, 0), (0, 0), 0.0)
    placement = Placement(
        1, target.symbol, target.digest, (), (ReplaySet(1, tuple(sorted(sites)), (), empty),), (), 0, True
    )
    write_placement(tmp_path / "p.json", placement)
    monkeypatch.setenv("CUTE_DSL_KEEP", "cubin")
    monkeypatch.setenv("CUTE_DSL_DUMP_DIR", str(tmp_path))
    words = ["run", "-q", "--compile-only", "--placement", str(tmp_path / "p.json"), "--instrument", TARGET]
    assert main([*words, "-o", str(tmp_path / "RUN"), "--", sys.executable, str(script)]) == 0
    (written,) = tmp_path.glob("*.cubin")
    (one,), (other,) = cubin.read(forked), cubin.read(written.read_bytes())
    assert without_signature(one.instructions) == without_signature(other.instructions)
    # The table says which stamps there are: a wait with one has the other's event number 0.
    rows = read_manifest(tmp_path / "RUN" / "manifest.json").traces[0].instances
    stamps = {(row.kind, bool(row.enter), bool(row.exit), bool(row.signal)) for row in rows}
    assert stamps == {("wait", True, True, False), ("wait", False, True, False), ("signal", False, False, True)}
    assert {row.form for row in rows} == {"" if form is Form.BOTH else form.value for form in forms}
    # Every clock that is read is also written: as many stores as stamps, besides those of the lane's own header.
    reads = sum(each.opcode.startswith("CS2R.32") for each in one.instructions)
    assert reads >= sum(bool(row.enter) + bool(row.exit) + bool(row.signal) for row in rows)


def test_a_program_that_compiles_no_such_kernel(tmp_path, state, monkeypatch, capsys):
    pytest.importorskip("cutlass")
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_90a")
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    words = ["place", "--instrument", TARGET, "--kernel", "*attention*", "-o", str(tmp_path / "p.json")]
    assert main([*words, "--", sys.executable, str(script)]) == 2
    error = capsys.readouterr().err
    assert "AS8106" in error
    assert "*attention*" in error
