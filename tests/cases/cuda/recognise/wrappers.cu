// Wrappers of one instruction: looped in asm, looped in C++, polled once, and functions that only look like wrappers.
#include <cstdint>

__device__ inline void bar_wait(uint64_t* bar, uint32_t phase) {
  uint32_t addr = static_cast<uint32_t>(__cvta_generic_to_shared(bar));
  asm volatile(
      "{\n"
      ".reg .pred P1;\n"
      "LAB_WAIT:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n"
      "@P1 bra DONE;\n"
      "bra LAB_WAIT;\n"
      "DONE:\n"
      "}" ::"r"(addr), "r"(phase));
}

__device__ inline bool bar_try(uint32_t addr, uint32_t phase) {
  uint32_t ok;
  asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }"
               : "=r"(ok) : "r"(addr), "r"(phase));
  return ok;
}

__device__ inline void bar_spin(uint32_t addr, uint32_t phase) {
  while (!bar_try(addr, phase)) {
    __nanosleep(20);
  }
}

__device__ inline void bar_wait_and_flip(uint64_t* bar, uint32_t& phase) {
  bar_wait(bar, phase);
  phase ^= 1;
}

__device__ inline void bar_arrive(uint64_t& bar) {
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"((uint32_t)__cvta_generic_to_shared(&bar)));
}

__device__ inline void remote_arrive(uint32_t addr, uint32_t cta) {
  asm volatile(
      "{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; mbarrier.arrive.shared::cluster.b64 _, [there]; }"
      ::"r"(addr), "r"(cta));
}

template <int ID, int THREADS>
__device__ inline void group_sync() {
  asm volatile("bar.sync %0, %1;" ::"n"(ID), "n"(THREADS));
}

__device__ inline void group_arrive(int id, int threads) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads)); }

// Two barriers: no wrapper, its ops are places of their own.
__device__ inline void hand_over(uint64_t* full, uint64_t& empty, uint32_t phase) {
  bar_wait(full, phase);
  bar_arrive(empty);
}

// Reads what it waited for.
__device__ inline float reduced(float* smem, float x) {
  smem[threadIdx.x] = x;
  __syncthreads();
  return smem[0];
}

__global__ void kernel(uint32_t words) {
  __shared__ uint64_t full[2];
  uint32_t phase = 0;
  bar_wait(&full[0], phase);
  bar_spin(words + 8 * 3, 1);
  bar_wait_and_flip(full + 1, phase);
  while (!bar_try(words, phase)) {
  }
  bar_arrive(full[1]);
  remote_arrive(words, 1);
  group_sync<3, 128>();
  group_arrive(4, 256);
  hand_over(full, full[1], phase);
  reduced(nullptr, 1.f);
  asm volatile("bar.sync 0;");
  __syncthreads();
}
