# SPDX-License-Identifier: Apache-2.0
"""Whatever a CUDA C++ program looks like: strip undoes stamp, stamping twice is stamping once, and nothing else changes."""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from autostamp.passes.cuda.carrier import Carrier
from autostamp.passes.cuda.instrument import CudaOptions, instrument
from autostamp.passes.edits import strip
from autostamp.passes.stamped import Stamped

settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")

PRELUDE = """\
#include <cuda_runtime.h>
#include <cstdint>
#define X_DEVICE __device__ __forceinline__
#define X_UNROLL _Pragma("unroll")
__device__ __forceinline__ void mbar_wait(uint64_t* bar, uint32_t parity) {
  asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.b64 p, [%0], %1; @!p bra again; }" :: "l"(bar), "r"(parity));
}
"""
EXPRESSIONS = (
    "__syncthreads()",
    "__syncwarp()",
    "mbar_wait(&bars[i % 4],\n      i / 4 & 1)",
    "__syncthreads_or(x)",
    "touch(x)",
)
STATEMENTS = (
    "x += 1;",
    "// __syncthreads();",
    "/* } */ x = 2;",
    'const char* s = "__syncthreads();";',
    "#pragma unroll\n  for (int k = 0; k < 3; ++k) { x ^= k; }",
    "int votes = __syncthreads_count(x) + 1; x += votes;",
    "x = i ? __syncthreads_and(x) : 3;",
    "if (__syncthreads_or(x)) x = 4;",
    "i ? __syncthreads() : __syncwarp();",
    "auto later = [&](int k) { __syncthreads(); return k; }; x = later(2);",
    "x = (__syncwarp(), 3);",
    "while (flag[0] != x) ;",
    "switch (x) { case 1: __syncthreads(); break; default: __syncwarp(); }",
    "#if X > 3\n  __syncthreads();\n#else\n  __syncwarp();\n#endif",
    "asm volatile(\"bar.sync 1, 128;\" ::: \"memory\");",
)  # fmt: skip
HEADS = (
    "if (x > i)",
    "for (int k = 0; k < x; ++k)",
    "X_UNROLL for (int k = 0; k < 4; ++k)",
    "while (x-- > 0)",
    "if constexpr (true)",
)


@st.composite
def statements(draw: st.DrawFn, depth: int = 3) -> str:
    """A statement, or a few in braces."""
    kind = draw(st.integers(0, 6 if depth else 2))
    if kind <= 1:
        return draw(st.sampled_from(EXPRESSIONS)) + ";"
    if kind == 2:
        return "{ " + draw(st.sampled_from(STATEMENTS)) + "\n  }"
    inner = draw(statements(depth - 1))
    if kind == 3:
        return f"{draw(st.sampled_from(HEADS))}{draw(st.sampled_from([' ', chr(10) + '    ']))}{inner}"
    if kind == 4:
        return f"if (x < i) {inner}\n  else {draw(statements(depth - 1))}"
    if kind == 5:
        return f"do {inner} while (x-- > 3);"
    return "{\n  " + "\n  ".join(draw(st.lists(statements(depth - 1), min_size=1, max_size=3))) + "\n  }"


SIGNATURES = (
    "X_DEVICE int {0}(int x, int i, uint64_t* bars, volatile int* flag)",
    "__device__ int {0}(int x, int i, uint64_t* bars, volatile int* flag)",
    "static inline __device__ int {0}(int x, int i, uint64_t* bars, volatile int* flag)",
    "template <class T = int>\n__device__ T {0}(T x, int i, uint64_t* bars, volatile int* flag)",
)
LAUNCHES = (
    "work<<<1, 32>>>(out);",
    "if (out) work<<<1, 32, 0, stream>>>(out);",
    "auto p = &work; p<<<1, 32>>>(out);",
    "void* a[] = {&out}; cudaLaunchKernel((const void*)work, 1, 32, a, 0, stream);",
    "cudaLaunchConfig_t c{}; cudaError_t e = cudaLaunchKernelEx(&c, work, out);",
)


@st.composite
def programs(draw: st.DrawFn) -> bytes:
    """A kernel, functions that it may call, and a host function that may launch it."""
    parts = [PRELUDE, "__device__ int touch(int x) { return x + 1; }\n"]
    names = [f"helper{number}" for number in range(draw(st.integers(0, 2)))]
    for name in names:
        body = "\n  ".join(draw(st.lists(statements(), min_size=1, max_size=3)))
        parts.append(f"{draw(st.sampled_from(SIGNATURES)).format(name)} {{\n  {body}\n  return x;\n}}\n")
    calls = [f"x += {name}(x, i, bars, flag);" for name in names if draw(st.booleans())]
    body = "\n  ".join([*draw(st.lists(statements(), max_size=4)), *calls])
    declared = "int x = threadIdx.x, i = 3; __shared__ uint64_t bars[4]; volatile int* flag = out;"
    parts.append(
        f"__global__ void work(int* out) {{{draw(st.sampled_from(['', ' ', chr(10)]))}{declared}\n  {body}\n}}\n"
    )
    if launches := draw(st.lists(st.sampled_from(LAUNCHES), max_size=2)):
        parts.append(
            "void host(int* out, cudaStream_t stream) {\n" + "".join(f"  {{ {each} }}\n" for each in launches) + "}\n"
        )
    text = "".join(parts)
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    if draw(st.booleans()):
        text = text.removesuffix("\n").removesuffix("\r")
    return text.encode()


