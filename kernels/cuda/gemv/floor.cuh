// SPDX-License-Identifier: Apache-2.0
//
// The floor: kernels that read the same bytes and do nothing else.

#pragma once

#include "ring.cuh"

constexpr int READ_THREADS = 512;

// What a launch takes in itself.
__global__ void empty() {}

// Reads `count` times 16 bytes and keeps nothing.
template <int UNROLL>
__global__ void __launch_bounds__(READ_THREADS) read(const uint4* from, size_t count, uint32_t* sink) {
    uint32_t bits = 0;
    const size_t step = size_t{gridDim.x} * blockDim.x;
    size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x;
    for (; i + (UNROLL - 1) * step < count; i += UNROLL * step) {
        uint4 values[UNROLL];
#pragma unroll
        for (int j = 0; j < UNROLL; ++j) {
            values[j] = Streamed::wide(from + i + j * step);
        }
#pragma unroll
        for (int j = 0; j < UNROLL; ++j) {
            bits ^= values[j].x ^ values[j].y ^ values[j].z ^ values[j].w;
        }
    }
    for (; i < count; i += step) {
        bits ^= Streamed::wide(from + i).x;
    }
    if (bits == 0x9e3779b9) {  // seldom, but the compiler cannot know
        *sink = bits;
    }
}

constexpr int COPY_BYTES = 16384;
constexpr int COPIES = 12;  // on their way at a time

// The same with bulk copies: one thread of each CTA starts one whenever an earlier one has come.
__global__ void __launch_bounds__(WARP) read_by_copies(const uint8_t* from, size_t size) {
    extern __shared__ __align__(128) uint8_t shared[];
    uint64_t* full = reinterpret_cast<uint64_t*>(shared + COPIES * COPY_BYTES);
    if (threadIdx.x == 0) {
        for (int i = 0; i < COPIES; ++i) {
            mbarrier_init(&full[i], 1);
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        const uint64_t policy = evict_first();
        const size_t step = size_t{COPY_BYTES} * gridDim.x;
        size_t at = size_t{COPY_BYTES} * blockIdx.x;
        int started = 0, finished = 0;
        while (at < size || finished < started) {
            if (at < size && started - finished < COPIES) {
                const uint32_t bytes = static_cast<uint32_t>(min(size_t{COPY_BYTES}, size - at));
                const int slot = started++ % COPIES;
                mbarrier_arrive_expect_tx(&full[slot], bytes);
                bulk_load(shared + slot * COPY_BYTES, from + at, bytes, &full[slot], policy);
                at += step;
            } else {
                mbarrier_wait(&full[finished % COPIES], finished / COPIES & 1);
                ++finished;
            }
        }
    }
}
