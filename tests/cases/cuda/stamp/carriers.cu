// Why a kernel gets its slot by the symbol: each use here is one that a further parameter would break, or that is not followed.
#include "sync.cuh"

__global__ void asked(int* out) { __syncthreads(); out[0] = 1; }
__global__ void pointed(int* out) { __syncthreads(); out[0] = 2; }
__global__ void by_array(int* out) { __syncthreads(); out[0] = 3; }
template <class T>
__global__ void instantiated(T* out) { __syncthreads(); out[0] = 4; }
template __global__ void instantiated<float>(float*);
__global__ void befriended(int* out) { __syncthreads(); out[0] = 5; }
struct Friendly {
  friend __global__ void befriended(int* out);
};
__global__ void shadowed(int* out) { __syncthreads(); out[0] = 6; }
__global__ void nowhere(int* out) { __syncthreads(); out[0] = 7; }
namespace twice {
__global__ void asked_for(int* out) { __syncthreads(); out[0] = 8; }
}  // namespace twice
__global__ void asked_for(int* out) { __syncthreads(); out[0] = 9; }
#define NAMED named
__global__ void named(int* out) { __syncthreads(); out[0] = 10; }
template <class T>
__global__ void typed(T* out, int n) { __syncthreads(); out[0] = n; }
template <class T>
__global__ void in_a_template(T* out) { __syncthreads(); out[0] = 12; }

template <class T>
void run(T* out, cudaStream_t stream) {
  in_a_template<T><<<1, 1, 0, stream>>>(out);
}

void ask(void (*kernel)(int*), int* out);

void host(int* out, float* floats, cudaStream_t stream) {
  int blocks;
  cudaFuncSetAttribute(asked, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536);
  cudaFuncSetAttribute((const void*)asked, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, asked, 32, 0);
  asked<<<1, 1, 0, stream>>>(out);
  auto kernel = &pointed;
  kernel<<<1, 1>>>(out);
  void* arguments[] = {&out};
  cudaLaunchKernel((void*)by_array, 1, 1, arguments, 0, stream);
  instantiated<<<1, 1>>>(floats);
  befriended<<<1, 1>>>(out);
  {
    void (*shadowed)(int*) = pointed;
    shadowed<<<1, 1>>>(out);
  }
  twice::asked_for<<<1, 1>>>(out);
  NAMED<<<1, 1>>>(out);
  named<<<1, 1>>>(out);
  cudaLaunchConfig_t config{};
  cudaLaunchKernelEx(&config, typed<int>, out, 3);
  run(out, stream);
  ask(by_array, out);
}
