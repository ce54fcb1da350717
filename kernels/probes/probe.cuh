// SPDX-License-Identifier: Apache-2.0
//
// What every probe shares: its parameters, and what each warp leaves behind. `autostamp probe` launches them, and
// runtime/probes/ says of each probe how, and what its machine code must hold.
//
// A probe is one loop of `trips` trips. It is launched with few trips and with many; the difference is free of what happens
// once (start, first misses of the instruction cache, end).

#pragma once

#include <cstdint>

constexpr int WARP = 32;
constexpr int WARPGROUP = 4 * WARP;

// Words of a warp's record.
constexpr int BEGIN = 0;     // SM clock
constexpr int END = 1;       // SM clock
constexpr int BEGIN_NS = 2;  // %globaltimer
constexpr int END_NS = 3;    // %globaltimer
constexpr int COUNT = 4;     // what a probe counts itself
constexpr int SINK = 5;      // results, so that no compiler may leave the work out
constexpr int ROLE = 6;
constexpr int SAMPLES = 8;   // up to the end: single values
constexpr int WORDS = 64;

// Roles; 0 is a warp that was not measured.
constexpr long long MEASURED = 1;
constexpr long long COPIER = 2;

// Where in `source` a CTA reads on a trip: at (start + CTA * block_stride + trip * trip_stride) & mask, in bytes.
struct Walk {
    unsigned long long start;
    unsigned long long block_stride;
    unsigned long long trip_stride;
    unsigned long long mask;

    __device__ __forceinline__ const unsigned char* at(const unsigned char* source, long long trip) const {
        return source + ((start + blockIdx.x * block_stride + trip * trip_stride) & mask);
    }
};

// `extra` means what each probe says.
#define PROBE(name) \
    extern "C" __global__ void name(long long* records, const unsigned char* source, Walk walk, int trips, int extra)

__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// The warp's number, in a form from which the compiler sees that all lanes have the same: a branch on it is uniform, and what
// stands behind the branch may use uniform registers.
__device__ __forceinline__ int warp_index() {
    return __shfl_sync(0xFFFFFFFFu, static_cast<int>(threadIdx.x) / WARP, 0);
}

__device__ __forceinline__ long long clock_now() {
    long long now;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(now)::"memory");
    return now;
}

__device__ __forceinline__ long long nanoseconds_now() {
    long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
    return now;
}

__device__ __forceinline__ long long* record_of_warp(long long* records) {
    const int warps = (blockDim.x + WARP - 1) / WARP;
    return records + static_cast<long long>(blockIdx.x * warps + threadIdx.x / WARP) * WORDS;
}

// A clock read right behind bar.sync comes before the barrier is complete (ADR 0009); a store before it holds it back.
__device__ __forceinline__ void hold_back(long long* record) {
    asm volatile("st.volatile.global.b64 [%0], %1;" ::"l"(record), "l"(0LL) : "memory");
}

// From here to `close`. All warps of the CTA start together.
struct Span {
    long long* record;
    long long begin_ns;
    long long begin;

    __device__ __forceinline__ explicit Span(long long* records) : record(record_of_warp(records)) {
        __syncthreads();
        hold_back(record);
        begin_ns = nanoseconds_now();
        begin = clock_now();
    }

    // Every lane stores the same words: only the sinks differ, and one of them stays.
    __device__ __forceinline__ void close(long long role, long long sink, long long count = 0) const {
        hold_back(record);
        const long long end = clock_now();
        const long long end_ns = nanoseconds_now();
        record[BEGIN] = begin;
        record[END] = end;
        record[BEGIN_NS] = begin_ns;
        record[END_NS] = end_ns;
        record[COUNT] = count;
        record[SINK] = sink;
        record[ROLE] = role;
    }
};
