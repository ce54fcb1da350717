// SPDX-License-Identifier: Apache-2.0
//
// The rungs of the ladder that read the matrix with ordinary loads. Each keeps what the one before it gained.

#pragma once

#include "nvfp4.cuh"

// How a load treats the caches: PTX ISA, "ld". The matrix is read once, the vector by every row.
struct Default {
    static __device__ __forceinline__ uint4 wide(const void* from) { return __ldg(static_cast<const uint4*>(from)); }
    static __device__ __forceinline__ uint16_t pair(const void* from) {
        return __ldg(static_cast<const unsigned short*>(from));
    }
};

#define CACHED_LOADS(name, hint)                                                                               \
    struct name {                                                                                              \
        static __device__ __forceinline__ uint4 wide(const void* from) {                                       \
            uint4 value;                                                                                       \
            asm volatile("ld.global.nc." hint ".v4.u32 {%0, %1, %2, %3}, [%4];"                                \
                         : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)                          \
                         : "l"(from));                                                                         \
            return value;                                                                                      \
        }                                                                                                      \
        static __device__ __forceinline__ uint16_t pair(const void* from) {                                    \
            uint16_t value;                                                                                    \
            asm volatile("ld.global.nc." hint ".u16 %0, [%1];" : "=h"(value) : "l"(from));                     \
            return value;                                                                                      \
        }                                                                                                      \
    }

CACHED_LOADS(Streamed, "L1::no_allocate");
CACHED_LOADS(Kept, "L1::evict_last");

__device__ __forceinline__ float sum_of_warp(float value) {
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        value += __shfl_xor_sync(0xffffffff, value, distance);
    }
    return value;
}

// 1. A thread for each row. The threads of a warp read bytes that lie a row apart: each of them costs a whole sector.
__global__ void gemv_naive(Problem p) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= p.rows()) {
        return;
    }
    const int batch = row / p.m;
    const uint8_t *a = p.row(row), *a_scales = p.row_scales(row);
    const uint8_t *b = p.vector(batch), *b_scales = p.vector_scales(batch);
    float sum = 0;
    for (int block = 0; block < p.k / BLOCK; ++block) {
        float dot = 0;
        for (int i = block * BLOCK_BYTES; i < (block + 1) * BLOCK_BYTES; ++i) {
            dot = fmaf(e2m1_to_float(a[i] & 15), e2m1_to_float(b[i] & 15), dot);
            dot = fmaf(e2m1_to_float(a[i] >> 4), e2m1_to_float(b[i] >> 4), dot);
        }
        sum = fmaf(dot, e4m3_to_float(a_scales[block]) * e4m3_to_float(b_scales[block]), sum);
    }
    p.c[row] = sum;
}

// 2. A warp for each row: its threads read words that lie side by side.
__global__ void gemv_coalesced(Problem p) {
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / WARP;
    const int lane = threadIdx.x % WARP;
    if (row >= p.rows()) {
        return;
    }
    const int batch = row / p.m;
    const uint8_t *a = p.row(row), *a_scales = p.row_scales(row);
    const uint8_t *b = p.vector(batch), *b_scales = p.vector_scales(batch);
    float sum = 0;
    for (int word = lane; word < p.k / 8; word += WARP) {
        const uint32_t numbers = reinterpret_cast<const uint32_t*>(a)[word];
        const float dot = dot8(numbers, reinterpret_cast<const uint32_t*>(b)[word], 0);
        sum = fmaf(dot, e4m3_to_float(a_scales[word / 2]) * e4m3_to_float(b_scales[word / 2]), sum);
    }
    sum = sum_of_warp(sum);
    if (lane == 0) {
        p.c[row] = sum;
    }
}

// 3. The same, 16 bytes a thread: a quarter of the loads, and of the work around them.
__global__ void gemv_wide(Problem p) {
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / WARP;
    const int lane = threadIdx.x % WARP;
    if (row >= p.rows()) {
        return;
    }
    const int batch = row / p.m;
    const uint8_t *a = p.row(row), *a_scales = p.row_scales(row);
    const uint8_t *b = p.vector(batch), *b_scales = p.vector_scales(batch);
    float sum = 0;
    for (int chunk = lane; chunk < p.k / CHUNK; chunk += WARP) {
        const uint4 left = Default::wide(a + 16 * chunk), right = Default::wide(b + 16 * chunk);
        const float2 left_scales = e4m3x2_to_float2(Default::pair(a_scales + 2 * chunk));
        const float2 right_scales = e4m3x2_to_float2(Default::pair(b_scales + 2 * chunk));
        sum = fmaf(dot8(left.y, right.y, dot8(left.x, right.x, 0)), left_scales.x * right_scales.x, sum);
        sum = fmaf(dot8(left.w, right.w, dot8(left.z, right.z, 0)), left_scales.y * right_scales.y, sum);
    }
    sum = sum_of_warp(sum);
    if (lane == 0) {
        p.c[row] = sum;
    }
}

// 4. and 5. Unpacked by table look-up into bytes, multiplied as integers. With Streamed and Kept the matrix no longer drives the
// vector out of L1.
template <typename MatrixLoads, typename VectorLoads>
__device__ __forceinline__ void gemv_by_bytes(const Problem& p) {
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / WARP;
    const int lane = threadIdx.x % WARP;
    if (row >= p.rows()) {
        return;
    }
    const int batch = row / p.m;
    const uint8_t *a = p.row(row), *a_scales = p.row_scales(row);
    const uint8_t *b = p.vector(batch), *b_scales = p.vector_scales(batch);
    const Table table;
    float sum = 0;
#pragma unroll 2
    for (int chunk = lane; chunk < p.k / CHUNK; chunk += WARP) {
        const uint4 left = MatrixLoads::wide(a + 16 * chunk);
        const uint16_t left_scales = MatrixLoads::pair(a_scales + 2 * chunk);
        const VectorChunk right(table, VectorLoads::wide(b + 16 * chunk), VectorLoads::pair(b_scales + 2 * chunk));
        sum = right.dot(table, left, left_scales, sum);
    }
    sum = sum_of_warp(sum);
    if (lane == 0) {
        p.c[row] = sum;
    }
}

