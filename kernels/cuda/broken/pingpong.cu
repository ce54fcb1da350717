// SPDX-License-Identifier: Apache-2.0
//
// BROKEN: two warpgroups take turns, and one has a tile more than the other.
//
// A warpgroup waits for its turn on a named barrier, works, and passes the turn on. Of an odd number of tiles the second gets one
// more; when it waits for the turn to do that, the first has left.
// What happens: hang. The second warpgroup waits at its barrier, and nobody will ever arrive. The right twin lets the first take
// part in the last turn without a tile.

#include "watchdog.cuh"

constexpr int GROUP = 4 * WARP;
constexpr int GROUPS = 2;
constexpr int FIRST_TURN = 1;  // named barrier 0 is that of __syncthreads()

__global__ void pingpong(const float* in, float* out, int tiles) {
    const int group = threadIdx.x / GROUP, thread = threadIdx.x % GROUP;
    const int split = tiles / GROUPS;  // the first has the tiles before it
    const int first = group == 0 ? 0 : split, last = group == 0 ? split : tiles;
    const int mine = last - first, most = tiles - split;
    if (group == 1) {
        named_barrier_arrive(FIRST_TURN, GROUPS * GROUP);
    }
    for (int turn = 0; turn < (IS_FIXED ? most : mine); ++turn) {
        named_barrier_sync(FIRST_TURN + group, GROUPS * GROUP);
        if (turn < mine) {
            for (int i = thread; i < TILE; i += GROUP) {
                const int at = (first + turn) * TILE + i;
                out[at] = 2 * in[at] + 1;
            }
        }
        // The turn that follows the last one would be nobody's.
        if (group == 0 || turn + 1 < most) {
            named_barrier_arrive(FIRST_TURN + (1 - group), GROUPS * GROUP);
        }
    }
}

int main() { return watch(pingpong, GROUPS * GROUP, 7); }
