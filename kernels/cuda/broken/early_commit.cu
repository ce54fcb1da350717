// SPDX-License-Identifier: Apache-2.0
//
// BROKEN: the producer commits a stage before it has written it.
//
// An arrival makes visible what the thread wrote before it, and nothing that it writes afterwards.
// What happens: wrong result. The consumer is let through and reads what the stage held before.

#include "watchdog.cuh"

constexpr int STAGES = 2;

__global__ void early_commit(const float* in, float* out, int tiles) {
    __shared__ float stages[STAGES][TILE];
    __shared__ uint64_t full[STAGES], empty[STAGES];
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            mbarrier_init(&full[stage], WARP);
            mbarrier_init(&empty[stage], WARP);
        }
    }
    __syncthreads();
    if (warp == 0) {
        for (int tile = 0; tile < tiles; ++tile) {
            const int stage = tile % STAGES;
            mbarrier_wait(&empty[stage], (tile / STAGES & 1) ^ 1);
            if (!IS_FIXED) {
                mbarrier_arrive(&full[stage]);
            }
            for (int i = lane; i < TILE; i += WARP) {
                stages[stage][i] = in[tile * TILE + i];
            }
            if (IS_FIXED) {
                mbarrier_arrive(&full[stage]);
            }
        }
    } else if (warp == 1) {
        for (int tile = 0; tile < tiles; ++tile) {
            const int stage = tile % STAGES;
            mbarrier_wait(&full[stage], tile / STAGES & 1);
            for (int i = lane; i < TILE; i += WARP) {
                out[tile * TILE + i] = 2 * stages[stage][i] + 1;
            }
            mbarrier_arrive(&empty[stage]);
        }
    }
}

int main() { return watch(early_commit, 2 * WARP); }
