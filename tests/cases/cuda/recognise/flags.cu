// Words of global memory as flags: a load is a poll only where a loop repeats it, and a counted loop over loads moves data.
#include <cstdint>

__device__ inline int ld_acquire(const int* flag) {
  int value;
  asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(flag));
  return value;
}

__device__ inline void st_release(int* flag, int value) {
  asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(flag), "r"(value));
}

__device__ inline void wait_for(int* flag, int value) {
  while (ld_acquire(flag) != value) {
  }
}

__device__ inline int sum(const int* data, int n) {
  int total = 0;
  for (int i = 0; i < n; i++) total += ld_acquire(data + i);
  return total;
}

__global__ void kernel(int* flags, int n) {
  int first = ld_acquire(flags);
  wait_for(flags + n, first);
  do {
    first = ld_acquire(flags);
  } while (first == 0);
  st_release(flags, sum(flags, n));
  __threadfence();
}
