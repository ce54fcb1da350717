// Statements: waits with one stamp, and signals whose stamp stands before them.
#include "sync.cuh"

__global__ void statements(int* out) {
  __shared__ uint64_t bars[4];
  __syncthreads();
  for (int i = 0; i < 4; ++i) {
    mbar_wait(&bars[i], 0);
    mbar_wait(&bars[i], 1);
    mbar_arrive(&bars[i]);
    if (i) mbar_arrive(&bars[0]);
    mbar_arrive(&bars[i]);
  }
  bar_sync(1, 128);
  while (!mbar_try_wait(&bars[0], 0)) {
    __nanosleep(20);
  }
  if (out[0])
    while (!mbar_try_wait(&bars[1], 0));
}

void host(int* out) { statements<<<1, 128>>>(out); }
