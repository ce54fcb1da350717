#include "autostamp.cuh"
#line 1
// Unbraced bodies get braces; a stamp stays inside the branch that guards its call.
#include "sync.cuh"

__global__ void branches(int* out, int n, int role AUTOSTAMP_PARAM) { AUTOSTAMP_BIND_PARAM(KEY,1)
  __shared__ uint64_t bars[4];
  if (role == 0)
    AUTOSTAMP_OPEN AUTOSTAMP_ENTER_AT(KEY,1,(bars)) mbar_wait(bars, 0); AUTOSTAMP_EXIT(KEY,1) AUTOSTAMP_CLOSE
  else if (role == 1) AUTOSTAMP_OPEN mbar_arrive(bars); AUTOSTAMP_SIGNAL_AT(KEY,2,(bars)) AUTOSTAMP_CLOSE
  else AUTOSTAMP_OPEN AUTOSTAMP_WARP_ENTER(KEY,3) __syncthreads(); AUTOSTAMP_WARP_EXIT(KEY,3) AUTOSTAMP_CLOSE
  for (int i = 0; i < n; ++i) AUTOSTAMP_OPEN AUTOSTAMP_ENTER_AT(KEY,4,(&bars[i & 3])) mbar_wait(&bars[i & 3], 1); AUTOSTAMP_EXIT(KEY,4) AUTOSTAMP_CLOSE
  while (--n > 0)
    AUTOSTAMP_OPEN AUTOSTAMP_WARP_ENTER(KEY,5) __syncwarp(); AUTOSTAMP_WARP_EXIT(KEY,5) AUTOSTAMP_CLOSE
  do AUTOSTAMP_OPEN AUTOSTAMP_WARP_ENTER(KEY,6) __syncthreads(); AUTOSTAMP_WARP_EXIT(KEY,6) AUTOSTAMP_CLOSE while (n++ < 3);
  if (role) { out[0] = n; } else AUTOSTAMP_OPEN mbar_arrive(&bars[3]); AUTOSTAMP_SIGNAL_AT(KEY,7,(&bars[3])) AUTOSTAMP_CLOSE
}

void host(int* out) { branches<<<1, 32>>>(out, 3, 0 AUTOSTAMP_ARG(KEY,1,(0))); }
