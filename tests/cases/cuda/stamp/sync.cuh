// SPDX-License-Identifier: Apache-2.0
// Wrappers of PTX that the cases call. PTX ISA, "mbarrier" and "bar".
#pragma once
#include <cuda_runtime.h>
#include <cstdint>

__device__ __forceinline__ uint32_t to_shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}
__device__ __forceinline__ void mbar_wait(uint64_t* bar, uint32_t parity) {
  asm volatile(
      "{\n.reg .pred P1;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n@P1 bra done;\nbra again;\ndone:\n}" ::"r"(
          to_shared_address(bar)),
      "r"(parity)
      : "memory");
}
__device__ __forceinline__ bool mbar_try_wait(uint64_t* bar, uint32_t parity) {
  uint32_t is_ready;
  asm volatile(
      "{\n.reg .pred P1;\nmbarrier.try_wait.parity.shared::cta.b64 P1, [%1], %2;\nselp.u32 %0, 1, 0, P1;\n}"
      : "=r"(is_ready)
      : "r"(to_shared_address(bar)), "r"(parity)
      : "memory");
  return is_ready != 0;
}
__device__ __forceinline__ void mbar_arrive(uint64_t* bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(to_shared_address(bar)) : "memory");
}
__device__ __forceinline__ void bar_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
