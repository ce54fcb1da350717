#include "autostamp.cuh"
#line 1
// Inside an expression an object stamps before it, at the end of the full expression, or both.
#include "sync.cuh"

__global__ void expressions(int* out, int x AUTOSTAMP_PARAM) { AUTOSTAMP_BIND_PARAM(KEY,1)
  __shared__ uint64_t bar;
  int votes = AUTOSTAMP_BEFORE(KEY,1) __syncthreads_count(x) AUTOSTAMP_AROUND_END * 3;
  if (AUTOSTAMP_BEHIND(KEY,2) __syncthreads_and(x) AUTOSTAMP_AROUND_END) out[1] = votes;
  x ? AUTOSTAMP_BEFORE_AT(KEY,3,(&bar)) mbar_arrive(&bar) AUTOSTAMP_AROUND_END : void();
  x ? AUTOSTAMP_AROUND(KEY,4) __syncthreads() AUTOSTAMP_AROUND_END : AUTOSTAMP_AROUND(KEY,5) __syncwarp() AUTOSTAMP_AROUND_END;
}

void host(int* out) { expressions<<<1, 32>>>(out, 3 AUTOSTAMP_ARG(KEY,1,(0))); }
