#include "autostamp.cuh"
#line 1
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
#define LAUNCH(kernel, grid, block, stream, ...) kernel<<<AUTOSTAMP_PREPARE_AROUND((stream)) grid AUTOSTAMP_AROUND_END, block, 0, stream>>>(__VA_ARGS__)
#define CONFIGURED(kernel, ...) kernel<<<__VA_ARGS__>>>

extern "C" __global__ void work(int* out) { AUTOSTAMP_BIND(KEY,1) AUTOSTAMP_WARP_ENTER(KEY,1) __syncthreads(); AUTOSTAMP_WARP_EXIT(KEY,1) out[0] = 2; }
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
  AUTOSTAMP_PREPARE((0)) work<<<1, 32>>>(out);
  AUTOSTAMP_PREPARE((stream)) work<<<dim3(1, 1), dim3{32, 1}, 0, stream>>>(out);
  AUTOSTAMP_PREPARE((context.get_stream())) work<<<1, 32, 0, context.get_stream()>>>(out);
  int at = 0;
  AUTOSTAMP_PREPARE((0)) work<<<1, 32, 0, next_stream(++at)>>>(out);
  if (is_first) AUTOSTAMP_OPEN AUTOSTAMP_PREPARE((0)) work<<<1, 32>>>(out); AUTOSTAMP_CLOSE
  else
    AUTOSTAMP_OPEN AUTOSTAMP_PREPARE((stream)) work<<<n < 3 ? 1 : 2, 32, 0, stream>>>(out); AUTOSTAMP_CLOSE
  for (int i = 0; i < n; ++i) AUTOSTAMP_OPEN AUTOSTAMP_PREPARE((0)) work<<<1, 32>>>(out); AUTOSTAMP_CLOSE
  other<<<1, 32>>>(out);
  auto pointer = is_first ? work : other;
  AUTOSTAMP_PREPARE((stream)) pointer<<<1, 32, 0, stream>>>(out);
  auto later = [&] { AUTOSTAMP_PREPARE((0)) work<<<1, 32>>>(out); };
  later();
  switch (n) {
    case 1: AUTOSTAMP_PREPARE((0)) work<<<1, 32>>>(out); break;
    default: other<<<1, 32>>>(out);
  }
  void* arguments[] = {&out};
  AUTOSTAMP_PREPARE((stream)) CHECK(cudaLaunchKernel((const void*)work, dim3(1), dim3(32), arguments, 0, stream));
  AUTOSTAMP_PREPARE((0)) CHECK(cudaLaunchCooperativeKernel(work, 1, 32, arguments));
  cudaLaunchConfig_t config{};
  AUTOSTAMP_PREPARE((config.stream)) cudaError_t status = cudaLaunchKernelEx(&config, work, out);
  AUTOSTAMP_OPEN AUTOSTAMP_LAUNCHER((0)) LAUNCH(work, 1, 32, stream, out); AUTOSTAMP_CLOSE
  AUTOSTAMP_OPEN AUTOSTAMP_LAUNCHER((0)) CONFIGURED(work, 1, 32)(out); AUTOSTAMP_CLOSE
  AUTOSTAMP_OPEN AUTOSTAMP_LAUNCHER((0)) with_kernel(work, stream); AUTOSTAMP_CLOSE
  if (is_first) AUTOSTAMP_OPEN AUTOSTAMP_LAUNCHER((0)) with_kernel(&work, stream); AUTOSTAMP_CLOSE
  Configuration configuration;
  const auto launched = AUTOSTAMP_LAUNCHER_AROUND((0)) configuration.with_kernel(work, out) AUTOSTAMP_AROUND_END;
  if (AUTOSTAMP_LAUNCHER_AROUND((0)) with_kernel(work, stream) AUTOSTAMP_AROUND_END != cudaSuccess || n > 3) { AUTOSTAMP_PREPARE((0)) work<<<1, 32>>>(out); }
  auto chained = AUTOSTAMP_LAUNCHER_AROUND((0)) with_kernel(work, stream)(out) AUTOSTAMP_AROUND_END;
  AUTOSTAMP_OPEN AUTOSTAMP_LAUNCHER((0)) CHECK(with_kernel(work, stream)); AUTOSTAMP_CLOSE
  AUTOSTAMP_PREPARE((config.stream)) return status == cudaSuccess ? cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(&work), arguments) : status;
}
