#include "autostamp.cuh"
#line 1
// Why a kernel gets its slot by the symbol: each use here is one that a further parameter would break, or that is not followed.
#include "sync.cuh"

__global__ void asked(int* out AUTOSTAMP_PARAM) { AUTOSTAMP_BIND_PARAM(KEY,1) AUTOSTAMP_WARP_ENTER(KEY,1) __syncthreads(); AUTOSTAMP_WARP_EXIT(KEY,1) out[0] = 1; }
__global__ void pointed(int* out) { AUTOSTAMP_BIND(KEY,2) AUTOSTAMP_WARP_ENTER(KEY,2) __syncthreads(); AUTOSTAMP_WARP_EXIT(KEY,2) out[0] = 2; }
__global__ void by_array(int* out) { AUTOSTAMP_BIND(KEY,3) AUTOSTAMP_WARP_ENTER(KEY,3) __syncthreads(); AUTOSTAMP_WARP_EXIT(KEY,3) out[0] = 3; }
template <class T>
__global__ void instantiated(T* out) { AUTOSTAMP_BIND(KEY,4) AUTOSTAMP_WARP_ENTER(KEY,4) __syncthreads(); AUTOSTAMP_WARP_EXIT(KEY,4) out[0] = 4; }
template __global__ void instantiated<float>(float*);
__global__ void befriended(int* out) { AUTOSTAMP_BIND(KEY,5) AUTOSTAMP_WARP_ENTER(KEY,5) __syncthreads(); AUTOSTAMP_WARP_EXIT(KEY,5) out[0] = 5; }
struct Friendly {
  friend __global__ void befriended(int* out);
};
__global__ void shadowed(int* out) { AUTOSTAMP_BIND(KEY,6) AUTOSTAMP_WARP_ENTER(KEY,6) __syncthreads(); AUTOSTAMP_WARP_EXIT(KEY,6) out[0] = 6; }
__global__ void nowhere(int* out) { AUTOSTAMP_BIND(KEY,7) AUTOSTAMP_WARP_ENTER(KEY,7) __syncthreads(); AUTOSTAMP_WARP_EXIT(KEY,7) out[0] = 7; }
namespace twice {
__global__ void asked_for(int* out) { AUTOSTAMP_BIND(KEY,8) AUTOSTAMP_WARP_ENTER(KEY,8) __syncthreads(); AUTOSTAMP_WARP_EXIT(KEY,8) out[0] = 8; }
}  // namespace twice
__global__ void asked_for(int* out) { AUTOSTAMP_BIND(KEY,9) AUTOSTAMP_WARP_ENTER(KEY,9) __syncthreads(); AUTOSTAMP_WARP_EXIT(KEY,9) out[0] = 9; }
#define NAMED named
__global__ void named(int* out) { AUTOSTAMP_BIND(KEY,10) AUTOSTAMP_WARP_ENTER(KEY,10) __syncthreads(); AUTOSTAMP_WARP_EXIT(KEY,10) out[0] = 10; }
template <class T>
__global__ void typed(T* out, int n AUTOSTAMP_PARAM) { AUTOSTAMP_BIND_PARAM(KEY,11) AUTOSTAMP_WARP_ENTER(KEY,11) __syncthreads(); AUTOSTAMP_WARP_EXIT(KEY,11) out[0] = n; }
template <class T>
__global__ void in_a_template(T* out AUTOSTAMP_PARAM) { AUTOSTAMP_BIND_PARAM(KEY,12) AUTOSTAMP_WARP_ENTER(KEY,12) __syncthreads(); AUTOSTAMP_WARP_EXIT(KEY,12) out[0] = 12; }

template <class T>
void run(T* out, cudaStream_t stream) {
  in_a_template<T><<<1, 1, 0, stream>>>(out AUTOSTAMP_ARG(KEY,12,(stream)));
}

void ask(void (*kernel)(int*), int* out);

void host(int* out, float* floats, cudaStream_t stream) {
  int blocks;
  cudaFuncSetAttribute(asked, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536);
  cudaFuncSetAttribute((const void*)asked, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, asked, 32, 0);
  asked<<<1, 1, 0, stream>>>(out AUTOSTAMP_ARG(KEY,1,(stream)));
  auto kernel = &pointed;
  AUTOSTAMP_PREPARE((0)) kernel<<<1, 1>>>(out);
  void* arguments[] = {&out};
  AUTOSTAMP_PREPARE((stream)) cudaLaunchKernel((void*)by_array, 1, 1, arguments, 0, stream);
  AUTOSTAMP_PREPARE((0)) instantiated<<<1, 1>>>(floats);
  AUTOSTAMP_PREPARE((0)) befriended<<<1, 1>>>(out);
  {
    void (*shadowed)(int*) = pointed;
    AUTOSTAMP_PREPARE((0)) shadowed<<<1, 1>>>(out);
  }
  AUTOSTAMP_PREPARE((0)) twice::asked_for<<<1, 1>>>(out);
  AUTOSTAMP_PREPARE((0)) NAMED<<<1, 1>>>(out);
  AUTOSTAMP_PREPARE((0)) named<<<1, 1>>>(out);
  cudaLaunchConfig_t config{};
  cudaLaunchKernelEx(&config, typed<int>, out, 3 AUTOSTAMP_ARG(KEY,11,(config.stream)));
  run(out, stream);
  AUTOSTAMP_OPEN AUTOSTAMP_LAUNCHER((0)) ask(by_array, out); AUTOSTAMP_CLOSE
}
