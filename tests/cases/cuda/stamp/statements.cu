// Sites that are statements of their own, with each kind of operand, and the functions on the way to them.
#include "sync.cuh"

__device__ int plain(uint64_t* bar, int sum) {
  mbar_wait(bar, 0);  // a remark
  for (int i = 0; i < 9; ++i) sum += i * sum;
  __syncthreads();
  return sum;
}

inline __device__ int said_inline(uint64_t* bar, int n) { return plain(bar, n) + plain(bar + 1, n); }

static __device__ __forceinline__ int forced(uint64_t* bar) { return said_inline(bar, 3) / 2; }

__device__ int untouched(int x) { return x * x; }

__global__ void statements(int* out) {
  __shared__ uint64_t bars[4];
  __syncthreads();
  for (int i = 0; i < 4; ++i) {
    mbar_wait(&bars[i % 4],
              i / 4 & 1);
    mbar_arrive(&bars[i % 4]);
  }
  bar_sync(1, 128); out[0] = forced(bars) + untouched(3);
  if (out[1]) {__syncwarp();}
}

void host(int* out) { statements<<<1, 128>>>(out); }
