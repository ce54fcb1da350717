// SPDX-License-Identifier: Apache-2.0
//
// What handing over costs, in an SM that does nothing else and in one whose other warps issue FFMA most of the time.
//
// `…_round`: the 128 threads of a warpgroup arrive and wait for each other. `…_handoff`: warps 0 and 1 wake each other in
// turn; a trip is two hand-offs. Warps from the fifth on, where the launch has them, are the load.

#include "probe.cuh"

constexpr int LOAD_CHAINS = 2;
constexpr int LOAD_STEPS = 32;
constexpr int LOAD_FIRST_WARP = 4;

// Until `stop`, which the measured warps set. An FFMA's result is ready after some four cycles, so a warp with two chains issues in
// two of four, and two such warps leave their scheduler some slots. A warp with four chains or more never has to wait, and its
// scheduler stays with it: a warp that a barrier has woken is then left out (docs/probes.md), whatever it has waited for.
__device__ __forceinline__ void load(long long* records, const volatile int* stop) {
    float values[LOAD_CHAINS];
#pragma unroll
    for (int chain = 0; chain < LOAD_CHAINS; ++chain) {
        values[chain] = static_cast<float>(threadIdx.x + chain);
    }
#pragma unroll 1
    while (*stop == 0) {
#pragma unroll
        for (int step = 0; step < LOAD_STEPS; ++step) {
#pragma unroll
            for (int chain = 0; chain < LOAD_CHAINS; ++chain) {
                asm volatile("fma.rn.f32 %0, %0, 0f3F000000, 0f3E800000;" : "+f"(values[chain]));
            }
        }
    }
    float sum = 0.0f;
#pragma unroll
    for (int chain = 0; chain < LOAD_CHAINS; ++chain) {
        sum += values[chain];
    }
    record_of_warp(records)[SINK] = __float_as_int(sum);
}

// `rounds` of the measured warps, the load of the others.
template <int measured_warps, class Rounds>
__device__ __forceinline__ void run(long long* records, volatile int* stop, Rounds rounds) {
    const int warp = warp_index();
    if (threadIdx.x == 0) {
        *stop = 0;
    }
    const Span span(records);
    if (warp < measured_warps) {
        rounds(warp);
        span.close(MEASURED, 0);
        *stop = 1;
    } else if (warp >= LOAD_FIRST_WARP) {
        load(records, stop);
    }
}

__device__ __forceinline__ void named_sync(int id, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

__device__ __forceinline__ void named_arrive(int id, int threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

PROBE(named_round) {
    __shared__ int stop;
    run<4>(records, &stop, [=](int) {
#pragma unroll 1
        for (int trip = 0; trip < trips; ++trip) {
            named_sync(1, WARPGROUP);
        }
    });
}

PROBE(named_handoff) {
    __shared__ int stop;
    run<2>(records, &stop, [=](int warp) {
        if (warp == 0) {
#pragma unroll 1
            for (int trip = 0; trip < trips; ++trip) {
                named_arrive(1, 2 * WARP);
                named_sync(2, 2 * WARP);
            }
        } else {
#pragma unroll 1
            for (int trip = 0; trip < trips; ++trip) {
                named_sync(1, 2 * WARP);
                named_arrive(2, 2 * WARP);
            }
        }
    });
}

#if __CUDA_ARCH__ >= 900

#include "bulk.cuh"

PROBE(mbarrier_round) {
    __shared__ int stop;
    __shared__ uint64_t barrier;
    if (threadIdx.x == 0) {
        mbarrier_init(&barrier, WARPGROUP);
        mbarrier_init_done();
    }
    uint64_t* const shared = &barrier;
    run<4>(records, &stop, [=](int) {
#pragma unroll 1
        for (int trip = 0; trip < trips; ++trip) {
            mbarrier_arrive(shared);
            mbarrier_wait(shared, trip & 1);
        }
    });
}

// One thread of a warp arrives, as an elected thread does in a pipeline; the whole warp waits.
PROBE(mbarrier_handoff) {
    __shared__ int stop;
    __shared__ uint64_t barriers[2];
    if (threadIdx.x == 0) {
        mbarrier_init(&barriers[0], 1);
        mbarrier_init(&barriers[1], 1);
        mbarrier_init_done();
    }
    uint64_t* const there = &barriers[0];
    uint64_t* const back = &barriers[1];
    const bool is_elected = threadIdx.x % WARP == 0;
    run<2>(records, &stop, [=](int warp) {
        if (warp == 0) {
#pragma unroll 1
            for (int trip = 0; trip < trips; ++trip) {
                if (is_elected) {
                    mbarrier_arrive(there);
                }
                mbarrier_wait(back, trip & 1);
            }
        } else {
#pragma unroll 1
            for (int trip = 0; trip < trips; ++trip) {
                mbarrier_wait(there, trip & 1);
                if (is_elected) {
                    mbarrier_arrive(back);
                }
            }
        }
    });
}

#endif
