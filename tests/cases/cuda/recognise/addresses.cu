// What an asm takes as its barrier's address: pointers and 32-bit shared addresses can be read again, 64-bit numbers can't be
// told from barrier objects.
#include <cstdint>

__device__ inline void arrive_generic(uint64_t address) { asm volatile("mbarrier.arrive.b64 _, [%0];" ::"l"(address)); }

__device__ inline void arrive_pointer(uint64_t* bar) { asm volatile("mbarrier.arrive.b64 _, [%0];" ::"l"(bar)); }

__device__ inline void arrive_object(uint64_t& bar) {
  uint32_t address;
  asm volatile("{ .reg .u64 a; cvta.to.shared.u64 a, %1; cvt.u32.u64 %0, a; }" : "=r"(address) : "l"(&bar));
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(address));
}

__global__ void kernel(uint32_t word, uint64_t wide) {
  __shared__ uint64_t bars[2];
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(word + 8));
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"((uint32_t)__cvta_generic_to_shared(&bars[1])));
  asm volatile("mbarrier.arrive.b64 _, [%0];" ::"l"(wide));
  asm volatile("mbarrier.arrive.b64 _, [%0];" ::"l"(bars));
  arrive_generic(wide);
  arrive_pointer(bars + 1);
  arrive_object(bars[0]);
}
