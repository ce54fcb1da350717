// SPDX-License-Identifier: Apache-2.0
//
// BROKEN: a ring of one stage.
//
// The producer cannot fill what the consumer still reads, so that the two take turns: each tile pays for the whole way to memory.
// What happens: slow, and nothing else. It does not hang, since each side waits only for what the other one has just done.

#include "watchdog.cuh"

constexpr int STAGES = IS_FIXED ? 8 : 1;
constexpr int CONSUMERS = 8;
constexpr uint32_t BYTES = TILE * sizeof(float);

__global__ void one_stage(const float* in, float* out, int tiles) {
    __shared__ alignas(128) float stages[STAGES][TILE];
    __shared__ uint64_t full[STAGES], empty[STAGES];
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            mbarrier_init(&full[stage], 1);
            mbarrier_init(&empty[stage], CONSUMERS);
        }
        fence_proxy_async();
    }
    __syncthreads();
    if (warp == CONSUMERS && lane == 0) {
        for (int tile = 0; tile < tiles; ++tile) {
            const int stage = tile % STAGES;
            mbarrier_wait(&empty[stage], (tile / STAGES & 1) ^ 1);
            mbarrier_arrive_expect_tx(&full[stage], BYTES);
            bulk_load(stages[stage], in + tile * TILE, BYTES, &full[stage]);
        }
    } else if (warp < CONSUMERS) {
        for (int tile = 0; tile < tiles; ++tile) {
            const int stage = tile % STAGES;
            mbarrier_wait(&full[stage], tile / STAGES & 1);
            for (int i = threadIdx.x; i < TILE; i += CONSUMERS * WARP) {
                out[tile * TILE + i] = 2 * stages[stage][i] + 1;
            }
            __syncwarp();
            if (lane == 0) {
                mbarrier_arrive(&empty[stage]);
            }
        }
    }
}

int main() { return watch(one_stage, (CONSUMERS + 1) * WARP); }
