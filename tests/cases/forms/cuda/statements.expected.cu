#include "autostamp.cuh"
#line 1
// Statements: waits with one stamp, and signals whose stamp stands before them.
#include "sync.cuh"

__global__ void statements(int* out AUTOSTAMP_PARAM) { AUTOSTAMP_BIND_PARAM(KEY,1)
  __shared__ uint64_t bars[4];
  AUTOSTAMP_WARP_ENTER(KEY,1) __syncthreads();
  for (int i = 0; i < 4; ++i) {
    AUTOSTAMP_ENTER_AT(KEY,2,(&bars[i])) mbar_wait(&bars[i], 0);
    mbar_wait(&bars[i], 1); AUTOSTAMP_ALONE(KEY,3)
    AUTOSTAMP_SIGNAL_AT(KEY,4,(&bars[i])) mbar_arrive(&bars[i]);
    if (i) AUTOSTAMP_OPEN AUTOSTAMP_SIGNAL_AT(KEY,5,(&bars[0])) mbar_arrive(&bars[0]); AUTOSTAMP_CLOSE
    mbar_arrive(&bars[i]); AUTOSTAMP_SIGNAL_AT(KEY,6,(&bars[i]))
  }
  bar_sync(1, 128); AUTOSTAMP_WARP_EXIT(KEY,7)
  AUTOSTAMP_ENTER_AT(KEY,8,(&bars[0])) while (!mbar_try_wait(&bars[0], 0)) {
    __nanosleep(20);
  }
  if (out[0])
    AUTOSTAMP_OPEN while (!mbar_try_wait(&bars[1], 0)); AUTOSTAMP_ALONE(KEY,9) AUTOSTAMP_CLOSE
}

void host(int* out) { statements<<<1, 128>>>(out AUTOSTAMP_ARG(KEY,1,(0))); }
