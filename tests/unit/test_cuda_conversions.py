# SPDX-License-Identifier: Apache-2.0
"""A barrier class whose methods convert its address by a long function of the project is a wrapper all the same."""

from __future__ import annotations

from pathlib import Path

from autostamp.passes.cuda.instrument import instrument

# In the manner of cute/arch/util.hpp, which has a branch for each compiler there has been.
WAYS = "\n".join(f"#elif defined(COMPILER_{number})\n  return static_cast<unsigned>({number});" for number in range(12))
HEADER = f"""\
__device__ unsigned cast_smem_ptr_to_uint(void const* const ptr) {{
#if defined(NEWEST)
  return static_cast<unsigned>(__cvta_generic_to_shared(ptr));
{WAYS}
#else
  return 0;
#endif
}}
struct ClusterBarrier {{
  static __device__ void wait(unsigned long long const* smem_ptr, unsigned phase) {{
    unsigned smem_addr = cast_smem_ptr_to_uint(smem_ptr);
    asm volatile("{{ .reg .pred P1; LAB_WAIT: mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1; @P1 bra DONE; bra LAB_WAIT; "
                 "DONE: }}" :: "r"(smem_addr), "r"(phase));
  }}
}};
"""
KERNEL = """\
#include "barrier.h"
__global__ void k(int* out) {
  using Full = ClusterBarrier;
  __shared__ unsigned long long full[2];
  Full::wait(&full[1], 0);
  out[0] = 1;
}
"""


def test_the_call_is_stamped_with_its_barrier():
    files = {Path("k.cu"): KERNEL.encode(), Path("barrier.h"): HEADER.encode()}
    project = instrument(files)
    (site,) = project.stamped[Path("k.cu")].file.sites
    assert (site.method, site.payload) == ("wait", "address")
    assert project.stamped[Path("barrier.h")].file.sites == ()
