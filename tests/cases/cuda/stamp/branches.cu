// Unbraced bodies get braces; a stamp stays inside the branch that guards its call.
#include "sync.cuh"

__global__ void branches(int* out, int n, int role) {
  __shared__ uint64_t bars[4];
  if (role == 0)
    mbar_wait(bars, 0);
  else if (role == 1) mbar_arrive(bars);
  else __syncthreads();
  for (int i = 0; i < n; ++i) mbar_wait(&bars[i & 3], 1);
  while (--n > 0)
    __syncwarp();
  do __syncthreads(); while (n++ < 3);
  if (role) { out[0] = n; } else mbar_arrive(&bars[3]);
}

void host(int* out) { branches<<<1, 32>>>(out, 3, 0); }
