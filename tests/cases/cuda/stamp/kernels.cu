// Kernels in every dress. Each binds its lane; how it gets its slot is said in kernels.kernels.
#include "sync.cuh"
#define X_GLOBAL static __global__
#define X_BOUNDS(n) __launch_bounds__(n)

namespace outer {
namespace {
template <class T, int N>
__global__ void __launch_bounds__(128, 1) templated(T* out)
{
  __syncthreads();
  out[0] = N;
}
}  // namespace
}  // namespace outer

extern "C" __global__ void by_name(int* out) { __syncthreads(); out[0] = 2; }

X_GLOBAL void X_BOUNDS(64) behind_macros(int* out) { __syncthreads(); out[0] = 3; }

__global__ void declared_first(int* out, int n = 3);
__global__ void declared_first(int* out, int n) { __syncthreads(); out[0] = n; }

__global__ void partly_given(int* out, int n = 3) { __syncthreads(); out[0] = n; }

template <class... Args>
__global__ void packed(Args... args) { __syncthreads(); }

__global__ void without_parameters() { __syncthreads(); }

__global__ void void_parameters(void) { __syncthreads(); }

#define MAKE_KERNEL(name, value) \
  __global__ void name(int* out) { out[0] = value + meet(value); }

__device__ int meet(int n);

__global__ void without_sync(int* out) { out[0] = 7; }

__device__ int meet(int n) {
  __syncthreads();
  for (int i = 0; i < n; ++i) n ^= i;
  __syncwarp();
  return n;
}

MAKE_KERNEL(made, 8)

void host(int* out) {
  by_name<<<1, 1>>>(out);
  outer::templated<int, 3><<<1, 1>>>(out);
  behind_macros<<<1, 1>>>(out);
  declared_first<<<1, 1>>>(out, 4);
  partly_given<<<1, 1>>>(out);
  packed<<<1, 1>>>(out, 1);
  without_parameters<<<1, 1>>>();
  void_parameters<<<1, 1>>>();
  made<<<1, 1>>>(out);
  without_sync<<<1, 1>>>(out);
}
