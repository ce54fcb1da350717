// Inside an expression an object stamps before it, at the end of the full expression, or both.
#include "sync.cuh"

__global__ void expressions(int* out, int x) {
  __shared__ uint64_t bar;
  int votes = __syncthreads_count(x) * 3;
  if (__syncthreads_and(x)) out[1] = votes;
  x ? mbar_arrive(&bar) : void();
  x ? __syncthreads() : __syncwarp();
}

void host(int* out) { expressions<<<1, 32>>>(out, 3); }
