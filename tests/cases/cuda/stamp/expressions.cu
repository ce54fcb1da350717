// A wait inside an expression is enclosed by an object that enters before it and exits at the end of the full expression.
#include "sync.cuh"

__device__ int voted(int x) {
  int votes = __syncthreads_count(x) * 3;
  for (int i = 0; i < x; ++i) votes ^= i;
  return __syncthreads_or(votes);
}

__global__ void expressions(int* out, int x) {
  __shared__ uint64_t bar;
  x ? __syncthreads() : __syncwarp();
  if (__syncthreads_and(x)) out[1] = 1;
  x ? mbar_arrive(&bar) : void();
  out[0] = voted(x);
}

void host(int* out) { expressions<<<1, 32>>>(out, 3); }
