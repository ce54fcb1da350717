#include "autostamp.cuh"
#line 1
// A wait inside an expression is enclosed by an object that enters before it and exits at the end of the full expression.
#include "sync.cuh"

AUTOSTAMP_INLINE __device__ int voted(int x) {
  int votes = AUTOSTAMP_AROUND(KEY,1) __syncthreads_count(x) AUTOSTAMP_AROUND_END * 3;
  for (int i = 0; i < x; ++i) votes ^= i;
  return AUTOSTAMP_AROUND(KEY,2) __syncthreads_or(votes) AUTOSTAMP_AROUND_END;
}

__global__ void expressions(int* out, int x AUTOSTAMP_PARAM) { AUTOSTAMP_BIND_PARAM(KEY,1)
  __shared__ uint64_t bar;
  x ? AUTOSTAMP_AROUND(KEY,3) __syncthreads() AUTOSTAMP_AROUND_END : AUTOSTAMP_AROUND(KEY,4) __syncwarp() AUTOSTAMP_AROUND_END;
  if (AUTOSTAMP_AROUND(KEY,5) __syncthreads_and(x) AUTOSTAMP_AROUND_END) out[1] = 1;
  x ? AUTOSTAMP_AFTER_AT(KEY,6,(&bar)) mbar_arrive(&bar) AUTOSTAMP_AROUND_END : void();
  out[0] = voted(x);
}

void host(int* out) { expressions<<<1, 32>>>(out, 3 AUTOSTAMP_ARG(KEY,1,(0))); }
