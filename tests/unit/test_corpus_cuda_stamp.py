# SPDX-License-Identifier: Apache-2.0
"""What the check of stamped CUDA C++ projects counts, and that it tells a text that lost something."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.corpus.cuda_stamp import Result, check, main, read, without_stamps

UNIT = b"""#include "ring.cuh"
__global__ void kernel(int* out) {
  __shared__ Ring ring;
  fill(ring, out);
  if (threadIdx.x < 32) __syncwarp();
  out[0] = 1;
}
void host(int* out) { kernel<<<1, 128>>>(out); }
"""
RING = b"""#pragma once
struct Ring {
  unsigned long long full;
  __device__ void wait(int parity) {
    asm volatile("{ .reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra W; }"
                 :: "r"(addr(&full)), "r"(parity));
  }
};
__device__ inline void fill(Ring& ring, int* out) {
  ring.wait(0);
  out[threadIdx.x] = 2;
  __syncthreads();
}
"""
HEAD = b'#include "autostamp.cuh"\n#line 1\n'
SEAL = b"// autostamp: stamped 00 ab==\n"


def checked(**files: bytes) -> Result:
    return check("p", {Path(name.replace("_", ".")): text for name, text in files.items()})


def test_calls_in_units_and_in_headers_are_counted() -> None:
    result = checked(ring_cuh=RING, k_cu=UNIT)
    # The wait in fill, the barriers in fill and kernel, and the asm of Ring::wait, whose callers have the stamps.
    assert (result.counted, result.stamped, result.in_wrappers, result.listed.total()) == (4, 3, 1, 0)
    assert (result.files, result.bearing, result.sites) == (2, 2, 3)
    assert result.skips["AS2103"] == 1
    assert result.is_good
    assert result.share == 1.0


def test_headers_need_no_kernel_beside_them() -> None:
    result = checked(ring_cuh=RING)
    assert (result.counted, result.stamped, result.in_wrappers) == (3, 2, 1)


def test_functions_of_units_that_no_kernel_reaches_are_listed() -> None:
    text = b"__device__ void lost(int* p) { __syncthreads(); p[0] = 1; __syncwarp(); }\n"
    result = checked(k_cu=text)
    assert (result.counted, result.stamped, dict(result.listed)) == (2, 0, {"AS2115": 2})
    assert not result.is_good
    assert result.examples == {"AS2115": ["k.cu:1: __syncthreads", "k.cu:1: __syncwarp"]}


def test_polls_count_where_they_spin() -> None:
    text = b"""#include <cutlass/arch/barrier.h>
using Bar = cutlass::arch::ClusterBarrier;
__global__ void kernel(Bar* bars, int* out) {
  bool is_ready = bars[0].try_wait(0);
  out[0] = is_ready;
  while (!bars[1].try_wait(0)) {}
}
"""
    result = checked(k_cu=text)
    assert result.skips == {"AS2101": 1, "AS1012": 0}
    assert (result.counted, result.stamped, result.missed) == (1, 1, [])


def test_calls_that_neither_have_a_stamp_nor_a_finding_are_missed() -> None:
    text = b"""struct Request { int left; };
__device__ void wait(Request& request);
__global__ void kernel(Request* request, int* out) {
  wait(*request);
  out[0] = 1;
}
"""
    result = checked(k_cu=text)
    assert (result.counted, result.stamped, result.missed) == (1, 0, ["k.cu:4: wait: wait(*request);"])
    assert not result.is_good


def test_a_library_beside_is_stamped_and_not_counted() -> None:
    unit = {Path("k.cu"): UNIT}
    alone = check("p", unit)
    result = check("p", unit, {Path("ring.cuh"): RING})
    assert alone.counted == result.counted == result.stamped == 1
    assert (result.files, result.sites) == (1, 1)
    assert result.failures == []


@pytest.mark.parametrize(
    ("stamped", "original"),
    [
        (b"AUTOSTAMP_ENTER_AT(k,1,(f(a))) b.wait(); AUTOSTAMP_EXIT(k,1)\n", b"b.wait();\n"),
        (b"if (x) AUTOSTAMP_OPEN s(); AUTOSTAMP_WARP_SIGNAL(k,2) AUTOSTAMP_CLOSE\n", b"if (x) s();\n"),
        (b"while (!AUTOSTAMP_AROUND(k,1) t() AUTOSTAMP_AROUND_END) {}\n", b"while (!t()) {}\n"),
        (b"AUTOSTAMP_ALWAYS_INLINE inline void f(); AUTOSTAMP_INLINE T g();\n", b"inline void f(); T g();\n"),
        (b"void k(int a AUTOSTAMP_PARAM) { AUTOSTAMP_BIND_PARAM(k,1) a; }\n", b"void k(int a) { a; }\n"),
        (b"void k(AUTOSTAMP_PARAM_ONLY) {}\n", b"void k() {}\n"),
        (
            b"k<<<1, 1>>>(AUTOSTAMP_ARG_ONLY(k,1,(0))); k<<<1, 1>>>(a AUTOSTAMP_ARG(k,1,(0)));\n",
            b"k<<<1, 1>>>(); k<<<1, 1>>>(a);\n",
        ),
        (b"AUTOSTAMP_PREPARE((s)) launch(AUTOSTAMP_PREPARE_AROUND((0)) g AUTOSTAMP_AROUND_END);\n", b"launch(g);\n"),
    ],
)
def test_the_text_without_its_stamps(stamped: bytes, original: bytes) -> None:
    assert without_stamps(HEAD + stamped + SEAL) == original
    assert without_stamps(b"\xef\xbb\xbf" + HEAD + stamped + SEAL) == b"\xef\xbb\xbf" + original


@pytest.mark.parametrize("lost", [b"  ", b"};", b"wait(0)", b"#pragma once\n"])
def test_a_text_that_lost_something_differs(lost: bytes) -> None:
    assert without_stamps(HEAD + RING.replace(lost, b"", 1) + SEAL) != RING


def test_exit_status_and_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ring.cuh").write_bytes(RING)
    (tmp_path / "k.cu").write_bytes(UNIT)
    (tmp_path / "notes.md").write_bytes(b"__syncthreads()")
    assert sorted(path.name for path in read(tmp_path)) == ["k.cu", "ring.cuh"]
    assert main([str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "100.0%" in shown
    assert "findings AS2103 1; listed of the counted: none" in shown
    (tmp_path / "k.cu").write_bytes(UNIT.replace(b"__global__", b"__device__"))
    assert main([str(tmp_path), "--once"]) == 1
    assert "AS2115" in capsys.readouterr().out


def test_a_call_in_decltype_takes_no_address() -> None:
    text = b"""template <bool B> __device__ int init(int n) { __syncthreads(); n += threadIdx.x; __syncwarp(); return n; }
__device__ int none() {
  auto value = decltype(init<true>(1)){};
  return value;
}
__global__ void kernel(int* out) { out[0] = init<true>(1) + none(); }
"""
    result = checked(k_cu=text)
    assert (result.counted, result.stamped) == (2, 2)


def test_virtual_functions_of_the_host_stop_nothing() -> None:
    text = b"""__device__ inline int meet(int n) { __syncthreads(); n += threadIdx.x; __syncwarp(); return n; }
struct Launcher { virtual void prepare(int n) { meet(n); } };
__device__ inline void touch(Launcher& one) { one.prepare(1); }
__global__ void kernel(int* out) { out[0] = meet(1); }
"""
    result = checked(k_cu=text)
    assert (result.counted, result.stamped) == (2, 2)
