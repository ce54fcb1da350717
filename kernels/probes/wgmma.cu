// SPDX-License-Identifier: Apache-2.0
//
// Cycles of one wgmma m64nNk16, bf16, at all useful N, with both operands in shared memory (ss) and with A in registers (rs).
// One warpgroup with nothing else in its SM; 16 instructions a group, one group issued while the one before it runs.
// For sm_90a only: no other architecture has wgmma.

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

#include "wgmma.cuh"

#define WGMMA_PROBES(N, C, E)                                                            \
    WGMMA_FUNCTION(loop_ss_n##N, WGMMA_FOUR_SS, N, C, E)                                 \
    WGMMA_FUNCTION(loop_rs_n##N, WGMMA_FOUR_RS, N, C, E)                                 \
    PROBE(ss_n##N) { run<N>(records, trips, loop_ss_n##N); }                             \
    PROBE(rs_n##N) { run<N>(records, trips, loop_rs_n##N); }

template <int N, class Loop>
__device__ __forceinline__ void run(long long* records, int trips, Loop loop) {
    __shared__ alignas(SWIZZLE_ATOM_BYTES) unsigned char operands[A_BYTES + N * ROW_BYTES];
    fill_random(operands, sizeof operands);
    const Span span(records);
    const float sum = loop(trips, descriptor(operands), descriptor(operands + A_BYTES), random_pair(threadIdx.x));
    span.close(MEASURED, __float_as_int(sum));
}

WGMMA_PROBES(8, WGMMA_C4, WGMMA_E4)
WGMMA_PROBES(16, WGMMA_C8("c00"), WGMMA_E8_ONLY)
WGMMA_PROBES(32, WGMMA_C16, WGMMA_E16)
WGMMA_PROBES(64, WGMMA_C32, WGMMA_E32)
WGMMA_PROBES(96, WGMMA_C48, WGMMA_E48)
WGMMA_PROBES(128, WGMMA_C64, WGMMA_E64)
WGMMA_PROBES(192, WGMMA_C96, WGMMA_E96)
WGMMA_PROBES(256, WGMMA_C128, WGMMA_E128)

#endif
