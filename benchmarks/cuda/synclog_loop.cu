// SPDX-License-Identifier: Apache-2.0
// What one record of CUTLASS's synclog costs: a warp runs a chain of dependent multiply-adds and logs once an iteration, or, without
// -DCUTLASS_ENABLE_SYNCLOG, does not log. Compile with CUTLASS's include folder and -rdc=true; prints the time of a launch.
//
//   synclog_loop ITERATIONS LAUNCHES

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "cutlass/cutlass.h"
#include "cutlass/arch/synclog.hpp"

constexpr int CHAIN = 16;

__global__ void loop(float* out, int iterations) {
    float value = out[threadIdx.x];
    for (int i = 0; i < iterations; ++i) {
        cutlass::arch::synclog_emit_cluster_barrier_wait(__LINE__, 128, i & 1);
#pragma unroll
        for (int j = 0; j < CHAIN; ++j) {
            value = fmaf(value, 1.0001f, 0.5f);
        }
    }
    out[threadIdx.x] = value;
}

int main(int argc, char** argv) {
    const int iterations = argc > 1 ? std::atoi(argv[1]) : 2000, launches = argc > 2 ? std::atoi(argv[2]) : 20;
    float* out = nullptr;
    cudaMalloc(&out, 32 * sizeof(float));
    cudaMemset(out, 0, 32 * sizeof(float));
    cutlass::arch::synclog_setup();
    cudaEvent_t start, stop;
    cudaEventCreate(&start);
    cudaEventCreate(&stop);
    std::vector<float> times;
    for (int launch = 0; launch < launches; ++launch) {
        cudaEventRecord(start);
        loop<<<1, 32>>>(out, iterations);
        cudaEventRecord(stop);
        cudaEventSynchronize(stop);
        float milliseconds = 0;
        cudaEventElapsedTime(&milliseconds, start, stop);
        times.push_back(1e3f * milliseconds);
    }
    const cudaError_t status = cudaGetLastError();
    if (status != cudaSuccess) {
        std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
        return 2;
    }
    std::sort(times.begin(), times.end());
    std::printf("us_per_launch %.3f\n", times[times.size() / 2]);
    return 0;
}
