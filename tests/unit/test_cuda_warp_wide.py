# SPDX-License-Identifier: Apache-2.0
"""Which stamps need not ask which threads are there. Expectations are read off the source, by the rule of `.aligned`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from autostamp.passes.cuda.instrument import instrument

WAIT = """\
__device__ inline void wait(unsigned long long* bar, unsigned parity) {
  asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @!p bra L; }"
               :: "r"((unsigned)__cvta_generic_to_shared(bar)), "r"(parity));
}
__device__ inline bool elect() {
  unsigned is; asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }" : "=r"(is)); return is;
}
"""


def forms(body: str) -> list[str]:
    """For each wait on an mbarrier, WARP where its stamp is one of a whole warp, and ANY where it is not."""
    text = f"{WAIT}__global__ void k(unsigned long long* bar, int n) {{ {body} }}\n"
    (stamped,) = instrument({Path("k.cu"): text.encode()}).stamped.values()
    found = re.findall(r"AUTOSTAMP_(WARP_)?ENTER\w*\([^)]*\)+ wait", stamped.text.decode())
    return ["WARP" if each else "ANY" for each in found]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("wait(bar, 0);", ["ANY"]),
        ("wait(bar, 0); __syncthreads();", ["WARP"]),
        ("__syncthreads(); wait(bar, 0);", ["WARP"]),
        ("__syncthreads(); if (n) return; wait(bar, 0);", ["ANY"]),  # who left is not here any more
        ("wait(bar, 0); if (n) { wait(bar, 1); __syncthreads(); }", ["WARP", "WARP"]),
        ("__syncthreads(); if (n) wait(bar, 0); ", ["ANY"]),
        ("if (n) { __syncthreads(); } else { wait(bar, 0); }", ["ANY"]),
        ("for (int i = 0; i < n; ++i) { wait(bar, i & 1); __syncwarp(); }", ["WARP"]),
        ("for (int i = 0; i < n; ++i) { wait(bar, i & 1); __syncwarp(n); }", ["ANY"]),  # some threads of the warp
        ("wait(bar, 0); auto f = [&] { __syncthreads(); }; f();", ["ANY"]),  # run where it is called, if at all
        ('wait(bar, 0); asm volatile("wgmma.commit_group.sync.aligned;");', ["WARP"]),
        ("const int lane = threadIdx.x % 32; if (lane == 0) wait(bar, 0);", ["WARP"]),
        ("const int tid = threadIdx.x % 128; if (tid == 0 && n) wait(bar, 0);", ["WARP"]),
        ("const int tid = threadIdx.x; if (tid == 1) wait(bar, 0);", ["ANY"]),
        ("const int tid = threadIdx.x % 48; if (tid == 0) wait(bar, 0);", ["ANY"]),  # thread 48 is lane 16
        ("if (threadIdx.x == 0 && threadIdx.y == n) wait(bar, 0);", ["ANY"]),  # rows of CTAs need not be whole warps
        ("if (elect()) wait(bar, 0);", ["ANY"]),
        ("if constexpr (sizeof(int) == 4) { __syncthreads(); } wait(bar, 0);", ["ANY"]),  # it may not be compiled
    ],
)  # fmt: skip
def test_where_whole_warps_pass(body, expected):
    assert forms(body) == expected
