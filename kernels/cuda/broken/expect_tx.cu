// SPDX-License-Identifier: Apache-2.0
//
// BROKEN: the producer announces the bytes of one copy, and makes two.
//
// The phase completes when the announced bytes have landed, so the consumer reads while the other half is on its way. What lands
// then counts against the next phase: that one completes before its copies have begun, and the one after it never does.
// What happens: hang, in the third use of a stage; until then the consumer reads what the stage held before.

#include "watchdog.cuh"

constexpr int STAGES = 2;
constexpr int HALF = TILE / 2;
constexpr uint32_t HALF_BYTES = HALF * sizeof(float);

__global__ void expect_tx(const float* in, float* out, int tiles) {
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
            mbarrier_arrive_expect_tx(&full[stage], IS_FIXED ? 2 * HALF_BYTES : HALF_BYTES);
            bulk_load(stages[stage], in + tile * TILE, HALF_BYTES, &full[stage]);
            bulk_load(stages[stage] + HALF, in + tile * TILE + HALF, HALF_BYTES, &full[stage]);
        }
    } else if (warp == 1) {
        for (int tile = 0; tile < tiles; ++tile) {
            const int stage = tile % STAGES;
            mbarrier_wait(&full[stage], tile / STAGES & 1);
            for (int i = lane; i < TILE; i += WARP) {
                out[tile * TILE + i] = 2 * stages[stage][i] + 1;
            }
            __syncwarp();
            if (lane == 0) {
                mbarrier_arrive(&empty[stage]);
            }
        }
    }
}

int main() { return watch(expect_tx, 2 * WARP); }
