// Function-like macros wrap ops too, asm text may be spliced with macros, and a lambda may be repeated by a function.
#include <cstdint>
#define ACQUIRE ".acquire.cta"
#define CP_WAIT(n) asm volatile("cp.async.wait_group %0;\n" ::"n"(n))
#define CP_COMMIT() asm volatile("cp.async.commit_group;\n" ::)

template <typename F>
__device__ inline void poll(F&& ready) {
  while (!ready()) {
    __nanosleep(32);
  }
}

__device__ inline bool try_wait(uint64_t* bar, int parity) {
  int ok;
  asm volatile("{ .reg .pred p; mbarrier.try_wait.parity" ACQUIRE ".b64 p, [%[bar]], %[parity]; selp.b32 %[ok], 1, 0, p; }"
               : [ok] "=r"(ok)
               : [bar] "l"(__cvta_generic_to_shared(bar)), [parity] "r"(parity));
  return ok;
}

__device__ inline void wait_ready(uint64_t* bar, int parity) {
  poll([&]() { return try_wait(bar, parity); });
}

__global__ void kernel(uint64_t* bars) {
  CP_COMMIT();
  CP_WAIT(2);
  wait_ready(bars, 0);
  poll([&] { return try_wait(bars + 1, 1); });
  auto sync = [&] { __syncthreads(); };
  sync();
}
