// SPDX-License-Identifier: Apache-2.0
//
// BROKEN: pairs of warps meet at named barriers 14, 15, 16 and 17, and a CTA has those from 0 to 15.
//
// PTX ISA, "bar / barrier": a barrier is named by a number from 0 to 15. ptxas refuses a larger one that it can see; this one is
// known only when the kernel runs.
// What happens: launch error.

#include "watchdog.cuh"

constexpr int PAIR = 2 * WARP;
constexpr int PAIRS = 4;
constexpr int FIRST_ID = IS_FIXED ? 12 : 14;

__global__ void barrier_id(const float* in, float* out, int tiles) {
    __shared__ float stages[PAIRS][PAIR];
    const int pair = threadIdx.x / PAIR, thread = threadIdx.x % PAIR;
    for (int first = pair * PAIR; first < tiles * TILE; first += PAIRS * PAIR) {
        // Each warp of a pair computes what the other one has read.
        stages[pair][thread] = in[first + thread];
        named_barrier_sync(FIRST_ID + pair, PAIR);
        out[first + (thread ^ WARP)] = 2 * stages[pair][thread ^ WARP] + 1;
        named_barrier_sync(FIRST_ID + pair, PAIR);
    }
}

int main() { return watch(barrier_id, PAIRS * PAIR); }
