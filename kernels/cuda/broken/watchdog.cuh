// SPDX-License-Identifier: Apache-2.0
//
// What the broken twins share: mbarriers, and a host that launches a kernel and never waits for it without end.
//
// Build a twin:  nvcc -gencode arch=compute_90a,code=sm_90a -std=c++17 -O3 -o twin NAME.cu            the broken one
//                nvcc ... -DFIXED ...                                                                 the right one
// Exit:          0 the result is right, 1 it is wrong, 2 the launch failed, 3 the kernel did not end
//
// A kernel that hangs goes on until its process is gone: run a twin under `timeout -s KILL` too, and nothing else beside it.

#pragma once

#include <cuda_runtime.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#ifdef FIXED
constexpr bool IS_FIXED = true;
#else
constexpr bool IS_FIXED = false;
#endif

constexpr int WARP = 32;
constexpr int TILE = 1024;  // floats
constexpr int TILES = 64;   // of the whole input
constexpr double DEADLINE_S = 2.0;

__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// mbarriers: PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier".
__device__ __forceinline__ void mbarrier_init(uint64_t* barrier, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}

// Block until the phase of this parity has completed; on a fresh barrier the phase of parity 1 has.
__device__ __forceinline__ void mbarrier_wait(uint64_t* barrier, uint32_t parity) {
    asm volatile(
        "{ .reg .pred done;\n"
        "retry: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra retry; }" ::"r"(shared_address(barrier)),
        "r"(parity)
        : "memory");
}

__device__ __forceinline__ void mbarrier_arrive(uint64_t* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

__device__ __forceinline__ void mbarrier_arrive_expect_tx(uint64_t* barrier, uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
                 : "memory");
}

__device__ __forceinline__ void bulk_load(float* target, const float* source, uint32_t bytes, uint64_t* barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(target)),
                 "l"(source), "r"(bytes), "r"(shared_address(barrier))
                 : "memory");
}

// The async proxy must see mbarriers that ordinary stores initialised: PTX ISA, "membar / fence".
__device__ __forceinline__ void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

__device__ __forceinline__ void named_barrier_sync(int id, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

__device__ __forceinline__ void named_barrier_arrive(int id, int threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

inline void check_cuda(cudaError_t status) {
    if (status != cudaSuccess) {
        std::printf("launch error: %s\n", cudaGetErrorString(status));
        std::fflush(stdout);
        _exit(2);
    }
}

// Launches `kernel(in, out, tiles)` in one CTA, where out[i] should be 2 * in[i] + 1, and says what came of it.
inline int watch(void (*kernel)(const float*, float*, int), int threads, int tiles = TILES) {
    const size_t count = static_cast<size_t>(tiles) * TILE, bytes = count * sizeof(float);
    std::vector<float> in(count), out(count);
    for (size_t i = 0; i < count; ++i) {
        in[i] = static_cast<float>(i % 100003);
    }
    float *device_in, *device_out;
    check_cuda(cudaMalloc(&device_in, bytes));
    check_cuda(cudaMalloc(&device_out, bytes));
    check_cuda(cudaMemcpy(device_in, in.data(), bytes, cudaMemcpyHostToDevice));
    check_cuda(cudaMemset(device_out, 0xff, bytes));
    check_cuda(cudaDeviceSynchronize());

    cudaFuncAttributes loaded;  // otherwise the first launch loads the kernel
    check_cuda(cudaFuncGetAttributes(&loaded, kernel));
    cudaEvent_t start, stop;
    check_cuda(cudaEventCreate(&start));
    check_cuda(cudaEventCreate(&stop));
    check_cuda(cudaEventRecord(start));
    kernel<<<1, threads>>>(device_in, device_out, tiles);
    check_cuda(cudaGetLastError());
    check_cuda(cudaEventRecord(stop));
    const auto begin = std::chrono::steady_clock::now();
    cudaError_t status;
    while ((status = cudaEventQuery(stop)) == cudaErrorNotReady) {
        if (std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() > DEADLINE_S) {
            std::printf("hang: the kernel did not end within %.0f s\n", DEADLINE_S);
            std::fflush(stdout);
            _exit(3);  // every other way out waits for the kernel
        }
        usleep(1000);
    }
    check_cuda(status);
    float milliseconds = 0;
    check_cuda(cudaEventElapsedTime(&milliseconds, start, stop));
    check_cuda(cudaMemcpy(out.data(), device_out, bytes, cudaMemcpyDeviceToHost));
    size_t wrong = 0, first = 0;
    for (size_t i = 0; i < count; ++i) {
        if (out[i] != 2 * in[i] + 1 && wrong++ == 0) {
            first = i;
        }
    }
    if (wrong) {
        std::printf("wrong: %zu of %zu results, the first in tile %zu\n", wrong, count, first / TILE);
        return 1;
    }
    std::printf("right: %.1f us\n", 1e3 * milliseconds);
    return 0;
}
