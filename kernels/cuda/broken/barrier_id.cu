// SPDX-License-Identifier: Apache-2.0
//
// BROKEN: pairs of warps meet at named barriers 1, 9, 17 and 25, and a CTA has those from 0 to 15.
//
// PTX ISA, "bar / barrier": a barrier is named by a number from 0 to 15. ptxas refuses a larger one that it can see; these are
// known only when the kernel runs, and the hardware takes the low four bits. So two pairs share each barrier, and a warp meets
// whoever comes first.
// What happens: wrong result. A warp goes on before its partner has written.

#include "watchdog.cuh"

constexpr int PAIR = 2 * WARP;
constexpr int PAIRS = 4;
constexpr int APART = IS_FIXED ? 2 : 8;

__global__ void barrier_id(const float* in, float* out, int tiles) {
    __shared__ float stages[PAIRS][PAIR];
    const int pair = threadIdx.x / PAIR, thread = threadIdx.x % PAIR;
    const int barrier = 1 + APART * pair;
    for (int first = pair * PAIR; first < tiles * TILE; first += PAIRS * PAIR) {
        // Each warp of a pair computes what the other one has read.
        stages[pair][thread] = in[first + thread];
        named_barrier_sync(barrier, PAIR);
        out[first + (thread ^ WARP)] = 2 * stages[pair][thread ^ WARP] + 1;
        named_barrier_sync(barrier, PAIR);
    }
}

int main() { return watch(barrier_id, PAIRS * PAIR); }
