// SPDX-License-Identifier: Apache-2.0
//
// What synchronisation itself costs: how long a wait takes whose barrier is complete already, and how long after an arrival
// a warp that waits for it goes on. benchmarks/sync_cost.py launches this kernel stamped and reads both from the trace.
//
// Warp 0 signals, the other warps wait. In a `ready` part what they wait for is complete before they come, in a `late` part the
// signaller comes `spin` cycles after them. Every round ends with a barrier of the whole block, so that no round disturbs the next.
//
// Build:  nvcc -arch=sm_90a -std=c++17 -O3 -cubin -o sync_cost.cubin sync_cost.cu
// Launch: sync_cost(in, rounds, spin): one block of a multiple of 128 threads; `in` holds 16 KiB.

#include <cstdint>

constexpr int WARP = 32;
constexpr uint32_t BYTES = 16384;
constexpr int DEEP = 8;
constexpr int HANDED = 1;  // hardware barrier, PTX ISA "bar, barrier": 0 is __syncthreads

__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// PTX ISA, "mbarrier.init": a phase completes once `arrivals` threads have arrived.
__device__ __forceinline__ void mbarrier_init(uint64_t* barrier, int arrivals) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}

// PTX ISA, "mbarrier.arrive".
__device__ __forceinline__ void mbarrier_arrive(uint64_t* barrier) {
    asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(shared_address(barrier))
                 : "memory");
}

// PTX ISA, "mbarrier.arrive": the phase also needs `bytes` bytes of asynchronous copies.
__device__ __forceinline__ void mbarrier_arrive_expect_tx(uint64_t* barrier, uint32_t bytes) {
    asm volatile("{ .reg .b64 state; mbarrier.arrive.expect_tx.shared.b64 state, [%0], %1; }" ::"r"(
                     shared_address(barrier)),
                 "r"(bytes)
                 : "memory");
}

// PTX ISA, "cp.async.bulk": `bytes` bytes from global to shared memory, counted by `barrier`.
__device__ __forceinline__ void bulk_copy(void* to, const void* from, uint32_t bytes, uint64_t* barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(to)),
                 "l"(from), "r"(bytes), "r"(shared_address(barrier))
                 : "memory");
}

// PTX ISA, "mbarrier.try_wait": until the phase of this parity has completed.
__device__ __forceinline__ void mbarrier_wait(uint64_t* barrier, uint32_t parity) {
    asm volatile(
        "{ .reg .pred done;\n\t"
        "AGAIN: mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n\t"
        "@done bra DONE;\n\t"
        "bra AGAIN;\n\t"
        "DONE: }" ::"r"(shared_address(barrier)),
        "r"(parity)
        : "memory");
}

__device__ __forceinline__ void named_arrive(int id, int threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

__device__ __forceinline__ void named_sync(int id, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// PTX ISA, "wgmma.wait_group": here no group is outstanding.
__device__ __forceinline__ void wgmma_wait_none() {
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

__device__ __forceinline__ void spin_for(int cycles) {
    const long long began = clock64();
    while (clock64() - began < cycles) {
    }
}

// As in a main loop that never waits: one after the other, each complete long ago.
__device__ __forceinline__ void mbarrier_ready(uint64_t* barriers, int rounds, int warp) {
    for (int round = 0; round < rounds; ++round) {
        if (warp == 0) {
            for (int each = 0; each < DEEP; ++each) {
                mbarrier_arrive(&barriers[each]);
            }
        }
        __syncthreads();
        if (warp != 0) {
#pragma unroll 1
            for (int each = 0; each < DEEP; ++each) {
                mbarrier_wait(&barriers[each], round & 1);
            }
        }
        __syncthreads();
    }
}

// The same where the compiler and autostamp know that whole warps wait, which makes the stamps shorter.
__device__ __forceinline__ void mbarrier_ready_warps(uint64_t* barriers, int rounds, int warp) {
    for (int round = 0; round < rounds; ++round) {
        if (warp == 0) {
            for (int each = 0; each < DEEP; ++each) {
                mbarrier_arrive(&barriers[each]);
            }
        }
        __syncthreads();
        if (warp != 0) {
#pragma unroll 1
            for (int each = 0; each < DEEP; ++each) {
                mbarrier_wait(&barriers[each], round & 1);
                __syncwarp();
            }
        }
        __syncthreads();
    }
}

__device__ __forceinline__ void mbarrier_late(uint64_t* barrier, int rounds, int spin, int warp) {
    for (int round = 0; round < rounds; ++round) {
        if (warp == 0) {
            spin_for(spin);
            mbarrier_arrive(barrier);
        } else {
            mbarrier_wait(barrier, round & 1);
        }
        __syncthreads();
    }
}

__device__ __forceinline__ void named_ready(int rounds, int spin, int warp, int threads) {
    for (int round = 0; round < rounds; ++round) {
        if (warp == 0) {
            named_arrive(HANDED, threads);
        } else {
            spin_for(spin + 64 * warp);
            named_sync(HANDED, threads);
        }
        __syncthreads();
    }
}

__device__ __forceinline__ void named_late(int rounds, int spin, int warp, int threads) {
    for (int round = 0; round < rounds; ++round) {
        if (warp == 0) {
            spin_for(spin);
            named_arrive(HANDED, threads);
        } else {
            named_sync(HANDED, threads);
        }
        __syncthreads();
    }
}

__device__ __forceinline__ void copy_late(uint64_t* barrier, void* to, const void* from, int rounds, int warp) {
    for (int round = 0; round < rounds; ++round) {
        if (warp == 0) {
            if (threadIdx.x == 0) {
                mbarrier_arrive_expect_tx(barrier, BYTES);
                bulk_copy(to, from, BYTES, barrier);
            }
        } else {
            mbarrier_wait(barrier, round & 1);
        }
        __syncthreads();
    }
}

__device__ __forceinline__ void group_ready(int rounds, int spin) {
    for (int round = 0; round < rounds; ++round) {
        spin_for(spin);
        wgmma_wait_none();
        __syncthreads();
    }
}

extern "C" __global__ void sync_cost(const float* in, int rounds, int spin) {
    __shared__ alignas(128) unsigned char stage[BYTES];
    __shared__ uint64_t ready[DEEP];
    __shared__ uint64_t ready_warps[DEEP];
    __shared__ uint64_t late;
    __shared__ uint64_t copied;

    const int warp = threadIdx.x / WARP;
    const int threads = blockDim.x;
    if (threadIdx.x == 0) {
        for (int each = 0; each < DEEP; ++each) {
            mbarrier_init(&ready[each], WARP);
            mbarrier_init(&ready_warps[each], WARP);
        }
        mbarrier_init(&late, WARP);
        mbarrier_init(&copied, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    mbarrier_ready(ready, rounds, warp);
    mbarrier_ready_warps(ready_warps, rounds, warp);
    mbarrier_late(&late, rounds, spin, warp);
    named_ready(rounds, spin, warp, threads);
    named_late(rounds, spin, warp, threads);
    copy_late(&copied, stage, in, rounds, warp);
    group_ready(rounds, spin);
}
