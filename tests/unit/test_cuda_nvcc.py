# SPDX-License-Identifier: Apache-2.0
"""nvcc: finding it, its age, its messages with their places, and that it agrees with what was read of a signature."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from autostamp.diagnostics import AutostampError
from autostamp.model.prototype import Prototype, Struct
from autostamp.passes.cuda import compiler_checks
from autostamp.passes.cuda.declarations import SourceText
from autostamp.passes.cuda.prototype import parse_prototype
from autostamp.runtime.cuda import nvcc
from autostamp.runtime.cuda.symbols import functions, symbol_of

needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")

SAID = """\
k.cu(2): error: identifier "foo" is undefined
   foo(n);
   ^

k.cu(3): error #20: identifier "bar" is undefined
    int x = bar;
            ^

include/other.cuh(7): warning #177-D: variable "y" was declared but never referenced
    unsigned y;
             ^

Remark: The warnings can be suppressed with "-diag-suppress <warning-number>"

k.cu:1:10: fatal error: nope.h: No such file or directory
ptxas error   : Entry function 'k' uses too much shared data (0x61a80 bytes, 0x38c00 max)
ptxas info    : (C7515) Potential Performance Loss: wgmma.mma_async instructions are serialized due to ...
nvcc fatal   : Unsupported gpu architecture 'sm_777'
2 errors detected in the compilation of "k.cu".
"""
"""As nvcc 13.0 prints them, put together from several runs."""

KERNELS = """\
#include <cstdint>
#include <cuda_fp16.h>
#define STAGES 3
enum class Mode : uint8_t { PLAIN, FAST = 5 };
using index_t = int64_t;
namespace ns { namespace {
struct alignas(16) Inner { char c; float4 v; __half h[STAGES * 2]; };
struct Params {
    const float* __restrict__ in;
    float *out, scale[3];
    int n = 4, m{3};
    Inner inner[2];
    struct { int a; short b; } unnamed;
    alignas(32) char big;
    Mode mode;
    uint8_t bytes[STAGES + sizeof(int)];
    __host__ __device__ int size() const { return n; }
    void* p;
};
__global__ void with_params(const __grid_constant__ Params p, index_t at, const volatile int* flags, float4 f, Mode m) {}
} }
extern "C" __global__ void plain(const float* __restrict__ in, float* out, int n) { out[n] = in[n]; }
inline namespace v1 { static __global__ void inlined(float a[], unsigned long long b) {} }
template <typename T, int N> __global__ void scaled(T* x, T (*y)) { x[0] = y[N]; }
template __global__ void scaled<float, 2>(float*, float*);
"""
NAMES = ("ns::with_params", "plain", "inlined", "scaled<float, 4>", "scaled<float, 2>", "scaled<__half, 4>")


@pytest.fixture
def script(tmp_path, monkeypatch):
    """Make a program called nvcc and let it be found."""

    def make(body: str) -> Path:
        path = tmp_path / "cuda" / "bin" / "nvcc"
        path.parent.mkdir(parents=True)
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
        return path

    return make


def prototype_of(kernel: str) -> Prototype:
    return parse_prototype([SourceText("k.cu", KERNELS)], kernel, {})


def test_cuda_home_comes_first(script):
    path = script('echo "Cuda compilation tools, release 12.4, V12.4.131"')
    assert nvcc.find() == nvcc.Nvcc(path, (12, 4))


def test_without_nvcc(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    for home in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.setenv(home, str(tmp_path))
    with pytest.raises(AutostampError, match="AS4010"):
        nvcc.find()


def test_an_nvcc_that_does_not_say_its_release(script):
    script("exit 1")
    with pytest.raises(AutostampError, match="AS4014"):
        nvcc.find()


@pytest.mark.parametrize(
    ("release", "arch", "needed"),
    # PTX ISA, release notes: sm_90 came with PTX ISA 7.8 (CUDA 11.8), sm_90a with 8.0 (12.0), sm_100a with 8.6 (12.8).
    [((11, 7), "sm_90", "11.8"), ((11, 8), "sm_90a", "12.0"), ((12, 6), "sm_100a", "12.8")],
)
def test_an_nvcc_that_is_too_old(release, arch, needed):
    with pytest.raises(AutostampError, match=f"AS4011 nvcc {release[0]}.{release[1]} is too old for {arch}.* {needed}"):
        nvcc.require(nvcc.Nvcc(Path("nvcc"), release), arch)


@pytest.mark.parametrize(("release", "arch"), [((11, 8), "sm_90"), ((12, 0), "sm_90a"), ((11, 0), "sm_9999")])
def test_an_nvcc_that_is_new_enough(release, arch):
    nvcc.require(nvcc.Nvcc(Path("nvcc"), release), arch)


def test_messages():
    found = nvcc.read_messages(SAID)
    assert [(each.severity, each.path, each.line, each.column, each.tool) for each in found] == [
        ("error", "k.cu", 2, 4, ""),
        ("error", "k.cu", 3, 13, ""),
        ("warning", "include/other.cuh", 7, 14, ""),
        ("fatal error", "k.cu", 1, 10, ""),
        ("error", "", 0, 0, "ptxas"),
        ("info", "", 0, 0, "ptxas"),
        ("fatal", "", 0, 0, "nvcc"),
    ]
    assert [each.is_error for each in found] == [True, True, False, True, True, False, True]
    assert [each.is_performance for each in found] == [False] * 5 + [True, False]
    assert found[1].text == 'identifier "bar" is undefined'


@pytest.mark.parametrize(
    ("line", "column"),
    [("  int  x = bar;", 12), ("\tint x=bar;", 8), ("int x = /* */ bar;", 15), ("int y = bar;", 1), ("", 1)],
)
def test_a_caret_is_carried_over_to_the_source_as_written(line, column):
    message = nvcc.read_messages(SAID)[1]
    found = nvcc.position(message, f"one\ntwo\n{line}\n".encode())
    assert (found.line, found.column, found.source) == (3, column, line)


def test_a_message_without_a_line_has_no_position():
    assert nvcc.position(nvcc.read_messages(SAID)[4], b"") is None


@pytest.mark.parametrize(
    "body",
    ["echo 'nvcc fatal   : Unsupported gpu architecture'; exit 1", "kill -9 $$", "echo 'gcc: not found'; exit 1"],
)
def test_an_nvcc_that_does_not_come_to_compiling(script, tmp_path, body):
    compiler = nvcc.Nvcc(script(body), (13, 0))
    with pytest.raises(AutostampError, match="AS4014"):
        nvcc.compile_unit(compiler, tmp_path / "k.cu", b"", nvcc.Flags(), tmp_path / "out")


def test_how_nvcc_is_called(script, tmp_path):
    compiler = nvcc.Nvcc(
        script('printf "%s\\n" "$@" > "$(dirname "$0")/words"; for last; do :; done; cp "$last" "$5"'), (13, 0)
    )
    flags = nvcc.Flags("sm_90a", "c++20", ("inc",), ("A=1",), ("-lineinfo",))
    source = tmp_path / "dir" / "k.cu"
    made = nvcc.compile_unit(compiler, source, b"\xef\xbb\xbfint x;", flags, tmp_path / "out", "\nint y;", ["-Ishadow"])
    words = (compiler.path.parent / "words").read_text().splitlines()
    unit = tmp_path / "out" / "k.cu"
    assert words == [
        *("-x", "cu", "-cubin", "-o", str(tmp_path / "out" / "k.cubin"), "-Ishadow", f"-I{tmp_path / 'dir'}"),
        *("-arch=sm_90a", "-std=c++20", "-Iinc", "-DA=1", "-lineinfo", str(unit)),
    ]
    assert made.cubin == tmp_path / "out" / "k.cubin"
    assert unit.read_text() == f'#line 1 "{source}"\nint x;\nint y;'


@pytest.mark.parametrize(
    ("kernel", "symbols", "expected"),
    [
        ("plain", ["plain", "_Z5plaini"], "plain"),
        ("inlined", ["_ZN2v17inlinedEPfy", "_Z5otheri"], "_ZN2v17inlinedEPfy"),
        ("ns::with_params", ["_ZN2ns36_GLOBAL__N__8ce07d1f_4_k_cu_1a2b3c4d11with_paramsENS_6ParamsE"], None),
        ("scaled<float, 4>", ["_Z6scaledIfLi4EEvPT_S1_", "_Z6scaledi"], "_Z6scaledIfLi4EEvPT_S1_"),
        ("scaled<float, 4>", ["_Z6scaledIfLi2EEvPT_S1_", "_Z6scaledIfLi4EEvPT_S1_"], "_Z6scaledIfLi4EEvPT_S1_"),
    ],
)
def test_symbols(kernel, symbols, expected):
    assert symbol_of(prototype_of(kernel), symbols) == (expected or symbols[0])


def test_a_symbol_that_is_not_there():
    with pytest.raises(AutostampError, match="AS1028"):
        symbol_of(prototype_of("plain"), ["_Z5plainPKfPfi", "plainer"])
    with pytest.raises(AutostampError, match="AS1028"):
        symbol_of(prototype_of("inlined"), ["_ZN2v18inlined2EPfy", "inlined2", "_ZN7inlined1kEv", "_Z7inlinedIfEvPT_"])
    with pytest.raises(AutostampError, match="AS1021"):
        symbol_of(prototype_of("inlined"), ["_ZN2v17inlinedEPfy", "_ZN2v27inlinedEPfy"])


def test_a_file_that_is_no_cubin():
    with pytest.raises(ValueError, match="ELF"):
        functions(b"not at all")


@needs_nvcc
@pytest.mark.parametrize("kernel", NAMES)
def test_nvcc_agrees_with_what_was_read(kernel, tmp_path):
    prototype = prototype_of(kernel)
    made = nvcc.compile_unit(
        nvcc.find(),
        tmp_path / "k.cu",
        KERNELS.encode(),
        nvcc.Flags(),
        tmp_path,
        compiler_checks.checks(prototype) + compiler_checks.instance(prototype),
    )
    assert made.cubin is not None, made.output
    symbol = symbol_of(prototype, functions(made.cubin.read_bytes()))
    assert prototype.bare_name in symbol


@needs_nvcc
def test_nvcc_does_not_agree_with_anything_else(tmp_path):
    # One assertion fails for each change: the parameters' types, a struct's size, a member's offset.
    prototype = prototype_of("ns::with_params")
    first, second, *rest = prototype.parameters
    kind = first.type
    assert isinstance(kind, Struct)
    moved = replace(kind.fields[3], offset=kind.fields[3].offset + 4)
    changes = {
        "its parameters are not": (first, replace(second, type=rest[1].type), *rest),
        "the layout of ns::Params": (replace(first, type=replace(kind, size=kind.size + 32)), second, *rest),
        "the layout of ns::Params ": (
            replace(first, type=replace(kind, fields=(*kind.fields[:3], moved, *kind.fields[4:]))),
            second,
            *rest,
        ),
    }
    for words, parameters in changes.items():
        changed = replace(prototype, parameters=parameters)
        checks = compiler_checks.checks(changed)
        made = nvcc.compile_unit(nvcc.find(), tmp_path / "k.cu", KERNELS.encode(), nvcc.Flags(), tmp_path, checks)
        assert made.cubin is None
        assert [(each.path, words.strip() in each.text) for each in made.errors] == [(compiler_checks.FILE, True)]


@needs_nvcc
def test_the_checks_add_nothing_to_the_cubin(tmp_path):
    text = "struct P { float* a; int n; };\n__global__ void k(P p) { p.a[p.n] = 1.0f; }\n"
    checks = compiler_checks.checks(parse_prototype([SourceText("k.cu", text)], "k", {}))
    made = [
        nvcc.compile_unit(nvcc.find(), tmp_path / "k.cu", text.encode(), nvcc.Flags(), tmp_path / name, appendix)
        for name, appendix in (("with", checks), ("without", ""))
    ]
    assert made[0].cubin.read_bytes() == made[1].cubin.read_bytes()


@needs_nvcc
def test_an_error_of_the_file_is_at_its_place(tmp_path):
    source = tmp_path / "k.cu"
    text = b"__global__ void k(int* a) {\n  a[0] =  missing;\n}\n"
    made = nvcc.compile_unit(nvcc.find(), source, text, nvcc.Flags(), tmp_path / "out")
    assert made.cubin is None
    (error,) = made.errors
    found = nvcc.position(error, text)
    assert (error.path, found.line, found.column) == (str(source), 2, 11)


@needs_nvcc
def test_headers_beside_the_file_are_found(tmp_path):
    (tmp_path / "beside.h").write_text("#define VALUE 3\n")
    text = b'#include "beside.h"\n__global__ void k(int* a) { a[0] = VALUE; }\n'
    made = nvcc.compile_unit(nvcc.find(), tmp_path / "k.cu", text, nvcc.Flags(), tmp_path / "out")
    assert made.cubin is not None, made.output
