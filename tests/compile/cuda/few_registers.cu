// SPDX-License-Identifier: Apache-2.0
//
// A kernel whose producer gives all but 24 registers away and needs nearly all of those: tiles from a list in shared memory, a
// ring of three stages, two tensor loads a stage, of which one is for both CTAs of a cluster. Compiled only, for sm_90a.
#include <cuda.h>

#include <cstdint>

constexpr int STAGES = 3, TILE_M = 128, TILE_N = 256, TILE_K = 64, CLUSTER = 2, LIST = 128, CONSUMERS = 2;
constexpr int THREADS = 128 * (CONSUMERS + 1), FEW = 24, MANY = 240;

struct Shared {
  alignas(128) uint16_t a[STAGES][TILE_M * TILE_K];
  alignas(128) uint16_t b[STAGES][TILE_N * TILE_K];
  alignas(8) uint64_t full[STAGES], empty[STAGES];
  int tiles[LIST];
};

__device__ __forceinline__ uint32_t address(const void* at) { return static_cast<uint32_t>(__cvta_generic_to_shared(at)); }

__device__ __forceinline__ void init(uint64_t* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address(barrier)), "r"(arrivals));
}

__device__ __forceinline__ void expect(uint64_t* barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(barrier)), "r"(bytes));
}

__device__ __forceinline__ void wait(uint64_t* barrier, int parity) {
  asm volatile(
      "{ .reg .pred done;\n"
      "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra.uni end;\n"
      "bra.uni again;\n"
      "end: }" ::"r"(address(barrier)), "r"(parity));
}

__device__ __forceinline__ void arrive_at(uint64_t* barrier, uint32_t cta) {
  asm volatile(
      "{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there], 1; }" ::"r"(address(barrier)), "r"(cta));
}

__device__ __forceinline__ void load(void* to, const CUtensorMap* map, uint64_t* barrier, int column, int row) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];" ::"r"(
          address(to)),
      "l"(map), "r"(address(barrier)), "n"(0), "r"(row), "r"(column / 64)
      : "memory");
}

__device__ __forceinline__ void load_for_all(void* to, const CUtensorMap* map, uint64_t* barrier, int column, int row,
                                             uint16_t ctas) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
      " [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(address(to)),
      "l"(map), "r"(address(barrier)), "n"(0), "r"(row), "r"(column / 64), "h"(ctas)
      : "memory");
}

template <int Registers>
__device__ __forceinline__ void keep_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}

template <int Registers>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) __cluster_dims__(CLUSTER, 1, 1)
    few_registers(int depth, const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
                  const int* tiles, const int* first, float* out) {
  extern __shared__ __align__(128) uint8_t memory[];
  Shared& shared = *reinterpret_cast<Shared*>(memory);
  const int steps = depth / TILE_K, group = threadIdx.x / 128, thread = threadIdx.x % 128;
  uint32_t rank;
  asm volatile("mov.u32 %0, %%clusterid.x;" : "=r"(rank));
  if (threadIdx.x < LIST) shared.tiles[threadIdx.x] = tiles[rank * LIST + threadIdx.x];
  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; ++i) init(&shared.full[i], 1), init(&shared.empty[i], CONSUMERS * CLUSTER);
  }
  asm volatile("barrier.cluster.arrive;" ::: "memory");
  asm volatile("barrier.cluster.wait;" ::: "memory");
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  int stage = 0, parity = 0;
  if (group == 0) {
    keep_registers<FEW>();
    if (thread == 0) {
      for (int next = 0; next < LIST; ++next) {
        const int tile = shared.tiles[next];
        if (tile == -1) break;
        const int row = (tile >> 16) * CLUSTER + rank, column = tile & 0xffff;
        for (int step = 0; step < steps; ++step, ++stage) {
          if (stage == STAGES) stage = 0, parity ^= 1;
          wait(&shared.empty[stage], parity);
          expect(&shared.full[stage], (TILE_M + TILE_N) * TILE_K * sizeof(uint16_t));
          load(shared.a[stage], &map_a, &shared.full[stage], step * TILE_K, row * TILE_M);
          if (rank == 0) load_for_all(shared.b[stage], &map_b, &shared.full[stage], step * TILE_K, column * TILE_N, 3);
        }
      }
    }
  } else {
    take_registers<MANY>();
    float sum = 0;
    for (int i = 0; i < STAGES; ++i) {
      if (thread < CLUSTER) arrive_at(&shared.empty[i], thread);
    }
    for (int next = 0; next < LIST && shared.tiles[next] != -1; ++next) {
      for (int step = 0; step < steps; ++step, ++stage) {
        if (stage == STAGES) stage = 0, parity ^= 1;
        wait(&shared.full[stage], parity);
        sum += shared.a[stage][threadIdx.x] * shared.b[stage][threadIdx.x];
        if (thread < CLUSTER) arrive_at(&shared.empty[stage], thread);
      }
      out[next * THREADS + threadIdx.x] = sum;
    }
  }
}
