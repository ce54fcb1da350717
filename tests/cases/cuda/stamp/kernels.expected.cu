#include "autostamp.cuh"
#line 1
// Kernels in every dress. Each binds its lane; how it gets its slot is said in kernels.kernels.
#include "sync.cuh"
#define X_GLOBAL static __global__
#define X_BOUNDS(n) __launch_bounds__(n)

namespace outer {
namespace {
template <class T, int N>
__global__ void __launch_bounds__(128, 1) templated(T* out AUTOSTAMP_PARAM)
{ AUTOSTAMP_BIND_PARAM(KEY,1)
  AUTOSTAMP_WARP_ENTER(KEY,1) __syncthreads(); AUTOSTAMP_WARP_EXIT(KEY,1)
  out[0] = N;
}
}  // namespace
}  // namespace outer

extern "C" __global__ void by_name(int* out) { AUTOSTAMP_BIND(KEY,2) AUTOSTAMP_WARP_ENTER(KEY,2) __syncthreads(); AUTOSTAMP_WARP_EXIT(KEY,2) out[0] = 2; }

X_GLOBAL void X_BOUNDS(64) behind_macros(int* out AUTOSTAMP_PARAM) { AUTOSTAMP_BIND_PARAM(KEY,3) AUTOSTAMP_WARP_ENTER(KEY,3) __syncthreads(); AUTOSTAMP_WARP_EXIT(KEY,3) out[0] = 3; }

__global__ void declared_first(int* out, int n = 3 AUTOSTAMP_PARAM_DEFAULT);
__global__ void declared_first(int* out, int n AUTOSTAMP_PARAM) { AUTOSTAMP_BIND_PARAM(KEY,4) AUTOSTAMP_WARP_ENTER(KEY,4) __syncthreads(); AUTOSTAMP_WARP_EXIT(KEY,4) out[0] = n; }

__global__ void partly_given(int* out, int n = 3) { AUTOSTAMP_BIND(KEY,5) AUTOSTAMP_WARP_ENTER(KEY,5) __syncthreads(); AUTOSTAMP_WARP_EXIT(KEY,5) out[0] = n; }

template <class... Args>
__global__ void packed(Args... args) { AUTOSTAMP_BIND(KEY,6) AUTOSTAMP_WARP_ENTER(KEY,6) __syncthreads(); AUTOSTAMP_WARP_EXIT(KEY,6) }

__global__ void without_parameters(AUTOSTAMP_PARAM_ONLY) { AUTOSTAMP_BIND_PARAM(KEY,7) AUTOSTAMP_WARP_ENTER(KEY,7) __syncthreads(); AUTOSTAMP_WARP_EXIT(KEY,7) }

__global__ void void_parameters(void) { AUTOSTAMP_BIND(KEY,8) AUTOSTAMP_WARP_ENTER(KEY,8) __syncthreads(); AUTOSTAMP_WARP_EXIT(KEY,8) }

#define MAKE_KERNEL(name, value) \
  __global__ void name(int* out) { AUTOSTAMP_BIND(KEY,9) out[0] = value + meet(value); }

__device__ int meet(int n);

__global__ void without_sync(int* out) { out[0] = 7; }

AUTOSTAMP_INLINE __device__ int meet(int n) {
  AUTOSTAMP_WARP_ENTER(KEY,9) __syncthreads(); AUTOSTAMP_WARP_EXIT(KEY,9)
  for (int i = 0; i < n; ++i) n ^= i;
  AUTOSTAMP_WARP_ENTER(KEY,10) __syncwarp(); AUTOSTAMP_WARP_EXIT(KEY,10)
  return n;
}

MAKE_KERNEL(made, 8)

void host(int* out) {
  AUTOSTAMP_PREPARE((0)) by_name<<<1, 1>>>(out);
  outer::templated<int, 3><<<1, 1>>>(out AUTOSTAMP_ARG(KEY,1,(0)));
  behind_macros<<<1, 1>>>(out AUTOSTAMP_ARG(KEY,3,(0)));
  declared_first<<<1, 1>>>(out, 4 AUTOSTAMP_ARG(KEY,4,(0)));
  AUTOSTAMP_PREPARE((0)) partly_given<<<1, 1>>>(out);
  AUTOSTAMP_PREPARE((0)) packed<<<1, 1>>>(out, 1);
  without_parameters<<<1, 1>>>(AUTOSTAMP_ARG_ONLY(KEY,7,(0)));
  AUTOSTAMP_PREPARE((0)) void_parameters<<<1, 1>>>();
  AUTOSTAMP_PREPARE((0)) made<<<1, 1>>>(out);
  without_sync<<<1, 1>>>(out);
}
