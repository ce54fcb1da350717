// Launches of a kernel with the symbol: the host's part comes before the statement that launches. Calls of what launches in its
// turn have theirs until they are over.
#include <cstdio>
#include <functional>

#include "sync.cuh"

#define CHECK(call)                                            \
  do {                                                         \
    cudaError_t status = (call);                               \
    if (status != cudaSuccess) printf("%s failed\n", #call); \
  } while (0)
#define LAUNCH(kernel, grid, block, stream, ...) kernel<<<grid, block, 0, stream>>>(__VA_ARGS__)
#define CONFIGURED(kernel, ...) kernel<<<__VA_ARGS__>>>

extern "C" __global__ void work(int* out) { __syncthreads(); out[0] = 2; }
__global__ void other(int* out) { out[0] = 3; }

cudaStream_t next_stream(int& at);
using Kernel = void (*)(int*);
struct Launched {
  int operator()(int*) const { return 0; }
  bool operator!=(cudaError_t) const { return false; }
  operator cudaError_t() const { return cudaSuccess; }
};
Launched with_kernel(Kernel, cudaStream_t);
struct Configuration {
  Launched with_kernel(Kernel, int*);
};
struct Context {
  cudaStream_t get_stream() const { return nullptr; }
};

cudaError_t host(int* out, cudaStream_t stream, const Context& context, bool is_first, int n) {
  work<<<1, 32>>>(out);
  work<<<dim3(1, 1), dim3{32, 1}, 0, stream>>>(out);
  work<<<1, 32, 0, context.get_stream()>>>(out);
  int at = 0;
  work<<<1, 32, 0, next_stream(++at)>>>(out);
  if (is_first) work<<<1, 32>>>(out);
  else
    work<<<n < 3 ? 1 : 2, 32, 0, stream>>>(out);
  for (int i = 0; i < n; ++i) work<<<1, 32>>>(out);
  other<<<1, 32>>>(out);
  auto pointer = is_first ? work : other;
  pointer<<<1, 32, 0, stream>>>(out);
  auto later = [&] { work<<<1, 32>>>(out); };
  later();
  switch (n) {
    case 1: work<<<1, 32>>>(out); break;
    default: other<<<1, 32>>>(out);
  }
  void* arguments[] = {&out};
  CHECK(cudaLaunchKernel((const void*)work, dim3(1), dim3(32), arguments, 0, stream));
  CHECK(cudaLaunchCooperativeKernel(work, 1, 32, arguments));
  cudaLaunchConfig_t config{};
  cudaError_t status = cudaLaunchKernelEx(&config, work, out);
  LAUNCH(work, 1, 32, stream, out);
  CONFIGURED(work, 1, 32)(out);
  with_kernel(work, stream);
  if (is_first) with_kernel(&work, stream);
  Configuration configuration;
  const auto launched = configuration.with_kernel(work, out);
  if (with_kernel(work, stream) != cudaSuccess || n > 3) { work<<<1, 32>>>(out); }
  auto chained = with_kernel(work, stream)(out);
  CHECK(with_kernel(work, stream));
  return status == cudaSuccess ? cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(&work), arguments) : status;
}
