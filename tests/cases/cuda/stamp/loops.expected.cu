#include "autostamp.cuh"
#line 1
// A polling loop is one wait.
#include "sync.cuh"

__global__ void loops(int* out AUTOSTAMP_PARAM) { AUTOSTAMP_BIND_PARAM(KEY,1)
  __shared__ uint64_t bar;
  AUTOSTAMP_ENTER_AT(KEY,1,(&bar)) while (!mbar_try_wait(&bar, 0)) {
    __nanosleep(20);
  } AUTOSTAMP_EXIT(KEY,1)
  if (out[0] == 3)
    AUTOSTAMP_OPEN AUTOSTAMP_ENTER_AT(KEY,2,(&bar)) while (!mbar_try_wait(&bar, 1)); AUTOSTAMP_EXIT(KEY,2) AUTOSTAMP_CLOSE
  out[1] = 2;
}

void host(int* out) { loops<<<1, 32>>>(out AUTOSTAMP_ARG(KEY,1,(0))); }