def stamp(program: bytes, carrier: Carrier = Carrier.AUTO) -> Stamped:
    (item,) = instrument({Path("p.cu"): program}, {}, CudaOptions(carrier=carrier)).stamped.values()
    return item


_SEAL = re.compile(rb"(?:\r?\n)?// autostamp: stamped .*\Z", re.DOTALL)
_HEAD = re.compile(rb'\A#include "autostamp\.cuh"\r?\n#line 1\r?\n')
_MACRO = re.compile(rb"AUTOSTAMP_([A-Z_]+)")
_AFTER = (b"EXIT", b"WARP_EXIT", b"WARP_SIGNAL", b"CLOSE", b"AROUND_END", b"SIGNAL", b"BIND", b"PARAM", b"ARG")


def without_macros(text: bytes) -> bytes:
    """The text with every macro and its one blank taken out: what a preprocessor makes of it when they are empty."""
    out = []
    at = 0
    for match in _MACRO.finditer(text):
        end = match.end()
        if text[end : end + 1] == b"(":
            depth = 0
            for end in range(match.end(), len(text)):
                depth += (text[end] == 0x28) - (text[end] == 0x29)
                if depth == 0:
                    break
            end += 1
        if match[1].startswith(_AFTER):
            start = match.start() - (text[match.start() - 1 : match.start()] == b" ")
        else:
            start = match.start()
            assert text[end : end + 1] == b" "
            end += 1
        out.append(text[at:start])
        at = end
    return b"".join((*out, text[at:]))


def expanded(text: bytes) -> bytes:
    """The text with the brackets that its macros stand for."""
    text = re.sub(rb"AUTOSTAMP_OPEN\b", b"{", text)
    text = re.sub(rb"AUTOSTAMP_CLOSE\b", b"}", text)
    text = re.sub(rb"AUTOSTAMP_AROUND_END\b", b"))", text)
    return re.sub(rb"AUTOSTAMP_(?:AROUND|AFTER|PREPARE_AROUND|LAUNCHER_AROUND)(?:_AT|_PIPE|_ID)?\(", b"((,(", text)


def is_balanced(text: bytes) -> bool:
    plain = re.sub(rb'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"', b"", text, flags=re.DOTALL)
    stack: list[int] = []
    for byte in plain:
        if byte in b"({[":
            stack.append(b")}]"[b"({[".index(byte)])
        elif byte in b")}]" and (not stack or stack.pop() != byte):
            return False
    return not stack


@given(program=programs(), carrier=st.sampled_from([Carrier.AUTO, Carrier.SYMBOL]))
def test_strip_restores_the_program(program, carrier):
    item = stamp(program, carrier)
    assert (strip(item.text, "p.cu") if item.is_changed else item.text) == program


@given(program=programs())
def test_stamping_twice_is_stamping_once(program):
    text = stamp(program).text
    assert stamp(text).text == text


@given(program=programs(), carrier=st.sampled_from([Carrier.AUTO, Carrier.SYMBOL]))
def test_without_the_macros_it_is_the_program(program, carrier):
    text = stamp(program, carrier).text
    text = _HEAD.sub(b"", _SEAL.sub(b"", text))
    assert without_macros(text).rstrip() == program.rstrip()


@given(program=programs())
def test_brackets_stay_balanced_and_stamps_are_paired(program):
    item = stamp(program)
    assert is_balanced(program)
    assert is_balanced(expanded(_SEAL.sub(b"", item.text)))
    enters = [int(number) for number in re.findall(rb"AUTOSTAMP_(?:WARP_)?ENTER\w*\([0-9a-f]+,(\d+)", item.text)]
    exits = [int(number) for number in re.findall(rb"AUTOSTAMP_(?:WARP_)?EXIT\([0-9a-f]+,(\d+)", item.text)]
    assert sorted(enters) == sorted(exits)
    assert len(set(enters)) == len(enters)


@given(program=programs())
def test_every_sync_call_is_a_site_or_listed(program):
    file = stamp(program).file
    code = re.sub(
        rb'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"', lambda match: b" " * len(match[0]), program, flags=re.DOTALL
    )
    calls = {match.start() for match in re.finditer(rb"__sync(?:threads|warp)\w*\(|mbar_wait\(&", code)}
    assert calls <= {item.span.start for item in (*file.sites, *file.skips)}


@given(program=programs())
def test_no_line_moves(program):
    item = stamp(program)
    if item.is_changed:
        lines = _SEAL.sub(b"", item.text).split(b"\n")[2:]
        assert [without_macros(line).strip() for line in lines][: program.count(b"\n")] == [
            line.strip() for line in program.split(b"\n")
        ][: program.count(b"\n")]