__global__ void gemv_integer(Problem p) { gemv_by_bytes<Default, Default>(p); }

__global__ void gemv_cached(Problem p) { gemv_by_bytes<Streamed, Kept>(p); }

// From here on a row is the work of a team of warps in which each thread has one chunk of every row. So a thread keeps its chunk
// of the vector in registers, unpacked once. CTAs take equal ranges of rows.
constexpr int TEAM_NUMBERS = WARP * CHUNK;  // of a row that a warp takes
constexpr int MOST_TEAM_WARPS = 16;

struct Share {
    int first;
    int last;

    __device__ __forceinline__ Share(int rows, int index, int of)
        : first(static_cast<int>(static_cast<long long>(rows) * index / of)),
          last(static_cast<int>(static_cast<long long>(rows) * (index + 1) / of)) {}
};

// Sums of ROWS values over the lanes of a warp, ROWS a power of two: each step halves the rows a lane still adds up. What lane i
// gets is the sum of row i / (32 / ROWS).
template <int ROWS>
__device__ __forceinline__ float sum_rows_of_warp(float (&values)[ROWS]) {
    const int lane = threadIdx.x % WARP;
    int distance = WARP / 2;
#pragma unroll
    for (int rows = ROWS; rows > 1; rows /= 2, distance /= 2) {
        const bool is_upper = lane & distance;
#pragma unroll
        for (int i = 0; i < rows / 2; ++i) {
            const float given = is_upper ? values[i] : values[i + rows / 2];
            const float kept = is_upper ? values[i + rows / 2] : values[i];
            values[i] = kept + __shfl_xor_sync(0xffffffff, given, distance);
        }
    }
    float sum = values[0];
#pragma unroll
    for (; distance > 0; distance /= 2) {
        sum += __shfl_xor_sync(0xffffffff, sum, distance);
    }
    return sum;
}

// What the warps of a team add to each row: [rows of the CTA][warps of a team].
__device__ __forceinline__ void write_sums(const Problem& p, const Share& share, const float* partial, int team_warps) {
    __syncthreads();
    for (int row = share.first + threadIdx.x; row < share.last; row += blockDim.x) {
        float sum = 0;
        for (int warp = 0; warp < team_warps; ++warp) {
            sum += partial[(row - share.first) * team_warps + warp];
        }
        p.c[row] = sum;
    }
}

// A thread's chunk of the vector that this row is multiplied with, and the first row that needs another one.
__device__ __forceinline__ VectorChunk vector_of_row(const Problem& p, const Table& table, int row, int chunk,
                                                     int& batch_end) {
    const int batch = row / p.m;
    batch_end = (batch + 1) * p.m;
    return {table, Kept::wide(p.vector(batch) + 16 * chunk), Kept::pair(p.vector_scales(batch) + 2 * chunk)};
}

// 6. ROWS rows of a thread are on the way while it works on ROWS others.
template <int ROWS>
struct Rows {
    uint4 numbers[ROWS];
    uint16_t scales[ROWS];

    // Rows beyond the last are the last one again.
    __device__ __forceinline__ void load(const uint8_t* a, const uint8_t* a_scales, int k, int row, int step, int last) {
#pragma unroll
        for (int i = 0; i < ROWS; ++i) {
            const size_t at = min(row + i * step, last);
            numbers[i] = Streamed::wide(a + at * (k / 2));
            scales[i] = Streamed::pair(a_scales + at * (k / BLOCK));
        }
    }
};

template <int ROWS, int CTAS>
__global__ void __launch_bounds__(512, CTAS) gemv_registers(Problem p) {
    extern __shared__ float partial[];
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / WARP, 0);
    const int lane = threadIdx.x % WARP;
    const int team_warps = p.k / TEAM_NUMBERS;
    const int teams = blockDim.x / WARP / team_warps;
    const int team = warp / team_warps;
    const int slice = warp % team_warps;
    const int chunk = slice * WARP + lane;
    const uint8_t *a = p.a + 16 * chunk, *a_scales = p.a_scales + 2 * chunk;
    const Share share(p.rows(), blockIdx.x, gridDim.x);

    if (share.first + team < share.last) {
        const Table table;
        Rows<ROWS> next;
        next.load(a, a_scales, p.k, share.first + team, teams, share.last - 1);
        VectorChunk vector;
        int batch_end = 0;
        for (int first = share.first + team; first < share.last; first += ROWS * teams) {
            const Rows<ROWS> rows = next;
            if (first + ROWS * teams < share.last) {
                next.load(a, a_scales, p.k, first + ROWS * teams, teams, share.last - 1);
            }
            float sums[ROWS];
#pragma unroll
            for (int i = 0; i < ROWS; ++i) {
                const int row = min(first + i * teams, share.last - 1);
                if (row >= batch_end) {
                    vector = vector_of_row(p, table, row, chunk, batch_end);
                }
                sums[i] = vector.dot(table, rows.numbers[i], rows.scales[i], 0);
            }
            const float sum = sum_rows_of_warp(sums);
            const int row = first + lane / (WARP / ROWS) * teams;
            if (lane % (WARP / ROWS) == 0 && row < share.last) {
                partial[(row - share.first) * team_warps + slice] = sum;
            }
        }
    }
    write_sums(p, share, partial, team_warps);
}
