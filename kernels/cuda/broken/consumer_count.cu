// SPDX-License-Identifier: Apache-2.0
//
// BROKEN: `empty` counts the threads of both consumer warps, and one lane of each warp arrives.
//
// What happens: hang. Two arrivals of 64 never complete the phase: the producer waits for `empty` in the second round of the ring,
// the consumers for `full`.

#include "watchdog.cuh"

constexpr int STAGES = 3;
constexpr int CONSUMERS = 2;
constexpr uint32_t BYTES = TILE * sizeof(float);

__global__ void consumer_count(const float* in, float* out, int tiles) {
    __shared__ alignas(128) float stages[STAGES][TILE];
    __shared__ uint64_t full[STAGES], empty[STAGES];
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            mbarrier_init(&full[stage], 1);
            mbarrier_init(&empty[stage], IS_FIXED ? CONSUMERS : CONSUMERS * WARP);
        }
        fence_proxy_async();
    }
    __syncthreads();
    if (warp == CONSUMERS) {
        if (lane == 0) {
            for (int tile = 0; tile < tiles; ++tile) {
                const int stage = tile % STAGES;
                mbarrier_wait(&empty[stage], (tile / STAGES & 1) ^ 1);
                mbarrier_arrive_expect_tx(&full[stage], BYTES);
                bulk_load(stages[stage], in + tile * TILE, BYTES, &full[stage]);
            }
        }
    } else {
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

int main() { return watch(consumer_count, (CONSUMERS + 1) * WARP); }
