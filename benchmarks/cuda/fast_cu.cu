// SPDX-License-Identifier: Apache-2.0
// One matmul of pranjalssh/fast.cu, unedited: C = A * B^T in bf16, C stored column by column as that project does.
// Compile with its root on the include path, -DKERNEL=12 (or another number), and -lcuda.
//
//   fast_cu M N K [--repeat R] [--dump FILE]
//
// prints the time per launch and writes C as raw bf16, so that two builds can be compared bit for bit.

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cassert>
#include <cuda/barrier>
#include <iostream>
#include <vector>

// What the headers of fast.cu expect of the file that includes them.
typedef __nv_bfloat16 bf16;
#define CEIL_DIV(M, N) (((M) + (N) - 1) / (N))

static void check(cudaError_t error, int line) {
    if (error != cudaSuccess) {
        fprintf(stderr, "line %d: %s\n", line, cudaGetErrorString(error));
        exit(1);
    }
}
#define cudaCheck(error) check((error), __LINE__)

#ifndef KERNEL
#define KERNEL 12
#endif
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
// clang-format off
#include TEXT(examples/matmul/JOIN(matmul_, KERNEL).cuh)
// clang-format on

static bf16* random_matrix(size_t size, unsigned seed) {
    std::vector<bf16> values(size);
    for (auto& value : values) {
        seed = seed * 1664525u + 1013904223u;  // Numerical Recipes' linear congruential generator
        value = __float2bfloat16(static_cast<float>(static_cast<int>(seed >> 24) - 128) / 64.0f);
    }
    bf16* device = nullptr;
    cudaCheck(cudaMalloc(&device, size * sizeof(bf16)));
    cudaCheck(cudaMemcpy(device, values.data(), size * sizeof(bf16), cudaMemcpyHostToDevice));
    return device;
}

int main(int argc, char** argv) {
    int shape[3] = {8192, 8192, 8192};
    int repeat = 1;
    const char* dump = nullptr;
    for (int at = 1, dimension = 0; at < argc; ++at) {
        if (!strcmp(argv[at], "--repeat") && at + 1 < argc) {
            repeat = atoi(argv[++at]);
        } else if (!strcmp(argv[at], "--dump") && at + 1 < argc) {
            dump = argv[++at];
        } else if (dimension < 3) {
            shape[dimension++] = atoi(argv[at]);
        }
    }
    const auto [m, n, k] = shape;
    bf16* a = random_matrix(size_t(m) * k, 1);
    bf16* b = random_matrix(size_t(n) * k, 2);
    bf16* c = nullptr;
    cudaCheck(cudaMalloc(&c, size_t(m) * n * sizeof(bf16)));
    cudaCheck(cudaMemset(c, 0xff, size_t(m) * n * sizeof(bf16)));

    const auto launch = [&] { JOIN(runKernel, KERNEL)(m, n, k, a, b, c, nullptr); };
    launch();
    cudaCheck(cudaDeviceSynchronize());
    cudaEvent_t begin, end;
    cudaCheck(cudaEventCreate(&begin));
    cudaCheck(cudaEventCreate(&end));
    cudaCheck(cudaEventRecord(begin));
    for (int round = 0; round < repeat; ++round) {
        launch();
    }
    cudaCheck(cudaEventRecord(end));
    cudaCheck(cudaDeviceSynchronize());
    float milliseconds = 0;
    cudaCheck(cudaEventElapsedTime(&milliseconds, begin, end));
    printf("us_per_launch %.3f\n", milliseconds * 1000 / repeat);

    if (dump != nullptr) {
        std::vector<bf16> result(size_t(m) * n);
        cudaCheck(cudaMemcpy(result.data(), c, result.size() * sizeof(bf16), cudaMemcpyDeviceToHost));
        FILE* file = fopen(dump, "wb");
        if (file == nullptr || fwrite(result.data(), sizeof(bf16), result.size(), file) != result.size() ||
            fclose(file) != 0) {
            perror(dump);
            return 1;
        }
    }
    return 0;
}
