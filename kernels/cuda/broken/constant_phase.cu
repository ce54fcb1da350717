// SPDX-License-Identifier: Apache-2.0
//
// BROKEN: the consumer waits for parity 0 each time, where the parity must change whenever the ring begins again.
//
// When it comes to a stage for the second time, the next copy has mostly landed. Then the phase of parity 0 is the one after, and that
// begins only when the consumer releases the stage that it waits for.
// What happens: hang, in the second round of the ring. (While that copy is still on its way, the phase of parity 0 is the one that
// completed last, and the wait lets the consumer through to what the stage held before. Which of the two is a matter of time.)

#include "watchdog.cuh"

constexpr int STAGES = 2;
constexpr uint32_t BYTES = TILE * sizeof(float);

__global__ void constant_phase(const float* in, float* out, int tiles) {
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
            mbarrier_wait(&full[stage], IS_FIXED ? tile / STAGES & 1 : 0);
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

int main() { return watch(constant_phase, 2 * WARP); }
