// SPDX-License-Identifier: Apache-2.0
//
// mbarriers and bulk copies, as the probes use them. PTX ISA, "mbarrier" and "cp.async.bulk".

#pragma once

#include "probe.cuh"

constexpr int STAGE_BYTES = 16384;

__device__ __forceinline__ void mbarrier_init(uint64_t* barrier, int arrivals) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}

// Initialised mbarriers are seen by the asynchronous proxy; __syncthreads makes them seen by the CTA.
__device__ __forceinline__ void mbarrier_init_done() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void mbarrier_arrive(uint64_t* barrier) {
    asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(shared_address(barrier))
                 : "memory");
}

__device__ __forceinline__ void mbarrier_expect(uint64_t* barrier, uint32_t bytes) {
    asm volatile("{ .reg .b64 state; mbarrier.arrive.expect_tx.shared.b64 state, [%0], %1; }" ::"r"(
                     shared_address(barrier)),
                 "r"(bytes)
                 : "memory");
}

__device__ __forceinline__ void mbarrier_wait(uint64_t* barrier, uint32_t parity) {
    asm volatile(
        "{ .reg .pred done;\n\t"
        "AGAIN: mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n\t"
        "@!done bra AGAIN; }" ::"r"(shared_address(barrier)),
        "r"(parity)
        : "memory");
}

// One lane of a whole warp. Behind this the compiler knows that one thread is there, and issues a copy as one instruction; behind
// `threadIdx.x == 0` it makes a loop over the lanes. PTX ISA, "elect.sync".
__device__ __forceinline__ bool is_elected() {
    uint32_t elected;
    asm volatile("{ .reg .pred p; elect.sync _|p, 0xFFFFFFFF; selp.u32 %0, 1, 0, p; }" : "=r"(elected));
    return elected != 0;
}

__device__ __forceinline__ void bulk_copy(void* to, const void* from, uint32_t bytes, uint64_t* barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(to)),
                 "l"(from), "r"(bytes), "r"(shared_address(barrier))
                 : "memory");
}

// A ring of `stages` copies in flight, by one thread. Nobody reads what arrives: only the copies are measured.
struct Ring {
    unsigned char* stage;
    uint64_t* full;
    int stages;
    int at = 0;
    uint32_t parity = 0;

    __device__ __forceinline__ void init() const {
        for (int each = 0; each < stages; ++each) {
            mbarrier_init(&full[each], 1);
        }
        mbarrier_init_done();
    }

    __device__ __forceinline__ void issue(const unsigned char* from) const {
        mbarrier_expect(&full[at], STAGE_BYTES);
        bulk_copy(stage + at * STAGE_BYTES, from, STAGE_BYTES, &full[at]);
    }

    __device__ __forceinline__ void wait() const { mbarrier_wait(&full[at], parity); }

    __device__ __forceinline__ void advance() {
        if (++at == stages) {
            at = 0;
            parity ^= 1;
        }
    }
};
