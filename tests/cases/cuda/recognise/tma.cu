// Copies that complete on a barrier signal it later; the commit of tcgen05 too.
#include <cstdint>

__device__ inline void load(void* dst, const void* map, uint64_t* bar, int x, int y) {
  uint32_t smem = __cvta_generic_to_shared(dst);
  uint32_t mbar = __cvta_generic_to_shared(bar);
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
      ::"r"(smem), "l"(map), "r"(mbar), "r"(x), "r"(y) : "memory");
}

__device__ inline void expect_and_load(void* dst, const void* map, uint64_t* bar, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"((uint32_t)__cvta_generic_to_shared(bar)), "r"(bytes));
  load(dst, map, bar, 0, 0);
}

__device__ inline void commit(uint32_t bar) {
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(bar));
}

__device__ inline void store(const void* map, void* src) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map), "r"(0), "r"(0), "r"(0));
  asm volatile("cp.async.bulk.commit_group;");
}

__device__ inline void init(uint64_t* bar, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"((uint32_t)__cvta_generic_to_shared(bar)), "r"(count));
}

__global__ void kernel(void* smem, const void* map, uint64_t* bars, uint32_t mma) {
  init(bars, 1);
  load(smem, map, bars, 0, 64);
  expect_and_load(smem, map, bars + 1, 128);
  commit(mma & 0xFEFFFFFF);
  store(map, smem);
}
