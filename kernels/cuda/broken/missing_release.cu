// SPDX-License-Identifier: Apache-2.0
//
// BROKEN: the consumer does not release the last stage of the ring, as if nobody needed it any more.
//
// In the second round the producer waits for that stage, and nobody will ever arrive at its barrier.
// What happens: hang. The producer waits for `empty` of the last stage, the consumer for `full` of the same.

#include "watchdog.cuh"

constexpr int STAGES = 4;
constexpr uint32_t BYTES = TILE * sizeof(float);

__global__ void missing_release(const float* in, float* out, int tiles) {
    __shared__ alignas(128) float stages[STAGES][TILE];
    __shared__ uint64_t full[STAGES], empty[STAGES];
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            mbarrier_init(&full[stage], 1);
            mbarrier_init(&empty[stage], 1);
        }
        fence_proxy_async();
    }
    __syncthreads();
    if (warp == 0 && lane == 0) {
        for (int tile = 0; tile < tiles; ++tile) {
            const int stage = tile % STAGES;
            mbarrier_wait(&empty[stage], (tile / STAGES & 1) ^ 1);
            mbarrier_arrive_expect_tx(&full[stage], BYTES);
            bulk_load(stages[stage], in + tile * TILE, BYTES, &full[stage]);
        }
    } else if (warp == 1) {
        for (int tile = 0; tile < tiles; ++tile) {
            const int stage = tile % STAGES;
            mbarrier_wait(&full[stage], tile / STAGES & 1);
            for (int i = lane; i < TILE; i += WARP) {
                out[tile * TILE + i] = 2 * stages[stage][i] + 1;
            }
            __syncwarp();
            if (lane == 0 && (IS_FIXED || stage != STAGES - 1)) {
                mbarrier_arrive(&empty[stage]);
            }
        }
    }
}

int main() { return watch(missing_release, 2 * WARP); }
