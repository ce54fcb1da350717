// SPDX-License-Identifier: Apache-2.0
//
// The smallest warp-specialized kernel: one producer warp and two consumer warps meet in a ring of three
// shared-memory stages. out[i] = 256 * in[i] + 255, by doubling and adding one eight times.
//
// Each stage has two mbarriers. The producer waits until a stage is empty, fills it, and arrives at `full`; the
// consumers wait until it is full, compute on their half each, and arrive at `empty`. Device code only.
//
// Build:  nvcc -arch=sm_90a -std=c++17 -O3 -cubin -o ring.cubin ring.cu   (any target from sm_80 on)
// Launch: ring(in, out, n) or ring_params({in, out, n}): any number of blocks of 96 threads, no dynamic shared memory.

#include <cstdint>

constexpr int WARP = 32;
constexpr int CONSUMERS = 2;
constexpr int THREADS = WARP * (1 + CONSUMERS);
constexpr int STAGES = 3;
constexpr int CHUNK = WARP * CONSUMERS;  // elements in a stage: one for each lane of each consumer
constexpr int ROUNDS = 8;

struct RingParams {
    const float* in;
    float* out;
    int n;
};

__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// PTX ISA, "mbarrier.init": a phase completes once `arrivals` threads have arrived.
__device__ __forceinline__ void mbarrier_init(uint64_t* barrier, int arrivals) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}

// PTX ISA, "mbarrier.arrive": releases what this thread wrote before to those who wait for the phase.
__device__ __forceinline__ void mbarrier_arrive(uint64_t* barrier) {
    asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(shared_address(barrier))
                 : "memory");
}

// PTX ISA, "mbarrier.test_wait / mbarrier.try_wait": has the phase of this parity completed? On sm_90 and later the
// hardware may suspend the warp for a while before it says no.
__device__ __forceinline__ bool mbarrier_try_wait(uint64_t* barrier, uint32_t parity) {
    uint32_t done;
#if __CUDA_ARCH__ >= 900
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done)
                 : "r"(shared_address(barrier)), "r"(parity)
                 : "memory");
#else
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done)
                 : "r"(shared_address(barrier)), "r"(parity)
                 : "memory");
#endif
    return done != 0;
}

// Block until the phase of this parity has completed. The phase "before the first" has, so that a wait for parity 1
// on a fresh barrier returns at once.
__device__ __forceinline__ void mbarrier_wait(uint64_t* barrier, uint32_t parity) {
    while (!mbarrier_try_wait(barrier, parity)) {
    }
}

__device__ __forceinline__ void run_ring(const float* in, float* out, int n) {
    __shared__ float stages[STAGES][CHUNK];
    __shared__ uint64_t full[STAGES];
    __shared__ uint64_t empty[STAGES];

    const int warp = threadIdx.x / WARP;
    const int lane = threadIdx.x % WARP;
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            mbarrier_init(&full[stage], WARP);
            mbarrier_init(&empty[stage], WARP * CONSUMERS);
        }
    }
    __syncthreads();

    // The block's chunks are blockIdx.x, blockIdx.x + gridDim.x, ...; step counts them from 0.
    const int chunks = (n + CHUNK - 1) / CHUNK;
    if (warp == 0) {
        int step = 0;
        for (int chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x, ++step) {
            const int stage = step % STAGES;
            mbarrier_wait(&empty[stage], (step / STAGES & 1) ^ 1);
            for (int i = lane; i < CHUNK; i += WARP) {
                const int index = chunk * CHUNK + i;
                stages[stage][i] = index < n ? in[index] : 0.0f;
            }
            mbarrier_arrive(&full[stage]);
        }
    } else {
        const int i = (warp - 1) * WARP + lane;
        int step = 0;
        for (int chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x, ++step) {
            const int stage = step % STAGES;
            mbarrier_wait(&full[stage], step / STAGES & 1);
            float value = stages[stage][i];
            mbarrier_arrive(&empty[stage]);
            for (int round = 0; round < ROUNDS; ++round) {
                value = fmaf(value, 2.0f, 1.0f);
            }
            const int index = chunk * CHUNK + i;
            if (index < n) {
                out[index] = value;
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) ring(const float* in, float* out, int n) { run_ring(in, out, n); }

// The same with one parameter, a struct by value.
extern "C" __global__ void __launch_bounds__(THREADS) ring_params(RingParams p) { run_ring(p.in, p.out, p.n); }
