#include "autostamp.cuh"
#line 1
// No clock is carried in CUDA C++: a wait that should be is stamped as usual, or after it alone.
#include "sync.cuh"

__global__ void carried(int* out AUTOSTAMP_PARAM) { AUTOSTAMP_BIND_PARAM(KEY,1)
  __shared__ uint64_t bar;
  AUTOSTAMP_ENTER_AT(KEY,1,(&bar)) mbar_wait(&bar, 0); AUTOSTAMP_EXIT(KEY,1)
  mbar_wait(&bar, 1); AUTOSTAMP_ALONE(KEY,2)
  mbar_arrive(&bar); AUTOSTAMP_SIGNAL_AT(KEY,3,(&bar))
}

void host(int* out) { carried<<<1, 32>>>(out AUTOSTAMP_ARG(KEY,1,(0))); }
