// SPDX-License-Identifier: Apache-2.0
//
// What all variants do with a tile: C[M, N] = A[M, K] * B[N, K]^T, with A and B of type T and K contiguous, and C f32
// and row-major. T is float, which the tensor cores take as TF32, or bf16. All sums are f32, in the order of K.

#pragma once

#include <cstdint>

#include "mbarrier.cuh"
#include "tma.cuh"
#include "wgmma.cuh"

#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
#error "wgmma exists on sm_90a alone: compile with -gencode arch=compute_90a,code=sm_90a"
#endif

constexpr int ROW_BYTES = 128;  // of K in a stage: one row of the 128-byte swizzle
template <typename T>
constexpr int TILE_K = ROW_BYTES / sizeof(T);

constexpr int WGMMA_M = 64;
constexpr int WGMMA_K_BYTES = 32;

// C leaves a warp in boxes of 16 rows, which are the warp's part of 64 rows, by 128 bytes.
constexpr int C_ROWS = 16;
constexpr int C_COLUMNS = ROW_BYTES / sizeof(float);

// The problem in units of what a cluster (without clusters: a CTA) computes and of stages.
struct Shape {
    int tiles_m;
    int tiles_n;
    int k_tiles;
};

struct TileIndex {
    int m;
    int n;
};

// Swizzled: the pattern repeats every 1024 bytes and starts where the address is a multiple of that.
template <typename T, int TILE_M, int TILE_N>
struct Stage {
    alignas(1024) T a[TILE_M * TILE_K<T>];
    alignas(1024) T b[TILE_N * TILE_K<T>];
};

// One warp's way out for C: while TMA stores one box, the warp writes the other.
struct Staging {
    alignas(1024) float boxes[2][C_ROWS * C_COLUMNS];
};

// The order in which tiles are taken: down GROUP rows of tiles, then to the next column. Those in flight at a time then
// form a block that is about square, whose rows of A and B stay in the L2 cache.
template <int GROUP>
__device__ __forceinline__ TileIndex tile_at(int index, Shape shape) {
    const int band = GROUP * shape.tiles_n;
    const int first_m = index / band * GROUP;
    const int height = min(GROUP, shape.tiles_m - first_m);
    TileIndex tile = {first_m + index % band % height, index % band / height};
    asm volatile("" : "+r"(tile.m), "+r"(tile.n));  // else the divisions move between the last wgmmas and the release
    return tile;
}

// Start all wgmmas of one stage: 64 * BLOCKS rows of `a` by N rows of `b`. The first of the tile do not accumulate.
template <typename T, int BLOCKS, int N>
__device__ __forceinline__ void start_stage(float (&sums)[BLOCKS][N / 2], const T* a, const T* b, bool accumulate) {
    const uint64_t descriptor_a = wgmma_descriptor(a);
    const uint64_t descriptor_b = wgmma_descriptor(b);
#pragma unroll
    for (int byte = 0; byte < ROW_BYTES; byte += WGMMA_K_BYTES) {
#pragma unroll
        for (int block = 0; block < BLOCKS; ++block) {
            Wgmma<T, N>::issue(sums[block], descriptor_a + (block * WGMMA_M * ROW_BYTES + byte) / 16,
                               descriptor_b + byte / 16, accumulate || byte > 0);
        }
    }
}

// Store a warp's 16 rows by N columns, whose first element is C[row][column]. Where a lane's sums are: PTX ISA,
// "Register Fragments for wgmma.mma_async", accumulator D. Swizzled, for two-way bank conflicts and not more.
template <int N>
__device__ __forceinline__ void store_rows(const float (&sums)[N / 2], Staging& staging, const CUtensorMap& map_c,
                                           int row, int column, int lane) {
#pragma unroll
    for (int box = 0; box < N / C_COLUMNS; ++box) {
        unsigned char* target = reinterpret_cast<unsigned char*>(staging.boxes[box % 2]) + lane / 4 * ROW_BYTES;
        if (lane == 0) {
            tma_store_wait_group_read<1>();  // the store before the last has read this box
        }
        __syncwarp();
#pragma unroll
        for (int i = 0; i < C_COLUMNS / 8; ++i) {
            const float* values = &sums[(box * C_COLUMNS / 8 + i) * 4];
            const int byte = ((2 * i + lane % 4 / 2) ^ (lane / 4)) * 16 + lane % 2 * 8;
            *reinterpret_cast<float2*>(target + byte) = make_float2(values[0], values[1]);
            *reinterpret_cast<float2*>(target + byte + 8 * ROW_BYTES) = make_float2(values[2], values[3]);
        }
        fence_proxy_async();
        __syncwarp();
        if (lane == 0) {
            tma_store(map_c, column + box * C_COLUMNS, row, staging.boxes[box % 2]);
            tma_store_commit_group();
        }
    }
}
