// SPDX-License-Identifier: Apache-2.0
//
// Do the writes of the copy engine take turns with reads of shared memory? Reads (LDS.128, or operands of wgmma) at full rate,
// with `extra` = 1 beside a stream of bulk copies into other shared memory, with 0 alone. The last warp of the CTA copies.

#include "probe.cuh"

#if __CUDA_ARCH__ >= 900

#include "bulk.cuh"

constexpr int COPY_STAGES = 8;
constexpr int LOADS = 32;  // LDS.128 per trip
constexpr int LOAD_BYTES = 16 * WARP;

__device__ __forceinline__ unsigned char* dynamic_shared() {
    extern __shared__ __align__(1024) unsigned char shared[];
    return shared;
}

struct Copies {
    uint64_t full[COPY_STAGES];
    int stop;
};

// Copies until `stop`, then waits for those under way. `count`: copies that arrived.
__device__ __forceinline__ void copy_until_stopped(
    const Span& span, unsigned char* stages, Copies* copies, const unsigned char* source, const Walk& walk) {
    Ring filled{stages, copies->full, COPY_STAGES};
    long long issued = 0;
#pragma unroll 1
    for (; issued < COPY_STAGES; ++issued) {
        filled.issue(walk.at(source, issued));
        filled.advance();
    }
    filled.parity = 0;
    long long arrived = 0;
    const volatile int* const stop = &copies->stop;
#pragma unroll 1
    while (*stop == 0) {
        filled.wait();
        ++arrived;
        filled.issue(walk.at(source, issued++));
        filled.advance();
    }
    span.close(COPIER, 0, arrived);
#pragma unroll 1
    for (int left = 0; left < COPY_STAGES; ++left) {
        filled.wait();
        filled.advance();
    }
}

// `reads()` in all warps but the last, whose first thread copies.
template <class Reads>
__device__ __forceinline__ void beside_copies(
    long long* records, unsigned char* stages, const unsigned char* source, const Walk& walk, bool with_copies, Reads reads) {
    __shared__ Copies copies;
    if (threadIdx.x == 0) {
        copies.stop = 0;
        Ring{stages, copies.full, COPY_STAGES}.init();
    }
    const Span span(records);
    const int copying_warp = static_cast<int>(blockDim.x) / WARP - 1;
    const int warp = warp_index();
    if (warp != copying_warp) {
        const int sum = reads();
        span.close(MEASURED, sum);
        *const_cast<volatile int*>(&copies.stop) = 1;
    } else if (with_copies && is_elected()) {
        copy_until_stopped(span, stages, &copies, source, walk);
    }
}

// Every warp reads 512 consecutive bytes an instruction: four cycles of a port of 128 bytes, no bank conflict.
PROBE(lds_port) {
    unsigned char* const shared = dynamic_shared();
    const uint32_t from = shared_address(shared) + (threadIdx.x % WARP) * 16;
    beside_copies(records, shared + LOADS * LOAD_BYTES, source, walk, extra != 0, [=]() {
        uint32_t sum = 0;
#pragma unroll 1
        for (int trip = 0; trip < trips; ++trip) {
#pragma unroll
            for (int load = 0; load < LOADS; ++load) {
                uint32_t x, y, z, w;
                asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                             : "=r"(x), "=r"(y), "=r"(z), "=r"(w)
                             : "r"(from + load * LOAD_BYTES));
                sum ^= x ^ y ^ z ^ w;
            }
        }
        return static_cast<int>(sum);
    });
}

#endif

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

#include "wgmma.cuh"

WGMMA_FUNCTION(loop_ss_n32, WGMMA_FOUR_SS, 32, WGMMA_C16, WGMMA_E16)
WGMMA_FUNCTION(loop_ss_n128, WGMMA_FOUR_SS, 128, WGMMA_C64, WGMMA_E64)

template <int N, class Loop>
__device__ __forceinline__ void wgmma_port(
    long long* records, const unsigned char* source, const Walk& walk, int trips, int extra, Loop loop) {
    unsigned char* const shared = dynamic_shared();
    constexpr int OPERAND_BYTES = A_BYTES + N * ROW_BYTES;
    fill_random(shared, OPERAND_BYTES);
    const uint64_t a = descriptor(shared), b = descriptor(shared + A_BYTES);
    beside_copies(records, shared + OPERAND_BYTES, source, walk, extra != 0,
                  [=]() { return __float_as_int(loop(trips, a, b, 0)); });
}

PROBE(ss_n32_port) { wgmma_port<32>(records, source, walk, trips, extra, loop_ss_n32); }    // shared memory binds
PROBE(ss_n128_port) { wgmma_port<128>(records, source, walk, trips, extra, loop_ss_n128); }  // reads 96 of 128 bytes a cycle

#endif
