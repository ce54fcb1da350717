// SPDX-License-Identifier: Apache-2.0
//
// The last rung: a producer warp keeps a ring of shared-memory stages filled with bulk copies, and the warps that multiply only
// ever wait for a full stage. What is in flight no longer depends on registers, and it is never interrupted.

#pragma once

#include "ladder.cuh"

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

// PTX ISA, "cp.async.bulk": addresses and size are multiples of 16. What is read once had better leave L2 first ("createpolicy").
__device__ __forceinline__ void bulk_load(void* target, const uint8_t* source, uint32_t bytes, uint64_t* barrier,
                                          uint64_t policy) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(
            shared_address(target)),
        "l"(source), "r"(bytes), "r"(shared_address(barrier)), "l"(policy)
        : "memory");
}

__device__ __forceinline__ uint64_t evict_first() {
    uint64_t policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

// What the host works out for a problem: rows of a stage (a multiple of the teams), and where things lie in shared memory.
struct Ring {
    int stage_rows;
    int stages;
    int stage_bytes;  // of the rows and, behind them, of their scales

    __host__ __device__ int partial_offset() const { return stages * (stage_bytes + 16); }
};

// The producer warp is the last one. ROWS rows of a stage are each team's.
template <int ROWS>
__global__ void __launch_bounds__(544, 1) gemv_ring(Problem p, Ring ring) {
    extern __shared__ __align__(128) uint8_t shared[];
    uint64_t* full = reinterpret_cast<uint64_t*>(shared + ring.stages * ring.stage_bytes);
    uint64_t* empty = full + ring.stages;
    float* partial = reinterpret_cast<float*>(shared + ring.partial_offset());

    const int warp = __shfl_sync(0xffffffff, threadIdx.x / WARP, 0);
    const int lane = threadIdx.x % WARP;
    const int producer_warp = blockDim.x / WARP - 1;
    const int team_warps = p.k / TEAM_NUMBERS;
    const int row_bytes = p.k / 2, scale_bytes = p.k / BLOCK;
    const Share share(p.rows(), blockIdx.x, gridDim.x);

    if (threadIdx.x == 0) {
        for (int stage = 0; stage < ring.stages; ++stage) {
            mbarrier_init(&full[stage], 1);
            mbarrier_init(&empty[stage], producer_warp);  // one lane of each warp before it
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();

    if (warp == producer_warp) {
        if (lane == 0) {
            const uint64_t policy = evict_first();
            int stage = 0;
            uint32_t parity = 1;
            for (int row = share.first; row < share.last; row += ring.stage_rows) {
                const int rows = min(ring.stage_rows, share.last - row);
                uint8_t* target = shared + stage * ring.stage_bytes;
                mbarrier_wait(&empty[stage], parity);
                mbarrier_arrive_expect_tx(&full[stage], rows * (row_bytes + scale_bytes));
                bulk_load(target, p.row(row), rows * row_bytes, &full[stage], policy);
                bulk_load(target + ring.stage_rows * row_bytes, p.row_scales(row), rows * scale_bytes, &full[stage], policy);
                if (++stage == ring.stages) {
                    stage = 0;
                    parity ^= 1;
                }
            }
        }
        __syncwarp();
    } else {
        const int team = warp / team_warps;
        const int slice = warp % team_warps;
        const int chunk = slice * WARP + lane;
        const Table table;
        VectorChunk vector;
        int batch_end = 0;
        int stage = 0;
        uint32_t parity = 0;
        for (int first = share.first; first < share.last; first += ring.stage_rows) {
            const int row = first + team * ROWS;
            if (row >= batch_end) {  // while the first copies are under way
                vector = vector_of_row(p, table, min(row, share.last - 1), chunk, batch_end);
            }
            const uint8_t* numbers = shared + stage * ring.stage_bytes + team * ROWS * row_bytes + 16 * chunk;
            const uint8_t* scales = shared + stage * ring.stage_bytes + ring.stage_rows * row_bytes +
                                    team * ROWS * scale_bytes + 2 * chunk;
            uint4 its_numbers[ROWS];
            uint16_t its_scales[ROWS];
            mbarrier_wait(&full[stage], parity);
#pragma unroll
            for (int i = 0; i < ROWS; ++i) {
                its_numbers[i] = *reinterpret_cast<const uint4*>(numbers + i * row_bytes);
                its_scales[i] = *reinterpret_cast<const uint16_t*>(scales + i * scale_bytes);
            }
            __syncwarp();
            if (lane == 0) {
                mbarrier_arrive(&empty[stage]);
            }
            float sums[ROWS];
#pragma unroll
            for (int i = 0; i < ROWS; ++i) {
                if (row + i >= batch_end && row + i < share.last) {
                    vector = vector_of_row(p, table, row + i, chunk, batch_end);
                }
                sums[i] = vector.dot(table, its_numbers[i], its_scales[i], 0);
            }
            const float sum = sum_rows_of_warp(sums);
            const int its_row = row + lane / (WARP / ROWS);
            if (lane % (WARP / ROWS) == 0 && its_row < share.last) {
                partial[(its_row - share.first) * team_warps + slice] = sum;
            }
            if (++stage == ring.stages) {
                stage = 0;
                parity ^= 1;
            }
        }
    }
    write_sums(p, share, partial, team_warps);
}
